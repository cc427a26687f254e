# The simulated CUDA libraries: libcuda.so.1 over src/sim, the others over libcuda.so.1, the auditor that makes the
# loader prefer them, and the device files.
# Included by the top Makefile after it has defined B, CC, ALL_*FLAGS, Q and say.

SIMCUDA_DIR := $(B)/simcuda

# The libraries over libcuda.so.1: the key used here, and the file names in CUDA 12 and CUDA 13.
STANDINS := nvidia_ml cudart cublas cublaslt cudnn cufft cusolver cusparse curand nccl cupti
sonames.nvidia_ml := libnvidia-ml.so.1
sonames.cudart   := libcudart.so.12 libcudart.so.13
sonames.cublas   := libcublas.so.12 libcublas.so.13
sonames.cublaslt := libcublasLt.so.12 libcublasLt.so.13
sonames.cudnn    := libcudnn.so.9
sonames.cufft    := libcufft.so.11 libcufft.so.12
sonames.cusolver := libcusolver.so.11 libcusolver.so.12
sonames.cusparse := libcusparse.so.12
sonames.curand   := libcurand.so.10
sonames.nccl     := libnccl.so.2
sonames.cupti    := libcupti.so.12 libcupti.so.13
# Patterns of the exported names, for the version script.
exports.nvidia_ml := nvml*;
exports.cudart   := __cuda*; cuda*;
exports.cublas   := cublas*;
exports.cublaslt := cublasLt*;
exports.cudnn    := cudnn*;
exports.cufft    := cufft*;
exports.cusolver := cusolver*;
exports.cusparse := cusparse*;
exports.curand   := curand*;
exports.nccl     := nccl*; pnccl*;
exports.cupti    := cupti*;

# NVIDIA's libraries version their symbols with the name of the file, except for these.
unversioned := nvidia_ml nccl

STANDIN_LIBS := $(foreach word,$(STANDINS),$(sonames.$(word)))
SIMCUDA := $(addprefix $(SIMCUDA_DIR)/,libcuda.so.1 libcuda.so libcudart.so libgpusim-audit.so libgpusim-files.so models \
             $(STANDIN_LIBS))

# Enough for a program that uses only the CUDA runtime; NVML for the size of contexts.
SIMCUDA_CORE := $(addprefix $(SIMCUDA_DIR)/,libcuda.so.1 libnvidia-ml.so.1 libcudart.so.13 libgpusim-audit.so libgpusim-files.so models)

simcuda.cuda  := $(patsubst %.c,$(O)/%.o,$(wildcard src/simcuda/libcuda/*.c))
simcuda.audit := $(O)/src/simcuda/audit.o
simcuda.files := $(O)/src/simcuda/files.o
simcuda.objs  := $(simcuda.cuda) $(simcuda.audit) $(simcuda.files) $(O)/src/simcuda/standins/standin.o

# The rules for one library: its functions, its stubs, its file names.
define STANDIN
simcuda.$(1) := $$(patsubst %.c,$$(O)/%.o,$$(wildcard src/simcuda/lib$(1).c src/simcuda/lib$(1)/*.c src/simcuda/standins/lib_$(1).c src/simcuda/standins/lib_$(1)_*.c))
simcuda.objs += $$(simcuda.$(1)) $$(O)/src/simcuda/standins/stubs_$(1).o
$$(O)/src/simcuda/standins/names_$(1).def: src/simcuda/standins/names_$(1).txt src/simcuda/standins/names.awk
	$$(Q)mkdir -p $$(@D)
	$$(Q)awk -f src/simcuda/standins/names.awk $$< >$$@
$$(O)/src/simcuda/standins/stubs_$(1).o: src/simcuda/standins/stubs.c $$(O)/src/simcuda/standins/names_$(1).def
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) $$(ALL_CFLAGS) -DNAMES='"$$(O)/src/simcuda/standins/names_$(1).def"' $$(stubflags.$(1)) -MMD -MP -c -o $$@ $$<
$$(addprefix $$(SIMCUDA_DIR)/,$$(sonames.$(1))): $$(simcuda.$(1)) $$(O)/src/simcuda/standins/stubs_$(1).o $$(O)/src/simcuda/standins/standin.o
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)printf '%s { global: %s local: *; };\n' '$$(if $$(filter $(1),$$(unversioned)),,$$(@F))' '$$(exports.$(1))' >$$@.map
	$$(Q)$$(CC) -shared -Wl,-soname,$$(@F) -Wl,-Bsymbolic -Wl,--version-script=$$@.map $$(ALL_LDFLAGS) -o $$@ $$(filter %.o,$$^) \
	  -ldl -lpthread -lrt
endef
stubflags.cudart    := -DNOT_SUPPORTED=rt_not_supported
stubflags.nvidia_ml := -DNOT_SUPPORTED=nvml_not_supported
$(foreach word,$(STANDINS),$(eval $(call STANDIN,$(word))))

# The runtime as objects, for programs that link it statically.
simcuda.rt := $(simcuda.cudart) $(O)/src/simcuda/standins/stubs_cudart.o $(O)/src/simcuda/standins/standin.o

$(simcuda.objs): ALL_CPPFLAGS += -Isrc/simcuda/include -Isrc/simcuda
# A stand-in ignores most of what its functions are passed.
$(simcuda.objs): ALL_CFLAGS += -Wno-unused-parameter
# Programs open these libraries late, when the static TLS block may be full.
$(simcuda.objs): ALL_CFLAGS += -ftls-model=global-dynamic

# Links the model, and only what it needs of base and stack, from libsim.a and libcore.a.
$(SIMCUDA_DIR)/libcuda.so.1: $(simcuda.cuda) $(SIM_LIB) $(CORE_LIB) src/simcuda/libcuda/libcuda.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=src/simcuda/libcuda/libcuda.map $(ALL_LDFLAGS) \
	  -o $@ $(simcuda.cuda) $(SIM_LIB) $(CORE_LIB) -lpthread -ldl

# Without libc: the loader gives an auditor its own namespace, and would load a second libc into every process.
simcuda.comma := ,
$(simcuda.audit): ALL_CFLAGS += -DSIMULATED_NAMES='"libcuda.so.1"$(foreach name,libcuda.so libcudart.so \
                                    $(STANDIN_LIBS),$(simcuda.comma) "$(name)")'
$(simcuda.audit): src/simcuda/rules.mk
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
$(SIMCUDA_DIR)/models: src/sim/models.def
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
	@echo $(sonames.$(WORD))
exports:
	@echo '$(exports.$(WORD))'
