/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens libunwind privately and changes its settings once (listed in unwind.h).  A capture walks by cached rules
 * (walk.h), and learns rules for unknown addresses from libunwind.  If the rules cannot finish a walk, unw_backtrace
 * makes it.  Without libunwind, glibc's backtrace makes all walks.
 *
 * Before libunwind reads memory, it checks whether the memory is readable.  We replace the check: process_vm_readv
 * tries to read a word, and each thread remembers four pages for which that succeeded.
 */
#include "stack/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/io.h"
#include "base/lock.h"
#include "stack/modules.h"

/* libunwind's header maps its functions to these symbols.  If a symbol is missing, that setting is not changed. */
#if defined(__x86_64__)
#define LOCAL_NAME(name)  "_ULx86_64_" name
#define COMMON_NAME(name) "_Ux86_64_" name
#elif defined(__aarch64__)
#define LOCAL_NAME(name)  "_ULaarch64_" name
#define COMMON_NAME(name) "_Uaarch64_" name
#else
#define LOCAL_NAME(name)  "unw_" name
#define COMMON_NAME(name) "unw_" name
#endif

/* UNW_CACHE_PER_THREAD: a walk through known code takes no lock. */
#define CACHE_PER_THREAD 2
#define CACHE_ENTRIES    1024

/* No kernel has smaller pages, so if one word is readable, the whole page of 4096 bytes is. */
#define PAGE 4096u

/* An unwinder reports at most this many frames, ours and a sanitizer's, before the caller's.  find_start skips them. */
#define OWN_FRAMES 9u
#define MAX_SKIP   32u

/* The start of unw_accessors_t; the fourth member reads and writes memory. */
struct accessors {
	void (*first_three[3])(void);
	int (*access_mem)(
		void *space, uintptr_t address, uintptr_t *value, int is_write, void *arg);
};

#define UNREADABLE (-8) /* -UNW_EINVAL */

/*
 * Pages known to be readable: a direct-mapped cache by page number, where 0 is an empty entry.  Most of them belong to
 * this thread's stack, which stays mapped while the thread runs, the others to code that the stack returns to, which may
 * be unloaded: then all are forgotten.  Page 0 is never cached: libunwind tries to read it if code without tables keeps a
 * small number in rbp.
 */
#define KNOWN_PAGES 4u
static _Thread_local uintptr_t known_pages[KNOWN_PAGES];
static _Thread_local uint64_t known_since;

static bool is_readable(uintptr_t address)
{
	struct iovec from = { (void *)address, sizeof(uintptr_t) };
	uintptr_t word;
	struct iovec to = { &word, sizeof word };
	uintptr_t page = address / PAGE;
	uintptr_t *known = &known_pages[page % KNOWN_PAGES];
	uint64_t unloads = atomic_load_explicit(&gpc_modules_unloads, memory_order_relaxed);
	int saved = errno;
	bool is_there;

	if (known_since != unloads) {
		memset(known_pages, 0, sizeof known_pages);
		known_since = unloads;
	}
	if (page != 0 && page == *known && address % PAGE <= PAGE - sizeof word)
		return true;
	is_there = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof word;
	if (is_there)
		*known = page;
	errno = saved;
	return is_there;
}

/*
 * Reads or writes a word for libunwind, after our check.  libunwind's own check writes the memory into a pipe.  If a
 * program closes all descriptors and opens files, the pipe's numbers are files of the program.  libunwind would write
 * to those files, or close them.
 */
__attribute__((no_sanitize("address"))) static int access_memory(
	void *space, uintptr_t address, uintptr_t *value, int is_write, void *arg)
{
	(void)space;
	(void)arg;
	if (!is_readable(address))
		return UNREADABLE;
	/* memcpy, because libunwind also reads unaligned words, in code. */
	if (is_write)
		memcpy((void *)address, value, sizeof *value);
	else
		memcpy(value, (const void *)address, sizeof *value);
	return 0;
}

static void tune_libunwind(void *library, void *(*lookup_in)(void *, const char *))
{
	void **space = lookup_in(library, LOCAL_NAME("local_addr_space"));
	int (*set_policy)(void *, int);
	int (*set_size)(void *, size_t, int);
	struct accessors *(*accessors_of)(void *);

	if (!space)
		return;
	*(void **)&set_policy = lookup_in(library, LOCAL_NAME("set_caching_policy"));
	*(void **)&set_size = lookup_in(library, LOCAL_NAME("set_cache_size"));
	*(void **)&accessors_of = lookup_in(library, COMMON_NAME("get_accessors"));
	/* A sandbox may forbid process_vm_readv; libunwind then keeps its own check. */
	if (accessors_of && is_readable((uintptr_t)&space))
		accessors_of(*space)->access_mem = access_memory;
	if (set_policy)
		set_policy(*space, CACHE_PER_THREAD);
	if (set_size)
		set_size(*space, CACHE_ENTRIES, 0);
}

static void init_walk(
	struct gpc_walk *walk, void *library, void *(*lookup_in)(void *, const char *))
{
	struct gpc_walk_steps steps;

	*(void **)&steps.get_context = lookup_in(library, COMMON_NAME("getcontext"));
	*(void **)&steps.init_local = lookup_in(library, LOCAL_NAME("init_local"));
	*(void **)&steps.step = lookup_in(library, LOCAL_NAME("step"));
	*(void **)&steps.get_reg = lookup_in(library, LOCAL_NAME("get_reg"));
	*(void **)&steps.get_save_loc = lookup_in(library, LOCAL_NAME("get_save_loc"));
	*(void **)&steps.get_proc_info = lookup_in(library, LOCAL_NAME("get_proc_info"));
	gpc_walk_init(walk, &steps, is_readable);
}

/*
 * True if a walk finds frames.  Both unwinders initialize themselves in their first walk, for which glibc's opens a
 * library.  Both walk here once, so that no walk of the program's threads has to.
 */
static bool try_walk(struct gpc_unwind *unwind)
{
	uint64_t frames[4];
	void *raw[1];

	(void)backtrace(raw, 1);
	return gpc_unwind_capture(unwind, frames, 4, 0) > 0;
}

void gpc_unwind_init_glibc(struct gpc_unwind *unwind)
{
	*unwind = (struct gpc_unwind){ .backtrace = backtrace };
	if (!try_walk(unwind))
		unwind->backtrace = NULL;
}

/*
 * The system's or, from a wheel, our own beside us.  NULL under the thread sanitizer: libunwind takes a mutex in a
 * thread-exit destructor, which may run after the sanitizer has destroyed its data of that thread.
 */
static void *open_libunwind(void *(*lookup_in)(void *, const char *))
{
	void *library;

	if (lookup_in(RTLD_DEFAULT, "__tsan_init"))
		return NULL;
	library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
	return library ? library
		       : dlopen("$ORIGIN/gpucache/libunwind-gpucache.so.8", RTLD_LAZY | RTLD_LOCAL);
}

void gpc_unwind_init(struct gpc_unwind *unwind, void *(*lookup_in)(void *handle, const char *name))
{
	const struct gpc_io_low low = gpc_io_low_take();
	void *library = open_libunwind(lookup_in);

	*unwind = (struct gpc_unwind){ .backtrace = NULL };
	if (library)
		*(void **)&unwind->backtrace = lookup_in(library, "unw_backtrace");
	if (unwind->backtrace) {
		tune_libunwind(library, lookup_in);
		init_walk(&unwind->walk, library, lookup_in);
	}
	if (!unwind->backtrace || !try_walk(unwind)) {
		gpc_walk_fini(&unwind->walk);
		gpc_unwind_init_glibc(unwind);
	}
	gpc_io_low_give_back(&low);
}

void gpc_unwind_fini(struct gpc_unwind *unwind)
{
	gpc_walk_fini(&unwind->walk);
	unwind->backtrace = NULL;
}

/*
 * The index of the caller's frame.  Our return address identifies it, however many of our functions were inlined.  On
 * aarch64 libunwind returns each address minus one, so that it lies in the call.
 */
static uint32_t find_start(void *const *raw, uint32_t n, const void *caller)
{
	for (uint32_t i = 0; i < n && i < OWN_FRAMES; i++)
		if ((uintptr_t)caller - (uintptr_t)raw[i] <= 1)
			return i;
	return n < 1 ? n : 1;
}

static bool has_forgotten(const struct gpc_unwind *unwind)
{
	return atomic_load_explicit(&unwind->walk.has_forgotten, memory_order_relaxed);
}

/*
 * Walks without rules.  Once code has been unloaded, libunwind may have the old tables in its cache, which can be
 * flushed only while no other thread is in libunwind.  So glibc's unwinder, which has no such cache, makes the walk.
 */
static uint32_t ask_unwinder(const struct gpc_unwind *unwind, const void *caller, uint64_t *frames,
	uint32_t max, uint32_t skip)
{
	void *raw[GPC_UNWIND_MAX_FRAMES + MAX_SKIP + OWN_FRAMES];
	int (*ask)(void **, int) = has_forgotten(unwind) ? backtrace : unwind->backtrace;
	int got = ask(raw, (int)(max + skip + OWN_FRAMES));
	uint32_t start, n;

	if (got <= 0)
		return 0;
	n = (uint32_t)got;
	start = find_start(raw, n, caller) + skip;
	n = start < n ? n - start : 0;
	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (uintptr_t)raw[start + i];
	return n;
}

static bool forget_unloaded(const struct gpc_unwind *unwind)
{
	return unwind->forget_unloaded && unwind->forget_unloaded(unwind->self);
}

/* For the debug variants: true if the walk by rules found what the unwinder finds, or code was unloaded meanwhile. */
static __attribute__((unused)) bool is_as_unwinder_says(const struct gpc_unwind *unwind,
	const void *caller, const uint64_t *frames, uint32_t n, uint32_t max, uint32_t skip)
{
	uint64_t said[GPC_UNWIND_MAX_FRAMES];

	return (ask_unwinder(unwind, caller, said, max, skip) == n &&
		       memcmp(said, frames, n * sizeof *frames) == 0) ||
	       forget_unloaded(unwind);
}

/*
 * Returns n if glibc's unwinder finds no frame that differs.  If it does, refutes the rule that led to the first frame
 * that differs, and returns 0.
 */
static __attribute__((noinline)) uint32_t compare_learned(struct gpc_unwind *unwind,
	const void *caller, const uint64_t *frames, uint32_t n, uint32_t max, uint32_t skip)
{
	uint64_t said[GPC_UNWIND_MAX_FRAMES];
	uint32_t n_said = ask_unwinder(unwind, caller, said, max, skip);

	for (uint32_t i = 1; i < n_said; i++) {
		if (i < n && frames[i] == said[i])
			continue;
		gpc_walk_refute(&unwind->walk, (uintptr_t)said[i - 1]);
		return 0;
	}
	return n;
}

__attribute__((noinline)) uint32_t gpc_unwind_capture_from(struct gpc_unwind *unwind,
	const struct gpc_walk_start *start, uint64_t *frames, uint32_t max, uint32_t skip)
{
	const void *caller = (const void *)start->ip;
	bool must_learn = false;
	uint32_t n;

	GPC_CHECK(!gpc_lock_is_any_held());
	if (!unwind->backtrace || max > GPC_UNWIND_MAX_FRAMES || skip > MAX_SKIP)
		return 0;
	n = gpc_walk_frames(&unwind->walk, start, frames, max, skip, &must_learn);
	if (must_learn) {
		(void)forget_unloaded(unwind);
		gpc_walk_learn(&unwind->walk);
		n = gpc_walk_frames(&unwind->walk, start, frames, max, skip, &must_learn);
		if (n && has_forgotten(unwind))
			n = compare_learned(unwind, caller, frames, n, max, skip);
	}
	if (n) {
		GPC_CHECK(is_as_unwinder_says(unwind, caller, frames, n, max, skip));
		return n;
	}
	return ask_unwinder(unwind, caller, frames, max, skip);
}

__attribute__((noinline)) uint32_t gpc_unwind_capture(
	struct gpc_unwind *unwind, uint64_t *frames, uint32_t max, uint32_t skip)
{
	const struct gpc_walk_start start = gpc_walk_caller();

	return gpc_unwind_capture_from(unwind, &start, frames, max, skip);
}
