/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table maps each live identity to its allocation, which has the slot.  Live bytes and the peak are counted as
 * operations are added.
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

/* Returns the number of a stream.  All streams that the table has no room for share the last number. */
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

/* The operation that a value of the map `live` stands for; NULL if the value is NULL. */
static const struct gpc_trace_op *op_of(const struct gpc_trace_builder *builder, const void *value)
{
	return value ? &builder->trace.ops[(uintptr_t)value - 1] : NULL;
}

/* Sets the members that all kinds of operation have. */
static struct gpc_trace_op op_of_row(
	struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	const struct gpc_trace *trace = &builder->trace;
	uint64_t last_ns = trace->n_ops ? trace->ops[trace->n_ops - 1].time_ns : 0;

	/* A time may be earlier than that of the row before: after midnight, or from another thread. */
	return (struct gpc_trace_op){ .kind = row->kind,
		.stream = number_stream(builder, row->stream),
		.time_ns = row->time_ns > last_ns ? row->time_ns : last_ns,
		.duration_ns = row->duration_ns,
		.line = row->line,
		.context = row->context,
		.way = row->way };
}

static uint64_t *sum_of(struct gpc_trace_builder *builder, const struct gpc_trace_op *op)
{
	return op->way == GPC_TRACE_BESIDE ? &builder->beside_bytes : &builder->live_bytes;
}

static void raise_to(uint64_t *peak, uint64_t bytes)
{
	if (bytes > *peak)
		*peak = bytes;
}

static void note_alloc(struct gpc_trace_builder *builder, const struct gpc_trace_op *op)
{
	struct gpc_trace *trace = &builder->trace;
	uint64_t *sum = sum_of(builder, op);

	*sum = gpc_bytes_add(*sum, op->size);
	raise_to(&trace->peak_live_bytes, builder->live_bytes);
	raise_to(&trace->peak_beside_bytes, builder->beside_bytes);
	raise_to(&trace->peak_all_bytes, gpc_bytes_add(builder->live_bytes, builder->beside_bytes));
}

static void add_free(struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	const struct gpc_trace_op *allocation =
		op_of(builder, gpc_address_map_take(&builder->live, row->identity + 1));
	struct gpc_trace_op op;
	uint64_t *sum;

	if (!allocation) {
		builder->trace.n_unknown_frees++;
		return;
	}
	op = op_of_row(builder, row);
	op.kind = GPC_TRACE_FREE;
	op.slot = allocation->slot;
	sum = sum_of(builder, allocation);
	*sum = gpc_bytes_less(*sum, allocation->size);
	add_op(builder, op);
}

static void add_alloc(struct gpc_trace_builder *builder, const struct gpc_trace_row *row)
{
	struct gpc_trace *trace = &builder->trace;
	struct gpc_trace_op op;

	if (row->kind == GPC_TRACE_ALLOC &&
		gpc_address_map_find(&builder->live, row->identity + 1)) {
		add_free(builder, row);
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
	gpc_trace_map_insert(&builder->live, row->identity + 1, (void *)(uintptr_t)trace->n_ops);
	note_alloc(builder, &op);
}

/* Adds an operation that neither allocates nor frees.  Leaves out work on memory that is not live. */
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
	if (row->kind == GPC_TRACE_FREE)
		add_free(builder, row);
	else if (row->kind == GPC_TRACE_ALLOC || row->kind == GPC_TRACE_FAILURE)
		add_alloc(builder, row);
	else
		add_other(builder, row);
}

void gpc_trace_fini(struct gpc_trace *trace)
{
	free(trace->ops);
	*trace = (struct gpc_trace){ 0 };
}
