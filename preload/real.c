/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

struct gpc_real gpc_real;

#define DRIVER_LIBRARY "libcuda.so.1"

/* One row of symbols.def, as data. */
struct row {
	const char *name;
	void *ours;
	void **real;
	void *alias; /* what cuGetProcAddress gives for it, where that is another pointer */
	int since;
	bool is_per_thread;
};

#define ROW(row_name, since_version, per_thread)             \
	{ .name = #row_name,                                 \
		.ours = (void *)row_name,                    \
		.real = (void **)(void *)&gpc_real.row_name, \
		.since = (since_version),                    \
		.is_per_thread = (per_thread) },
#define HOOK(name, since, gets, params, args)              ROW(name, since, is_per_thread_name(#name))
#define HOOK_STREAM(name, since, params, args, stream)     ROW(name, since, false)
#define HOOK_PER_THREAD(name, since, params, args, stream) ROW(name, since, true)
#define is_per_thread_name(text)       \
	(__builtin_strlen(text) > 5 && \
		__builtin_strcmp((text) + __builtin_strlen(text) - 5, "_ptsz") == 0)
static struct row rows[] = {
#include "preload/symbols.def"
};
#undef HOOK
#undef HOOK_STREAM
#undef HOOK_PER_THREAD

#define N_ROWS (sizeof rows / sizeof rows[0])

static struct {
	pthread_mutex_t lock;
	_Atomic(void *(*)(void *, const char *)) next_dlsym;
	atomic_bool is_found;
	bool has_fns;
	struct gpc_cuda_fns fns;
	struct gpc_runtime_loader loader;
} found = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * dlvsym is not ours, so it finds the dlsym behind us.  Newest version first: glibc 2.34 moved it
 * into libc, other architectures start at 2.17 and x86-64 at 2.2.5.
 */
void *(*gpc_find_next_dlsym(void))(void *, const char *)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	void *(*next)(void *, const char *) =
		atomic_load_explicit(&found.next_dlsym, memory_order_acquire);

	for (size_t i = 0; !next && i < sizeof versions / sizeof versions[0]; i++)
		*(void **)(void *)&next = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	atomic_store_explicit(&found.next_dlsym, next, memory_order_release);
	return next;
}

void *gpc_real_dlsym_call(void *handle, const char *name)
{
	void *(*next)(void *, const char *) = gpc_find_next_dlsym();

	return next ? next(handle, name) : NULL;
}

static void *lookup_in_driver(void *arg, const char *name)
{
	return gpc_real_dlsym_call(arg, name);
}

/* The name that cuGetProcAddress knows: without version and variant. */
static void base_name(const char *name, char *buf, size_t size)
{
	const char *end = name + strlen(name);

	if (end - name > 5 &&
		(memcmp(end - 5, "_ptsz", 5) == 0 || memcmp(end - 5, "_ptds", 5) == 0))
		end -= 5;
	if (end - name > 3 && end[-3] == '_' && end[-2] == 'v')
		end -= 3;
	if ((size_t)(end - name) >= size)
		end = name + size - 1;
	memcpy(buf, name, (size_t)(end - name));
	buf[end - name] = '\0';
}

/* What one search found; published as a whole. */
struct search {
	void *pointers[N_ROWS];
	void *aliases[N_ROWS];
	struct gpc_cuda_fns fns;
	bool has_fns;
};

static bool is_known(const struct search *search, const void *pointer)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		if (pointer == search->pointers[i] || pointer == search->aliases[i])
			return true;
	}
	return false;
}

/*
 * A driver may answer cuGetProcAddress with pointers that differ from its exported symbols.  So it
 * is asked for each row once; an answer that is not the pointer of another row is known as this
 * one's alias.
 */
static void find_aliases(struct search *search)
{
	CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		NULL;

	for (size_t i = 0; i < N_ROWS; i++) {
		if (rows[i].ours == (void *)cuGetProcAddress_v2)
			*(void **)(void *)&get = search->pointers[i];
	}
	for (size_t i = 0; get && i < N_ROWS; i++) {
		CUdriverProcAddressQueryResult status = 0;
		void *pointer = NULL;
		char base[64];

		base_name(rows[i].name, base, sizeof base);
		if (get(base, &pointer, rows[i].since, rows[i].is_per_thread ? 2 : 1, &status) ==
				CUDA_SUCCESS &&
			pointer && !is_known(search, pointer))
			search->aliases[i] = pointer;
	}
}

static bool gather(struct search *search)
{
	void *library =
		dlopen(DRIVER_LIBRARY, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);

	if (!library)
		return false;
	for (size_t i = 0; i < N_ROWS; i++)
		search->pointers[i] = gpc_real_dlsym_call(library, rows[i].name);
	search->has_fns = !gpc_cuda_fns_fill(&search->fns, lookup_in_driver, library);
	find_aliases(search);
	return true;
}

static void publish(const struct search *search)
{
	pthread_mutex_lock(&found.lock);
	if (!atomic_load(&found.is_found)) {
		for (size_t i = 0; i < N_ROWS; i++) {
			__atomic_store_n(rows[i].real, search->pointers[i], __ATOMIC_RELAXED);
			rows[i].alias = search->aliases[i];
		}
		found.fns = search->fns;
		found.has_fns = search->has_fns;
		atomic_store_explicit(&found.is_found, true, memory_order_release);
	}
	pthread_mutex_unlock(&found.lock);
}

/*
 * The search calls the loader and the driver, so no lock may be held: another thread may hold the
 * loader's and wait for ours.  Threads that come at once all search, and find the same.  The
 * driver may look names up while it is asked, which comes back here; for that inner call there is
 * no driver yet.
 */
bool gpc_real_find(void)
{
	static _Thread_local bool is_searching;
	struct search search = { .has_fns = false };

	if (atomic_load_explicit(&found.is_found, memory_order_acquire))
		return true;
	if (is_searching || !gpc_find_next_dlsym())
		return false;
	is_searching = true;
	if (gather(&search))
		publish(&search);
	is_searching = false;
	return atomic_load(&found.is_found);
}

static void *open_library(const char *name)
{
	return dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

static void *lookup_default(const char *name)
{
	return gpc_real_dlsym_call(RTLD_DEFAULT, name);
}

const struct gpc_runtime_loader *gpc_real_loader(void)
{
	if (!gpc_real_find() || !found.has_fns)
		return NULL;
	found.loader = (struct gpc_runtime_loader){
		.fns = &found.fns,
		.open = open_library,
		.lookup = lookup_default,
		.lookup_in = gpc_real_dlsym_call,
	};
	return &found.loader;
}

void *gpc_real_exchange(void *pointer)
{
	if (!pointer || !atomic_load_explicit(&found.is_found, memory_order_acquire))
		return pointer;
	for (size_t i = 0; i < N_ROWS; i++) {
		if (pointer == *rows[i].real || pointer == rows[i].alias)
			return rows[i].ours;
	}
	return pointer;
}

bool gpc_real_row(const char *name, void **ret_ours, void **ret_real)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		if (strcmp(rows[i].name, name) == 0) {
			*ret_ours = rows[i].ours;
			*ret_real = __atomic_load_n(rows[i].real, __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}
