# The programs of tests/programs: built as a user builds them, without knowing of gpucache.
# They are linked against the simulated CUDA libraries and carry no run path, so that the loader
# takes whichever libcudart.so.13 and libcuda.so.1 the environment offers: real or simulated.

PROGRAMS := $(B)/programs/train $(B)/programs/train_driver $(B)/programs/misuse $(B)/programs/pairs

PROGRAM_CFLAGS := -std=c11 -D_GNU_SOURCE -g -O1 -fno-omit-frame-pointer -fno-inline \
                  -fno-optimize-sibling-calls $(WARN)

$(B)/programs/train $(B)/programs/misuse $(B)/programs/pairs: PROGRAM_LIBS := -l:libcudart.so.13
$(B)/programs/train_driver: PROGRAM_LIBS := -l:libcuda.so.1 -ldl

# A sanitizer's VARIANT leaves them alone: they stand for programs that we did not compile.
$(PROGRAMS): $(B)/programs/%: tests/programs/%.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem tests/simcuda/include -isystem src -o $@ $< -L$(B)/simcuda -Wl,--allow-shlib-undefined $(PROGRAM_LIBS) -lpthread
