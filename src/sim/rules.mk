# The simulated CUDA libraries: libcuda.so.1 over the GPU (gpu/), the others over libcuda.so.1, the auditor that makes
# the loader prefer them, and the device files.
# Included by the top Makefile after it has defined B, CC, ALL_*FLAGS, Q and say.

SIMCUDA_DIR := $(B)/simcuda

# The libraries over libcuda.so.1, each a folder here, and the ends of their file names in CUDA 12 and CUDA 13.
STANDINS := libnvidia-ml libcudart libcublas libcublasLt libcudnn libcufft libcusolver libcusparse libcurand libnccl libcupti
versions.libnvidia-ml := 1
versions.libcudart    := 12 13
versions.libcublas    := 12 13
versions.libcublasLt  := 12 13
versions.libcudnn     := 9
versions.libcufft     := 11 12
versions.libcusolver  := 11 12
versions.libcusparse  := 12
versions.libcurand    := 10
versions.libnccl      := 2
versions.libcupti     := 12 13
sonames = $(addprefix $(1).so.,$(versions.$(1)))
# Patterns of the exported names, for the version script.
exports = $(or $(exports.$(1)),$(1:lib%=%)*;)
exports.libnvidia-ml := nvml*;
exports.libcudart    := __cuda*; cuda*;
exports.libnccl      := nccl*; pnccl*;

# NVIDIA's libraries version their symbols with the name of the file, except for these.
unversioned := libnvidia-ml libnccl

STANDIN_LIBS := $(foreach library,$(STANDINS),$(call sonames,$(library)))
SIMCUDA := $(addprefix $(SIMCUDA_DIR)/,libcuda.so.1 libcuda.so libcudart.so libgpusim-audit.so libgpusim-files.so models \
             $(STANDIN_LIBS))

# Enough for a program that uses only the CUDA runtime; NVML for the size of contexts.
SIMCUDA_CORE := $(addprefix $(SIMCUDA_DIR)/,libcuda.so.1 libnvidia-ml.so.1 libcudart.so.13 libgpusim-audit.so libgpusim-files.so models)

SIM := $(O)/src/sim
simcuda.of = $(patsubst %.c,$(O)/%.o,$(wildcard src/sim/$(1)/*.c))
simcuda.cuda  := $(call simcuda.of,libcuda)
simcuda.audit := $(SIM)/loader/audit.o
simcuda.files := $(SIM)/loader/files.o
simcuda.objs  := $(simcuda.cuda) $(simcuda.audit) $(simcuda.files) $(SIM)/standin/standin.o

# The rules for one library: its functions, its stubs, its file names.
define STANDIN
simcuda.$(1) := $$(call simcuda.of,$(1)) $$(SIM)/$(1)/stubs.o $$(SIM)/standin/standin.o
simcuda.objs += $$(simcuda.$(1))
$$(SIM)/$(1)/names.def: src/sim/$(1)/names.txt src/sim/standin/names.awk
	$$(Q)mkdir -p $$(@D)
	$$(Q)awk -f src/sim/standin/names.awk $$< >$$@
$$(SIM)/$(1)/stubs.o: src/sim/standin/stubs.c $$(SIM)/$(1)/names.def
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) $$(ALL_CFLAGS) -DLIBRARY='"$(1)"' -DNAMES='"$$(SIM)/$(1)/names.def"' $$(stubflags.$(1)) -MMD -MP -c -o $$@ $$<
$$(addprefix $$(SIMCUDA_DIR)/,$$(call sonames,$(1))): $$(simcuda.$(1))
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)printf '%s { global: %s local: *; };\n' '$$(if $$(filter $(1),$$(unversioned)),,$$(@F))' '$$(call exports,$(1))' >$$@.map
	$$(Q)$$(CC) -shared -Wl,-soname,$$(@F) -Wl,-Bsymbolic -Wl,--version-script=$$@.map $$(ALL_LDFLAGS) -o $$@ $$^ -ldl -lpthread -lrt
endef
stubflags.libcudart    := -DNOT_SUPPORTED=rt_not_supported
stubflags.libnvidia-ml := -DNOT_SUPPORTED=nvml_not_supported
$(foreach library,$(STANDINS),$(eval $(call STANDIN,$(library))))
simcuda.objs := $(sort $(simcuda.objs))

# The runtime as objects, for programs that link it statically.
simcuda.rt := $(simcuda.libcudart)

$(simcuda.objs): ALL_CPPFLAGS += -Isrc/sim/include
# A stand-in ignores most of what its functions are passed.
$(simcuda.objs): ALL_CFLAGS += -Wno-unused-parameter
# Programs open these libraries late, when the static TLS block may be full.
$(simcuda.objs): ALL_CFLAGS += -ftls-model=global-dynamic

# Links the model, and only what it needs of base and stack, from libsim.a and libcore.a.
$(SIMCUDA_DIR)/libcuda.so.1: $(simcuda.cuda) $(SIM_LIB) $(CORE_LIB) src/sim/libcuda/libcuda.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=src/sim/libcuda/libcuda.map $(ALL_LDFLAGS) \
	  -o $@ $(simcuda.cuda) $(SIM_LIB) $(CORE_LIB) -lpthread -ldl

# Without libc: the loader gives an auditor its own namespace, and would load a second libc into every process.
simcuda.comma := ,
$(simcuda.audit): ALL_CFLAGS += -DSIMULATED_NAMES='"libcuda.so.1"$(foreach name,libcuda.so libcudart.so \
                                    $(STANDIN_LIBS),$(simcuda.comma) "$(name)")'
$(simcuda.audit): src/sim/rules.mk
$(simcuda.audit): ALL_CFLAGS += -ffreestanding -fno-stack-protector $(if $(SANITIZE),-fno-sanitize=all)
$(SIMCUDA_DIR)/libgpusim-audit.so: $(simcuda.audit)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -nostdlib -Wl,-soname,libgpusim-audit.so -Wl,-z,noseparate-code $(LDFLAGS.base) -o $@ $<

$(SIMCUDA_DIR)/libgpusim-files.so: $(simcuda.files)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libgpusim-files.so $(LDFLAGS.base) $(SANITIZE) -o $@ $<

# The GPUs for gpucache-run: key, memory in MiB, compute capability, name.
$(SIMCUDA_DIR)/models: src/sim/gpu/models.def
	$(Q)mkdir -p $(@D)
	$(Q)sed -n 's/^MODEL("\([^"]*\)", "\([^"]*\)", \([0-9]*\), \([0-9]*\), [0-9]*, \([0-9]*\),.*/\1 \5 \3.\4 \2/p' $< | \
	  grep -v '^none ' >$@

$(SIMCUDA_DIR)/libcuda.so: $(SIMCUDA_DIR)/libcuda.so.1
	$(Q)ln -sf libcuda.so.1 $@

$(SIMCUDA_DIR)/libcudart.so: $(SIMCUDA_DIR)/libcudart.so.13
	$(Q)ln -sf libcudart.so.13 $@

# Print the file names, or the patterns of exported names, of the library WORD, for tests.
.PHONY: sonames exports
sonames:
	@echo $(call sonames,$(WORD))
exports:
	@echo '$(call exports,$(WORD))'
