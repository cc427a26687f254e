/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: what a workload is written in.  Each call is one step of a program's host thread.
 *
 *      struct gpc_buffer act = gpc_script_alloc(script, COMPUTE, 16 * GPC_MIB);
 *      gpc_script_work(script, COMPUTE, 200 * US, &act);       submitted; the host goes on
 *      gpc_script_free(script, &act);                          the kernel runs still
 *
 * Threads     One.
 * Failure     Kept in `st`; from the first one on the steps do nothing.
 */
#ifndef GPC_REPLAY_SCRIPT_H
#define GPC_REPLAY_SCRIPT_H

#include "tools/replay/trace_build.h"

#define GPC_SCRIPT_MAX_KEYS 8
#define GPC_US              UINT64_C(1000) /* nanoseconds */

struct gpc_buffer {
	uint64_t identity; /* 0: none */
	uint64_t size;
	uint32_t stream; /* that it was asked for on */
};

struct gpc_script {
	struct gpc_trace_builder *builder;
	enum gpc_status st;
	uint64_t random;
	uint64_t time_ns;
	uint64_t n_identities;
	uint64_t values[GPC_SCRIPT_MAX_KEYS]; /* of the workload's keys, in its order */
};

struct gpc_buffer gpc_script_alloc(struct gpc_script *script, uint32_t stream, uint64_t size);

/* The buffer is none from then on; freeing none does nothing. */
void gpc_script_free(struct gpc_script *script, struct gpc_buffer *buffer);

/*
 * A kernel that uses the buffer.  Duration 0: one more buffer of the kernel submitted last to this
 * stream, with which it ends.
 */
void gpc_script_work(struct gpc_script *script, uint32_t stream, uint64_t duration_ns,
	const struct gpc_buffer *buffer);
void gpc_script_order(struct gpc_script *script, uint32_t stream, uint32_t other);
void gpc_script_sync(struct gpc_script *script);

/* 0 .. n - 1, n > 0 */
uint64_t gpc_script_random(struct gpc_script *script, uint64_t n);

/* from .. to, each power of two as likely as the next; 0 < from <= to */
uint64_t gpc_script_random_size(struct gpc_script *script, uint64_t from, uint64_t to);

/* The workloads. */
void gpc_workload_training(struct gpc_script *script);
void gpc_workload_inference(struct gpc_script *script);
void gpc_workload_pipeline(struct gpc_script *script);
void gpc_workload_random(struct gpc_script *script);

#endif
