# gpucache: a caching GPU memory allocator that says who holds the memory, and why it ran out.
#
#   make          build            make demo    set up, build, and show the main job
#   make help     all targets      make check   set up, build, and run every test and lint
#
# Knobs (on the command line, or in config.mak, which git ignores):
#   VARIANT    release | debug | asan | tsan | cov | analyze   (default: release)
#   CROSS      the compiler's prefix, to build for another machine: aarch64-linux-gnu-   (EMULATOR=qemu-aarch64 runs what it built)
#   CUDA_HOME  a CUDA toolkit; used by tests only, never by the product   (default: /usr/local/cuda)
#   V=1        print whole commands; QUIET=1 prints none
#   -jN        N commands at a time; as many as there are processors where it is not said
#   WERROR=0   do not turn warnings into errors
#
# Everything of a variant is built in build/<variant>/ (with CROSS in front); the release build for this machine is also linked
# from build/.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-builtin-variables

-include config.mak

VARIANT   ?= release
CUDA_HOME ?= /usr/local/cuda
ifneq ($(filter default undefined,$(origin CC)),)
CC        := $(CROSS)gcc
endif
ifneq ($(filter default undefined,$(origin AR)),)
AR        := $(CROSS)ar
endif
# Objects; and what is linked from them.  Wheels and builds for this machine have the objects in common.
O         := build/$(CROSS)$(VARIANT)
B         := $(O)$(if $(PORTABLE),/portable)
Q         := $(if $(V),,@)
say        = $(if $(V)$(QUIET),,@printf '  %-6s %s\n' '$(1)' '$(2)')

##### What has to be there first #####

# Looked for before anything is built, so that no order under -j can matter.  What is missing is named; `setup`, the demo and
# packages install it, as root.
GOALS        := $(or $(MAKECMDGOALS),all)
NEEDS_BUILD  := all install gpu
NEEDS_DEB    := deb
NEEDS_WHEEL  := wheel
NEEDS_RELEASE := release
NEEDS_DEMO   := demo
NEEDS_TESTS  := bench check-doors check-kill fuzz prove-reuse tests
NEEDS_CLUSTER := check-cluster
NEEDS_SETUP  := setup
NEEDS_CHECK  := check check-long soak check-clients lint mutants bench-peers
wanted        = $(if $(filter $(1),$(GOALS)),$(2))
SETUP        := $(or $(call wanted,$(NEEDS_SETUP),check),$(strip \
                  $(call wanted,$(NEEDS_CHECK),name check) $(call wanted,$(NEEDS_CLUSTER),name tests cluster) $(call wanted,$(NEEDS_TESTS),name tests) \
                  $(call wanted,$(NEEDS_DEMO),build) $(call wanted,$(NEEDS_DEB),deb) \
                  $(call wanted,$(NEEDS_WHEEL),wheel) $(call wanted,$(NEEDS_RELEASE),deb wheel release)),$(call wanted,$(NEEDS_BUILD),name))

ifeq ($(MAKELEVEL)$(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),0)
# Another machine's packages are not looked for: docs/user/INSTALL.md names them.
ifneq ($(and $(SETUP),$(if $(CROSS),,here)),)
ifneq ($(shell tools/setup.sh $(SETUP) >&2 && echo there),there)
$(error something is missing, see above)
endif
endif
# A number on the command line wins; what is to be cleaned is not built at the same time.
ifeq ($(filter clean uninstall,$(GOALS)),)
MAKEFLAGS += -j$(shell nproc)
endif
endif

##### Flags #####

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough \
        -Wswitch-enum -Wno-missing-field-initializers $(if $(filter 0,$(WERROR)),,-Werror)

CPPFLAGS.base := -D_GNU_SOURCE -Iinclude -Isrc -I.
# Tests compare our own declarations with the real ones where a toolkit is there.
CPPFLAGS.test := -Itests/unit $(if $(wildcard $(CUDA_HOME)/include/cuda.h),-isystem $(CUDA_HOME)/include)
# Released: lines and inlined calls, for backtraces; variables, for a debugger, make a build a sixth longer.
CFLAGS.base   := -std=c11 $(if $(filter release,$(VARIANT)),-g1,-g) -fPIC -fvisibility=hidden -fno-common -fno-omit-frame-pointer $(WARN)
# A call of the loader for every thread-local variable would cost more than a hit's lock; they are few and small.
CFLAGS.base   += -ftls-model=initial-exec
LDFLAGS.base  := -Wl,-z,defs -Wl,-z,now -Wl,-z,relro

CFLAGS.release := -O2 -DGPC_CHECK_LEVEL=0
# A hit is a dozen small functions deep: 10 % less with -O3.
CFLAGS.library := $(if $(filter release,$(VARIANT)),-O3)
# And what a hit goes through is compiled once more, as one unit across its files: 10 % less again.
LTO            := $(if $(filter release,$(VARIANT)),$(if $(findstring clang,$(CC)),,-flto=auto))
CFLAGS.debug   := -Og -DGPC_CHECK_LEVEL=2
CFLAGS.asan    := -O1 -DGPC_CHECK_LEVEL=2 -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS.tsan    := -O1 -DGPC_CHECK_LEVEL=1 -fsanitize=thread
CFLAGS.cov     := -O0 -DGPC_CHECK_LEVEL=2 --coverage
CFLAGS.analyze := -O1 -DGPC_CHECK_LEVEL=2 -fanalyzer

ifeq ($(CFLAGS.$(VARIANT)),)
$(error VARIANT=$(VARIANT) is not one of: release debug asan tsan cov analyze)
endif

ALL_CPPFLAGS := $(CPPFLAGS.base) $(CPPFLAGS)
# What a packager or developer says comes last, and wins.
ALL_CFLAGS   := $(CFLAGS.base) $(CFLAGS.$(VARIANT)) $(CFLAGS)
LIBRARY_CFLAGS = $(CFLAGS.base) $(CFLAGS.$(VARIANT)) $(BANNED) $(CFLAGS.library) $(CFLAGS)
SANITIZE     := $(filter -fsanitize% --coverage,$(CFLAGS.$(VARIANT)))
ALL_LDFLAGS   = $(LDFLAGS.base) $(SANITIZE) $(LDFLAGS) $(LDFLAGS.portable)

# Every process that inherits LD_PRELOAD loads the library, so what it costs to load is kept small: no lookup
# of our own functions by name, and two mappings instead of four.
LDFLAGS.library := -Wl,-Bsymbolic-functions -Wl,-z,noseparate-code
# A program that closes the library may hold our functions: those that dlsym and cuGetProcAddress gave it, atexit's.
LDFLAGS.library += -Wl,-z,nodelete

# What lives in the host process does not compile with malloc, stdio or exit in it (base/banned.h).
BANNED := -include src/base/banned.h

obj = $(patsubst %.c,$(O)/%.o,$(1))

##### Files (found, never listed: a new file needs no edit here) #####

CORE_SRCS    := $(sort $(wildcard $(addprefix src/,$(addsuffix /*.c,base document model names why config driver alloc stack record oom))))
RUNTIME_SRCS := $(sort $(wildcard src/runtime/*.c src/runtime/*/*.c))
PRELOAD_SRCS := $(sort $(wildcard preload/*.c))
AUDIT_SRCS   := preload/audit/audit.c
GATE_SRCS    := preload/gate/gate.c
FORMAT_SRCS  := $(sort $(wildcard src/format/*.c))
SIM_SRCS     := $(sort $(wildcard src/sim/gpu/*.c src/sim/gpu/*/*.c))
REPLAY_LIB_SRCS := $(sort $(wildcard tools/lib/*.c tools/replay/*.c))
REPORT_SRCS  := $(sort $(wildcard tools/gpumem-report/*.c tools/gpumem-report/*/*.c))
REPLAY_SRCS  := $(sort $(wildcard tools/gpumem-replay/*.c))
WAIT_SRCS    := tools/gpucache-wait/wait.c
PROBE_SRCS   := tools/gpucache-probe/probe.c
UNIT_SRCS    := $(sort $(wildcard tests/unit/*/test_*.c))
HELPER_SRCS  := $(filter-out $(UNIT_SRCS),$(sort $(wildcard tests/unit/*/*.c)))
UNIT_MAIN    := tests/unit/main.c
MODEL_SRCS   := $(sort $(wildcard tests/model/test_*.c tests/fault/test_*.c))
CONF_SRCS    := $(filter-out tests/conformance/test_%.c tests/conformance/check_%.c,$(wildcard tests/conformance/*.c))
CONF_TESTS   := $(sort $(wildcard tests/conformance/test_*.c))
PROVE_TESTS  := $(sort $(wildcard tests/prove/prove_*.c))
PROVE_SRCS   := $(filter-out $(PROVE_TESTS),$(sort $(wildcard tests/prove/*.c)))
BENCH_SRCS   := $(sort $(wildcard tests/bench/bench_*.c))
KIT_SRCS     := $(sort $(wildcard tests/bench/replay/*.c))
FORMATTED    := $(sort $(filter-out src/sim/include/%,$(wildcard include/*.h examples/*.c $(addsuffix /*.[ch],$(wildcard src/* src/*/* src/*/*/* preload preload/* tools/* tools/*/* tests/* tests/*/*)))))
HEADERS      := $(sort $(filter-out src/base/banned.h src/sim/include/% src/sim/lib%,$(wildcard include/*.h src/*/*.h src/*/*/*.h src/*/*/*/*.h preload/*.h tools/*/*.h tools/*/*/*.h)))

# Listed: what a hit goes through (LTO).
HIT_SRCS     := $(if $(LTO),$(addprefix src/,$(addsuffix .c,base/clock base/metamem record/windows runtime/memory runtime/context/contexts \
                runtime/ledger/observe runtime/ledger/tensors runtime/process/enter runtime/process/stacks)) \
                $(wildcard src/alloc/*.c) $(addprefix src/stack/,capture.c depot.c python.c trails.c unwind.c walk.c) preload/hooks_memory.c \
                preload/hooks_torch.c)

VERSION    := $(shell sed -n 's/^\#define GPUCACHE_VERSION "\(.*\)"/\1/p' include/gpucache_version.h)
SONAME     := libgpucache.so.$(firstword $(subst ., ,$(VERSION)))
LIB_SO     := $(B)/libgpucache.so
LIB_LINK   := $(B)/$(SONAME)
LIB_A      := $(O)/libgpucache.a
AUDIT_SO   := $(B)/libgpucache-audit.so
GATE_SO    := $(B)/libgpucache-gate.so
CORE_LIB   := $(O)/libcore.a
FORMAT_LIB := $(O)/libformat.a
SIM_LIB    := $(O)/libsim.a
REPLAY_LIB := $(O)/libreplay.a
RUNTIME_LIB := $(O)/libruntime.a
REPORT_LIB := $(O)/libreport.a
REPORT     := $(B)/gpumem-report
REPLAY     := $(B)/gpumem-replay
REPLAY_KIT := $(B)/tests/bench/replay/gpumem-replay
RUN        := $(B)/gpucache-run
WAIT       := $(B)/gpucache-wait
TRIALS     := $(B)/gpucache-trials
CDI        := $(B)/gpucache-cdi
PROBE      := $(B)/gpucache-probe
SELF_TEST  := $(B)/gpucache-self-test
PRODUCTS   := $(LIB_SO) $(LIB_LINK) $(LIB_A) $(AUDIT_SO) $(GATE_SO) $(REPORT) $(REPLAY) $(RUN) $(WAIT) $(CDI) $(PROBE) $(SELF_TEST) $(TRIALS)
LINKS      := $(addprefix build/,$(notdir $(PRODUCTS)) simcuda programs stacks)
DEMO_LINKS := $(addprefix build/,$(notdir $(LIB_SO) $(REPORT) $(RUN)) simcuda programs)

UNIT_BINS  := $(patsubst %.c,$(B)/%,$(UNIT_SRCS))
TEST_BINS  := $(UNIT_BINS) $(patsubst %.c,$(B)/%,$(MODEL_SRCS) $(CONF_TESTS) $(PROVE_TESTS))
BENCH_BINS := $(patsubst %.c,$(B)/%,$(BENCH_SRCS))
ALL_OBJS   := $(call obj,$(CORE_SRCS) $(RUNTIME_SRCS) $(PRELOAD_SRCS) $(AUDIT_SRCS) $(FORMAT_SRCS) $(SIM_SRCS) $(REPLAY_LIB_SRCS) $(REPORT_SRCS) $(REPLAY_SRCS) $(WAIT_SRCS) $(PROBE_SRCS) \
                $(UNIT_SRCS) $(HELPER_SRCS) $(UNIT_MAIN) $(MODEL_SRCS) $(CONF_SRCS) $(CONF_TESTS) $(PROVE_SRCS) $(PROVE_TESTS) $(BENCH_SRCS) $(KIT_SRCS))

##### Public targets #####

.PHONY: all setup demo gpu check check-long check-clients check-cluster check-kill check-doors fuzz prove-reuse soak mutants lint bench bench-peers install uninstall deb wheel release clean help FORCE
all: $(PRODUCTS) simcuda $(if $(filter release,$(CROSS)$(VARIANT)),links) ## build the library, the tools and the simulated GPU

demo:                                      ## install what is missing, build what it takes, and show the main job
	@echo 'building: a minute of one processor'
	$(Q)$(MAKE) --no-print-directory QUIET=1 demo-parts
	$(Q)tools/demo.sh build

setup:                                     ## install what the tests and lints need
	@:

check:                                     ## build, and run every test and lint; names what is missing
	$(Q)tests/check.sh

check-long:                                ## prove-reuse, check-kill, storms, faults and fuzz at full length; the pages in a browser
	$(Q)tests/check.sh long

check-doors: all doors                     ## every way to the driver by every function of ours; V=1 names each, UNHOOK=NAME breaks one
	$(Q)CUDA_HOME=$(CUDA_HOME) UNHOOK=$(UNHOOK) tests/doors/run.sh $(B)

check-clients: all clients                 ## real programs from PyPI on the simulated GPU, plain and with the library; CLIENTS="torch"
	$(Q)tests/clients/run.py $(B) $(CLIENTS)

check-cluster: all programs                ## real Slurm, containers and Prometheus of Debian on this host, as root; CASES="slurm array"
	$(Q)tests/cluster/run.py $(B) $(CASES)

prove-reuse: $(B)/tests/prove/prove_reuse    ## random programs find no unsafe reuse, and find it where it is; OPS=, SEED=
	$(Q)OPS=$(or $(OPS),1000000) SEED=$(SEED) $<

check-kill: all kill-bins                  ## kill a busy program in many ways, and read what it left; RUNS=, SEED=
	$(Q)tests/kill/run.py $(B) --runs $(or $(RUNS),300) $(if $(SEED),--seed $(SEED))

fuzz:                                      ## feed damaged input to every reader, with sanitizers; FUZZ_SECONDS=, SEED=
	$(Q)$(MAKE) --no-print-directory VARIANT=asan fuzz-bin
	$(Q)build/asan/tests/fuzz/fuzz -s $(or $(FUZZ_SECONDS),300) $(if $(SEED),-S $(SEED)) tests/fuzz/corpus build/fuzz

soak: all kill-bins $(B)/tests/prove/prove_reuse ## programs, kills and damaged input in turn, for as long as one says; SECONDS=, SEED=
	$(Q)$(MAKE) --no-print-directory VARIANT=asan fuzz-bin
	$(Q)tests/soak.py $(B) build/asan/tests/fuzz/fuzz --seconds $(or $(SECONDS),3600) $(if $(SEED),--seed $(SEED))

mutants:                                   ## which changes of one line do the tests of FILES not notice; TESTS=, LIMIT=, SEED=
	$(Q)TESTS="$(TESTS)" LIMIT=$(LIMIT) SEED=$(SEED) tests/mutants/mutants.py $(FILES)

gpu: all programs doors gpu-programs gpu-libraries $(patsubst %.c,$(B)/%,$(CONF_TESTS)) ## build what tests/gpu/run.sh takes along to a machine with a GPU
	$(Q)git describe --always --dirty >$(B)/gpu/commit 2>/dev/null || rm -f $(B)/gpu/commit

bench: all $(BENCH_BINS) $(REPLAY_KIT) programs          ## measure: a table, and build/bench.csv
	$(Q)tests/bench/run.sh $(B)

bench-peers: all                           ## PyTorch's allocator, RMM's, CUB's and ours side by side, as far as they are there; TABLE=1
	$(Q)tests/bench/peers/run.py $(B)

##### Rules #####

include tools/gpumem-report/html/rules.mk
include src/sim/rules.mk
include tests/programs/rules.mk
include tests/gpu/rules.mk
include tests/kill/rules.mk
include tests/storm/rules.mk
include tests/fuzz/rules.mk
include tests/stacks/rules.mk
include tests/doors/rules.mk
include tests/clients/rules.mk

clients: $(CLIENT_BINS)
.PHONY: simcuda programs clients doors gpu-programs links demo-parts tests list-tests lint-inputs
simcuda: $(SIMCUDA)
programs: $(PROGRAMS)
doors: $(DOORS)
gpu-programs: $(GPU_PROGRAMS)
tests: $(TEST_BINS) $(REPLAY_KIT)
list-tests:
	@printf '%s\n' $(TEST_BINS)

links: $(LINKS)
demo-parts: $(LIB_SO) $(REPORT) $(RUN) $(SIMCUDA_CORE) $(B)/programs/train $(DEMO_LINKS)
$(LINKS): build/%: FORCE
	$(Q)ln -sfn release/$* $@
$(call obj,$(CORE_SRCS) $(RUNTIME_SRCS) $(PRELOAD_SRCS) $(AUDIT_SRCS)): ALL_CFLAGS = $(LIBRARY_CFLAGS)

# A sanitizer's runtime looks up names by our dlsym before it is ready for instrumented code.
$(call obj,preload/real.c preload/resolve.c): ALL_CFLAGS += $(if $(SANITIZE),-fno-sanitize=all)

$(CORE_LIB): $(call obj,$(CORE_SRCS))
$(FORMAT_LIB): $(call obj,$(FORMAT_SRCS))
$(SIM_LIB): $(call obj,$(SIM_SRCS))
$(REPLAY_LIB): $(call obj,$(REPLAY_LIB_SRCS))
$(RUNTIME_LIB): $(call obj,$(RUNTIME_SRCS))
$(REPORT_LIB): $(call obj,$(filter-out %/main.c,$(REPORT_SRCS)))
$(LIB_A): $(call obj,$(CORE_SRCS) $(RUNTIME_SRCS) $(PRELOAD_SRCS))
$(O)/%.a:
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $^

HIT_OBJS := $(HIT_SRCS:%.c=$(O)/hit/%.o)
$(HIT_OBJS): $(O)/hit/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(LIBRARY_CFLAGS) $(LTO) -MMD -MP -c -o $@ $<

$(LIB_SO): $(HIT_OBJS) $(call obj,$(filter-out $(HIT_SRCS),$(PRELOAD_SRCS) $(RUNTIME_SRCS))) $(CORE_LIB) preload/preload.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(CORE_LIB) $(if $(LTO),$(LTO) $(CFLAGS.library) $(CFLAGS)) $(ALL_LDFLAGS) $(LDFLAGS.library) \
		-Wl,--version-script=preload/preload.map -Wl,-soname,$(SONAME) -lpthread -ldl

# What a program that was linked asks for.
$(LIB_LINK): $(LIB_SO)
	$(Q)ln -sfn $(<F) $@

# Loaded before the program, into a namespace of its own: no sanitizer there.
$(call obj,$(AUDIT_SRCS)): ALL_CFLAGS += $(if $(SANITIZE),-fno-sanitize=all)
$(AUDIT_SO): $(call obj,$(AUDIT_SRCS)) preload/audit/audit.map
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(LDFLAGS.base) $(LDFLAGS) \
		-Wl,--version-script=preload/audit/audit.map -Wl,-soname,libgpucache-audit.so

# Linked with nothing, so that any C library's loader takes it.  Which glibc the library asks for is known when that is linked.
$(GATE_SO): $(GATE_SRCS) $(LIB_SO)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(CFLAGS.base) -O2 -ffreestanding -fno-stack-protector -DGLIBC_MINOR=$(call oldest_glibc,$(LIB_SO)) \
		-shared -nostdlib -o $@ $< -Wl,-z,now -Wl,-z,relro -Wl,-soname,libgpucache-gate.so

REPORT_LIBS := -ldw -lelf -ljson-c -lz -lncursesw -ltinfo
REPLAY_LIBS := -ljson-c -lz
$(REPORT): $(call obj,$(REPORT_SRCS)) $(HTML_OBJ) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(REPORT_LIBS) -lpthread -ldl

$(REPLAY): $(call obj,$(REPLAY_SRCS)) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(REPLAY_LIBS) -lpthread -ldl

# The same tool for developers, who also generate traces and compare policies that users cannot choose.
$(REPLAY_KIT): $(call obj,$(filter-out %/kit.c,$(REPLAY_SRCS)) $(KIT_SRCS)) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(REPLAY_LIBS) -lpthread -ldl

$(RUN): tools/gpucache-run include/gpucache_version.h $(LIB_SO)
	$(Q)mkdir -p $(@D) && sed -e 's/@VERSION@/$(VERSION)/' -e "s/@GLIBC@/2.$(call oldest_glibc,$(LIB_SO))/" $< >$@ && chmod +x $@

$(SELF_TEST): tools/gpucache-self-test
	$(Q)mkdir -p $(@D) && cp $< $@

$(CDI): tools/gpucache-cdi
	$(Q)mkdir -p $(@D) && cp $< $@

$(TRIALS): tools/gpucache-trials tools/gpumem-report/cure/settings.def
	$(Q)mkdir -p $(@D) && sed "s/@SETTINGS@/$$(grep -c '^SETTING(' $(word 2,$^))/" $< >$@ && chmod +x $@

$(WAIT): $(call obj,$(WAIT_SRCS))
$(PROBE): $(call obj,$(PROBE_SRCS))
$(WAIT) $(PROBE):
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS)

# A test is linked with everything it may look at: the library's objects, the readers, the simulated GPU.
REPORT_TESTS := $(filter $(B)/tests/unit/gpumem-report/%,$(TEST_BINS))
$(filter-out $(REPORT_TESTS),$(TEST_BINS)) $(BENCH_BINS): $(B)/%: $(B)/%.o $(call obj,$(HELPER_SRCS) $(CONF_SRCS) $(PROVE_SRCS)) $(RUNTIME_LIB) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $(filter %.o,$(wordlist 1,1,$^)) -Wl,--start-group $(filter-out $(wordlist 1,1,$^),$^) -Wl,--end-group \
		$(SANITIZE) $(LDFLAGS) -rdynamic -lcmocka -ljson-c -ldw -lz -lpthread -ldl

# Of the report: with what it consists of, and no library.
$(REPORT_TESTS): $(B)/%: $(B)/%.o $(call obj,tests/unit/format/recording_builder.c) $(REPORT_LIB) $(REPLAY_LIB) $(SIM_LIB) $(FORMAT_LIB) $(CORE_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZE) $(LDFLAGS) -lcmocka $(REPORT_LIBS) -lpthread -ldl

# The main() of those without one.
$(patsubst %.c,$(B)/%,$(UNIT_SRCS) $(MODEL_SRCS)): $(call obj,$(UNIT_MAIN))
unit_objs := $(call obj,$(UNIT_SRCS) $(HELPER_SRCS) $(MODEL_SRCS) $(UNIT_MAIN))
$(unit_objs): ALL_CPPFLAGS += $(CPPFLAGS.test)
# A test ignores most of what it is passed.
$(unit_objs): ALL_CFLAGS += -Wno-unused-parameter
$(call obj,tests/unit/stack/lines.c): ALL_CFLAGS += -gdwarf-4

$(O)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The frames and calls of the library, for tests/lint/check_depth.py.
DEPTH_INFO := $(if $(LTO),$(patsubst %.c,$(B)/depth/%.ci,$(CORE_SRCS) $(RUNTIME_SRCS) $(PRELOAD_SRCS)))
$(DEPTH_INFO): $(B)/depth/%.ci: %.c
	$(Q)mkdir -p $(@D)
	$(Q)$(lastword $(CC)) $(ALL_CPPFLAGS) $(LIBRARY_CFLAGS) -fcallgraph-info=su -MMD -MP -MT $@ -c -o $(@:.ci=.o) $<

-include $(patsubst %.o,%.d,$(ALL_OBJS) $(HIT_OBJS) $(simcuda.objs) $(kill.objs) $(fuzz.objs)) $(DEPTH_INFO:.ci=.d)

##### Lints #####

lint-inputs: $(LIB_SO) $(SIMCUDA) $(DEPTH_INFO)
lint: lint-inputs                          ## formatting, layers, sizes, stack, exports, headers, words, docs
	$(Q)tests/lint/run.sh "$(FORMATTED)" "$(HEADERS)" $(LIB_SO) "$(CORE_SRCS) $(RUNTIME_SRCS) $(PRELOAD_SRCS)"

##### Installing #####

include tools/package/rules.mk

clean:                                     ## remove every build
	$(Q)rm -rf build

help:                                      ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile tools/package/rules.mk
