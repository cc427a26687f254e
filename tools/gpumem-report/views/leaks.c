/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `leaks`: device memory that the program had not freed, by GPU and whole stack; stacks that read the same share a row.
 *
 * A recording can tell only which memory was not freed when the process ended.  What CUDA's libraries keep until then
 * for a framework is apart; other memory that a framework keeps on purpose looks the same as a leak.
 */
#include "tools/gpumem-report/holders/leaks.h"
#include "tools/gpumem-report/holders/by_library.h"
#include "tools/gpumem-report/holders/by_tag.h"
#include "tools/gpumem-report/holders/by_thread.h"
#include "tools/gpumem-report/output/balance_sheet.h"
#include "tools/gpumem-report/output/json.h"

#define DEFAULT_STACKS 10
#define FRAMES_SHOWN   24

struct groups {
	struct gpc_leaks by_stack;
	uint64_t bytes; /* of the leaks */
	uint64_t n_blocks;
	uint64_t kept_bytes;
	uint64_t n_kept_blocks;
};

static const char *ending_of(const struct gpc_report *report)
{
	static const char *const endings[] = { [GPC_RUN_ALIVE] = "live at this moment",
		[GPC_RUN_ENDED] = "not freed when the process ended",
		[GPC_RUN_KILLED] = "not freed when the process was killed",
		[GPC_RUN_EXITED] = "not freed when the process exited without cleanup" };

	return endings[report->recording->run_state];
}

static void print_group(const struct gpc_report *report, const struct gpc_row *group)
{
	uint64_t start = report->recording->header.start_monotonic_ns;
	const struct gpc_paper *paper = &report->paper;
	uint64_t first = gpc_bytes_less(group->first_ns, start);
	uint64_t last = gpc_bytes_less(group->last_ns, start);
	GPC_TEXT(taken, 100);

	fputc('\n', paper->out);
	if (first == last)
		gpc_text_add(&taken, "at %s", gpc_show_duration(first));
	else
		gpc_text_add(
			&taken, "from %s to %s", gpc_show_duration(first), gpc_show_duration(last));
	gpc_paper_head(paper, "%s (%s B) in %s block%s, taken %s", gpc_show_bytes(group->bytes),
		gpc_show_count(group->bytes), gpc_show_count(group->n_blocks),
		group->n_blocks == 1 ? "" : "s", taken.buf);
	gpc_stack_print(report, group->id, FRAMES_SHOWN);
}

/* Prints rows[0 .. n), which are the groups of one GPU. */
static void print_device(const struct gpc_report *report, const struct gpc_row *rows, size_t n)
{
	size_t limit = gpc_report_limit(report, DEFAULT_STACKS);
	const struct gpc_paper *paper = &report->paper;
	struct gpucache_device device = { .ordinal = rows[0].device };
	GPC_TEXT(names, 120);
	uint64_t total = 0;
	uint64_t rest = 0;

	for (size_t i = 0; i < n; i++) {
		total = gpc_bytes_add(total, rows[i].bytes);
		rest = gpc_bytes_add(rest, i < limit ? 0 : rows[i].bytes);
	}
	(void)gpc_recording_find_device(report->recording, rows[0].device, &device);
	gpc_report_add_names(&device, &names);
	fputc('\n', paper->out);
	gpc_paper_head(paper, "GPU %d%s%s: %s (%s B)", device.ordinal, names.len ? ", " : "",
		names.buf, gpc_show_bytes(total), gpc_show_count(total));
	for (size_t i = 0; i < n && i < limit; i++)
		print_group(report, &rows[i]);
	if (n > limit)
		fprintf(paper->out, "\n%s (%s B) by %zu more stack%s (-n %zu)\n",
			gpc_show_bytes(rest), gpc_show_count(rest), n - limit,
			n - limit == 1 ? "" : "s", n);
}

static void print_devices(struct gpc_report *report, const struct groups *groups)
{
	const struct gpc_row *rows = groups->by_stack.rows;
	size_t n = groups->by_stack.n;

	for (size_t first = 0, end; first < n; first = end) {
		for (end = first; end < n && rows[end].device == rows[first].device; end++)
			;
		print_device(report, &rows[first], end - first);
		gpc_tag_rows_print(report, rows[first].device, NULL, ending_of(report));
		gpc_asker_rows_print(report, rows[first].device, ending_of(report));
	}
}

/* Prints what is no leak, by library. */
static void print_kept(const struct gpc_report *report, const struct groups *groups)
{
	const struct gpc_leaks *leaks = &groups->by_stack;
	struct gpc_groups libraries = { .total_bytes = groups->kept_bytes };

	for (size_t i = 0; i < leaks->n_kept; i++) {
		GPC_TEXT(text, 64);

		gpc_library_name(report->recording, leaks->kept[i].id, &text);
		gpc_groups_add(
			&libraries, text.buf, leaks->kept[i].bytes, leaks->kept[i].n_blocks, 0);
	}
	gpc_groups_sort(&libraries);
	gpc_paper_section(&report->paper, "LIBRARY",
		"%s held by libraries until the process ends: no leak",
		gpc_show_bytes(groups->kept_bytes));
	gpc_groups_print(&libraries, report, libraries.n, "library", NULL);
	gpc_groups_fini(&libraries);
}

static void print_text(struct gpc_report *report, const struct groups *groups)
{
	const struct gpc_recording *rec = report->recording;
	const struct gpc_paper *paper = &report->paper;
	bool knows = rec->regions[GPUCACHE_REGION_BLOCKS].count > 0;

	gpc_paper_head(paper, "%s, pid %u on %s: device memory %s", gpc_base_name(rec->header.exe),
		rec->header.pid, rec->header.host, ending_of(report));
	if (groups->by_stack.n)
		gpc_paper_head(paper, "Biggest first; times are since the start of the process.");
	if (rec->run_state == GPC_RUN_ALIVE && groups->by_stack.n)
		gpc_paper_head(paper, "The process is alive; most of this may be wanted.");
	if (groups->by_stack.n == 0)
		fprintf(paper->out, knows ? "\nNone.\n" : "\nUnknown: BLOCKS cannot be read.\n");
	print_devices(report, groups);
	if (groups->by_stack.n_kept)
		print_kept(report, groups);
	gpc_report_print_notes(report);
	if (!knows)
		return;
	fprintf(paper->out,
		"\nSUMMARY: gpumem-report: %llu bytes %s in %llu allocation(s) from %zu call "
		"site(s)\n",
		(unsigned long long)groups->bytes,
		rec->run_state == GPC_RUN_ALIVE ? "live" : "not freed",
		(unsigned long long)groups->n_blocks, groups->by_stack.n);
}

static void add_devices(struct json_object *root, const struct gpc_report *report)
{
	struct json_object *array = gpc_json_add(root, "devices", json_object_new_array());
	struct gpucache_device device;

	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		struct json_object *object = gpc_json_device(&device);
		uint64_t bytes;
		uint64_t n = gpc_report_count_live(report, device.ordinal, &bytes);

		gpc_json_bytes(object, "not_freed_bytes", bytes);
		gpc_json_bytes(object, "not_freed_blocks", n);
		gpc_tag_rows_json(object, report, device.ordinal, NULL);
		gpc_asker_rows_json(object, report, device.ordinal);
		json_object_array_add(array, object);
	}
}

static void add_group(struct json_object *array, const struct gpc_report *report,
	const struct gpc_row *group, bool is_kept)
{
	struct json_object *object = gpc_json_row(array);

	gpc_json_bytes(object, "device", (uint64_t)group->device);
	gpc_json_bytes(object, "live_bytes", group->bytes);
	gpc_json_bytes(object, "blocks", group->n_blocks);
	gpc_json_bool(object, "is_held_by_library", is_kept);
	gpc_json_time(object, "first", report, group->first_ns);
	gpc_json_time(object, "last", report, group->last_ns);
	json_object_object_add(object, "stack", gpc_json_stack(report, group->id));
}

static void print_json(struct gpc_report *report, const struct groups *groups)
{
	const struct gpc_leaks *leaks = &groups->by_stack;
	struct json_object *root = gpc_json_begin(report, "leaks");
	struct json_object *array;
	size_t limit = report->options->limit ? report->options->limit : SIZE_MAX;

	gpc_json_bytes(root, "not_freed_bytes", gpc_bytes_add(groups->bytes, groups->kept_bytes));
	gpc_json_bytes(root, "not_freed_blocks", groups->n_blocks + groups->n_kept_blocks);
	gpc_json_bytes(root, "held_by_libraries_bytes", groups->kept_bytes);
	gpc_json_bytes(root, "held_by_libraries_blocks", groups->n_kept_blocks);
	gpc_json_bytes(root, "call_sites", leaks->n + leaks->n_kept);
	array = gpc_json_add(root, "groups", json_object_new_array());
	for (size_t i = 0; i < leaks->n && i < limit; i++)
		add_group(array, report, &leaks->rows[i], false);
	for (size_t i = 0; i < leaks->n_kept && leaks->n + i < limit; i++)
		add_group(array, report, &leaks->kept[i], true);
	add_devices(root, report);
	gpc_tag_rows_json(root, report, -1, NULL);
	gpc_json_end(report, root);
}

/* Unites the stacks that print the same. */
static size_t tidy(const struct gpc_report *report, struct gpc_row *rows, size_t n)
{
	n = gpc_rows_unite_alike(report, rows, n);
	gpc_rows_by_bytes(rows, n);
	return n;
}

enum gpc_exit gpc_cmd_leaks(struct gpc_report *report)
{
	struct groups groups = { 0 };
	struct gpc_leaks *leaks = &groups.by_stack;

	gpc_leaks_find(leaks, report);
	groups.n_blocks = gpc_report_count_live(report, -1, &groups.bytes);
	for (size_t i = 0; i < leaks->n_kept; i++) {
		groups.kept_bytes = gpc_bytes_add(groups.kept_bytes, leaks->kept[i].bytes);
		groups.n_kept_blocks += leaks->kept[i].n_blocks;
	}
	groups.bytes = gpc_bytes_less(groups.bytes, groups.kept_bytes);
	groups.n_blocks = gpc_bytes_less(groups.n_blocks, groups.n_kept_blocks);
	leaks->n = tidy(report, leaks->rows, leaks->n);
	leaks->n_kept = tidy(report, leaks->kept, leaks->n_kept);
	if (report->options->json)
		print_json(report, &groups);
	else
		print_text(report, &groups);
	gpc_leaks_fini(leaks);
	return GPC_EXIT_MADE;
}
