/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line per GPU in the layout of nvidia-smi: `--query=pid,gpu,live --format=csv,noheader,nounits`.  Sizes are in
 * bytes, not in MiB as there, so they add up.
 */
#include <stdlib.h>
#include <string.h>

#include "format/sheet.h"
#include "model/counters.h"
#include "tools/gpumem-report/export/export.h"

#define USUAL                                                                                   \
	"pid,gpu,name,requested,live,pending,cached,reserved,direct,peak_reserved,memory.free," \
	"memory.total"

/* What a line of the table shows; all zero where only the names and units of columns are needed. */
struct line {
	struct gpucache_header header;
	enum gpc_run_state state;
	struct gpucache_device device;
	struct gpucache_counters sum;
	struct gpucache_balance balance;
};

struct column {
	char name[64];
	const char *text; /* NULL: it is a number */
	uint64_t number;
	bool is_bytes;
};

#define N_WORDS 11

struct columns {
	struct column rows[N_WORDS + GPC_N_COUNTERS];
	size_t n;
};

/* Adds a column for a counter, named without "_bytes": "live", "peak_live", "n_malloc". */
static void add_counter(
	struct columns *columns, const struct line *line, const struct gpc_counter *counter)
{
	struct column *column = &columns->rows[columns->n];
	size_t len = strlen(counter->key);

	if (counter->counts != GPC_COUNTS_BYTES && counter->counts != GPC_COUNTS_CALLS)
		return;
	column->is_bytes = counter->counts == GPC_COUNTS_BYTES;
	column->number = *gpc_counter_words(&line->sum, counter);
	if (column->is_bytes)
		len -= strlen("_bytes");
	snprintf(column->name, sizeof column->name, "%s%.*s",
		counter->when == GPC_WHEN_PEAK   ? "peak_"
		: counter->when == GPC_WHEN_EVER ? "n_"
						 : "",
		(int)len, counter->key);
	columns->n++;
}

static struct columns columns_of(const struct line *line)
{
	const struct gpucache_header *header = &line->header;
	const struct gpucache_device *device = &line->device;
	struct columns columns = {
		.rows = {
			{ "pid", .number = header->pid },
			{ "gpu", .number = (uint64_t)device->ordinal },
			{ "physical", .number = device->physical ? device->physical - 1
								 : GPUCACHE_UNKNOWN },
			{ "uuid", .text = device->uuid },
			{ "name", .text = device->name },
			{ "hostname", .text = header->host },
			{ "rank", .number = header->rank < 0 ? GPUCACHE_UNKNOWN
							     : (uint64_t)header->rank },
			{ "command", .text = header->command },
			{ "state", .text = gpc_state_word(line->state) },
			{ "memory.free", .number = line->balance.device_free, .is_bytes = true },
			{ "memory.total", .number = line->balance.device_total, .is_bytes = true },
		},
		.n = N_WORDS,
	};

	for (size_t i = 0; i < GPC_N_COUNTERS; i++)
		add_counter(&columns, line, &gpc_counters[i]);
	return columns;
}

/* The index of the column of that name, or columns->n if there is none. */
static size_t find(const struct columns *columns, const char *name)
{
	size_t i = 0;

	while (i < columns->n && strcmp(columns->rows[i].name, name) != 0)
		i++;
	return i;
}

static void print_cell(FILE *out, const struct column *column, bool has_unit)
{
	if (!column->text && column->number == GPUCACHE_UNKNOWN) {
		fputs("[N/A]", out);
	} else if (!column->text) {
		fprintf(out, "%llu%s", (unsigned long long)column->number,
			has_unit && column->is_bytes ? " B" : "");
	} else if (!strpbrk(column->text, ",\"\r\n")) {
		fputs(column->text, out);
	} else {
		fputc('"', out);
		for (const char *at = column->text; *at; at++)
			fprintf(out, *at == '"' ? "\"\"" : "%c", *at);
		fputc('"', out);
	}
}

/* Copies the next name of the query into `buf` and moves *query behind it; false after the last name. */
static bool next_name(const char **query, char *buf, size_t size)
{
	size_t len = strcspn(*query, ",");

	if (!**query)
		return false;
	snprintf(buf, size, "%.*s", (int)len, *query);
	*query += len + ((*query)[len] == ',');
	return true;
}

bool gpc_export_is_query_possible(const struct gpc_options *options)
{
	const char *query = options->query ? options->query : USUAL;
	const struct columns columns = columns_of(&(struct line){ 0 });
	char name[64];

	while (next_name(&query, name, sizeof name)) {
		GPC_TEXT(text, 1000);

		if (find(&columns, name) < columns.n)
			continue;
		for (size_t i = 0; i < columns.n; i++)
			gpc_text_add(&text, "%s ", columns.rows[i].name);
		return gpc_refuse("--query knows no column `%s`; there are: %s", name, text.buf);
	}
	return true;
}

/* Prints the line, or the names of its columns. */
static void print_line(const struct gpc_report *report, const struct line *line, bool is_header)
{
	const char *query = report->options->query ? report->options->query : USUAL;
	bool has_unit = !gpc_export_has_word(report->options, "nounits");
	const struct columns columns = columns_of(line);
	FILE *out = report->out;
	const char *between = "";
	char name[64];

	while (next_name(&query, name, sizeof name)) {
		const struct column *column = &columns.rows[find(&columns, name)];

		fputs(between, out);
		if (is_header)
			fprintf(out, "%s%s", name, column->is_bytes ? " [B]" : "");
		else
			print_cell(out, column, has_unit);
		between = ", ";
	}
	fputc('\n', out);
}

enum gpc_exit gpc_export_csv(struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct line line = { .header = rec->header, .state = rec->run_state };

	if (!gpc_export_has_word(report->options, "noheader"))
		print_line(report, &line, true);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &line.device);) {
		line.sum = gpc_recording_totals(rec, line.device.ordinal).sum;
		if (!gpc_recording_balance(rec, &line.device, &line.balance))
			line.balance.device_free = line.balance.device_total = GPUCACHE_UNKNOWN;
		print_line(report, &line, false);
	}
	return GPC_EXIT_MADE;
}
