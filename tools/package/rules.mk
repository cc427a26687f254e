# make install, deb, wheel and release.  Included by the top Makefile.

PREFIX     ?= /usr/local
libdir     ?= $(PREFIX)/lib
bindir     ?= $(PREFIX)/bin
includedir ?= $(PREFIX)/include
mandir     ?= $(PREFIX)/share/man
datadir    ?= $(PREFIX)/share
INSTALL    ?= install

include tools/package/portable.mk

P     := $(B)/package
TOOLS := gpumem-report gpumem-replay gpucache-run
SLURM := $(addprefix tools/slurm/,taskprolog taskepilog collect job_submit.lua)
PUBLIC_HEADERS := $(addprefix include/,gpucache.h gpucache_format.h gpucache_kinds.h gpucache_version.h)

# Manual pages and completions are made from the output of --help.
MAN1 := $(TOOLS:%=$(P)/%.1)
MAN  := $(MAN1) $(P)/gpucache.5 $(P)/gpucache.7
COMPLETIONS := $(foreach shell,bash zsh fish,$(TOOLS:%=$(P)/%.$(shell)))
help_of = $(if $(filter $(RUN),$(1)),,$(EMULATOR)) $(1) --help
man = awk -v section=$(1) -v version=$(VERSION) -f tools/package/man.awk

$(MAN1): $(P)/%.1: $(B)/% tools/package/man.awk
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && $(call help_of,$<) >$@.help && $(call man,1) $@.help >$@
$(P)/gpucache.5: tools/package/gpucache.5.txt src/config/options.def tools/package/man.awk tools/package/options.awk
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && awk -f tools/package/options.awk src/config/options.def | cat $< - | $(call man,5) >$@
$(P)/gpucache.7: tools/package/gpucache.7.txt tools/package/man.awk
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && $(call man,7) $< >$@

define COMPLETION
$(TOOLS:%=$(P)/%.$(1)): $(P)/%.$(1): $(B)/% tools/package/completion.sh
	$$(call say,SHELL,$$@)
	$$(Q)mkdir -p $$(@D) && $$(call help_of,$$<) | tools/package/completion.sh $(1) $$* >$$@
endef
$(foreach shell,bash zsh fish,$(eval $(call COMPLETION,$(shell))))

# Relative to the library's folder, so that the CMake package can be moved as a whole.
include_from_lib = $(shell realpath -m --relative-to=$(libdir) $(includedir))
fill = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(libdir)|' -e 's|@INCLUDEDIR@|$(includedir)|' -e 's|@VERSION@|$(VERSION)|' \
       -e 's|@SONAME@|$(SONAME)|' -e 's|@INCLUDE_FROM_LIB@|$(include_from_lib)|'
to = $(DESTDIR)$(1)
compdir.bash = $(call to,$(datadir))/bash-completion/completions
compdir.zsh  = $(call to,$(datadir))/zsh/vendor-completions
compdir.fish = $(call to,$(datadir))/fish/vendor_completions.d

INSTALLED := $(PRODUCTS) $(SIMCUDA) $(MAN) $(COMPLETIONS)

install: $(INSTALLED)                      ## into PREFIX (default /usr/local), below DESTDIR
	$(Q)$(INSTALL) -d $(foreach dir,$(libdir)/pkgconfig $(libdir)/cmake/gpucache $(libdir)/gpucache/simcuda $(libdir)/gpucache/slurm $(bindir) $(includedir) \
	  $(mandir)/man1 $(mandir)/man5 $(mandir)/man7,$(call to,$(dir))) $(foreach shell,bash zsh fish,$(compdir.$(shell)))
	$(Q)$(INSTALL) -m 755 $(LIB_SO) $(call to,$(libdir))/libgpucache.so.$(VERSION)
	$(Q)ln -sfn libgpucache.so.$(VERSION) $(call to,$(libdir))/$(SONAME)
	$(Q)ln -sfn $(SONAME) $(call to,$(libdir))/libgpucache.so
	$(Q)$(INSTALL) -m 755 $(AUDIT_SO) $(GATE_SO) $(call to,$(libdir))
	$(Q)$(INSTALL) -m 644 $(LIB_A) $(call to,$(libdir))
	$(Q)$(INSTALL) -m 755 $(REPORT) $(REPLAY) $(RUN) $(call to,$(bindir))
	$(Q)$(INSTALL) -m 644 $(PUBLIC_HEADERS) $(call to,$(includedir))
	$(Q)$(INSTALL) -m 755 $(WAIT) $(TRIALS) $(CDI) $(PROBE) $(SELF_TEST) $(call to,$(libdir))/gpucache
	$(Q)$(INSTALL) -m 755 $(SLURM) $(call to,$(libdir))/gpucache/slurm
	$(Q)cp -P $(SIMCUDA) $(call to,$(libdir))/gpucache/simcuda
	$(Q)$(fill) tools/package/gpucache.pc.in >$(call to,$(libdir))/pkgconfig/gpucache.pc
	$(Q)for name in gpucache-config gpucache-config-version; do \
	  $(fill) tools/package/$$name.cmake.in >$(call to,$(libdir))/cmake/gpucache/$$name.cmake || exit; done
	$(Q)for page in $(MAN); do $(INSTALL) -m 644 $$page $(call to,$(mandir))/man$${page##*.}/ || exit; done
	$(Q)for tool in $(TOOLS); do \
	  $(INSTALL) -m 644 $(P)/$$tool.bash $(compdir.bash)/$$tool && $(INSTALL) -m 644 $(P)/$$tool.zsh $(compdir.zsh)/_$$tool && \
	  $(INSTALL) -m 644 $(P)/$$tool.fish $(compdir.fish)/ || exit; done
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@echo 'installed below $(DESTDIR)$(PREFIX); LD_PRELOAD=$(libdir)/libgpucache.so, or gpucache-run'

uninstall:                                 ## remove what install put there
	$(Q)rm -f $(addprefix $(call to,$(libdir))/,libgpucache.so libgpucache.so.$(VERSION) $(SONAME) $(notdir $(AUDIT_SO) $(GATE_SO) $(LIB_A)) pkgconfig/gpucache.pc)
	$(Q)rm -f $(addprefix $(call to,$(bindir))/,$(TOOLS)) $(addprefix $(call to,$(includedir))/,$(notdir $(PUBLIC_HEADERS)))
	$(Q)rm -f $(foreach page,$(notdir $(MAN)),$(call to,$(mandir))/man$(subst .,,$(suffix $(page)))/$(page))
	$(Q)rm -f $(TOOLS:%=$(compdir.bash)/%) $(TOOLS:%=$(compdir.zsh)/_%) $(TOOLS:%=$(compdir.fish)/%.fish)
	$(Q)rm -rf $(call to,$(libdir))/gpucache $(call to,$(libdir))/cmake/gpucache

# Build before the recursive makes below, so that `make -j deb wheel` does not build twice.
deb: $(INSTALLED)
wheel: $(HIT_OBJS) $(call obj,$(PRELOAD_SRCS) $(RUNTIME_SRCS) $(AUDIT_SRCS) $(REPORT_SRCS) $(REPLAY_SRCS) $(WAIT_SRCS) $(PROBE_SRCS)) $(HTML_OBJ) \
  $(simcuda.objs) $(LIB_A) $(CORE_LIB) $(SIM_LIB) $(FORMAT_LIB) $(REPLAY_LIB)

deb:                                       ## build/gpucache_VERSION_ARCH.deb
	$(Q)rm -rf $(P)/deb build/gpucache_*.deb && $(MAKE) --no-print-directory QUIET=1 install DESTDIR=$(abspath $(P)/deb) PREFIX=/usr libdir=/usr/lib/$$($(CC) -print-multiarch) >/dev/null
	$(Q)CROSS=$(CROSS) tools/package/deb.sh $(P)/deb $(VERSION) build

wheel:                                     ## build/gpucache-VERSION-py3-none-manylinux_2_28_ARCH.whl: library, tools, simulated GPU
	$(if $(CROSS),$(error a wheel is made on the machine that it is for))$(Q)rm -rf $(P)/wheel build/gpucache-*.whl
	$(Q)$(MAKE) --no-print-directory QUIET=1 PORTABLE=1 unwind install DESTDIR=$(abspath $(P)/wheel) PREFIX=/ >/dev/null
	$(Q)python3 -B tools/package/wheel.py $(P)/wheel $(B)/portable $(VERSION) build

release: deb wheel                         ## both, tested here and in bare systems by debootstrap; prints their checksums
	$(Q)tools/package/release.sh $(VERSION)
