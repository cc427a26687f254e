# What tests/gpu/run.sh asks of the driver itself: linked like tests/programs, with whichever libcuda.so.1 is there.
# Included by the top Makefile behind tests/programs/rules.mk.

GPU_PROGRAMS := $(addprefix $(B)/gpu/,questions costs reuse)

$(GPU_PROGRAMS): tests/gpu/driver.h tests/programs/kernel.h
$(GPU_PROGRAMS): $(B)/gpu/%: tests/gpu/%.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -I. -isystem src/simcuda/include -isystem src -o $@ $< -L$(B)/simcuda \
	  -Wl,--allow-shlib-undefined -l:libcuda.so.1 -ldl -lpthread
