# Real programs in virtual environments: run.py makes those, and says what each stands for.

CLIENT_BINS := $(B)/clients/pluggable.so

$(B)/clients/%.so: tests/clients/%.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -isystem src/sim/include -isystem src -o $@ $< -L$(B)/simcuda -l:libcudart.so.13
