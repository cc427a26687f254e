/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of live identities maps them to slots; live bytes and the peak are counted as operations are added.
 */
#include "tools/replay/trace.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/replay/trace_build.h"

struct gpc_trace_builder *gpc_trace_begin(const char *path, bool is_recording)
{
	struct gpc_trace_builder *builder = gpc_new(1, sizeof *builder);

	builder->trace.path = path;
	builder->trace.is_recording = is_recording;
	return builder;
}

enum gpc_status gpc_trace_end(
	struct gpc_trace_builder *builder, enum gpc_status st, struct gpc_trace *ret_trace)
{
	gpc_address_map_fini(&builder->live);
	if (st)
		gpc_trace_fini(&builder->trace);
	else
		*ret_trace = builder->trace;
	free(builder);
	return st;
}

static void add_op(struct gpc_trace_builder *builder, struct gpc_trace_op op)
{
	struct gpc_trace *trace = &builder->trace;

	gpc_array_grow(&trace->ops, sizeof *trace->ops, trace->n_ops, &builder->n_room);
	trace->ops[trace->n_ops++] = op;
}

/* The number of a stream, which RMM's log gives as a handle; streams beyond the table share the last number. */
static uint32_t number_stream(struct gpc_trace_builder *builder, uint64_t stream)
{
	uint32_t i;

	for (i = 0; i < builder->trace.n_streams; i++)
		if (builder->streams[i] == stream)
			return i;
	if (i == GPC_TRACE_MAX_STREAMS)
		return GPC_TRACE_MAX_STREAMS - 1;
	builder->streams[i] = stream;
	return builder->trace.n_streams++;
}

static void *identity_value(uint64_t op_number)
{
	return (void *)(uintptr_t)(op_number + 1);
}

/* The operation that allocated a live identity, or NULL. */
static const struct gpc_trace_op *op_of(const struct gpc_trace_builder *builder, const void *value)
{
	return value ? &builder->trace.ops[(uintptr_t)value - 1] : NULL;
}

/* The part common to all kinds of operation. */
static struct gpc_trace_op op_of_row(
	struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	const struct gpc_trace *trace = &builder->trace;
	uint64_t last_ns = trace->n_ops ? trace->ops[trace->n_ops - 1].time_ns : 0;

	/* Times may step back, at midnight or between threads; only the order of rows counts. */
	return (struct gpc_trace_op){ .kind = row->kind,
		.stream = number_stream(builder, row->stream),
		.time_ns = row->time_ns > last_ns ? row->time_ns : last_ns,
		.duration_ns = row->duration_ns,
		.line = row->line,
		.way = row->way };
}

/* Counts an allocation in; note_less() counts it out. */
static void note_more(struct gpc_trace_builder *builder, const struct gpc_trace_op *op)
{
	const bool is_beside = op->way == GPC_TRACE_BESIDE;
	uint64_t *bytes = is_beside ? &builder->beside_bytes : &builder->live_bytes;
	uint64_t *peak =
		is_beside ? &builder->trace.peak_beside_bytes : &builder->trace.peak_live_bytes;
	uint64_t all;

	*bytes = gpc_bytes_add(*bytes, op->size);
	if (*bytes > *peak)
		*peak = *bytes;
	all = gpc_bytes_add(builder->live_bytes, builder->beside_bytes);
	if (all > builder->trace.peak_all_bytes)
		builder->trace.peak_all_bytes = all;
}

static void note_less(struct gpc_trace_builder *builder, const struct gpc_trace_op *op)
{
	uint64_t *bytes =
		op->way == GPC_TRACE_BESIDE ? &builder->beside_bytes : &builder->live_bytes;

	*bytes = gpc_bytes_less(*bytes, op->size);
}

static void add_free(
	struct gpc_trace_builder *builder, const struct gpc_trace_row *row, uint64_t *count_unknown)
{
	const struct gpc_trace_op *allocation =
		op_of(builder, gpc_address_map_take(&builder->live, row->identity + 1));
	struct gpc_trace_op op;

	if (!allocation) {
		(*count_unknown)++;
		return;
	}
	op = op_of_row(builder, row);
	op.kind = GPC_TRACE_FREE;
	op.slot = allocation->slot;
	note_less(builder, allocation);
	add_op(builder, op);
}

static void add_alloc(struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	struct gpc_trace *trace = &builder->trace;
	struct gpc_trace_op op;
	uint64_t ignored = 0;

	if (row->kind == GPC_TRACE_ALLOC &&
		gpc_address_map_find(&builder->live, row->identity + 1)) {
		add_free(builder, row, &ignored);
		trace->n_implied_frees++;
	}
	op = op_of_row(builder, row);
	op.size = row->size;
	if (row->kind == GPC_TRACE_FAILURE) {
		trace->n_failures++;
		add_op(builder, op);
		return;
	}
	op.slot = trace->n_slots++;
	add_op(builder, op);
	if (gpc_address_map_reserve(&builder->live, 1))
		gpc_no_memory();
	gpc_address_map_insert(&builder->live, row->identity + 1, identity_value(trace->n_ops - 1));
	note_more(builder, &op);
}

/* Adds an operation that neither allocates nor frees.  Drops work on memory that is not live. */
static void add_other(struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	const struct gpc_trace_op *allocation =
		op_of(builder, gpc_address_map_find(&builder->live, row->identity + 1));
	struct gpc_trace_op op = op_of_row(builder, row);

	if (row->kind == GPC_TRACE_WORK && !allocation)
		return;
	if (row->kind == GPC_TRACE_WORK)
		op.slot = allocation->slot;
	if (row->kind == GPC_TRACE_ORDER)
		op.other = number_stream(builder, row->other);
	builder->trace.n_work += row->kind == GPC_TRACE_WORK;
	add_op(builder, op);
}

void gpc_trace_add(struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	switch (row->kind) {
	case GPC_TRACE_FREE:
		add_free(builder, row, &builder->trace.n_unknown_frees);
		break;
	case GPC_TRACE_ALLOC:
	case GPC_TRACE_FAILURE:
		add_alloc(builder, row);
		break;
	case GPC_TRACE_WORK:
	case GPC_TRACE_ORDER:
	case GPC_TRACE_SYNC:
	case GPC_TRACE_EMPTY_CACHE:
		add_other(builder, row);
		break;
	}
}

void gpc_trace_fini(struct gpc_trace *trace)
{
	free(trace->ops);
	*trace = (struct gpc_trace){ 0 };
}
