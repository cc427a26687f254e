# What a wheel holds, when make runs with PORTABLE=1: the usual objects, linked for systems with glibc 2.28 or later
# (portable.c), and with the libraries that Debian has and they may lack.  Included by rules.mk.

# The minor number of the oldest glibc that runs a library: what we promise, or what one linked on a newer system asks for.
GLIBC_MINOR  := $(if $(PORTABLE),28,34)
oldest_glibc  = $$({ echo $(GLIBC_MINOR) && LC_ALL=C readelf -VW $(1) | sed -n 's/.*Name: GLIBC_2\.\([0-9]*\).*/\1/p'; } | sort -n | tail -n 1)

ifneq ($(PORTABLE),)
# libgpucache.so has a dlsym of its own.
portable.objs := $(O)/tools/package/portable.o $(O)/tools/package/portable-dlsym.o
portable.libs := -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2
# What was linked is also written down, for the list of it (linked.py).
LDFLAGS.portable = $(if $(filter $(LIB_SO),$@),$(firstword $(portable.objs)),$(lastword $(portable.objs))) $(portable.libs) \
                   $(if $(filter $(LIB_SO),$@),,-l:librt.so.1) -Wl,--gc-sections -Wl,--dependency-file=$@.linked

$(LIB_SO) $(REPORT) $(REPLAY) $(WAIT) $(PROBE) $(filter-out %-audit.so %-files.so %/models,$(SIMCUDA)): | $(portable.objs)
$(portable.objs): ALL_CFLAGS += -ffunction-sections
$(O)/tools/package/portable.o: ALL_CPPFLAGS += -DBRINGS_DLSYM
$(O)/tools/package/portable-dlsym.o: tools/package/portable.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
-include $(portable.objs:.o=.d)

static = -Wl,--push-state,-Bstatic $(1) -Wl,--pop-state
REPORT_LIBS := $(call static,-ldw -lelf -ljson-c -lz -llzma -lbz2 -lncursesw -ltinfo)
REPLAY_LIBS := $(call static,-ljson-c -lz)

# Opened at run time (src/stack/unwind.c).  Debian has it as a shared object for new systems, or static and bound to an address.
UNWIND := $(B)/libunwind-gpucache.so.8
.PHONY: unwind
unwind: $(UNWIND)
$(UNWIND): tools/package/libunwind.sh $(lastword $(portable.objs))
	$(call say,BUILD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)CC='$(CC)' tools/package/libunwind.sh $@ $(lastword $(portable.objs))
endif
