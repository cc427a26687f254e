# The programs by which tests/gpu/run.sh examines the driver: linked like tests/programs, for any libcuda.so.1.
# Included by the top Makefile behind tests/programs/rules.mk.

GPU_PROGRAMS := $(addprefix $(B)/gpu/,questions fences order costs reuse)

$(GPU_PROGRAMS): tests/gpu/driver.h tests/programs/kernel.h
$(GPU_PROGRAMS): $(B)/gpu/%: tests/gpu/%.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -I. -isystem src/sim/include -isystem src -o $@ $< -L$(B)/simcuda \
	  -Wl,--allow-shlib-undefined -l:libcuda.so.1 -ldl -lpthread

# Shared libraries that library and tools need and a bare machine may lack.
GPU_LIBRARIES := libunwind.so.8 libdw.so.1 libelf.so.1 libjson-c.so.5 libcmocka.so.0

.PHONY: gpu-libraries
gpu-libraries:
	$(Q)mkdir -p build/lib
	$(Q)for name in $(GPU_LIBRARIES); do \
		path=$$(/sbin/ldconfig -p | awk -v name=$$name '$$1 == name { print $$NF; exit }'); \
		if [ -n "$$path" ]; then cp "$$path" build/lib/; else echo "$$name: not installed here"; fi; done
