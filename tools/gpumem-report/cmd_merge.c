/* SPDX-License-Identifier: Apache-2.0 */
/* `merge`: the ranks of a job on one screen. */
#include <stdlib.h>
#include <string.h>

#include "base/verdict.h"
#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/merge.h"
#include "tools/gpumem-report/target.h"

#define DEFAULT_ROWS 16

/* Shown behind a call site: the place may be a wrapper. */
#define N_CALLERS 3

static struct gpc_merge merge;

/* "rank 17 (node3, pid 4711)" */
static void add_who(const struct gpc_merge_rank *rank, struct gpc_text *text)
{
	if (rank->rank >= 0)
		gpc_text_add(text, "rank %d (%s, pid %u)", rank->rank, rank->host, rank->pid);
	else
		gpc_text_add(text, "pid %u on %s", rank->pid, rank->host);
}

/* Who called it, as far as that tells ranks from each other. */
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

/* The call site of a stack of that recording, which is opened once more. */
static void add_site(const struct gpc_report *report, const struct gpc_merge_rank *rank,
	uint32_t stack, struct gpc_text *text)
{
	struct gpc_report one = { .options = report->options };
	const struct gpc_stack_frames *found;

	if (gpc_target_open_file(&one, rank->path) != GPC_EXIT_MADE)
		return;
	one.frames = gpc_frames_create(one.recording, &report->options->places);
	if (one.frames) {
		gpc_frames_site(one.frames, stack, text);
		found = stack ? gpc_frames_find(one.frames, stack) : NULL;
		if (found && found->site >= 0)
			add_callers(found, text);
	}
	gpc_frames_destroy(one.frames);
	gpc_recording_close(one.recording);
}

static void print_head(const struct gpc_paper *paper)
{
	size_t n_states[4] = { 0 };
	size_t n_failed = 0;
	int world = 0;
	char buf[300] = "";
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	for (size_t i = 0; i < merge.n; i++) {
		n_states[merge.ranks[i].state]++;
		n_failed += merge.ranks[i].oom.number != 0;
		world = merge.ranks[i].world_size > world ? merge.ranks[i].world_size : world;
	}
	for (unsigned i = 0; i < 4; i++)
		if (n_states[i])
			gpc_text_add(&text, ", %s %s", gpc_show_count(n_states[i]),
				gpc_state_word((enum gpc_run_state)i));
	fprintf(paper->out, "%s%s processes%s%s%s", gpc_paper_ink(paper, GPC_INK_BOLD),
		gpc_show_count(merge.n), buf, gpc_paper_ink(paper, GPC_INK_PLAIN),
		n_failed ? ", " : "");
	if (n_failed)
		fprintf(paper->out, "%s%s OUT OF MEMORY%s", gpc_paper_ink(paper, GPC_INK_ALARM),
			gpc_show_count(n_failed), gpc_paper_ink(paper, GPC_INK_PLAIN));
	fputc('\n', paper->out);
	if (merge.n_unused)
		fprintf(paper->out, "%s used no GPU and are left out\n",
			gpc_show_count(merge.n_unused));
	if (world > 0 && (size_t)world > merge.n)
		fprintf(paper->out, "the job has %d ranks: %d left no recording here\n", world,
			world - (int)merge.n);
}

static void print_first(const struct gpc_report *report)
{
	const struct gpc_merge_rank *rank = &merge.ranks[merge.first];
	char buf[700];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);
	size_t n_later = 0;

	if (merge.first == merge.n)
		return;
	add_who(rank, &text);
	gpc_text_add(&text, " ran out of memory first, on GPU %d at %s: %s (%s), %s asked for by ",
		rank->oom.device, gpc_show_time(rank->oom.realtime_ns),
		gpc_verdict_word(rank->oom.verdict), gpc_strength_word(rank->oom.strength),
		gpc_show_bytes(rank->oom.requested));
	add_site(report, rank, rank->oom.stack, &text);
	fputc('\n', report->paper.out);
	gpc_paper_wrap(&report->paper, "FIRST", buf);
	for (size_t i = 0; i < merge.n; i++) {
		const struct gpc_merge_rank *other = &merge.ranks[i];

		if (!other->oom.number || i == merge.first)
			continue;
		if (n_later++ >= 4)
			continue;
		text = gpc_text_init(buf, sizeof buf);
		add_who(other, &text);
		gpc_paper_line(&report->paper, "%s later: %s",
			gpc_show_duration(other->oom.realtime_ns - rank->oom.realtime_ns), buf);
	}
	if (n_later > 4)
		gpc_paper_line(&report->paper, "and %s more", gpc_show_count(n_later - 4));
	gpc_paper_line(&report->paper, "gpumem-report oom %s", rank->path);
}

static void print_odd(const struct gpc_report *report)
{
	const struct gpc_merge_rank *rank = &merge.ranks[merge.odd];
	char buf[700];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	if (merge.odd == merge.n)
		return;
	add_who(rank, &text);
	gpc_text_add(&text, " is the odd one out: %s at its peak, where the median is %s",
		gpc_show_bytes(rank->peak_bytes), gpc_show_bytes(merge.median_bytes));
	if (merge.odd_site.key) {
		gpc_text_add(&text, "; %s %s of that at ", gpc_show_bytes(merge.odd_site.bytes),
			merge.is_odd_more ? "more" : "less");
		add_site(report, &merge.ranks[merge.odd_site_of], merge.odd_site.stack, &text);
	}
	fputc('\n', report->paper.out);
	gpc_paper_wrap(&report->paper, "ODD", buf);
}

static const struct gpc_merge_rank *sorted_by;

/* Those that are least like the others first. */
static int by_distance(const void *left, const void *right)
{
	const struct gpc_merge_rank *a = &sorted_by[*(const size_t *)left];
	const struct gpc_merge_rank *b = &sorted_by[*(const size_t *)right];
	uint64_t x = a->peak_bytes > merge.median_bytes ? a->peak_bytes - merge.median_bytes
							: merge.median_bytes - a->peak_bytes;
	uint64_t y = b->peak_bytes > merge.median_bytes ? b->peak_bytes - merge.median_bytes
							: merge.median_bytes - b->peak_bytes;

	if ((a->oom.number != 0) != (b->oom.number != 0))
		return a->oom.number ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void print_table(const struct gpc_report *report)
{
	size_t limit = report->options->limit ? report->options->limit : DEFAULT_ROWS;
	const struct gpc_paper *paper = &report->paper;
	size_t *order = calloc(merge.n + 1, sizeof *order);

	for (size_t i = 0; order && i < merge.n; i++)
		order[i] = i;
	sorted_by = merge.ranks;
	if (order)
		qsort(order, merge.n, sizeof *order, by_distance);
	gpc_paper_section(
		paper, "RANKS", "median of the peaks %s", gpc_show_bytes(merge.median_bytes));
	gpc_paper_line(paper, "%6s %-16s %8s %3s %11s %11s %5s %s", "rank", "host", "pid", "GPU",
		"peak live", "to median", "OOMs", "state");
	for (size_t i = 0; order && i < merge.n && i < limit; i++) {
		const struct gpc_merge_rank *rank = &merge.ranks[order[i]];
		bool is_more = rank->peak_bytes >= merge.median_bytes;
		char number[16] = "-";

		if (rank->rank >= 0)
			snprintf(number, sizeof number, "%d", rank->rank);
		gpc_paper_line(paper, "%6s %-16.16s %8u %3d %11s %c%10s %5s %s", number, rank->host,
			rank->pid, rank->device, gpc_show_bytes(rank->peak_bytes),
			is_more ? '+' : '-',
			gpc_show_bytes(is_more ? rank->peak_bytes - merge.median_bytes
					       : merge.median_bytes - rank->peak_bytes),
			gpc_show_count(rank->n_ooms), gpc_state_word(rank->state));
	}
	if (merge.n > limit)
		gpc_paper_line(
			paper, "and %s more that are nearer", gpc_show_count(merge.n - limit));
	free(order);
}

static struct json_object *rank_json(const struct gpc_merge_rank *rank)
{
	struct json_object *object = json_object_new_object();

	gpc_json_text(object, "path", rank->path);
	gpc_json_bytes(object, "rank", rank->rank < 0 ? GPUCACHE_UNKNOWN : (uint64_t)rank->rank);
	gpc_json_text(object, "host", rank->host);
	gpc_json_bytes(object, "pid", rank->pid);
	gpc_json_text(object, "state", gpc_state_word(rank->state));
	gpc_json_bytes(
		object, "device", rank->device < 0 ? GPUCACHE_UNKNOWN : (uint64_t)rank->device);
	gpc_json_bytes(object, "peak_live_bytes", rank->peak_bytes);
	gpc_json_bytes(object, "ooms", rank->n_ooms);
	return object;
}

static struct json_object *first_json(const struct gpc_report *report)
{
	const struct gpc_merge_rank *rank = &merge.ranks[merge.first];
	struct json_object *object;
	char buf[400];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	if (merge.first == merge.n)
		return NULL;
	object = rank_json(rank);
	add_site(report, rank, rank->oom.stack, &text);
	gpc_json_text(object, "time", gpc_show_rfc3339(rank->oom.realtime_ns));
	gpc_json_bytes(object, "number", rank->oom.number);
	gpc_json_text(object, "verdict", gpc_verdict_word(rank->oom.verdict));
	gpc_json_text(object, "strength", gpc_strength_word(rank->oom.strength));
	gpc_json_bytes(object, "requested_bytes", rank->oom.requested);
	gpc_json_text(object, "where", buf);
	return object;
}

static struct json_object *odd_json(const struct gpc_report *report)
{
	const struct gpc_merge_rank *rank = &merge.ranks[merge.odd];
	struct json_object *object;
	char buf[400] = "";
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	if (merge.odd == merge.n)
		return NULL;
	object = rank_json(rank);
	if (merge.odd_site.key)
		add_site(report, &merge.ranks[merge.odd_site_of], merge.odd_site.stack, &text);
	gpc_json_bool(object, "is_more", merge.is_odd_more);
	gpc_json_text(object, "where", buf);
	gpc_json_bytes(object, "difference_bytes", merge.odd_site.bytes);
	return object;
}

static void print_json(const struct gpc_report *report)
{
	struct json_object *root = gpc_json_begin(report, "merge");
	struct json_object *ranks = json_object_new_array();

	for (size_t i = 0; i < merge.n; i++)
		json_object_array_add(ranks, rank_json(&merge.ranks[i]));
	gpc_json_bytes(root, "median_peak_live_bytes", merge.median_bytes);
	json_object_object_add(root, "first_failure", first_json(report));
	json_object_object_add(root, "odd_one_out", odd_json(report));
	gpc_json_bytes(root, "unused", merge.n_unused);
	json_object_object_add(root, "ranks", ranks);
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_merge(struct gpc_report *report)
{
	if (report->recording) {
		if (gpc_merge_add(&merge, report) == GPC_OK)
			return GPC_EXIT_MADE;
		gpc_complain("no memory for another rank");
		return GPC_EXIT_IO;
	}
	gpc_merge_sort(&merge);
	if (report->options->json) {
		print_json(report);
	} else {
		print_head(&report->paper);
		if (merge.n) {
			print_first(report);
			print_odd(report);
			print_table(report);
		}
	}
	gpc_merge_fini(&merge);
	return GPC_EXIT_MADE;
}
