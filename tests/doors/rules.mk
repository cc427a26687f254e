# The programs of `make check-doors`, the driver that they look up, and the runtime libraries, ours and the real ones.
# Included by the top Makefile behind src/sim/rules.mk.

DOORS_DIR := $(B)/doors
DOORS     := $(addprefix $(DOORS_DIR)/,driver/libcuda.so.1 driver_without_proc/libcuda.so.1 \
                 reach reach_linked libreach.so libspy.so runtime runtime_static odd)

# The real runtime library, if a toolkit is installed: linked by gcc, and as nvcc links by default.
CUDART_STATIC := $(firstword $(wildcard $(addprefix $(CUDA_HOME)/,lib64/libcudart_static.a lib/libcudart_static.a)))
NVCC          := $(wildcard $(CUDA_HOME)/bin/nvcc)
DOORS         += $(if $(CUDART_STATIC),$(DOORS_DIR)/runtime_real_static) $(if $(NVCC),$(DOORS_DIR)/runtime_nvcc)

DOORS_FLAGS := -std=c11 -D_GNU_SOURCE -g -O1 -fPIC $(WARN) -I. -Itests/doors
$(DOORS_DIR)/%: DOORS_CC = $(CC) $(DOORS_FLAGS) -o $@
DOORS_DRIVER := $(DOORS_DIR)/driver/libcuda.so.1

$(filter-out $(DOORS_DIR)/runtime%,$(DOORS)): tests/doors/rows.def preload/symbols.def preload/renamed.def
$(DOORS_DIR)/driver/libcuda.so.1 $(DOORS_DIR)/driver_without_proc/libcuda.so.1: $(DOORS_DIR)/%/libcuda.so.1: \
  tests/doors/driver.c tests/doors/stubs.c tests/doors/driver.h tests/doors/names.h tests/doors/%.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(DOORS_CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=tests/doors/$*.map $(filter %.c,$^)

$(DOORS_DIR)/reach $(DOORS_DIR)/odd: $(DOORS_DIR)/%: tests/doors/%.c tests/doors/reach.h tests/doors/names.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(DOORS_CC) $< -ldl

$(DOORS_DIR)/reach_linked: tests/doors/reach.c tests/doors/reach.h tests/doors/names.h $(DOORS_DRIVER)
	$(call say,CC,$@)
	$(Q)$(DOORS_CC) -DLINKED -Wl,-z,now $< $(DOORS_DRIVER) -ldl

$(DOORS_DIR)/libreach.so: tests/doors/reach.c tests/doors/reach.h tests/doors/names.h $(DOORS_DRIVER)
	$(call say,LINK,$@)
	$(Q)$(DOORS_CC) -shared -DLINKED -DPLUGIN -Wl,-z,now $< $(DOORS_DRIVER) -ldl

$(DOORS_DIR)/libspy.so: tests/doors/spy.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(DOORS_CC) -shared $< -ldl

# One program, linked with each form of the runtime library.
DOORS_RUNTIME := -isystem src/sim/include tests/doors/runtime.c
$(DOORS_DIR)/runtime: tests/doors/runtime.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(DOORS_CC) $(DOORS_RUNTIME) -L$(SIMCUDA_DIR) -l:libcudart.so.13

$(DOORS_DIR)/runtime_static: tests/doors/runtime.c $(simcuda.rt)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(DOORS_CC) $(DOORS_RUNTIME) $(simcuda.rt) $(SANITIZE) -lpthread -ldl

$(DOORS_DIR)/runtime_real_static: tests/doors/runtime.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(DOORS_CC) $(DOORS_RUNTIME) $(CUDART_STATIC) -lpthread -ldl -lrt

# nvcc's default: static, because no -cudart option is given.
$(DOORS_DIR)/runtime_nvcc: tests/doors/runtime.c
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -x cu -o $@ $<
