/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ranks`: the processes of a job side by side, from a folder of their recordings.
 *
 *      rank  host    GPU       peak        live   state   verdict
 *         0  gpu01     0   1.20 GiB    1.00 GiB   ended
 *         1  gpu01     1   3.90 GiB    3.90 GiB   killed  growth (likely)
 *
 * One row per GPU that a process used, in order of rank; `merge` compares them.  A peak is the sum of two: that of the
 * reserved bytes, and that of the bytes straight from the driver.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/gpumem-report/job/ranks_of_job.h"
#include "tools/gpumem-report/output/json.h"
#include "why/why.h"

/* Narrower output omits the hosts. */
#define WIDTH_OF_HOSTS 72

static void print_row(const struct gpc_paper *paper, const struct gpc_job_row *row)
{
	char rank[16] = "-";
	char gpu[32];
	const char *word = row->oom.number ? gpc_cause_word(row->oom.verdict) : "";
	const char *strength = row->oom.number ? gpc_strength_word(row->oom.strength) : "";
	bool is_wide = paper->width > 80;

	if (row->rank >= 0)
		snprintf(rank, sizeof rank, "%d", row->rank);
	snprintf(gpu, sizeof gpu, "%d", row->device.ordinal);
	if (row->device.physical)
		snprintf(gpu, sizeof gpu, "%d (%llu)", row->device.ordinal,
			(unsigned long long)row->device.physical - 1);
	fprintf(paper->out, "%4s %7u %6s %10s %10s  %-6s ", rank, row->pid, gpu,
		gpc_show_bytes(row->peak_bytes), gpc_show_bytes(row->live_bytes),
		gpc_state_word(row->state));
	if (paper->width >= WIDTH_OF_HOSTS)
		fprintf(paper->out, "%-*.*s ", is_wide ? 16 : 10, is_wide ? 16 : 10, row->host);
	fprintf(paper->out, "%s", word);
	if (is_wide && *word)
		fprintf(paper->out, " (%s)", strength);
	fputc('\n', paper->out);
}

/* Prints which row failed first, and the command that explains it. */
static void print_first(const struct gpc_paper *paper, const struct gpc_job_row *first)
{
	char name[32];

	if (!first)
		return;
	if (first->rank >= 0)
		snprintf(name, sizeof name, "rank %d", first->rank);
	else
		snprintf(name, sizeof name, "pid %u", first->pid);
	gpc_paper_section(paper, "FIRST", "%s ran out of memory first, at %s, on GPU %d of %s",
		name, gpc_show_time(first->oom.realtime_ns), first->device.ordinal, first->host);
	gpc_paper_line(paper, "why, and which rank differs from the others: gpumem-report merge");
}

static void print_job(const struct gpc_paper *paper, const struct gpc_job_row *rows, size_t n)
{
	int32_t world = rows[0].world_size;

	if (rows[0].job[0])
		gpc_paper_section(paper, "JOB", "%s", rows[0].job);
	else
		gpc_paper_section(paper, "JOB", "none is named");
	if (rows[0].command[0])
		gpc_paper_line(paper, "%s", rows[0].command);
	if (world > 0 && rows[0].rank >= 0)
		gpc_paper_line(
			paper, "%d ranks; %zu GPU%s recorded here", world, n, n == 1 ? "" : "s");
	fprintf(paper->out, "%s%4s %7s %6s %10s %10s  %-6s ", gpc_paper_ink(paper, GPC_INK_DIM),
		"rank", "pid", "GPU", "peak", "live", "state");
	if (paper->width >= WIDTH_OF_HOSTS)
		fprintf(paper->out, "%-*s ", paper->width > 80 ? 16 : 10, "host");
	fprintf(paper->out, "verdict%s\n", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; i < n; i++)
		print_row(paper, &rows[i]);
	print_first(paper, gpc_job_first(rows, n));
}

static void print_json(const struct gpc_report *report, const struct gpc_job *job)
{
	struct json_object *root = gpc_json_begin(report, "ranks");
	struct json_object *array = gpc_json_add(root, "ranks", json_object_new_array());
	const struct gpc_job_row *first = gpc_job_first(job->rows, job->n);

	for (size_t i = 0; i < job->n; i++)
		json_object_array_add(array, gpc_job_row_json(&job->rows[i]));
	json_object_object_add(root, "first_to_fail", first ? gpc_job_row_json(first) : NULL);
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_ranks(struct gpc_report *report)
{
	struct gpc_job job = { 0 };

	for (size_t i = 0; i < report->directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &report->directory.entries[i];
		struct gpc_report one = { .options = report->options };
		GPC_TEXT(text, 96);

		if (entry->status != GPC_OK ||
			gpc_recording_open(entry->path, &one.recording, &text) != GPC_OK)
			continue;
		gpc_job_add(&job, &one);
		gpc_recording_close(one.recording);
	}
	gpc_job_sort(&job);
	if (report->options->json)
		print_json(report, &job);
	else if (job.n == 0)
		gpc_paper_head(&report->paper, "None of these processes used a GPU.");
	for (size_t first = 0, end; !report->options->json && first < job.n; first = end) {
		for (end = first;
			end < job.n && strcmp(job.rows[end].job, job.rows[first].job) == 0;)
			end++;
		print_job(&report->paper, &job.rows[first], end - first);
	}
	gpc_job_fini(&job);
	return GPC_EXIT_MADE;
}
