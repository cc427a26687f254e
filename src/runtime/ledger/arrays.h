/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of JAX: what XLA hands out of the memory that it got from us.  In the recording they are tensors (tensors.h), of
 * a framework that is XLA.
 *
 * PyTorch reports its tensors with its own sums.  XLA does not, so the sum of arrays is counted here.  XLA's pool is what
 * XLA's own code asks the driver for.
 *
 * An array is known by the plugin's handle, because a donated one and the output that takes its memory have one address.
 *
 * Threads   Any, inside the runtime.
 * Failure   Without metadata, or without the owner of the device, an array counts in the number of arrays only.
 * Limits    So does an array without a stack, with tensors:sampled: the sums are those of the arrays that are recorded.
 */
#ifndef GPC_RUNTIME_LEDGER_ARRAYS_H
#define GPC_RUNTIME_LEDGER_ARRAYS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

struct gpc_array {
	uint64_t buffer; /* the plugin's handle */
	uint64_t address;
	uint64_t size;
	bool is_sure; /* it has its memory; false: XLA may yet find none */
};

/* False with tensors:off, with which the calls below do nothing. */
bool gpc_runtime_wants_arrays(void);

/* XLA made an array. */
void gpc_runtime_array(int device, const struct gpc_array *array, uint32_t stack);

/*
 * XLA's pool on the device grows by so many bytes, which are lent to arrays.  Call before the memory is there, so that it
 * is no peak, and with the negative size if there is none.
 */
void gpc_runtime_arrays_pool(int device, int64_t change);

/*
 * The memory that came is a piece of the pool, by its address, or by its handle as physical memory, until
 * gpc_arrays_piece_end, which is a no-op for other memory.  Call that before the driver can give the key to another thread;
 * if the driver refuses the free, the pool is short of the piece.
 */
void gpc_arrays_piece(int device, uint64_t key, uint64_t size);
void gpc_arrays_end_piece(uint64_t key);

extern _Atomic uint32_t gpc_arrays_n_pieces;

static inline void gpc_arrays_piece_end(uint64_t key)
{
	if (__builtin_expect(
		    atomic_load_explicit(&gpc_arrays_n_pieces, memory_order_relaxed) > 0, 0))
		gpc_arrays_end_piece(key);
}

/* The array of this handle is freed.  No-op for others. */
void gpc_runtime_array_end(uint64_t buffer);

/*
 * XLA was out of memory; size 0: for how much is unknown; device -1: the one with the most arrays.  in_use is what XLA has
 * handed out, beside arrays for what programs need; 0: unknown.  program NULL: not in an execution.
 */
void gpc_runtime_array_failed(
	int device, uint64_t size, uint64_t in_use, const struct gpucache_oom_program *program);

/* What the program needs whose failure this thread reports now; all zero: none. */
struct gpucache_oom_program gpc_arrays_program(void);

#endif
