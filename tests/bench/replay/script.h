/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: the calls that a workload is written in, each one step of a program's host thread.
 *
 *      struct gpc_buffer act = gpc_script_alloc(script, COMPUTE, 16 * GPC_MIB);
 *      gpc_script_work(script, COMPUTE, 200 * US, &act);       submitted; the host continues
 *      gpc_script_free(script, &act);                          while the kernel still runs
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPLAY_SCRIPT_H
#define GPC_REPLAY_SCRIPT_H

#include "tools/replay/trace_build.h"

#define GPC_SCRIPT_MAX_KEYS 8
#define GPC_US              UINT64_C(1000) /* nanoseconds */

struct gpc_buffer {
	uint64_t identity; /* 0: none */
	uint64_t size;
	uint32_t stream; /* of the allocation */
};

struct gpc_script {
	struct gpc_trace_builder *builder;
	uint64_t random;
	uint64_t time_ns;
	uint64_t n_identities;
	uint64_t values[GPC_SCRIPT_MAX_KEYS]; /* of the workload's keys, in its order */
};

struct gpc_buffer gpc_script_alloc(struct gpc_script *script, uint32_t stream, uint64_t size);

/* Frees the buffer and clears it; does nothing for a cleared one. */
void gpc_script_free(struct gpc_script *script, struct gpc_buffer *buffer);

/*
 * Submits a kernel that uses the buffer.  Duration 0: adds the buffer to the kernel last submitted to
 * this stream.
 */
void gpc_script_work(struct gpc_script *script, uint32_t stream, uint64_t duration_ns,
	const struct gpc_buffer *buffer);
void gpc_script_order(struct gpc_script *script, uint32_t stream, uint32_t other);
void gpc_script_sync(struct gpc_script *script);

/* Returns 0 .. n - 1; n > 0. */
uint64_t gpc_script_random(struct gpc_script *script, uint64_t n);

/* Returns from .. to, each power of two equally likely; 0 < from <= to. */
uint64_t gpc_script_random_size(struct gpc_script *script, uint64_t from, uint64_t to);

void gpc_workload_training(struct gpc_script *script);
void gpc_workload_inference(struct gpc_script *script);
void gpc_workload_pipeline(struct gpc_script *script);
void gpc_workload_random(struct gpc_script *script);

#endif
