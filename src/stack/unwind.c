/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/unwind.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/lock.h"

/* The names that libunwind's header hides behind macros.  Only what is known gets tuned. */
#if defined(__x86_64__)
#define LOCAL_NAME(name) "_ULx86_64_" name
#elif defined(__aarch64__)
#define LOCAL_NAME(name) "_ULaarch64_" name
#else
#define LOCAL_NAME(name) "unw_" name
#endif

#define CACHE_PER_THREAD \
	2 /* UNW_CACHE_PER_THREAD: no lock between threads on the way through known code */
#define CACHE_ENTRIES 1024

/* Frames of our own that a walk may show before the caller's, and that are left out. */
#define OWN_FRAMES 4u
#define MAX_SKIP   32u

static void tune_libunwind(void *library, void *(*lookup_in)(void *, const char *))
{
	void **space = lookup_in(library, LOCAL_NAME("local_addr_space"));
	int (*set_policy)(void *, int);
	int (*set_size)(void *, size_t, int);

	if (!space)
		return;
	*(void **)&set_policy = lookup_in(library, LOCAL_NAME("set_caching_policy"));
	*(void **)&set_size = lookup_in(library, LOCAL_NAME("set_cache_size"));
	if (set_policy)
		set_policy(*space, CACHE_PER_THREAD);
	if (set_size)
		set_size(*space, CACHE_ENTRIES, 0);
}

/* True where a walk works; it also does what an unwinder does only once. */
static bool try_walk(struct gpc_unwind *unwind)
{
	uint64_t frames[4];

	return gpc_unwind_capture(unwind, frames, 4, 0) > 0;
}

void gpc_unwind_init_glibc(struct gpc_unwind *unwind)
{
	*unwind = (struct gpc_unwind){ .kind = GPC_UNWINDER_GLIBC, .backtrace = backtrace };
	if (!try_walk(unwind))
		*unwind = (struct gpc_unwind){ .kind = GPC_UNWINDER_NONE };
}

/*
 * Not in a program under the thread sanitizer: libunwind takes a mutex when a thread's data are
 * destroyed, which is after the sanitizer has destroyed its own data of that thread.
 */
static void *open_libunwind(void *(*lookup_in)(void *, const char *))
{
	if (lookup_in(RTLD_DEFAULT, "__tsan_init"))
		return NULL;
	return dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
}

void gpc_unwind_init(struct gpc_unwind *unwind, void *(*lookup_in)(void *handle, const char *name))
{
	void *library = open_libunwind(lookup_in);

	*unwind = (struct gpc_unwind){ .kind = GPC_UNWINDER_LIBUNWIND, .library = library };
	if (library)
		*(void **)&unwind->backtrace = lookup_in(library, "unw_backtrace");
	if (unwind->backtrace) {
		tune_libunwind(library, lookup_in);
		if (try_walk(unwind))
			return;
	}
	gpc_unwind_init_glibc(unwind);
}

void gpc_unwind_fini(struct gpc_unwind *unwind)
{
	*unwind = (struct gpc_unwind){ .kind = GPC_UNWINDER_NONE };
}

/* Where the caller's frames begin: at our own return address, wherever inlining put it. */
static uint32_t find_start(void *const *raw, uint32_t n, const void *caller)
{
	for (uint32_t i = 0; i < n && i < OWN_FRAMES; i++)
		if (raw[i] == caller)
			return i;
	return n < 1 ? n : 1;
}

__attribute__((noinline)) uint32_t gpc_unwind_capture(
	struct gpc_unwind *unwind, uint64_t *frames, uint32_t max, uint32_t skip)
{
	void *raw[GPC_UNWIND_MAX_FRAMES + MAX_SKIP + OWN_FRAMES];
	uint32_t want, start, n;
	int got;

	GPC_CHECK(!gpc_lock_is_any_held());
	if (!unwind->backtrace || max > GPC_UNWIND_MAX_FRAMES || skip > MAX_SKIP)
		return 0;
	want = max + skip + OWN_FRAMES;
	got = unwind->backtrace(raw, (int)want);
	if (got <= 0)
		return 0;
	n = (uint32_t)got;
	start = find_start(raw, n, __builtin_extract_return_addr(__builtin_return_address(0))) +
		skip;
	n = start < n ? n - start : 0;
	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (uintptr_t)raw[start + i];
	return n;
}
