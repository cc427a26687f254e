/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready-made hooks.  The ladder may repeat a driver's call that allocates, so CALL keeps its arguments in a struct,
 * from which the repetition reads them as a->ARGUMENT.
 *
 *	TRACKED(cuMemAllocManaged, dptr, MANAGED, bytesize, a->bytesize, *a->dptr,
 *		(CUdeviceptr *dptr, size_t bytesize, unsigned int flags), (dptr, bytesize, flags))
 *
 * Threads   Any.
 * Failure   The driver's own.  If `is_fine` is false the call goes to the driver, which refuses it.
 */
#ifndef GPC_PRELOAD_SHAPES_H
#define GPC_PRELOAD_SHAPES_H

#include "preload/real.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/track.h"

#define LIST(...) __VA_ARGS__

/* EACH(f, x, y, ...): f(x) f(y) ..., for one to eight arguments. */
#define EACH(f, ...)                                                                             \
	NINTH(__VA_ARGS__, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, EACH_1, none) \
	(f, __VA_ARGS__)
#define NINTH(a, b, c, d, e, f, g, h, ninth, ...) ninth
#define EACH_1(f, x)                              f(x)
#define EACH_2(f, x, ...)                         f(x) EACH_1(f, __VA_ARGS__)
#define EACH_3(f, x, ...)                         f(x) EACH_2(f, __VA_ARGS__)
#define EACH_4(f, x, ...)                         f(x) EACH_3(f, __VA_ARGS__)
#define EACH_5(f, x, ...)                         f(x) EACH_4(f, __VA_ARGS__)
#define EACH_6(f, x, ...)                         f(x) EACH_5(f, __VA_ARGS__)
#define EACH_7(f, x, ...)                         f(x) EACH_6(f, __VA_ARGS__)
#define EACH_8(f, x, ...)                         f(x) EACH_7(f, __VA_ARGS__)

#define FIELD(parameter)     parameter;
#define AND_SAVED(argument)  , a->argument
#define SAVED(argument, ...) a->argument EACH(AND_SAVED, __VA_ARGS__)

/* Defines struct name_call, and make_name, which calls the driver and does `note` on success. */
#define CALL(name, base, note, params, args)                                    \
	struct name##_call {                                                    \
		struct base call;                                               \
		EACH(FIELD, LIST params)                                        \
	};                                                                      \
	static CUresult make_##name(struct base *call)                          \
	{                                                                       \
		const struct name##_call *a = (const struct name##_call *)call; \
		CUresult result = real_##name(SAVED args);                      \
                                                                                \
		if (result == CUDA_SUCCESS) {                                   \
			note;                                                   \
		}                                                               \
		return result;                                                  \
	}

/* The `note` of a tracked call: stores the address or handle that the driver gave, and the size of its memory. */
#define GIVEN(given, held)                                \
	call->ret_address = (uint64_t)(uintptr_t)(given); \
	call->ret_size = held

/* Defines the hook of an allocation of `bytes` that the driver makes and we only track. */
#define TRACKED(name, is_fine, of_kind, bytes, held, given, params, args)                          \
	CALL(name, gpc_passed_call, GIVEN(given, held), params, args)                              \
	CUresult name params                                                                       \
	{                                                                                          \
		struct name##_call a = { { .make = make_##name, .kind = GPUCACHE_KIND_##of_kind }, \
			LIST args };                                                               \
                                                                                                   \
		if (!(is_fine) || !enter())                                                        \
			return real_##name args;                                                   \
		a.call.size = bytes;                                                               \
		return left(gpc_runtime_passed_malloc(&a.call));                                   \
	}

/*
 * Frees what is tracked under `key` by `call`.  The entry is removed before the call, because the driver may then give
 * the key to another thread, and restored if the driver refused.
 */
#define FREE_TRACKED(result, of_kind, key, call)                              \
	do {                                                                  \
		struct gpc_tracked *tracked = gpc_runtime_forget_key(         \
			GPUCACHE_KIND_##of_kind, (uint64_t)(uintptr_t)(key)); \
                                                                              \
		(result) = call;                                              \
		gpc_runtime_forgotten(tracked, result);                       \
		gpc_runtime_answered(result);                                 \
	} while (0)

/* Defines the hook of a function that frees what is tracked under its argument, by FREE_TRACKED. */
#define FREED(name, of_kind, type)                                    \
	CUresult name(type key)                                       \
	{                                                             \
		CUresult result;                                      \
                                                                      \
		queries(NULL);                                        \
		if (!key || !enter())                                 \
			return real_##name(key);                      \
		FREE_TRACKED(result, of_kind, key, real_##name(key)); \
		return left(result);                                  \
	}

#endif
