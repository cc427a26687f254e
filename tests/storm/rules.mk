# tests/storm: a program and a library that know nothing of us, and so are built without sanitizers, once for all variants.

.PHONY: storm-bins
ifneq ($(VARIANT),release)
storm-bins:
	$(Q)$(MAKE) --no-print-directory VARIANT=release $@
else
STORM_BINS  := $(addprefix $(B)/tests/storm/,storm plug.so)
STORM_BUILD  = $(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -isystem src -o $@ $< -L$(B)/simcuda \
                 -Wl,--allow-shlib-undefined -l:libcuda.so.1 -lpthread -ldl

storm-bins: $(STORM_BINS)
$(STORM_BINS): | $(SIMCUDA_CORE)
$(B)/tests/storm/storm: tests/storm/storm.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(STORM_BUILD)
$(B)/tests/storm/plug.so: tests/storm/plug.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(STORM_BUILD) -shared -fPIC
endif
