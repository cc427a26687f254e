/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver: one typed pointer for each row of symbols.def, and a function that calls it.
 *
 * The pointers are found at the first need, in the libcuda.so.1 that the program loaded.  We hold a reference to that
 * library ourselves: CUDA's runtime library closes libcuda if its own start fails, and without our reference the
 * pointers would dangle.
 *
 * A library may bring functions of the driver's names that load it at the first call, as TensorFlow's does.  Its calls
 * reach ours instead, since ours come first; until the driver is loaded, real_<name> calls theirs.
 *
 * Threads   Any; the search takes no lock, and its result is published once.
 * Failure   Without a driver, and without such a function, every real_<name> returns CUDA_ERROR_NOT_FOUND.
 */
#ifndef GPC_PRELOAD_REAL_H
#define GPC_PRELOAD_REAL_H

#include <stdbool.h>

#include "driver/cuda_fns.h"
#include "runtime/context/streams.h"
#include "runtime/process/enter.h"

#define HOOK(name, since, gets, params, args) CUresult(*name) params;
struct gpc_real {
#include "preload/symbols.def"
};

extern struct gpc_real gpc_real;

/* Finds the driver, unless it was found before.  False: the process has not loaded it yet. */
bool gpc_real_find(void);

/* What the runtime needs to start; NULL: the process has not loaded the driver. */
const struct gpc_runtime_loader *gpc_real_loader(void);

/* The next dlsym after ours, found at the first call; NULL if there is none. */
void *(*gpc_find_next_dlsym(void))(void *, const char *);

/* Calls the next dlsym. */
void *gpc_real_dlsym_call(void *handle, const char *name);

/*
 * Returns our function for this function of the real driver, or `pointer` itself if we have none.  For answers of dlsym
 * and cuGetProcAddress.  A pointer, unlike a name, stands for exactly one version and variant.
 */
void *gpc_real_exchange(void *pointer);

/*
 * As gpc_real_exchange, for an answer of cuGetProcAddress to these arguments.  If the driver's answers are not the
 * functions that it exports, matches by name, and returns the variant that the arguments select.
 */
void *gpc_real_exchange_answer(const char *name, void *pointer, int version, cuuint64_t flags);

/* Finds the row of symbols.def with this name: our function, and the driver's or NULL.  False: no such row. */
bool gpc_real_row(const char *name, void **ret_ours, void **ret_real);

/*
 * Finds the function `name` that the caller's library would call without us; NULL: there is none, or this thread is in
 * such a function, which has come back without having loaded the driver.  Else gpc_real_left() follows its call.
 */
void *gpc_real_loading(const char *name, const void *caller);
CUresult gpc_real_left(CUresult result);

/* CUresult real_<name>(parameters): the driver's function. */
#define REAL(name, params, args)                                                                \
	static inline __attribute__((unused)) CUresult real_##name params                       \
	{                                                                                       \
		CUresult(*real) params = __atomic_load_n(&gpc_real.name, __ATOMIC_RELAXED);     \
                                                                                                \
		if (!real && gpc_real_find())                                                   \
			real = gpc_real.name;                                                   \
		if (real)                                                                       \
			return real args;                                                       \
		*(void **)(void *)&real = gpc_real_loading(#name, __builtin_return_address(0)); \
		return real ? gpc_real_left(real args) : CUDA_ERROR_NOT_FOUND;                  \
	}
#define HOOK(name, since, gets, params, args) REAL(name, params, args)
#include "preload/symbols.def"
#undef REAL

/* Our own functions, exported. */
#define EXPORT                                __attribute__((visibility("default")))
#define HOOK(name, since, gets, params, args) EXPORT CUresult name params;
#include "preload/symbols.def"

/* Enters the runtime, and starts it at the first call.  False: it is off, or our own code makes this call. */
static inline bool enter(void)
{
	return gpc_runtime_enter(gpc_real_loader);
}

/* Does `what` inside the runtime, or nothing if the runtime cannot be entered. */
#define INSIDE(what)                         \
	do {                                 \
		if (enter()) {               \
			what;                \
			gpc_runtime_leave(); \
		}                            \
	} while (0)

/* Leaves the runtime, and returns the result of what was done inside. */
static inline CUresult left(CUresult result)
{
	gpc_runtime_leave();
	return result;
}

/* The result of `what`, done inside the runtime; or of `otherwise`, if the runtime cannot be entered. */
#define ENTERED(what, otherwise) (enter() ? left(what) : (otherwise))

/* Defines a hook that calls the driver and then, on success, tells the runtime by `note`. */
#define NOTED(name, note, params, args)             \
	CUresult name params                        \
	{                                           \
		CUresult result = real_##name args; \
                                                    \
		if (result == CUDA_SUCCESS)         \
			INSIDE(note);               \
		return result;                      \
	}

/* Defines a hook that calls `begin` before the driver, and passes what `begin` returns, and the result, to `end` after. */
#define ENCLOSED(name, first, type, begin, end, params, args) \
	CUresult name params                                  \
	{                                                     \
		CUresult result;                              \
		type begun;                                   \
                                                              \
		first;                                        \
		if (!enter())                                 \
			return real_##name args;              \
		begun = begin;                                \
		result = real_##name args;                    \
		end(begun, result);                           \
		return left(result);                          \
	}

/* True if work submitted before some free may still run. */
static inline bool is_unsettled(void)
{
	return __builtin_expect(
		atomic_load_explicit(&gpc_runtime_duties.n_unsettled, memory_order_acquire) > 0, 0);
}

/*
 * Call before the program queries the device, waits for it, or destroys an object that work may use.  The plain
 * cudaFree waits, so after one the program may expect that all earlier work has completed.
 */
static inline void queries(CUstream stream)
{
	if (is_unsettled())
		INSIDE(gpc_runtime_queries(stream));
}

/* Tells the runtime of an error with which the driver answered the program; returns the error. */
CUresult gpc_hook_error(CUresult result);

/* Returns the driver's answer, and tells the runtime of errors that may break the context: they have high numbers. */
static inline CUresult answered(CUresult result)
{
	if (__builtin_expect(result >= CUDA_ERROR_ECC_UNCORRECTABLE, 0) &&
		result != CUDA_ERROR_NOT_READY)
		return gpc_hook_error(result);
	return result;
}

#endif
