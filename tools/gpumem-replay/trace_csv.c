/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces in CSV.  The first line of the file tells our format from RMM's.  A malformed row makes the whole trace fail,
 * with the number of its line.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "alloc/size_class.h"
#include "tools/gpumem-replay/trace_file.h"
#include "tools/replay/trace_build.h"

#define MAX_LINE   512
#define MAX_FIELDS 6

/* Bound the memory: a row takes about a hundred bytes, and a gzipped file may hold ten rows in a byte. */
#define MAX_ROWS     (UINT32_C(1) << 24)
#define MAX_UNPACKED ((z_off_t)64 << 20)

static const char our_header[] = "op,id,size,stream,time_us";
static const char rmm_header[] = "Thread,Time,Action,Pointer,Size,Stream";

struct reader {
	struct gpc_trace_builder *builder;
	uint32_t line;
	bool (*parse)(char **fields, unsigned n_fields, struct gpc_trace_row *ret_row);
};

static bool parse_number(const char *text, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(text, &end, base);
	return end != text && *end == '\0' && *text != '-' && errno == 0;
}

static bool parse_our_row(char **fields, unsigned n_fields, struct gpc_trace_row *ret_row)
{
	struct gpc_trace_row row = { .kind = GPC_TRACE_ALLOC };

	if (n_fields != 5)
		return false;
	if (strcmp(fields[0], "free") == 0)
		row.kind = GPC_TRACE_FREE;
	else if (strcmp(fields[0], "empty_cache") == 0)
		row.kind = GPC_TRACE_EMPTY_CACHE;
	else if (strcmp(fields[0], "alloc") != 0)
		return false;
	if (!parse_number(fields[1], 10, &row.identity) ||
		!parse_number(fields[2], 10, &row.size) ||
		!parse_number(fields[3], 0, &row.stream) ||
		!parse_number(fields[4], 10, &row.time_ns))
		return false;
	row.time_ns = gpc_bytes_times(row.time_ns, 1000);
	*ret_row = row;
	return true;
}

/* Reads "15:47:02.841961", the time since midnight: RMM's log has no dates. */
static bool parse_time_of_day(const char *text, uint64_t *ret_ns)
{
	unsigned hours, minutes, seconds, us;

	if (sscanf(text, "%2u:%2u:%2u.%6u", &hours, &minutes, &seconds, &us) != 4)
		return false;
	*ret_ns = ((hours * UINT64_C(60) + minutes) * 60 + seconds) * 1000000000 +
		  us * UINT64_C(1000);
	return true;
}

static bool parse_rmm_row(char **fields, unsigned n_fields, struct gpc_trace_row *ret_row)
{
	struct gpc_trace_row row = { .kind = GPC_TRACE_ALLOC };

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

/* Cuts the line at its commas.  Returns the number of fields, which may exceed MAX_FIELDS. */
static unsigned split_fields(char *line, char **ret_fields)
{
	unsigned n = 0;

	for (; line; n++) {
		char *field = strsep(&line, ",");

		if (n < MAX_FIELDS)
			ret_fields[n] = field;
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

/* A failed request may have any size. */
static bool is_size(const struct gpc_trace_row *row)
{
	return row->kind == GPC_TRACE_FREE || row->kind == GPC_TRACE_EMPTY_CACHE ||
	       (row->size > 0 && row->size <= GPC_SIZE_MAX) ||
	       (row->kind == GPC_TRACE_FAILURE && row->size > 0);
}

static enum gpc_status read_line(struct reader *reader, char *line, struct gpc_text *why)
{
	char *fields[MAX_FIELDS];
	struct gpc_trace_row row;

	line[strcspn(line, "\r\n")] = '\0';
	reader->line++;
	if (reader->line == 1)
		return read_header(reader, line, why);
	if (!*line)
		return GPC_OK;
	/* 2^64 - 1 cannot be a key in the map of live identities. */
	if (!reader->parse(fields, split_fields(line, fields), &row) ||
		row.identity == UINT64_MAX || !is_size(&row)) {
		gpc_text_add(why, "line %u: not a row of this kind of trace", reader->line);
		return GPC_DAMAGED;
	}
	row.line = reader->line;
	gpc_trace_add(reader->builder, &row);
	return GPC_OK;
}

static enum gpc_status read_lines(struct reader *reader, gzFile file, struct gpc_text *why)
{
	enum gpc_status st = GPC_OK;
	char line[MAX_LINE];
	int code = Z_OK;

	while (!st && gzgets(file, line, sizeof line)) {
		st = read_line(reader, line, why);
		if (!st && (reader->line > MAX_ROWS ||
				   (!gzdirect(file) && gztell(file) > MAX_UNPACKED))) {
			gpc_text_add(why,
				"after line %u: a trace has at most %u rows, and %llu MiB when it "
				"is unpacked",
				reader->line, MAX_ROWS, (unsigned long long)MAX_UNPACKED >> 20);
			st = GPC_LIMIT;
		}
	}
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

enum gpc_status gpc_trace_read_csv(
	const char *path, struct gpc_text *why, struct gpc_trace *ret_trace)
{
	struct reader reader = { .builder = gpc_trace_begin(path, false) };
	gzFile file = gzopen(path, "rb");
	enum gpc_status st = GPC_IO;

	if (file)
		st = read_lines(&reader, file, why);
	else
		gpc_text_add(why, "%s", strerror(errno));
	if (file)
		(void)gzclose(file);
	return gpc_trace_end(reader.builder, st, ret_trace);
}
