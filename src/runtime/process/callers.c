/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dl_iterate_phdr lists the modules, and numbers its changes: an unchanged list is not read again.  The places of modules
 * are written by one thread at a time, and never in the loader's lock.  They have a version, odd while they are written:
 * whoever read a field of the next version (release, acquire) then reads another version than before, and takes nobody
 * for a caller.  An answer is kept with its version, so that it ends with it.
 */
#include "runtime/process/callers.h"

#include <link.h>
#include <string.h>

#include "base/env.h"
#include "base/text.h"
#include "config/config.h"
#include "model/libraries.h"
#include "runtime/process/state.h"

/* The runtime library and the driver have some frames of their own. */
#define MAX_FRAMES 12

/* Files of callers with a cache, and the variable that takes it from them: any value, or this one. */
static const struct {
	const char *start;
	const char *variable;
	const char *value;
} callers[] = {
	{ "libc10_cuda.", "PYTORCH_NO_CUDA_MEMORY_CACHING", NULL },
	{ "xla_", "XLA_PYTHON_CLIENT_ALLOCATOR", "platform" },
	{ "libtensorflow", NULL, NULL },
	{ "_pywrap_tensorflow", NULL, NULL },
	{ "librmm", NULL, NULL },
};

#define N_CALLERS  ((int)(sizeof callers / sizeof callers[0]))
#define ON_THE_WAY (-1)
#define UNKNOWN    (-2)

/* The code of a module: `who` is the row of callers, or ON_THE_WAY. */
struct place {
	uintptr_t start;
	uintptr_t end;
	int who;
};

struct gpc_callers gpc_callers = { .newest = UINT32_MAX };

static bool is_without_cache[N_CALLERS]; /* fixed after the start */

static struct {
	_Atomic uintptr_t start;
	_Atomic uintptr_t end; /* 0: none */
	_Atomic int who;
} places[GPC_CALLER_PLACES];

static _Atomic uint32_t version;   /* of the places */
static _Atomic uint64_t n_changes; /* of the loader's list, at the last look */

/* Of the stacks asked about last: the version << 33 | the stack's number << 1 | 1 if the caller has a cache. */
static _Atomic uint64_t answers[64];

static _Atomic uint32_t told; /* bit i: row i of callers is in the recording */

struct look {
	struct place places[GPC_CALLER_PLACES];
	uint32_t n;
	uint64_t n_changes;
};

static int who_is(const struct dl_phdr_info *module, uintptr_t start, uintptr_t end)
{
	const char *file = gpc_base_name(module->dlpi_name);
	enum gpc_library_kind kind;

	if ((uintptr_t)&gpc_callers_look - start < end - start)
		return ON_THE_WAY;
	for (int i = 0; i < N_CALLERS; i++)
		if (strncmp(file, callers[i].start, strlen(callers[i].start)) == 0)
			return is_without_cache[i] ? UNKNOWN : i;
	kind = gpc_library_kind_of(file);
	return kind == GPC_LIBRARY_OURS || kind == GPC_LIBRARY_DRIVER ? ON_THE_WAY : UNKNOWN;
}

static int look_at(struct dl_phdr_info *module, size_t size, void *arg)
{
	struct look *look = arg;

	(void)size;
	look->n_changes = module->dlpi_adds + module->dlpi_subs;
	if (look->n_changes == atomic_load_explicit(&n_changes, memory_order_relaxed))
		return 1;
	for (int i = 0; i < module->dlpi_phnum && look->n < GPC_CALLER_PLACES; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];
		struct place place = { .start = module->dlpi_addr + part->p_vaddr };

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		place.end = place.start + part->p_memsz;
		place.who = who_is(module, place.start, place.end);
		if (place.who != UNKNOWN)
			look->places[look->n++] = place;
	}
	return 0;
}

static bool is_for_cache(void)
{
	return gpc_runtime.config.cache == GPC_CACHE_AUTO;
}

static bool is_wanted(void)
{
	return is_for_cache() || gpc_runtime.config.spill;
}

/* Call while the version is odd. */
static void write_places(const struct look *look)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < GPC_CALLER_PLACES; i++) {
		const struct place place = i < look->n ? look->places[i] : (struct place){ 0 };

		atomic_store_explicit(&places[i].start, place.start, memory_order_release);
		atomic_store_explicit(&places[i].end, place.end, memory_order_release);
		atomic_store_explicit(&places[i].who, place.who, memory_order_release);
		n += i < look->n && place.who != ON_THE_WAY;
	}
	atomic_store_explicit(&gpc_callers.n, is_for_cache() ? n : 0, memory_order_relaxed);
	atomic_store_explicit(&n_changes, look->n_changes, memory_order_relaxed);
}

void gpc_callers_look(void)
{
	uint32_t even = atomic_load_explicit(&version, memory_order_relaxed) & ~1u;
	struct look look = { .n = 0 };

	if (!is_wanted() || dl_iterate_phdr(look_at, &look))
		return;
	/* Another thread that writes saw a list like this one; if it was an older one, the next look reads it again. */
	if (!atomic_compare_exchange_strong_explicit(
		    &version, &even, even + 1, memory_order_acquire, memory_order_relaxed))
		return;
	write_places(&look);
	atomic_store_explicit(&version, even + 2, memory_order_release);
}

void gpc_callers_start(void)
{
	if (!is_wanted())
		return;
	for (int i = 0; i < N_CALLERS; i++) {
		const char *value = callers[i].variable ? gpc_env_get(callers[i].variable) : NULL;

		is_without_cache[i] =
			value && (!callers[i].value || strcmp(value, callers[i].value) == 0);
	}
	gpc_callers_look();
	if (is_for_cache())
		atomic_store_explicit(&gpc_callers.newest, 0, memory_order_relaxed);
}

/* Whose code this is: a row of callers, ON_THE_WAY or UNKNOWN. */
static int who_has(uintptr_t address)
{
	for (uint32_t i = 0; i < GPC_CALLER_PLACES; i++) {
		uintptr_t start = atomic_load_explicit(&places[i].start, memory_order_acquire);
		uintptr_t end = atomic_load_explicit(&places[i].end, memory_order_acquire);

		if (address - start < end - start)
			return atomic_load_explicit(&places[i].who, memory_order_acquire);
	}
	return UNKNOWN;
}

static int find_caller(void)
{
	const struct gpc_walk_start start = gpc_walk_caller();
	uint64_t frames[MAX_FRAMES];
	uint32_t n =
		gpc_unwind_capture_from(&gpc_runtime.stacks.unwind, &start, frames, MAX_FRAMES, 0);
	int who = ON_THE_WAY;

	for (uint32_t i = 0; i < n && who == ON_THE_WAY; i++)
		who = who_has((uintptr_t)frames[i] - 1);
	return who;
}

/* The recording says once who was recognised. */
static void tell(int who)
{
	const struct gpc_library_row *row = gpc_library_row_of(callers[who].start);
	char line[64];

	if (atomic_fetch_or(&told, 1u << who) >> who & 1)
		return;
	gpc_format(line, sizeof line, "own cache: %s", row && row->name ? row->name : "?");
	(void)gpc_record_append_line(&gpc_runtime.record, line);
}

__attribute__((noinline)) bool gpc_caller_ask(uint32_t stack)
{
	_Atomic uint64_t *known = &answers[stack % (sizeof answers / sizeof answers[0])];
	uint64_t answer;
	uint32_t seen;
	int who = UNKNOWN;

	if (stack > atomic_load_explicit(&gpc_callers.newest, memory_order_relaxed)) {
		gpc_callers_look();
		/* Of two threads, the smaller number may stay: one look more. */
		atomic_store_explicit(&gpc_callers.newest, stack, memory_order_relaxed);
	}
	seen = atomic_load_explicit(&version, memory_order_acquire);
	answer = atomic_load_explicit(known, memory_order_relaxed);
	if (stack && answer >> 1 == ((uint64_t)seen << 32 | stack))
		return answer & 1;
	if (atomic_load_explicit(&gpc_callers.n, memory_order_relaxed))
		who = find_caller();
	if (seen & 1 || atomic_load_explicit(&version, memory_order_relaxed) != seen)
		return false;
	if (who >= 0)
		tell(who);
	if (stack)
		atomic_store_explicit(known, ((uint64_t)seen << 32 | stack) << 1 | (who >= 0),
			memory_order_relaxed);
	return who >= 0;
}

__attribute__((noinline)) bool gpc_caller_is_caching(void)
{
	uint32_t seen;
	int who;

	gpc_callers_look();
	seen = atomic_load_explicit(&version, memory_order_acquire);
	who = find_caller();
	return who >= 0 && !(seen & 1) &&
	       atomic_load_explicit(&version, memory_order_relaxed) == seen;
}
