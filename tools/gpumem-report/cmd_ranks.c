/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ranks`: the processes of a job side by side, from a folder of their recordings.
 *
 *      rank  host    GPU       peak        live   state   verdict
 *         0  gpu01     0   1.20 GiB    1.00 GiB   ended
 *         1  gpu01     1   3.90 GiB    3.90 GiB   killed  growth (likely)
 *
 * One row a GPU that a process used.  Peaks are of what was reserved and taken from the driver.
 */
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/verdict.h"
#include "format/balance.h"
#include "tools/gpumem-report/json.h"

/* Narrower paper has no column of hosts. */
#define WIDTH_OF_HOSTS 72

struct row {
	const struct gpucache_header *header; /* of its directory entry */
	enum gpc_run_state state;
	struct gpucache_device device;
	uint64_t peak_bytes;
	uint64_t live_bytes;
	bool has_failed;
	struct gpucache_oom oom; /* the first that the program did not recover from */
	uint64_t failed_ns;      /* real time */
};

struct rows {
	struct row *all;
	size_t n;
};

static void find_failure(struct row *row, const struct gpc_recording *rec)
{
	struct gpucache_oom oom;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || oom.recovered ||
			oom.device != row->device.ordinal ||
			(row->has_failed && oom.number > row->oom.number))
			continue;
		row->has_failed = true;
		row->oom = oom;
		row->failed_ns = gpc_report_realtime(rec, oom.time_ns);
	}
}

static bool add_device(struct rows *rows, const struct gpc_directory_entry *entry,
	const struct gpc_recording *rec, const struct gpucache_device *device)
{
	struct gpc_device_totals totals = gpc_recording_totals(rec, device->ordinal);
	struct row *all;

	if (totals.n_contexts == 0)
		return true;
	all = realloc(rows->all, (rows->n + 1) * sizeof *all);
	if (!all)
		return false;
	rows->all = all;
	all[rows->n] = (struct row){ .header = &entry->header,
		.state = rec->run_state,
		.device = *device,
		.peak_bytes =
			gpc_bytes_add(totals.sum.peak_reserved_bytes, totals.sum.peak_direct_bytes),
		.live_bytes = gpc_bytes_add(totals.sum.live_bytes, totals.sum.direct_bytes) };
	find_failure(&all[rows->n++], rec);
	return true;
}

static bool add_entry(
	struct rows *rows, const struct gpc_report *report, const struct gpc_directory_entry *entry)
{
	struct gpc_recording *rec;
	struct gpucache_device device;
	char why[96];
	struct gpc_text text = gpc_text_init(why, sizeof why);
	bool is_made = true;

	if (entry->status != GPC_OK || gpc_recording_open(entry->path, &rec, &text) != GPC_OK)
		return true;
	for (uint64_t i = 0; is_made && i < rec->regions[GPUCACHE_REGION_DEVICES].count; i++)
		if (gpc_recording_read_device(rec, i, &device) &&
			gpc_report_wants(report, device.ordinal))
			is_made = add_device(rows, entry, rec, &device);
	gpc_recording_close(rec);
	return is_made;
}

/* By job, rank, start and GPU. */
static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;
	int order = strcmp(a->header->job, b->header->job);

	if (order)
		return order;
	if (a->header->rank != b->header->rank)
		return a->header->rank < b->header->rank ? -1 : 1;
	if (a->header->start_realtime_ns != b->header->start_realtime_ns)
		return a->header->start_realtime_ns < b->header->start_realtime_ns ? -1 : 1;
	if (a->header->pid != b->header->pid)
		return a->header->pid < b->header->pid ? -1 : 1;
	return a->device.ordinal < b->device.ordinal ? -1 : a->device.ordinal > b->device.ordinal;
}

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static uint64_t median_peak(const struct row *rows, size_t n)
{
	uint64_t *peaks = calloc(n + 1, sizeof *peaks);
	uint64_t median = 0;

	for (size_t i = 0; peaks && i < n; i++)
		peaks[i] = rows[i].peak_bytes;
	if (peaks) {
		qsort(peaks, n, sizeof *peaks, compare_numbers);
		/* The lower of two: what more than it has is not usual. */
		median = peaks[(n - 1) / 2];
	}
	free(peaks);
	return median;
}

/* "rank 2", or "pid 4711" where it has none. */
static const char *name_of(const struct row *row, char *buf, size_t size)
{
	if (row->header->rank >= 0)
		snprintf(buf, size, "rank %d", row->header->rank);
	else
		snprintf(buf, size, "pid %u", row->header->pid);
	return buf;
}

static void print_row(const struct gpc_paper *paper, const struct row *row)
{
	char rank[16] = "-";
	char gpu[32];
	const char *word = row->has_failed ? gpc_verdict_word(row->oom.verdict) : "";
	const char *strength = row->has_failed ? gpc_strength_word(row->oom.strength) : "";
	bool is_wide = paper->width > 80;

	if (row->header->rank >= 0)
		snprintf(rank, sizeof rank, "%d", row->header->rank);
	snprintf(gpu, sizeof gpu, "%d", row->device.ordinal);
	if (row->device.physical)
		snprintf(gpu, sizeof gpu, "%d (%llu)", row->device.ordinal,
			(unsigned long long)row->device.physical - 1);
	fprintf(paper->out, "%4s %7u %6s %10s %10s  %-6s ", rank, row->header->pid, gpu,
		gpc_show_bytes(row->peak_bytes), gpc_show_bytes(row->live_bytes),
		gpc_state_word(row->state));
	if (paper->width >= WIDTH_OF_HOSTS)
		fprintf(paper->out, "%-*.*s ", is_wide ? 16 : 10, is_wide ? 16 : 10,
			row->header->host);
	fprintf(paper->out, "%s", word);
	if (is_wide && *word)
		fprintf(paper->out, " (%s)", strength);
	fputc('\n', paper->out);
}

static const struct row *first_to_fail(const struct row *rows, size_t n, const struct row *but)
{
	const struct row *first = NULL;

	for (size_t i = 0; i < n; i++)
		if (rows[i].has_failed && &rows[i] != but &&
			(!first || rows[i].failed_ns < first->failed_ns))
			first = &rows[i];
	return first;
}

static void print_findings(const struct gpc_paper *paper, const struct row *rows, size_t n)
{
	uint64_t median = median_peak(rows, n);
	const struct row *first = first_to_fail(rows, n, NULL);
	const struct row *second = first ? first_to_fail(rows, n, first) : NULL;
	const struct row *most = &rows[0];
	char name[32];
	char other[32];

	for (size_t i = 1; i < n; i++)
		if (rows[i].peak_bytes > most->peak_bytes)
			most = &rows[i];
	gpc_paper_section(paper, "SKEW", "%s has the highest peak, %s; half have at most %s",
		name_of(most, name, sizeof name), gpc_show_bytes(most->peak_bytes),
		gpc_show_bytes(median));
	if (!first)
		return;
	gpc_paper_section(paper, "FIRST", "%s ran out of memory first, at %s, on GPU %d of %s",
		name_of(first, name, sizeof name), gpc_show_time(first->failed_ns),
		first->device.ordinal, first->header->host);
	gpc_paper_line(paper, "%s (%s): gpumem-report oom %u", gpc_verdict_word(first->oom.verdict),
		gpc_strength_word(first->oom.strength), first->header->pid);
	if (second)
		gpc_paper_line(paper, "%s followed after %s", name_of(second, other, sizeof other),
			gpc_show_duration(second->failed_ns - first->failed_ns));
}

static void print_job(const struct gpc_paper *paper, const struct row *rows, size_t n)
{
	int32_t world = rows[0].header->world_size;

	if (rows[0].header->job[0])
		gpc_paper_section(paper, "JOB", "%s", rows[0].header->job);
	else
		gpc_paper_section(paper, "JOB", "none is named");
	if (rows[0].header->command[0])
		gpc_paper_line(paper, "%s", rows[0].header->command);
	if (world > 0 && rows[0].header->rank >= 0)
		gpc_paper_line(
			paper, "%d ranks; %zu GPU%s recorded here", world, n, n == 1 ? "" : "s");
	fprintf(paper->out, "%s%4s %7s %6s %10s %10s  %-6s ", gpc_paper_ink(paper, GPC_INK_DIM),
		"rank", "pid", "GPU", "peak", "live", "state");
	if (paper->width >= WIDTH_OF_HOSTS)
		fprintf(paper->out, "%-*s ", paper->width > 80 ? 16 : 10, "host");
	fprintf(paper->out, "verdict%s\n", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; i < n; i++)
		print_row(paper, &rows[i]);
	print_findings(paper, rows, n);
}

static struct json_object *row_json(const struct row *row)
{
	struct json_object *object = gpc_json_device(&row->device);
	int32_t rank = row->header->rank;

	gpc_json_bytes(object, "rank", rank < 0 ? GPUCACHE_UNKNOWN : (uint64_t)rank);
	gpc_json_bytes(object, "pid", row->header->pid);
	gpc_json_text(object, "host", row->header->host);
	gpc_json_text(object, "job", row->header->job);
	gpc_json_text(object, "state", gpc_state_word(row->state));
	gpc_json_bytes(object, "peak_bytes", row->peak_bytes);
	gpc_json_bytes(object, "live_bytes", row->live_bytes);
	gpc_json_text(object, "verdict", row->has_failed ? gpc_verdict_word(row->oom.verdict) : "");
	gpc_json_text(
		object, "strength", row->has_failed ? gpc_strength_word(row->oom.strength) : "");
	gpc_json_text(object, "failed", row->has_failed ? gpc_show_rfc3339(row->failed_ns) : "");
	return object;
}

static void print_json(const struct gpc_report *report, const struct rows *rows)
{
	struct json_object *root = gpc_json_begin(report, "ranks");
	struct json_object *array = json_object_new_array();
	const struct row *first = first_to_fail(rows->all, rows->n, NULL);

	for (size_t i = 0; i < rows->n; i++)
		json_object_array_add(array, row_json(&rows->all[i]));
	json_object_object_add(root, "ranks", array);
	json_object_object_add(root, "first_to_fail", first ? row_json(first) : NULL);
	if (rows->n)
		gpc_json_bytes(root, "median_peak_bytes", median_peak(rows->all, rows->n));
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_ranks(struct gpc_report *report)
{
	struct rows rows = { 0 };
	bool is_made = true;

	for (size_t i = 0; is_made && i < report->directory.n_entries; i++)
		is_made = add_entry(&rows, report, &report->directory.entries[i]);
	if (rows.n)
		qsort(rows.all, rows.n, sizeof *rows.all, compare_rows);
	if (!is_made)
		gpc_complain("no memory for a table");
	else if (report->options->json)
		print_json(report, &rows);
	else if (rows.n == 0)
		gpc_paper_head(&report->paper, "No process of these used a GPU.");
	for (size_t first = 0, end; is_made && !report->options->json && first < rows.n;
		first = end) {
		for (end = first; end < rows.n && strcmp(rows.all[end].header->job,
							  rows.all[first].header->job) == 0;)
			end++;
		print_job(&report->paper, &rows.all[first], end - first);
	}
	free(rows.all);
	return is_made ? GPC_EXIT_MADE : GPC_EXIT_IO;
}
