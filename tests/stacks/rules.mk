# The programs of tests/stacks, each linked as the stack that it stands for.
# Included by the top Makefile behind tests/programs/rules.mk.

STACKS_DIR := $(B)/stacks
STACKS     := $(addprefix $(STACKS_DIR)/,nvcc nccl xla cuda_python ucx triton libc10_cuda.so libcumem.so)
STACK_CC    = $(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -isystem src -o $@
programs: $(STACKS)

$(STACKS): tests/stacks/stack.h tests/stacks/runtime_calls.h | $(SIMCUDA)
$(addprefix $(STACKS_DIR)/,nvcc nccl): $(STACKS_DIR)/%: tests/stacks/%.c $(simcuda.rt)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACK_CC) $< $(simcuda.rt) $(SANITIZE) -lpthread -ldl

$(addprefix $(STACKS_DIR)/,xla cuda_python ucx): $(STACKS_DIR)/%: tests/stacks/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACK_CC) $< -ldl

$(STACKS_DIR)/triton: tests/stacks/triton.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACK_CC) $< -L$(SIMCUDA_DIR) -l:libcudart.so.13 -ldl

$(STACKS_DIR)/libc10_cuda.so: tests/stacks/torch.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACK_CC) -shared -fPIC $< -L$(SIMCUDA_DIR) -l:libcudart.so.13 -ldl

$(STACKS_DIR)/libcumem.so: tests/stacks/cumem.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACK_CC) -shared -fPIC $< -L$(SIMCUDA_DIR) -l:libcuda.so.1 -ldl
