# Assembles the page of `gpumem-report html`: page.html with style, D3 and code in it, in two parts, before and after
# the data.
#
# D3 is Debian's node-d3; D3=FILE names another copy, of version 5 or later.  Without D3 the page is empty, and the
# command reports that.

D3 ?= $(firstword $(wildcard /usr/share/nodejs/d3/dist/d3.min.js))

HTML_DIR  := tools/gpumem-report/html
HTML_CSS  := $(HTML_DIR)/page.css
HTML_CODE := $(addprefix $(HTML_DIR)/,core.js model.js timeline.js flame.js tables.js heap.js page.js)
HTML_PAGE := $(HTML_DIR)/page.html
HTML_PARTS := $(O)/html/head $(O)/html/tail
HTML_OBJ  := $(O)/html/embed.o

# Records which copy of D3 is in the page, so that a change of D3= rebuilds it.
$(O)/html/d3: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(D3)' | cmp -s - $@ || echo '$(D3)' >$@

$(HTML_PARTS): $(O)/html/%: $(HTML_PAGE) $(HTML_CSS) $(HTML_CODE) $(HTML_DIR)/assemble.awk $(O)/html/d3 $(D3)
	$(call say,PAGE,$@)
	$(Q)$(if $(D3),awk -f $(HTML_DIR)/assemble.awk -v part=$* -v css='$(HTML_CSS)' -v d3='$(D3)' -v code='$(HTML_CODE)' $< >$@,: >$@)

$(HTML_OBJ): $(HTML_DIR)/embed.S $(HTML_PARTS)
	$(call say,AS,$<)
	$(Q)$(CC) -DHEAD='"$(O)/html/head"' -DTAIL='"$(O)/html/tail"' -c -o $@ $<
