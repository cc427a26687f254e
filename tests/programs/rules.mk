# The programs of tests/programs: built as a user builds them, without knowing of gpucache.
# They are linked against the simulated CUDA libraries and carry no run path, so that the loader
# takes whichever libcudart.so.13 and libcuda.so.1 the environment offers: real or simulated.

# These launch kernels of a known length (kernel.h, simulated.h).
SIMULATED := in_flight loop spill capture rescue beside ipc waves daemon depth ends
PROGRAMS := $(addprefix $(B)/programs/,train train_driver misuse pairs many errors implicit vmm arrays async async_per_thread $(SIMULATED))

PROGRAM_CFLAGS := -std=c11 -D_GNU_SOURCE -g -O1 -fno-omit-frame-pointer -fno-inline \
                  -fno-optimize-sibling-calls $(WARN)

$(B)/programs/train $(B)/programs/misuse $(B)/programs/pairs $(B)/programs/many: PROGRAM_LIBS := -l:libcudart.so.13
$(B)/programs/errors: PROGRAM_LIBS := -l:libcudart.so.13 -l:libcuda.so.1 -ldl
$(B)/programs/errors: tests/programs/errors.def tests/programs/errors.h
$(addprefix $(B)/programs/,train_driver vmm arrays implicit): PROGRAM_LIBS := -l:libcuda.so.1 -ldl
$(addprefix $(B)/programs/,$(SIMULATED)): PROGRAM_LIBS := -l:libcudart.so.13 -ldl
$(B)/programs/depth: PROGRAM_LIBS := -l:libcudart.so.13 -l:libcuda.so.1 -ldl
$(addprefix $(B)/programs/,$(SIMULATED)): tests/programs/simulated.h tests/programs/kernel.h
$(addprefix $(B)/programs/,vmm arrays): tests/programs/scenes.h
$(B)/programs/async $(B)/programs/async_per_thread: PROGRAM_LIBS := -l:libcudart.so.13 -l:libcuda.so.1 -ldl

# Processes that live in unusual ways, and contexts.
PROGRAMS += $(addprefix $(B)/programs/,life unload stderr contexts outside order early registers)
$(addprefix $(B)/programs/,life unload stderr): PROGRAM_LIBS := -l:libcudart.so.13 -ldl
$(addprefix $(B)/programs/,contexts outside order early registers): PROGRAM_LIBS := -l:libcuda.so.1 -ldl
$(addprefix $(B)/programs/,outside order): tests/programs/kernel.h

# tests/scenes
PROGRAMS += $(B)/programs/scene
$(B)/programs/scene: PROGRAM_LIBS := -l:libcudart.so.13 -l:libcuda.so.1

# What the tables of the simulated libraries promise.
PROGRAMS += $(B)/programs/standins
$(B)/programs/standins: PROGRAM_LIBS := -l:libcuda.so.1 -ldl
$(B)/programs/standins: PROGRAM_CFLAGS += -isystem $(B)/src
$(B)/programs/standins: $(patsubst %,$(B)/src/sim/lib%/names.def,cublas cudnn cusolver)

# A kernel in a fat binary.
PROGRAMS += $(B)/programs/images
$(B)/programs/images: PROGRAM_LIBS := -l:libcudart.so.13 -l:libcuda.so.1

# Graphs that are built node by node.
PROGRAMS += $(B)/programs/graphs
$(B)/programs/graphs: PROGRAM_LIBS := -l:libcuda.so.1

# Results that no kernel computed; -rdynamic exports a function by whose name the driver knows it.
PROGRAMS += $(B)/programs/reads
$(B)/programs/reads: PROGRAM_LIBS := -rdynamic -l:libcudart.so.13

# What ranks of the simulated NCCL receive of each other.
PROGRAMS += $(B)/programs/ranks
$(B)/programs/ranks: PROGRAM_LIBS := -l:libcudart.so.13 -l:libnccl.so.2
$(B)/programs/ranks: | $(SIMCUDA)

# The same program, whose default stream is each thread's own.
$(B)/programs/async_per_thread: tests/programs/async.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -isystem src/sim/include -isystem src -o $@ $< -L$(B)/simcuda -Wl,--allow-shlib-undefined $(PROGRAM_LIBS) -lpthread

# A program, and libraries that take memory each in its own way; their names are those of real ones.
LIBRARIES_DIR := $(B)/programs/libraries.d
LIBRARIES     := $(addprefix $(LIBRARIES_DIR)/,libnccl.so.2 libcublasLt.so.13 libcudnn_ops.so.9 libonnxruntime.so.1)
PROGRAMS      += $(B)/programs/libraries

$(LIBRARIES_DIR)/libnccl.so.2: LIBRARY_FLAGS := -DTAKE=take_nccl -DWAY_SHARED
$(LIBRARIES_DIR)/libcublasLt.so.13: LIBRARY_FLAGS := -DTAKE=take_cublas -DWAY_STATIC
$(LIBRARIES_DIR)/libcudnn_ops.so.9: LIBRARY_FLAGS := -DTAKE=take_cudnn -DWAY_DRIVER
$(LIBRARIES_DIR)/libonnxruntime.so.1: LIBRARY_FLAGS := -DTAKE=take_onnx -DWAY_LIBRARY
$(LIBRARIES): tests/programs/libraries.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -isystem src -shared -fPIC $(LIBRARY_FLAGS) \
	  -Wl,-soname,$(@F) -o $@ $< -L$(B)/simcuda -Wl,--allow-shlib-undefined -l:libcudart.so.13 -l:libcuda.so.1 -ldl
$(B)/programs/libraries: $(LIBRARIES)
# DT_RPATH comes before LD_LIBRARY_PATH, where the simulated ones are.
$(B)/programs/libraries: PROGRAM_LIBS := -l:libcudart.so.13 -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/libraries.d' $(LIBRARIES)

# Plugins of XLA by their names: a known table, of another major version, too small; and one for no GPU.
PJRT_TABLES := $(addprefix $(B)/programs/pjrt_tables.d/,known/xla_cuda_plugin.so other/xla_cuda_plugin.so small/xla_cuda_plugin.so \
                 known/xla_cpu_plugin.so)
PROGRAMS += $(B)/programs/pjrt
$(B)/programs/pjrt: tests/programs/pjrt_api.h | $(PJRT_TABLES)
$(B)/programs/pjrt: PROGRAM_LIBS := -l:libcuda.so.1 -ldl

$(PJRT_TABLES): PJRT_FLAGS := -DMAJOR=0 -DFNS=138
$(B)/programs/pjrt_tables.d/other/xla_cuda_plugin.so: PJRT_FLAGS := -DMAJOR=1 -DFNS=138
$(B)/programs/pjrt_tables.d/small/xla_cuda_plugin.so: PJRT_FLAGS := -DMAJOR=0 -DFNS=90
$(PJRT_TABLES): tests/programs/pjrt_tables.c tests/programs/pjrt_api.h | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -isystem src -shared -fPIC $(PJRT_FLAGS) -o $@ $< -L$(B)/simcuda -Wl,--allow-shlib-undefined -l:libcuda.so.1 -lpthread

# A program, and plug-ins with the same code, of which each is unloaded before the next takes its place.
PLUGINS  := $(addprefix $(B)/programs/plugins.d/,a.so b.so)
PROGRAMS += $(B)/programs/plugins

$(B)/programs/plugins.d/a.so: PLUGIN_FLAGS := -DTAKE=leak_of_a
$(B)/programs/plugins.d/b.so: PLUGIN_FLAGS := -DTAKE=leak_of_b
$(PLUGINS): tests/programs/plugins.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -shared -fPIC $(PLUGIN_FLAGS) -o $@ $< -L$(B)/simcuda -l:libcudart.so.13
$(B)/programs/plugins: $(PLUGINS)
# Loaded by the program, too, so that all that comes and goes is the plug-ins themselves.
$(B)/programs/plugins: PROGRAM_LIBS := -Wl,--no-as-needed -l:libcudart.so.13 -ldl

# A program, and libraries with the names of some that have a cache of their own, and of one that has none.
CALLERS  := $(addprefix $(B)/programs/callers.d/,libc10_cuda.so xla_cuda_plugin.so libplain.so)
PROGRAMS += $(B)/programs/callers

$(B)/programs/callers.d/xla_cuda_plugin.so: CALLER_TAKES := cuMemAlloc_v2
$(CALLERS): tests/programs/callers.c | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -shared -fPIC -DTAKE=$(or $(CALLER_TAKES),cudaMalloc) -o $@ $< \
	  -L$(B)/simcuda -Wl,--allow-shlib-undefined -l:libcudart.so.13 -l:libcuda.so.1
$(B)/programs/callers: $(CALLERS)
$(B)/programs/callers: PROGRAM_LIBS := -Wl,--no-as-needed -l:libcudart.so.13 -ldl

# The one that knows us, linked with either form of the library, and as C++.  Not with a sanitizer in the
# library: it looks names up by dlsym, which is ours, before it is ready for instrumented code.
CXX          := $(if $(filter default undefined,$(origin CXX)),g++,$(CXX))
API_PROGRAMS := $(if $(SANITIZE),,$(addprefix $(B)/programs/,api api_static $(if $(shell command -v $(CXX)),api_cxx)))
API_FLAGS    := -D_GNU_SOURCE -g -O1 -Wall -Wextra -Wpedantic -Werror -Iinclude -isystem src/sim/include
PROGRAMS     += $(API_PROGRAMS)

$(B)/programs/api: $(LIB_SO) | $(SIMCUDA) $(LIB_LINK)
$(B)/programs/api_static: $(LIB_A) | $(SIMCUDA)
$(B)/programs/api_cxx: $(LIB_SO) | $(SIMCUDA) $(LIB_LINK)
$(B)/programs/api_cxx: API_COMPILER = $(CXX) -x c++ -std=c++11
$(API_PROGRAMS): API_COMPILER ?= $(CC) -std=c99
$(API_PROGRAMS): tests/programs/api.c include/gpucache.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(API_COMPILER) $(API_FLAGS) -o $@ $< -x none $(filter %.so %.a,$^) \
	  -L$(B)/simcuda -Wl,--allow-shlib-undefined -l:libcudart.so.13 -lpthread -ldl

# With the nvtx3 headers of a toolkit, where there is one: what counts is NVIDIA's own way to find a tool.
NVTX_HEADER := $(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h)
ifneq ($(NVTX_HEADER),)
PROGRAMS += $(B)/programs/nvtx
$(B)/programs/nvtx: PROGRAM_LIBS := -l:libcudart.so.13 -ldl
$(B)/programs/nvtx: PROGRAM_CFLAGS += -isystem $(CUDA_HOME)/include
endif

# A sanitizer's VARIANT leaves them alone: they stand for programs that we did not compile.
$(filter-out $(API_PROGRAMS) $(addprefix $(B)/programs/,async_per_thread torch),$(PROGRAMS)): $(B)/programs/%: tests/programs/%.c | $(SIMCUDA_CORE)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -isystem src -o $@ $< -L$(B)/simcuda -Wl,--allow-shlib-undefined $(PROGRAM_LIBS) -lpthread

# Threads that no interpreter knows of, for stacks.py.
FOREIGN  := $(B)/programs/libforeign.so
PROGRAMS += $(FOREIGN)
$(FOREIGN): tests/programs/foreign.c | $(SIMCUDA)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -isystem src/sim/include -o $@ $< -L$(B)/simcuda -l:libcudart.so.13 -lpthread

# libgpucache.so with its fences switched off, for the test that shows what they are for.
NOFENCE  := $(B)/programs/libgpucache-nofence.so
PROGRAMS += $(NOFENCE)
$(NOFENCE): tests/programs/nofence.c $(call obj,$(PRELOAD_SRCS) $(RUNTIME_SRCS)) $(CORE_LIB) preload/preload.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -shared -o $@ $(filter %.c %.o,$^) $(CORE_LIB) $(ALL_LDFLAGS) \
	  -Wl,--wrap=gpc_fences_is_free_safe -Wl,--version-script=preload/preload.map -lpthread -ldl

# Programs that bring a checker or an unwinder along, and a library that does what we do.
STRANGERS := train_asan train_tsan other_dlsym.so other_exit.so report_library.so lazy_driver.so \
  $(if $(wildcard /usr/include/libunwind.h /usr/include/*/libunwind.h),unwinder)
PROGRAMS  += $(addprefix $(B)/programs/,$(STRANGERS))
$(B)/programs/train_asan $(B)/programs/train_tsan: tests/programs/train.c
$(B)/programs/unwinder: tests/programs/unwinder.c
$(B)/programs/other_dlsym.so: tests/programs/other_dlsym.c
$(B)/programs/other_exit.so: tests/programs/other_exit.c
$(B)/programs/report_library.so: tests/programs/report_library.c
$(B)/programs/lazy_driver.so: tests/programs/lazy_driver.c
# It must not be linked against what it loads.
$(B)/programs/lazy_driver.so: STRANGER_FLAGS := -shared -fPIC -ldl
$(B)/programs/train_asan: STRANGER_FLAGS := -fsanitize=address -l:libcudart.so.13
$(B)/programs/train_tsan: STRANGER_FLAGS := -fsanitize=thread -l:libcudart.so.13
$(B)/programs/unwinder: STRANGER_FLAGS := -l:libcudart.so.13 -lunwind
$(addprefix $(B)/programs/,other_dlsym.so other_exit.so report_library.so): STRANGER_FLAGS := -shared -fPIC -l:libcudart.so.13 -ldl
$(addprefix $(B)/programs/,$(STRANGERS)): | $(SIMCUDA)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -isystem src/sim/include -isystem src -o $@ $< -L$(B)/simcuda \
	  -Wl,--allow-shlib-undefined $(STRANGER_FLAGS) -lpthread

# PyTorch's side of the pluggable allocator, and its own one, in libraries with the names that it has there.
TORCH_DIR  := $(B)/programs/torch.d
TORCH_LIBS := $(addprefix $(TORCH_DIR)/,libc10.so libc10_cuda.so libtorch_cuda.so)
ifneq ($(API_PROGRAMS),)
ifneq ($(shell command -v $(CXX)),)
PROGRAMS += $(B)/programs/torch
endif
endif
# The simulator's cuda.h is C11, for C.
TORCH_CXX = $(CXX) -std=c++17 -g -O1 -Wall -Wextra -Werror -D_Static_assert=static_assert -D_Alignas=alignas

$(TORCH_DIR)/libc10.so: tests/programs/torch/report.cc tests/programs/torch/cache.hh
$(TORCH_DIR)/libc10_cuda.so: tests/programs/torch/c10.cc tests/programs/torch/cache.cc $(addprefix tests/programs/torch/,c10.hh cache.hh)
$(TORCH_DIR)/libtorch_cuda.so: tests/programs/torch/torch.cc
$(TORCH_LIBS):
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(TORCH_CXX) -isystem src/sim/include -isystem src -fPIC -shared -Wl,-soname,$(@F) -o $@ $(filter %.cc,$^)
$(B)/programs/torch: tests/programs/torch/main.cc $(addprefix tests/programs/torch/,c10.hh cache.hh) $(TORCH_LIBS) | $(SIMCUDA)
	$(call say,CXX,$@)
	$(Q)$(TORCH_CXX) -o $@ $< -L$(B)/simcuda -l:libcudart.so.13 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN/torch.d' $(TORCH_LIBS) -Wl,--allow-shlib-undefined -ldl
