/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line per GPU, like nvidia-smi's `--query=pid,gpu,live --format=csv,noheader,nounits`.  Unlike nvidia-smi's, our
 * sizes are in bytes, so they add up.
 */
#include <stdlib.h>
#include <string.h>

#include "format/balance.h"
#include "model/counters.h"
#include "tools/gpumem-report/export.h"

#define USUAL                                                                                   \
	"pid,gpu,name,requested,live,pending,cached,reserved,direct,peak_reserved,memory.free," \
	"memory.total"

/* The source of a line. */
struct line {
	const struct gpc_report *report;
	struct gpucache_device device;
	struct gpc_device_totals totals;
	struct gpucache_balance balance;
	bool has_balance;
};

struct cell {
	char text[320];
	uint64_t number;
	bool is_number;
	bool is_bytes;
};

/* The name of a counter's column: the counter's without "_bytes", as in "live", "peak_live", "n_malloc". */
static void counter_name(const struct gpc_counter *counter, char *buf, size_t size)
{
	size_t len = strlen(counter->key);

	if (counter->counts == GPC_COUNTS_BYTES)
		len -= strlen("_bytes");
	snprintf(buf, size, "%s%.*s",
		counter->when == GPC_WHEN_PEAK   ? "peak_"
		: counter->when == GPC_WHEN_EVER ? "n_"
						 : "",
		(int)len, counter->key);
}

static bool is_column(const struct gpc_counter *counter)
{
	return counter->counts == GPC_COUNTS_BYTES || counter->counts == GPC_COUNTS_CALLS;
}

static bool find_counter(const struct line *line, const char *name, struct cell *cell)
{
	for (size_t i = 0; i < GPC_N_COUNTERS; i++) {
		char buf[64];

		counter_name(&gpc_counters[i], buf, sizeof buf);
		if (!is_column(&gpc_counters[i]) || strcmp(buf, name) != 0)
			continue;
		cell->is_number = true;
		cell->is_bytes = gpc_counters[i].counts == GPC_COUNTS_BYTES;
		cell->number = line ? *gpc_counter_words(&line->totals.sum, &gpc_counters[i]) : 0;
		return true;
	}
	return false;
}

enum word {
	WORD_PID,
	WORD_GPU,
	WORD_PHYSICAL,
	WORD_UUID,
	WORD_NAME,
	WORD_HOSTNAME,
	WORD_RANK,
	WORD_COMMAND,
	WORD_STATE,
	WORD_FREE,
	WORD_TOTAL,
	WORD_COUNT,
};

static const char *const words[WORD_COUNT] = { "pid", "gpu", "physical", "uuid", "name", "hostname",
	"rank", "command", "state", "memory.free", "memory.total" };

static void fill_word(struct cell *cell, const struct line *line, enum word word)
{
	const struct gpucache_header *header = &line->report->recording->header;
	const struct gpucache_balance *balance = line->has_balance ? &line->balance : NULL;
	const char *const texts[WORD_COUNT] = { [WORD_UUID] = line->device.uuid,
		[WORD_NAME] = line->device.name,
		[WORD_HOSTNAME] = header->host,
		[WORD_COMMAND] = header->command,
		[WORD_STATE] = gpc_state_word(line->report->recording->run_state) };
	const uint64_t numbers[WORD_COUNT] = { [WORD_PID] = header->pid,
		[WORD_GPU] = (uint64_t)line->device.ordinal,
		[WORD_PHYSICAL] =
			line->device.physical ? line->device.physical - 1 : GPUCACHE_UNKNOWN,
		[WORD_RANK] = header->rank < 0 ? GPUCACHE_UNKNOWN : (uint64_t)header->rank,
		[WORD_FREE] = balance ? balance->device_free : GPUCACHE_UNKNOWN,
		[WORD_TOTAL] = balance ? balance->device_total : GPUCACHE_UNKNOWN };

	cell->is_number = !texts[word];
	cell->number = numbers[word];
	if (texts[word])
		snprintf(cell->text, sizeof cell->text, "%s", texts[word]);
}

/* Fills in the column of that name; `line` is NULL if only the header is wanted. */
static bool fill(struct cell *cell, const struct line *line, const char *name)
{
	*cell = (struct cell){ 0 };
	for (unsigned i = 0; i < WORD_COUNT; i++) {
		if (strcmp(words[i], name) != 0)
			continue;
		cell->is_bytes = i == WORD_FREE || i == WORD_TOTAL;
		if (line)
			fill_word(cell, line, (enum word)i);
		return true;
	}
	return find_counter(line, name, cell);
}

static void print_cell(FILE *out, const struct cell *cell, bool has_unit)
{
	if (cell->is_number && cell->number == GPUCACHE_UNKNOWN) {
		fputs("[N/A]", out);
	} else if (cell->is_number) {
		fprintf(out, "%llu%s", (unsigned long long)cell->number,
			has_unit && cell->is_bytes ? " B" : "");
	} else if (!strpbrk(cell->text, ",\"\r\n")) {
		fputs(cell->text, out);
	} else {
		fputc('"', out);
		for (const char *at = cell->text; *at; at++)
			fprintf(out, *at == '"' ? "\"\"" : "%c", *at);
		fputc('"', out);
	}
}

/* The next name of the query; false after the last. */
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
	struct cell cell;
	char name[64];

	while (next_name(&query, name, sizeof name)) {
		GPC_TEXT(text, 1000);

		if (fill(&cell, NULL, name))
			continue;
		for (unsigned i = 0; i < WORD_COUNT; i++)
			gpc_text_add(&text, "%s ", words[i]);
		for (unsigned i = 0; i < GPC_N_COUNTERS; i++) {
			char counter[64];

			counter_name(&gpc_counters[i], counter, sizeof counter);
			if (is_column(&gpc_counters[i]))
				gpc_text_add(&text, "%s ", counter);
		}
		return gpc_refuse("--query knows no column `%s`; there are: %s", name, text.buf);
	}
	return true;
}

static void print_line(const struct gpc_report *report, const struct line *line)
{
	const char *query = report->options->query ? report->options->query : USUAL;
	bool has_unit = !gpc_export_has_word(report->options, "nounits");
	FILE *out = report->paper.out;
	const char *between = "";
	struct cell cell;
	char name[64];

	while (next_name(&query, name, sizeof name)) {
		fill(&cell, line, name);
		fputs(between, out);
		if (line)
			print_cell(out, &cell, has_unit);
		else
			fprintf(out, "%s%s", name, cell.is_bytes ? " [B]" : "");
		between = ", ";
	}
	fputc('\n', out);
}

enum gpc_exit gpc_export_csv(struct gpc_report *report)
{
	struct line line = { .report = report };

	if (!gpc_export_has_word(report->options, "noheader"))
		print_line(report, NULL);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &line.device);) {
		line.totals = gpc_recording_totals(report->recording, line.device.ordinal);
		line.has_balance =
			gpc_recording_balance(report->recording, &line.device, &line.balance);
		print_line(report, &line);
	}
	return GPC_EXIT_MADE;
}
