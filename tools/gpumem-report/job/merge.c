/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `merge`: compares the ranks of a job on one screen: which rank failed first, which is the odd one out, and which call
 * site makes it odd.  A table follows: the rows that failed, then the others, farthest from the median first.  `ranks`
 * prints the plain table.
 *
 * The odd one out is the row whose peak is farthest from the median, by more than 32 MiB and more than a twentieth of
 * the median; the reason is the call site whose bytes are farthest from that site's own median.  Sorts the rows once
 * per site of one row, at most GPC_JOB_SITES times.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/job/ranks_of_job.h"
#include "tools/gpumem-report/output/json.h"
#include "tools/gpumem-report/target.h"
#include "why/why.h"

#define DEFAULT_ROWS 16

/* Callers shown after a call site, because the site may be a wrapper. */
#define N_CALLERS 3

struct merge {
	const struct gpc_job_row *first; /* the first row that failed; NULL: none */
	const struct gpc_job_row *odd;   /* the odd one out; NULL: none */
	struct gpc_job_site odd_site;    /* `bytes`: its distance from its median; key 0: none */
	const struct gpc_job_row *odd_site_of; /* whose recording has the stack of odd_site */
	bool is_odd_more;                      /* odd is above the median */
	uint64_t median_bytes;                 /* of the peaks of live bytes */
};

static struct gpc_job job;

/* ---- the comparison ---- */

/* A row is odd if it differs from the median by more than 1/ODD_PARTS of it, and by more than ODD_BYTES. */
#define ODD_PARTS 20
#define ODD_BYTES (UINT64_C(32) << 20)

static uint64_t bytes_at(const struct gpc_job_row *row, uint64_t key)
{
	for (unsigned i = 0; i < row->n_sites; i++)
		if (row->sites[i].key == key)
			return row->sites[i].bytes;
	return 0;
}

/* The median of the rows' bytes at site `key`, or with key 0 of their peaks.  `numbers`: room for job.n numbers. */
static uint64_t median_at(uint64_t key, uint64_t *numbers)
{
	for (size_t i = 0; i < job.n; i++)
		numbers[i] = key ? bytes_at(&job.rows[i], key) : job.rows[i].peak_live_bytes;
	return gpc_job_median(numbers, job.n);
}

/*
 * Finds the call site that makes the odd row odd.  Takes the sites of the odd row if it is above the median; otherwise
 * those of a row at the median, because a site that the odd row lacks is not in its own list.
 */
static void compare_sites(struct merge *merge, uint64_t *numbers)
{
	merge->odd_site_of = merge->odd;
	for (size_t i = 0; i < job.n && !merge->is_odd_more; i++)
		if (job.rows[i].peak_live_bytes == merge->median_bytes)
			merge->odd_site_of = &job.rows[i];
	for (unsigned i = 0; i < merge->odd_site_of->n_sites; i++) {
		const struct gpc_job_site *site = &merge->odd_site_of->sites[i];
		uint64_t median = median_at(site->key, numbers);
		uint64_t bytes = bytes_at(merge->odd, site->key);
		uint64_t far = gpc_distance(bytes, median);

		if ((bytes > median) == merge->is_odd_more && far > merge->odd_site.bytes)
			merge->odd_site = (struct gpc_job_site){ site->key, far, site->stack };
	}
}

/* Needs at least three rows: of two, neither is the odd one. */
static void find_odd(struct merge *merge)
{
	uint64_t farthest = 0;

	for (size_t i = 0; i < job.n && job.n >= 3; i++) {
		uint64_t far = gpc_distance(job.rows[i].peak_live_bytes, merge->median_bytes);

		if (far > farthest && far > ODD_BYTES && far > merge->median_bytes / ODD_PARTS) {
			farthest = far;
			merge->odd = &job.rows[i];
		}
	}
	merge->is_odd_more = merge->odd && merge->odd->peak_live_bytes > merge->median_bytes;
}

static struct merge compare_ranks(void)
{
	struct merge merge = { .first = gpc_job_first(job.rows, job.n) };
	uint64_t *numbers = gpc_new(job.n, sizeof *numbers);

	merge.median_bytes = median_at(0, numbers);
	find_odd(&merge);
	if (merge.odd)
		compare_sites(&merge, numbers);
	free(numbers);
	return merge;
}

/* ---- text and JSON ---- */

/* Appends the site's callers in the program. */
static void add_callers(const struct gpc_stack_frames *stack, struct gpc_text *text)
{
	unsigned n = 0;

	for (size_t i = (size_t)stack->site + 1; i < stack->n && n < N_CALLERS; i++) {
		if (stack->frames[i].is_library)
			continue;
		gpc_text_add(text, " < ");
		gpc_frame_describe(&stack->frames[i], false, text);
		n++;
	}
}

/* Appends the call site of a stack; reopens the rank's recording to resolve it. */
static void add_site(const struct gpc_report *report, const struct gpc_job_row *rank,
	uint32_t stack, struct gpc_text *text)
{
	struct gpc_report one = { .options = report->options };
	const struct gpc_stack_frames *found;

	if (gpc_target_open_file(&one, rank->path) != GPC_EXIT_MADE)
		return;
	one.frames = gpc_frames_create(one.recording, &report->options->places);
	gpc_frames_site(one.frames, stack, text);
	found = stack ? gpc_frames_find(one.frames, stack) : NULL;
	if (found && found->site >= 0)
		add_callers(found, text);
	gpc_frames_destroy(one.frames);
	gpc_recording_close(one.recording);
}

/* True if row i is the first of its process; rows of one process are adjacent. */
static bool is_process(size_t i)
{
	return i == 0 || strcmp(job.rows[i].path, job.rows[i - 1].path) != 0;
}

static void print_head(const struct gpc_paper *paper)
{
	size_t n_states[4] = { 0 };
	size_t n_failed = 0;
	int world = 0;
	GPC_TEXT(text, 300);

	for (size_t i = 0; i < job.n; i++) {
		n_states[job.rows[i].state] += is_process(i);
		n_failed += job.rows[i].oom.number != 0;
		world = job.rows[i].world_size > world ? job.rows[i].world_size : world;
	}
	for (unsigned i = 0; i < 4; i++)
		if (n_states[i])
			gpc_text_add(&text, ", %s %s", gpc_show_count(n_states[i]),
				gpc_state_word((enum gpc_run_state)i));
	fprintf(paper->out, "%s%s processes%s%s%s", gpc_paper_ink(paper, GPC_INK_BOLD),
		gpc_show_count(job.n_processes), text.buf, gpc_paper_ink(paper, GPC_INK_PLAIN),
		n_failed ? ", " : "");
	if (n_failed)
		fprintf(paper->out, "%s%s OUT OF MEMORY%s", gpc_paper_ink(paper, GPC_INK_ALARM),
			gpc_show_count(n_failed), gpc_paper_ink(paper, GPC_INK_PLAIN));
	fputc('\n', paper->out);
	if (job.n_unused)
		fprintf(paper->out, "%s used no GPU and are left out\n",
			gpc_show_count(job.n_unused));
	if (world > 0 && (size_t)world > job.n_processes)
		fprintf(paper->out, "the job has %d ranks: %d left no recording here\n", world,
			world - (int)job.n_processes);
}

static void print_first(const struct gpc_report *report, const struct gpc_job_row *first)
{
	GPC_TEXT(text, 700);
	size_t n_later = 0;

	gpc_job_add_who(first, &text);
	gpc_text_add(&text, " ran out of memory first, on GPU %d at %s: %s (%s), %s asked for by ",
		first->device.ordinal, gpc_show_time(first->oom.realtime_ns),
		gpc_cause_word(first->oom.verdict), gpc_strength_word(first->oom.strength),
		gpc_show_bytes(first->oom.requested));
	add_site(report, first, first->oom.stack, &text);
	fputc('\n', report->paper.out);
	gpc_paper_wrap(&report->paper, "FIRST", text.buf);
	for (size_t i = 0; i < job.n; i++) {
		const struct gpc_job_row *other = &job.rows[i];

		if (!other->oom.number || other == first || n_later++ >= 4)
			continue;
		gpc_text_clear(&text);
		gpc_job_add_who(other, &text);
		gpc_paper_line(&report->paper, "%s later: %s",
			gpc_show_duration(other->oom.realtime_ns - first->oom.realtime_ns),
			text.buf);
	}
	if (n_later > 4)
		gpc_paper_line(&report->paper, "and %s more", gpc_show_count(n_later - 4));
	gpc_paper_line(&report->paper, "gpumem-report oom %s", first->path);
}

static void print_odd(const struct gpc_report *report, const struct merge *merge)
{
	GPC_TEXT(text, 700);

	gpc_job_add_who(merge->odd, &text);
	gpc_text_add(&text, " is the odd one out: %s at its peak, where the median is %s",
		gpc_show_bytes(merge->odd->peak_live_bytes), gpc_show_bytes(merge->median_bytes));
	if (merge->odd_site.key) {
		gpc_text_add(&text, "; %s %s of that at ", gpc_show_bytes(merge->odd_site.bytes),
			merge->is_odd_more ? "more" : "less");
		add_site(report, merge->odd_site_of, merge->odd_site.stack, &text);
	}
	fputc('\n', report->paper.out);
	gpc_paper_wrap(&report->paper, "ODD", text.buf);
}

static uint64_t sorted_from;

/* Orders failed rows first, then the other rows by their distance from the median, farthest first. */
static int by_distance(const void *left, const void *right)
{
	const struct gpc_job_row *a = &job.rows[*(const size_t *)left];
	const struct gpc_job_row *b = &job.rows[*(const size_t *)right];
	uint64_t x = gpc_distance(a->peak_live_bytes, sorted_from);
	uint64_t y = gpc_distance(b->peak_live_bytes, sorted_from);

	return GPC_ORDER(b->oom.number != 0, a->oom.number != 0) ?: GPC_ORDER(y, x)
		       ?: GPC_ORDER(a, b);
}

/* The width of the last column, the hosts: what remains, or 0 if that is too little to tell hosts apart. */
static int host_width(const struct gpc_paper *paper)
{
	return paper->width < 72 ? 0 : paper->width - 56;
}

static void print_row(const struct gpc_paper *paper, const struct gpc_job_row *row, uint64_t median)
{
	char number[16] = "-";

	if (row->rank >= 0)
		snprintf(number, sizeof number, "%d", row->rank);
	fprintf(paper->out, "%5s %8u %3d %11s %c%10s %5s %-6s %.*s\n", number, row->pid,
		row->device.ordinal, gpc_show_bytes(row->peak_live_bytes),
		row->peak_live_bytes >= median ? '+' : '-',
		gpc_show_bytes(gpc_distance(row->peak_live_bytes, median)),
		gpc_show_count(row->n_ooms), gpc_state_word(row->state), host_width(paper),
		row->host);
}

static void print_table(const struct gpc_report *report, uint64_t median)
{
	size_t limit = gpc_report_limit(report, DEFAULT_ROWS);
	const struct gpc_paper *paper = &report->paper;
	size_t *order = gpc_new(job.n, sizeof *order);

	for (size_t i = 0; i < job.n; i++)
		order[i] = i;
	sorted_from = median;
	qsort(order, job.n, sizeof *order, by_distance);
	gpc_paper_section(paper, "RANKS", "median of the peaks %s", gpc_show_bytes(median));
	fprintf(paper->out, "%s%5s %8s %3s %11s %11s %5s %-6s %.*s%s\n",
		gpc_paper_ink(paper, GPC_INK_DIM), "rank", "pid", "GPU", "peak live", "to median",
		"OOMs", "state", host_width(paper), "host", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; i < job.n && i < limit; i++)
		print_row(paper, &job.rows[order[i]], median);
	if (job.n > limit)
		gpc_paper_line(
			paper, "and %s more, closer to the median", gpc_show_count(job.n - limit));
	free(order);
}

static struct json_object *first_json(
	const struct gpc_report *report, const struct gpc_job_row *first)
{
	struct json_object *object = gpc_job_row_json(first);
	GPC_TEXT(text, 400);

	add_site(report, first, first->oom.stack, &text);
	gpc_json_bytes(object, "number", first->oom.number);
	gpc_json_bytes(object, "requested_bytes", first->oom.requested);
	gpc_json_text(object, "where", text.buf);
	return object;
}

static struct json_object *odd_json(const struct gpc_report *report, const struct merge *merge)
{
	struct json_object *object = gpc_job_row_json(merge->odd);
	GPC_TEXT(text, 400);

	if (merge->odd_site.key)
		add_site(report, merge->odd_site_of, merge->odd_site.stack, &text);
	gpc_json_bool(object, "is_more", merge->is_odd_more);
	gpc_json_text(object, "where", text.buf);
	gpc_json_bytes(object, "difference_bytes", merge->odd_site.bytes);
	return object;
}

static void print_json(const struct gpc_report *report, const struct merge *merge)
{
	struct json_object *root = gpc_json_begin(report, "merge");
	struct json_object *ranks = json_object_new_array();

	for (size_t i = 0; i < job.n; i++)
		json_object_array_add(ranks, gpc_job_row_json(&job.rows[i]));
	gpc_json_bytes(root, "median_peak_live_bytes", merge->median_bytes);
	json_object_object_add(
		root, "first_failure", merge->first ? first_json(report, merge->first) : NULL);
	json_object_object_add(root, "odd_one_out", merge->odd ? odd_json(report, merge) : NULL);
	gpc_json_bytes(root, "unused", job.n_unused);
	json_object_object_add(root, "ranks", ranks);
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_merge(struct gpc_report *report)
{
	struct merge merge;

	if (report->recording) {
		gpc_job_add(&job, report);
		return GPC_EXIT_MADE;
	}
	gpc_job_sort(&job);
	merge = compare_ranks();
	if (report->options->json) {
		print_json(report, &merge);
	} else {
		print_head(&report->paper);
		if (merge.first)
			print_first(report, merge.first);
		if (merge.odd)
			print_odd(report, &merge);
		if (job.n)
			print_table(report, merge.median_bytes);
	}
	gpc_job_fini(&job);
	return GPC_EXIT_MADE;
}
