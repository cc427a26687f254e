/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-replay/trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "alloc/address_map.h"

#define MAX_LINE    512
#define MAX_FIELDS  6
#define MAX_STREAMS 4096

static const char our_header[] = "op,id,size,stream,time_us";
static const char rmm_header[] = "Thread,Time,Action,Pointer,Size,Stream";

/* One line, understood. */
struct row {
	enum gpc_trace_op_kind kind;
	uint64_t identity;
	uint64_t size;
	uint64_t stream;
	uint64_t time_ns;
};

struct reader {
	struct gpc_trace trace;
	uint64_t n_room;
	struct gpc_address_map live; /* identity + 1 -> op of its allocation, + 1 */
	uint64_t streams[MAX_STREAMS];
	uint64_t live_bytes;
	uint32_t line;
	bool (*parse)(char **fields, unsigned n_fields, struct row *ret_row);
};

static bool parse_number(const char *text, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(text, &end, base);
	return end != text && *end == '\0' && *text != '-' && errno == 0;
}

static bool parse_our_row(char **fields, unsigned n_fields, struct row *ret_row)
{
	struct row row = { .kind = GPC_TRACE_ALLOC };

	if (n_fields != 5)
		return false;
	if (strcmp(fields[0], "free") == 0)
		row.kind = GPC_TRACE_FREE;
	else if (strcmp(fields[0], "alloc") != 0)
		return false;
	if (!parse_number(fields[1], 10, &row.identity) ||
		!parse_number(fields[2], 10, &row.size) ||
		!parse_number(fields[3], 0, &row.stream) ||
		!parse_number(fields[4], 10, &row.time_ns))
		return false;
	row.time_ns *= 1000;
	*ret_row = row;
	return true;
}

/* "15:47:02.841961": the log names no day. */
static bool parse_time_of_day(const char *text, uint64_t *ret_ns)
{
	unsigned hours, minutes, seconds, us;

	if (sscanf(text, "%2u:%2u:%2u.%6u", &hours, &minutes, &seconds, &us) != 4)
		return false;
	*ret_ns = ((hours * UINT64_C(60) + minutes) * 60 + seconds) * 1000000000 +
		  us * UINT64_C(1000);
	return true;
}

static bool parse_rmm_row(char **fields, unsigned n_fields, struct row *ret_row)
{
	struct row row = { .kind = GPC_TRACE_ALLOC };

	if (n_fields != 6)
		return false;
	if (strcmp(fields[2], "free") == 0)
		row.kind = GPC_TRACE_FREE;
	else if (strcmp(fields[2], "allocate failure") == 0)
		row.kind = GPC_TRACE_FAILURE;
	else if (strcmp(fields[2], "allocate") != 0)
		return false;
	if (row.kind != GPC_TRACE_FAILURE && !parse_number(fields[3], 16, &row.identity))
		return false;
	if (!parse_time_of_day(fields[1], &row.time_ns) ||
		!parse_number(fields[4], 10, &row.size) ||
		!parse_number(fields[5], 16, &row.stream))
		return false;
	*ret_row = row;
	return true;
}

static struct gpc_trace_op *add_op(struct reader *reader)
{
	struct gpc_trace *trace = &reader->trace;
	struct gpc_trace_op *op;

	if (trace->n_ops == reader->n_room) {
		uint64_t n_room = reader->n_room ? 2 * reader->n_room : 4096;
		struct gpc_trace_op *ops = realloc(trace->ops, n_room * sizeof *ops);

		if (!ops)
			return NULL;
		trace->ops = ops;
		reader->n_room = n_room;
	}
	op = &trace->ops[trace->n_ops++];
	*op = (struct gpc_trace_op){ .line = reader->line };
	return op;
}

/*
 * The number of a stream, which is a handle in RMM's log; beyond MAX_STREAMS they share the
 * last.
 */
static uint32_t number_stream(struct reader *reader, uint64_t stream)
{
	uint32_t i;

	for (i = 0; i < reader->trace.n_streams; i++)
		if (reader->streams[i] == stream)
			return i;
	if (i == MAX_STREAMS)
		return MAX_STREAMS - 1;
	reader->streams[i] = stream;
	return reader->trace.n_streams++;
}

static void *identity_value(uint64_t op_number)
{
	return (void *)(uintptr_t)(op_number + 1);
}

/* Ends the life of an identity; false where it has none. */
static bool end_life(struct reader *reader, const struct row *row, struct gpc_trace_op *op)
{
	void *value = gpc_address_map_take(&reader->live, row->identity + 1);
	const struct gpc_trace_op *allocation;

	if (!value)
		return false;
	allocation = &reader->trace.ops[(uintptr_t)value - 1];
	op->kind = GPC_TRACE_FREE;
	op->slot = allocation->slot;
	op->stream = number_stream(reader, row->stream);
	op->time_ns = row->time_ns;
	reader->live_bytes -= allocation->size;
	return true;
}

static enum gpc_status add_free(
	struct reader *reader, const struct row *row, uint64_t *count_unknown)
{
	struct gpc_trace_op *op = add_op(reader);

	if (!op)
		return GPC_NO_METADATA;
	if (!end_life(reader, row, op)) {
		reader->trace.n_ops--;
		(*count_unknown)++;
	}
	return GPC_OK;
}

static enum gpc_status add_alloc(struct reader *reader, const struct row *row)
{
	struct gpc_trace *trace = &reader->trace;
	struct gpc_trace_op *op;
	uint64_t ignored = 0;

	if (row->kind == GPC_TRACE_ALLOC &&
		gpc_address_map_find(&reader->live, row->identity + 1)) {
		if (add_free(reader, row, &ignored))
			return GPC_NO_METADATA;
		trace->n_implied_frees++;
	}
	op = add_op(reader);
	if (!op || gpc_address_map_reserve(&reader->live, 1))
		return GPC_NO_METADATA;
	op->kind = row->kind;
	op->size = row->size;
	op->stream = number_stream(reader, row->stream);
	op->time_ns = row->time_ns;
	if (row->kind == GPC_TRACE_FAILURE) {
		trace->n_failures++;
		return GPC_OK;
	}
	op->slot = trace->n_slots++;
	gpc_address_map_insert(&reader->live, row->identity + 1, identity_value(trace->n_ops - 1));
	reader->live_bytes += row->size;
	if (reader->live_bytes > trace->peak_live_bytes)
		trace->peak_live_bytes = reader->live_bytes;
	return GPC_OK;
}

static enum gpc_status add_row(struct reader *reader, struct row *row)
{
	const struct gpc_trace *trace = &reader->trace;

	/*
	 * Rows of several threads, and midnight, may step back; nothing here depends on more
	 * than the order.
	 */
	if (trace->n_ops && row->time_ns < trace->ops[trace->n_ops - 1].time_ns)
		row->time_ns = trace->ops[trace->n_ops - 1].time_ns;
	if (row->kind == GPC_TRACE_FREE)
		return add_free(reader, row, &reader->trace.n_unknown_frees);
	return add_alloc(reader, row);
}

static unsigned split_fields(char *line, char **ret_fields)
{
	unsigned n = 0;

	for (char *at = line; at; n++) {
		char *comma = strchr(at, ',');

		if (comma)
			*comma++ = '\0';
		if (n < MAX_FIELDS)
			ret_fields[n] = at;
		at = comma;
	}
	return n;
}

static enum gpc_status read_header(struct reader *reader, const char *line, struct gpc_text *why)
{
	if (strcmp(line, our_header) == 0)
		reader->parse = parse_our_row;
	else if (strcmp(line, rmm_header) == 0)
		reader->parse = parse_rmm_row;
	if (reader->parse)
		return GPC_OK;
	gpc_text_add(
		why, "line 1: not a trace; its first line is `%s` or `%s`", our_header, rmm_header);
	return GPC_DAMAGED;
}

static enum gpc_status read_line(struct reader *reader, char *line, struct gpc_text *why)
{
	char *fields[MAX_FIELDS];
	enum gpc_status st;
	struct row row;

	line[strcspn(line, "\r\n")] = '\0';
	reader->line++;
	if (reader->line == 1)
		return read_header(reader, line, why);
	if (!*line)
		return GPC_OK;
	/* An identity of 2^64 - 1 cannot be a key of the map of live ones. */
	if (!reader->parse(fields, split_fields(line, fields), &row) ||
		row.identity == UINT64_MAX || (row.kind != GPC_TRACE_FREE && row.size == 0)) {
		gpc_text_add(why, "line %u: not a row of this kind of trace", reader->line);
		return GPC_DAMAGED;
	}
	st = add_row(reader, &row);
	if (st)
		gpc_text_add(why, "line %u: no memory for the trace", reader->line);
	return st;
}

static enum gpc_status read_lines(struct reader *reader, gzFile file, struct gpc_text *why)
{
	enum gpc_status st = GPC_OK;
	char line[MAX_LINE];
	int code = Z_OK;

	while (!st && gzgets(file, line, sizeof line))
		st = read_line(reader, line, why);
	if (st)
		return st;
	if (!gzeof(file) || (gzerror(file, &code) && code != Z_OK && code != Z_STREAM_END)) {
		gpc_text_add(why, "after line %u: the file is cut off or damaged", reader->line);
		return GPC_DAMAGED;
	}
	if (!reader->parse) {
		gpc_text_add(why, "the file is empty");
		return GPC_DAMAGED;
	}
	return GPC_OK;
}

enum gpc_status gpc_trace_read(const char *path, struct gpc_text *why, struct gpc_trace *ret_trace)
{
	struct reader *reader = calloc(1, sizeof *reader);
	gzFile file = gzopen(path, "rb");
	enum gpc_status st;

	if (!reader || !file) {
		gpc_text_add(why, "%s", strerror(errno));
		if (file)
			(void)gzclose(file);
		free(reader);
		return GPC_IO;
	}
	reader->trace.path = path;
	st = read_lines(reader, file, why);
	(void)gzclose(file);
	gpc_address_map_fini(&reader->live);
	if (st)
		gpc_trace_fini(&reader->trace);
	else
		*ret_trace = reader->trace;
	free(reader);
	return st;
}

void gpc_trace_fini(struct gpc_trace *trace)
{
	free(trace->ops);
	*trace = (struct gpc_trace){ 0 };
}
