/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what a program asked of its allocator, in order, read from a file.
 *
 *   op,id,size,stream,time_us                        ours: op is alloc or free, id is any number
 *   Thread,Time,Action,Pointer,Size,Stream           RMM's log: allocate, allocate failure, free
 *
 * The header says which; both may be packed with gzip.  Identities (ids, pointers) may be used
 * again; each life becomes one slot, numbered from 0, so that whoever replays needs an array and
 * no lookup.
 *
 * Invariants  1 A slot is allocated once and freed at most once, in this order.  2 Streams are
 *             numbered from 0.
 *             3 Times never decrease.
 * Threads     One.
 * Failure     gpc_trace_read: GPC_IO with errno, GPC_DAMAGED, GPC_NO_METADATA; `why` then says
 *             what, with the line.
 * Limits      The threads of RMM's log are not kept: what happened is replayed in the file's order.
 */
#ifndef GPC_REPLAY_TRACE_H
#define GPC_REPLAY_TRACE_H

#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum gpc_trace_op_kind {
	GPC_TRACE_ALLOC,
	GPC_TRACE_FREE,
	GPC_TRACE_FAILURE, /* an allocation that failed when the trace was taken */
};

struct gpc_trace_op {
	uint64_t size; /* ALLOC and FAILURE */
	uint64_t time_ns;
	uint32_t slot; /* ALLOC and FREE */
	uint32_t stream;
	uint32_t line;
	enum gpc_trace_op_kind kind;
};

struct gpc_trace {
	const char *path;
	struct gpc_trace_op *ops;
	uint64_t n_ops;
	uint32_t n_slots;
	uint32_t n_streams;
	uint64_t n_failures;
	/* of what was not live: allocated before the trace began; left out */
	uint64_t n_unknown_frees;
	/* an identity that was given out again without a free in between */
	uint64_t n_implied_frees;
	uint64_t peak_live_bytes; /* as requested, failures not counted */
};

GPC_MUST_CHECK enum gpc_status gpc_trace_read(
	const char *path, struct gpc_text *why, struct gpc_trace *ret_trace);
void gpc_trace_fini(struct gpc_trace *trace);

#endif
