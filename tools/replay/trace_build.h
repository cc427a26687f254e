/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a trace from rows.  A row names memory by an identity, the id or address in the file; an operation of the
 * trace names it by a slot.
 *
 *      trace_csv.c ------.                      (gpumem-replay)
 *      trace_snapshot.c -+                      (gpumem-replay)
 *      workload.c -------+--> gpc_trace_add --> gpc_trace_end --> struct gpc_trace
 *      trace_recording.c '
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPLAY_TRACE_BUILD_H
#define GPC_REPLAY_TRACE_BUILD_H

#include "alloc/address_map.h"
#include "format/memory.h"
#include "tools/replay/trace.h"

#define GPC_TRACE_MAX_STREAMS 4096

struct gpc_trace_builder {
	struct gpc_trace trace;
	uint64_t n_room;
	struct gpc_address_map live; /* identity + 1 -> index of its allocation in trace.ops, + 1 */
	uint64_t streams[GPC_TRACE_MAX_STREAMS]; /* the rows' names, by number */
	uint64_t live_bytes;
	uint64_t beside_bytes;
};

struct gpc_trace_row {
	enum gpc_trace_op_kind kind;
	uint64_t identity; /* not UINT64_MAX */
	uint64_t size;     /* > 0 if the kind has a size */
	uint64_t stream;   /* any number, such as a handle */
	uint64_t other;    /* ORDER: another stream */
	uint64_t time_ns;
	uint64_t duration_ns;
	uint64_t line;
	uint32_t context;
	enum gpc_trace_way way;
};

/* Inserts address > 0, which must not be in the map. */
static inline void gpc_trace_map_insert(struct gpc_address_map *map, uint64_t address, void *value)
{
	if (gpc_address_map_reserve(map, 1))
		gpc_no_memory();
	gpc_address_map_insert(map, address, value);
}

struct gpc_trace_builder *gpc_trace_begin(const char *path, bool is_recording);
void gpc_trace_add(struct gpc_trace_builder *builder, const struct gpc_trace_row *row);

/* Frees the builder and returns `st`.  If `st` is GPC_OK, the caller owns *ret_trace; otherwise there is no trace. */
enum gpc_status gpc_trace_end(
	struct gpc_trace_builder *builder, enum gpc_status st, struct gpc_trace *ret_trace);

#endif
