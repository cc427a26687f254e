# The stand-ins for libcuda.so.1, libcudart.so.{12,13} and libnvidia-ml.so.1, over src/sim.
# Included by the top Makefile after it has defined B, CC, ALL_*FLAGS, Q and say.

SIMCUDA_DIR := $(B)/simcuda
SIMCUDA     := $(addprefix $(SIMCUDA_DIR)/,libcuda.so.1 libcuda.so libcudart.so.12 libcudart.so.13 libcudart.so libnvidia-ml.so.1)

simcuda.cuda := $(patsubst %.c,$(B)/%.o,$(wildcard src/simcuda/libcuda_*.c))
simcuda.rt   := $(patsubst %.c,$(B)/%.o,$(wildcard src/simcuda/libcudart_*.c))
simcuda.objs := $(simcuda.cuda) $(simcuda.rt) $(B)/src/simcuda/libnvidia_ml.o
$(simcuda.objs): ALL_CPPFLAGS += -Isrc/simcuda/include -Isrc/simcuda

# Only the model, and what it needs of base: the object files of libsim.a and libcore.a.
$(SIMCUDA_DIR)/libcuda.so.1: $(simcuda.cuda) $(B)/libsim.a $(B)/libcore.a src/simcuda/libcuda.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=src/simcuda/libcuda.map $(ALL_LDFLAGS) \
	  -o $@ $(simcuda.cuda) $(B)/libsim.a $(B)/libcore.a -lpthread

$(SIMCUDA_DIR)/libcudart.so.12 $(SIMCUDA_DIR)/libcudart.so.13: $(SIMCUDA_DIR)/libcudart.so.%: \
  $(simcuda.rt) src/simcuda/libcudart.%.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcudart.so.$* -Wl,-Bsymbolic \
	  -Wl,--version-script=src/simcuda/libcudart.$*.map $(ALL_LDFLAGS) -o $@ $(simcuda.rt) -ldl -lpthread

$(SIMCUDA_DIR)/libnvidia-ml.so.1: $(B)/src/simcuda/libnvidia_ml.o
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 $(ALL_LDFLAGS) -o $@ $< -ldl

$(SIMCUDA_DIR)/libcuda.so: $(SIMCUDA_DIR)/libcuda.so.1
	$(Q)ln -sf libcuda.so.1 $@

$(SIMCUDA_DIR)/libcudart.so: $(SIMCUDA_DIR)/libcudart.so.13
	$(Q)ln -sf libcudart.so.13 $@
