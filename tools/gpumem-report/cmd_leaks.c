/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leaks`: device memory that the program had not freed, by whole stack.
 *
 * "Not freed when the process ended" is what a recording can know.  Memory that a framework keeps
 * for itself to the end on purpose looks the same, so nothing here is called a leak.
 */
#include <stdlib.h>

#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/sheet.h"
#include "tools/gpumem-report/tag_rows.h"

#define DEFAULT_STACKS 10
#define FRAMES_SHOWN   24

struct group {
	uint32_t stack;
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct groups {
	struct group *rows;
	size_t n;
	uint64_t bytes;
	uint64_t n_blocks;
};

static int compare_stacks(const void *left, const void *right)
{
	const struct group *a = left;
	const struct group *b = right;

	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static int compare_bytes(const void *left, const void *right)
{
	const struct group *a = left;
	const struct group *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return compare_stacks(left, right);
}

/* Puts rows of one stack, which lie side by side, together. */
static void unite(struct groups *groups)
{
	size_t n = 0;

	for (size_t i = 0; i < groups->n; i++) {
		struct group *row = &groups->rows[i];
		struct group *last = n ? &groups->rows[n - 1] : NULL;

		if (!last || last->stack != row->stack) {
			groups->rows[n++] = *row;
			continue;
		}
		last->bytes = gpc_bytes_add(last->bytes, row->bytes);
		last->n_blocks += row->n_blocks;
		if (row->first_ns < last->first_ns)
			last->first_ns = row->first_ns;
		if (row->last_ns > last->last_ns)
			last->last_ns = row->last_ns;
	}
	groups->n = n;
}

/* Rows by stack.  Where stacks are sampled, those without one are what the others leave. */
static void take_surplus(struct groups *groups, const struct gpc_share *surplus)
{
	struct group *without = groups->n && !groups->rows[0].stack ? &groups->rows[0] : NULL;

	if (!without)
		return;
	without->bytes = gpc_recording_less(without->bytes, surplus->bytes);
	without->n_blocks = gpc_recording_less(without->n_blocks, surplus->blocks);
	if (without->bytes == 0)
		*without = groups->rows[--groups->n];
}

static enum gpc_status collect(const struct gpc_report *report, struct groups *groups)
{
	const struct gpc_recording *rec = report->recording;
	struct gpc_share surplus = { 0 };
	struct gpc_share share;
	uint64_t count = rec->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpucache_block block;

	*groups = (struct groups){ .rows = calloc(count + 1, sizeof *groups->rows) };
	if (!groups->rows)
		return GPC_NO_METADATA;
	for (uint64_t i = 0; i < count; i++) {
		if (!gpc_recording_read_block(rec, i, &block) || !gpc_recording_can_leak(&block) ||
			!gpc_report_wants(report, block.device))
			continue;
		share = gpc_recording_share(rec, &block, &surplus);
		groups->rows[groups->n++] = (struct group){ block.stack, share.bytes, share.blocks,
			block.time_ns, block.time_ns };
		groups->bytes = gpc_bytes_add(groups->bytes, block.requested);
	}
	groups->n_blocks = groups->n;
	qsort(groups->rows, groups->n, sizeof *groups->rows, compare_stacks);
	unite(groups);
	take_surplus(groups, &surplus);
	qsort(groups->rows, groups->n, sizeof *groups->rows, compare_bytes);
	return GPC_OK;
}

static const char *ending_of(const struct gpc_report *report)
{
	switch (report->recording->run_state) {
	case GPC_RUN_ALIVE:
		return "live at this moment";
	case GPC_RUN_KILLED:
		return "not freed when the process was killed";
	case GPC_RUN_EXITED:
		return "not freed when the process exited without cleanup";
	case GPC_RUN_ENDED:
		break;
	}
	return "not freed when the process ended";
}

static void print_group(const struct gpc_report *report, const struct group *group)
{
	uint64_t start = report->recording->header.start_monotonic_ns;
	const struct gpc_paper *paper = &report->paper;
	uint64_t first = group->first_ns > start ? group->first_ns - start : 0;
	uint64_t last = group->last_ns > start ? group->last_ns - start : 0;

	fprintf(paper->out, "\n%s%s%s (%s B) in %s block%s", gpc_paper_ink(paper, GPC_INK_BOLD),
		gpc_show_bytes(group->bytes), gpc_paper_ink(paper, GPC_INK_PLAIN),
		gpc_show_count(group->bytes), gpc_show_count(group->n_blocks),
		group->n_blocks == 1 ? "" : "s");
	if (first == last)
		fprintf(paper->out, ", taken at %s\n", gpc_show_duration(first));
	else
		fprintf(paper->out, ", taken from %s to %s\n", gpc_show_duration(first),
			gpc_show_duration(last));
	gpc_stack_print(report, group->stack, FRAMES_SHOWN);
}

static void print_text(struct gpc_report *report, const struct groups *groups)
{
	const struct gpc_recording *rec = report->recording;
	size_t limit = report->options->limit ? report->options->limit : DEFAULT_STACKS;
	const struct gpc_paper *paper = &report->paper;
	bool knows = rec->regions[GPUCACHE_REGION_BLOCKS].count > 0;

	fprintf(paper->out, "%s, pid %u on %s: device memory %s\n", gpc_base_name(rec->header.exe),
		rec->header.pid, rec->header.host, ending_of(report));
	if (groups->n)
		fprintf(paper->out, "Biggest first; times are since the start of the process.\n");
	if (rec->run_state == GPC_RUN_ALIVE && groups->n)
		fprintf(paper->out, "The process is alive; most of this may be wanted.\n");
	if (groups->n == 0)
		fprintf(paper->out,
			knows ? "\nNone.\n" : "\nNobody knows: BLOCKS cannot be read.\n");
	for (size_t i = 0; i < groups->n && i < limit; i++)
		print_group(report, &groups->rows[i]);
	if (groups->n > limit)
		fprintf(paper->out, "\n... and %zu more stack%s (-n %zu)\n", groups->n - limit,
			groups->n - limit == 1 ? "" : "s", groups->n);
	gpc_tag_rows_print(report, -1, NULL, ending_of(report));
	gpc_report_print_notes(report);
	if (!knows)
		return;
	fprintf(paper->out,
		"\nSUMMARY: gpumem-report: %llu bytes %s in %llu allocation(s) from %zu call "
		"site(s)\n",
		(unsigned long long)groups->bytes,
		rec->run_state == GPC_RUN_ALIVE ? "live" : "not freed",
		(unsigned long long)groups->n_blocks, groups->n);
}

static void print_json(struct gpc_report *report, const struct groups *groups)
{
	struct json_object *root = gpc_json_begin(report, "leaks");
	struct json_object *array = json_object_new_array();
	size_t limit = report->options->limit ? report->options->limit : groups->n;

	gpc_json_bytes(root, "not_freed_bytes", groups->bytes);
	gpc_json_bytes(root, "not_freed_blocks", groups->n_blocks);
	gpc_json_bytes(root, "call_sites", groups->n);
	for (size_t i = 0; i < groups->n && i < limit; i++) {
		const struct group *group = &groups->rows[i];
		struct json_object *object = json_object_new_object();

		gpc_json_bytes(object, "live_bytes", group->bytes);
		gpc_json_bytes(object, "blocks", group->n_blocks);
		gpc_json_time(object, "first", report, group->first_ns);
		gpc_json_time(object, "last", report, group->last_ns);
		json_object_object_add(object, "stack", gpc_json_stack(report, group->stack));
		json_object_array_add(array, object);
	}
	json_object_object_add(root, "groups", array);
	gpc_tag_rows_json(root, report, -1, NULL);
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_leaks(struct gpc_report *report)
{
	struct groups groups;

	if (collect(report, &groups) != GPC_OK) {
		gpc_complain("no memory for the list of blocks");
		return GPC_EXIT_IO;
	}
	if (report->options->json)
		print_json(report, &groups);
	else
		print_text(report, &groups);
	free(groups.rows);
	return GPC_EXIT_MADE;
}
