/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program of check-kill holds by its own account, in a shared file mapping, which survives a kill.
 *
 *   thread:  op = MALLOC, size, slot   ->  cudaMalloc  ->  slots[slot] = address, size   ->  op = NONE
 *            op = FREE, slot           ->  cudaFree    ->  slots[slot] = 0               ->  op = NONE
 *
 * Each store comes after the one before it (release order, and page-cache pages outlive their process), so
 * at any death: a thread whose op is NONE holds exactly its slots; the slot of another one is undecided.
 */
#ifndef GPC_TESTS_KILL_MODEL_H
#define GPC_TESTS_KILL_MODEL_H

#include <stdatomic.h>
#include <stdint.h>

#define MODEL_MAX_THREADS 16
#define MODEL_SLOTS       96 /* run.py knows it too */

enum model_op {
	MODEL_NONE,
	MODEL_MALLOC,
	MODEL_FREE,
};

struct model_slot {
	_Atomic uint64_t address; /* 0: holds nothing */
	_Atomic uint64_t size;
};

struct model_thread {
	_Atomic uint32_t op; /* enum model_op: what is in flight */
	_Atomic uint32_t slot;
	_Atomic uint64_t size; /* of a MALLOC in flight */
	_Atomic uint64_t n_ops;
	struct model_slot slots[MODEL_SLOTS];
};

struct model {
	_Atomic uint32_t n_threads;
	_Atomic uint32_t is_busy; /* 1: every thread has done something */
	struct model_thread threads[MODEL_MAX_THREADS];
};

#endif
