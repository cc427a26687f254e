# gpucache: a caching GPU memory allocator that says who holds the memory, and why it ran out.
#
#   make          build            make demo    set up, build, and show the main job
#   make help     all targets      make check   set up, build, and run every test and lint
#
# Knobs (on the command line, or in config.mak, which git ignores):
#   VARIANT    release | debug | asan | tsan | cov | analyze   (default: release)
#   CUDA_HOME  a CUDA toolkit; used by tests only, never by the product   (default: /usr/local/cuda)
#   V=1        print whole commands
#   WERROR=0   do not turn warnings into errors
#
# Everything of a variant is built in build/<variant>/; the release build is also linked from build/.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-builtin-variables

-include config.mak

VARIANT   ?= release
CUDA_HOME ?= /usr/local/cuda
CC        ?= gcc
AR        ?= ar
B         := build/$(VARIANT)
Q         := $(if $(V),,@)
say        = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')

##### Flags #####

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough \
        -Wswitch-enum $(if $(filter 0,$(WERROR)),,-Werror)

CPPFLAGS.base := -D_GNU_SOURCE -Iinclude -Isrc -I.
CFLAGS.base   := -std=c11 -g -fPIC -fvisibility=hidden -fno-common -fno-omit-frame-pointer $(WARN)
LDFLAGS.base  := -Wl,-z,defs -Wl,-z,now -Wl,-z,relro

CFLAGS.release := -O2 -DGPC_CHECK_LEVEL=0
CFLAGS.debug   := -Og -DGPC_CHECK_LEVEL=2
CFLAGS.asan    := -O1 -DGPC_CHECK_LEVEL=2 -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS.tsan    := -O1 -DGPC_CHECK_LEVEL=1 -fsanitize=thread
CFLAGS.cov     := -O0 -DGPC_CHECK_LEVEL=2 --coverage
CFLAGS.analyze := -O1 -DGPC_CHECK_LEVEL=2 -fanalyzer

ifeq ($(CFLAGS.$(VARIANT)),)
$(error VARIANT=$(VARIANT) is not one of: release debug asan tsan cov analyze)
endif

ALL_CPPFLAGS := $(CPPFLAGS.base) $(CPPFLAGS)
ALL_CFLAGS   := $(CFLAGS.base) $(CFLAGS.$(VARIANT)) $(CFLAGS)
SANITIZE     := $(filter -fsanitize% --coverage,$(CFLAGS.$(VARIANT)))
ALL_LDFLAGS  := $(LDFLAGS.base) $(SANITIZE) $(LDFLAGS)

# What lives in the host process does not compile with malloc, stdio or exit in it (base/banned.h).
BANNED := -include src/base/banned.h -ftls-model=initial-exec

obj = $(patsubst %.c,$(B)/%.o,$(1))
