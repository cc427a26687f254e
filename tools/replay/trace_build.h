/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a trace is put together: rows with identities of their source go in, operations with slots
 * come out.
 *
 *      trace_csv.c ------.                      the tool's, as workload.c is
 *      trace_snapshot.c  |                      too
 *      trace_recording.c +--> gpc_trace_add --> gpc_trace_end --> struct gpc_trace
 *      workload.c -------'
 *
 * Threads     One.
 * Failure     gpc_trace_add: GPC_NO_METADATA.  gpc_trace_end cleans up, whatever it is given.
 */
#ifndef GPC_REPLAY_TRACE_BUILD_H
#define GPC_REPLAY_TRACE_BUILD_H

#include "alloc/address_map.h"
#include "tools/replay/trace.h"

#define GPC_TRACE_MAX_STREAMS 4096

struct gpc_trace_builder {
	struct gpc_trace trace;
	uint64_t n_room;
	struct gpc_address_map live; /* identity + 1 -> op of its allocation, + 1 */
	uint64_t streams[GPC_TRACE_MAX_STREAMS];
	uint64_t live_bytes;
	uint64_t beside_bytes;
};

struct gpc_trace_row {
	enum gpc_trace_op_kind kind;
	uint64_t identity; /* not UINT64_MAX */
	uint64_t size;     /* > 0 if it means something */
	uint64_t stream;   /* any name */
	uint64_t other;    /* ORDER: a stream */
	uint64_t time_ns;
	uint64_t duration_ns;
	uint64_t line;
	enum gpc_trace_way way;
};

/* NULL: no memory. */
struct gpc_trace_builder *gpc_trace_begin(const char *path, enum gpc_trace_source source);
GPC_MUST_CHECK enum gpc_status gpc_trace_add(
	struct gpc_trace_builder *builder, const struct gpc_trace_row *row);

/* Ends the building; on GPC_OK the trace is the caller's.  Answers `st`. */
GPC_MUST_CHECK enum gpc_status gpc_trace_end(
	struct gpc_trace_builder *builder, enum gpc_status st, struct gpc_trace *ret_trace);

#endif
