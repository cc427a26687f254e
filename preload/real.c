/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the driver's function for each row of symbols.def by dlsym.  Concurrent threads all search, without a lock, and
 * find the same.  Programs get our functions for the driver's by pointer.  If the driver answers cuGetProcAddress with
 * pointers that it does not export, they get ours by name and version.
 */
#include "preload/real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/own_stack.h"
#include "runtime/process/enter.h"

struct gpc_real gpc_real;

#define DRIVER_LIBRARY "libcuda.so.1"

/* The newest CUDA version of which symbols.def knows all variants. */
#define NEWEST_KNOWN 13000

#define MAX_NAME 64

enum row_number {
#define HOOK(name, since, gets, params, args) ROW_##name,
#include "preload/symbols.def"
	N_ROWS
};

/*
 * One row of symbols.def, as data.  write_rows fills the table at its first use.  As initialized data, the addresses
 * would need relocations, which the loader would apply in every process, even in one without CUDA.
 */
struct row {
	const char *name;
	void *ours;
	void **real;
	int since;
	bool is_per_thread;
};

static struct row rows[N_ROWS];

#define ENDS_WITH(text, end)           \
	(sizeof(text) > sizeof(end) && \
		__builtin_strcmp((text) + sizeof(text) - sizeof(end), end) == 0)
#define HOOK(row_name, since_version, gets, params, args)    \
	*row++ = (struct row){ .name = #row_name,            \
		.ours = (void *)row_name,                    \
		.real = (void **)(void *)&gpc_real.row_name, \
		.since = (since_version),                    \
		.is_per_thread = ENDS_WITH(#row_name, "_ptsz") || ENDS_WITH(#row_name, "_ptds") };
static void write_rows(void)
{
	struct row *row = rows;

#include "preload/symbols.def"
}

static struct {
	pthread_once_t rows_once;
	pthread_mutex_t lock;
	_Atomic(void *(*)(void *, const char *)) next_dlsym;
	atomic_bool is_found;
	bool has_fns;
	bool needs_names; /* cuGetProcAddress returns pointers other than the exported ones */
	struct gpc_cuda_fns fns;
	struct gpc_runtime_loader loader;
} found = { .rows_once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Finds the dlsym after ours by dlvsym, which we do not interpose.  Its version is that of glibc 2.34, which moved
 * dlsym into libc, or before that the first version of the architecture: 2.2.5 for x86-64, 2.17 for aarch64.
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

/* The name for cuGetProcAddress: without the suffixes of version (_v2) and variant (_ptsz). */
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

/* The result of one search, published as a whole. */
struct search {
	void *pointers[N_ROWS];
	struct gpc_cuda_fns fns;
	bool has_fns;
	bool needs_names;
};

static bool is_exported(const struct search *search, const void *pointer)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		if (pointer == search->pointers[i])
			return true;
	}
	return false;
}

/*
 * True if the driver answers cuGetProcAddress for some row with a pointer other than its exported functions: then
 * lookups are matched by name as well.
 */
static bool gives_other_pointers(const struct search *search)
{
	CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		NULL;

	for (size_t i = 0; i < N_ROWS; i++) {
		if (rows[i].ours == (void *)cuGetProcAddress_v2)
			*(void **)(void *)&get = search->pointers[i];
	}
	for (size_t i = 0; get && i < N_ROWS; i++) {
		CUdriverProcAddressQueryResult status = 0;
		cuuint64_t flags = rows[i].is_per_thread
					   ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
					   : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
		void *pointer = NULL;
		char base[MAX_NAME];

		base_name(rows[i].name, base, sizeof base);
		if (search->pointers[i] &&
			get(base, &pointer, rows[i].since, flags, &status) == CUDA_SUCCESS &&
			pointer && !is_exported(search, pointer))
			return true;
	}
	return false;
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
	search->needs_names = gives_other_pointers(search);
	return true;
}

static void publish(const struct search *search)
{
	pthread_mutex_lock(&found.lock);
	if (!atomic_load(&found.is_found)) {
		for (size_t i = 0; i < N_ROWS; i++)
			__atomic_store_n(rows[i].real, search->pointers[i], __ATOMIC_RELAXED);
		found.fns = search->fns;
		found.has_fns = search->has_fns;
		found.needs_names = search->needs_names;
		atomic_store_explicit(&found.is_found, true, memory_order_release);
	}
	pthread_mutex_unlock(&found.lock);
}

/*
 * The search calls the loader and the driver, so we hold no lock: another thread may hold the loader's lock and wait
 * for ours.  Concurrent threads all search and find the same.  During the search the driver may look up names, which
 * calls this function again: the inner call returns false.
 */
static void search(void *arg)
{
	struct search found_now = { .has_fns = false };

	(void)arg;
	if (gather(&found_now))
		publish(&found_now);
}

bool gpc_real_find(void)
{
	static _Thread_local bool is_searching;

	if (atomic_load_explicit(&found.is_found, memory_order_acquire))
		return true;
	if (is_searching || !gpc_find_next_dlsym())
		return false;
	is_searching = true;
	(void)pthread_once(&found.rows_once, write_rows);
	gpc_own_stack_run(search, NULL);
	is_searching = false;
	return atomic_load(&found.is_found);
}

static _Thread_local bool is_loading;

void *gpc_real_loading(const char *name, const void *caller)
{
	void *ours = NULL;
	void *real = NULL;
	void *theirs;
	void *library;
	Dl_info info;

	/* A driver that is loaded lacks the function. */
	if (is_loading || gpc_real_find() || !dladdr(caller, &info) || !info.dli_fname)
		return NULL;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	if (!library)
		return NULL;
	theirs = gpc_real_dlsym_call(library, name);
	(void)dlclose(library);
	if (gpc_real_row(name, &ours, &real) && theirs == ours)
		return NULL;
	is_loading = theirs != NULL;
	return theirs;
}

CUresult gpc_real_left(CUresult result)
{
	is_loading = false;
	return result;
}

static void *open_library(const char *name)
{
	return dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

const struct gpc_runtime_loader *gpc_real_loader(void)
{
	if (!gpc_real_find() || !found.has_fns)
		return NULL;
	found.loader = (struct gpc_runtime_loader){
		.fns = &found.fns,
		.open = open_library,
		.lookup_in = gpc_real_dlsym_call,
	};
	return &found.loader;
}

void *gpc_real_exchange(void *pointer)
{
	if (!pointer || !gpc_real_find())
		return pointer;
	for (size_t i = 0; i < N_ROWS; i++) {
		if (pointer == *rows[i].real)
			return rows[i].ours;
	}
	return pointer;
}

/* True if `row` is a better answer than `than`, of the same name: per-thread rows come first, then newer ones. */
static bool is_better(const struct row *row, const struct row *than)
{
	if (row->is_per_thread != than->is_per_thread)
		return row->is_per_thread;
	return row->since > than->since;
}

/* The current name of a function that had another one in `version`. */
static const char *current_name(const char *name, int version)
{
#define RENAMED(old, since, row)                                     \
	if (version >= (since) && __builtin_strcmp(name, #old) == 0) \
		return #row;
#include "preload/renamed.def"
	return name;
}

/* Finds the best row for this name that this driver has; per-thread rows only if `flags` ask for them. */
static const struct row *find_by_name(const char *name, int version, cuuint64_t flags)
{
	const struct row *best = NULL;

	name = current_name(name, version);
	for (size_t i = 0; i < N_ROWS; i++) {
		char base[MAX_NAME];

		base_name(rows[i].name, base, sizeof base);
		if (*rows[i].real && strcmp(base, name) == 0 && rows[i].since <= version &&
			(!rows[i].is_per_thread ||
				(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) &&
			(!best || is_better(&rows[i], best)))
			best = &rows[i];
	}
	return best;
}

/*
 * A name may stand for an unknown function with other parameters in a version newer than our table.  It stands for a
 * function that we know if the driver returns the same pointer for NEWEST_KNOWN.
 */
static bool is_known_version(const char *name, void *pointer, int version, cuuint64_t flags)
{
	void *known = NULL;

	return version <= NEWEST_KNOWN ||
	       (real_cuGetProcAddress_v2(name, &known, NEWEST_KNOWN, flags, NULL) == CUDA_SUCCESS &&
		       known == pointer);
}

void *gpc_real_exchange_answer(const char *name, void *pointer, int version, cuuint64_t flags)
{
	void *ours = gpc_real_exchange(pointer);
	const struct row *row = NULL;

	if (ours != pointer || !pointer || !gpc_real_find())
		return ours;
	if (found.needs_names && is_known_version(name, pointer, version, flags))
		row = find_by_name(name, version, flags);
	return row ? row->ours : pointer;
}

bool gpc_real_row(const char *name, void **ret_ours, void **ret_real)
{
	(void)pthread_once(&found.rows_once, write_rows);
	for (size_t i = 0; i < N_ROWS; i++) {
		if (strcmp(rows[i].name, name) == 0) {
			*ret_ours = rows[i].ours;
			*ret_real = __atomic_load_n(rows[i].real, __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}
