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
#include "tools/gpumem-report/holders/groups.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/output/stack.h"

#define DEFAULT_STACKS 10
#define FRAMES_SHOWN   24

struct sum {
	uint64_t bytes;
	uint64_t n_blocks;
};

static struct sum sum_of(const struct gpc_row *rows, size_t n)
{
	struct sum sum = { 0 };

	for (size_t i = 0; i < n; i++) {
		sum.bytes = gpc_bytes_add(sum.bytes, rows[i].bytes);
		sum.n_blocks = gpc_bytes_add(sum.n_blocks, rows[i].n_blocks);
	}
	return sum;
}

static const char *ending_of(const struct gpc_report *report)
{
	static const char *const endings[] = { [GPC_RUN_ALIVE] = "live at this moment",
		[GPC_RUN_ENDED] = "not freed when the process ended",
		[GPC_RUN_KILLED] = "not freed when the process was killed",
		[GPC_RUN_EXITED] = "not freed when the process exited without cleanup" };

	return endings[report->recording->run_state];
}

static const struct gpc_column columns[] = { { NULL, "" }, { "device" }, { "live_bytes" },
	{ "blocks" }, { "is_held_by_library" }, { "first" }, { "last" } };
static const struct gpc_section section = { "groups", NULL, GPC_COLUMNS(columns) };

static void show_group(const struct gpc_report *report, const struct gpc_row *group, bool is_kept)
{
	uint64_t start = report->recording->header.start_monotonic_ns;
	uint64_t first = gpc_bytes_less(group->first_ns, start);
	uint64_t last = gpc_bytes_less(group->last_ns, start);
	GPC_TEXT(text, 800);

	gpc_text_add(&text, "%s (%s B) in %s block%s by ", gpc_show_bytes(group->bytes),
		gpc_show_count(group->bytes), gpc_show_count(group->n_blocks),
		group->n_blocks == 1 ? "" : "s");
	gpc_frames_where(report->frames, group->id, GPC_SITE_CALLERS, &text);
	gpc_text_add(
		&text, ", taken %s %s", first == last ? "at" : "from", gpc_show_duration(first));
	if (first != last)
		gpc_text_add(&text, " to %s", gpc_show_duration(last));
	gpc_document_gap(report->doc);
	gpc_document_row(report->doc, gpc_sentence(text.buf), gpc_number((uint64_t)group->device),
		gpc_bytes(group->bytes), gpc_count(group->n_blocks), gpc_truth(is_kept),
		gpc_page_time(report, group->first_ns), gpc_page_time(report, group->last_ns));
	gpc_stack_show(report, group->id, FRAMES_SHOWN);
}

/* Shows rows[0 .. n), which are the groups of one GPU. */
static void show_gpu(const struct gpc_report *report, const struct gpc_row *rows, size_t n)
{
	size_t limit = gpc_report_limit(
		report, gpc_document_is_whole(report->doc) ? UINT32_MAX : DEFAULT_STACKS);
	struct gpucache_device device = { .ordinal = rows[0].device };
	struct sum rest = n > limit ? sum_of(&rows[limit], n - limit) : (struct sum){ 0 };
	uint64_t bytes = sum_of(rows, n).bytes;
	struct gpc_document *doc = report->doc;
	GPC_TEXT(names, 120);

	(void)gpc_recording_find_device(report->recording, rows[0].device, &device);
	gpc_report_add_names(&device, &names);
	gpc_document_gap(doc);
	gpc_document_say(doc, "GPU %d%s%s: %s (%s B)", device.ordinal, names.len ? ", " : "",
		names.buf, gpc_show_bytes(bytes), gpc_show_count(bytes));
	for (size_t i = 0; i < n && i < limit; i++)
		show_group(report, &rows[i], false);
	gpc_document_gap(doc);
	if (n > limit)
		gpc_document_say(doc, "%s (%s B) by %s more stack%s (-n %zu)",
			gpc_show_bytes(rest.bytes), gpc_show_count(rest.bytes),
			gpc_show_count(n - limit), n - limit == 1 ? "" : "s", n);
}

/* JSON also has the groups that are no leaks. */
static void show_groups(const struct gpc_report *report, const struct gpc_leaks *leaks)
{
	const struct gpc_row *rows = leaks->rows;

	gpc_document_open(report->doc, &section);
	for (size_t first = 0, end; first < leaks->n; first = end) {
		for (end = first; end < leaks->n && rows[end].device == rows[first].device; end++)
			;
		show_gpu(report, &rows[first], end - first);
	}
	for (size_t i = 0; gpc_document_is_whole(report->doc) && i < leaks->n_kept; i++)
		show_group(report, &leaks->kept[i], true);
	gpc_document_close(report->doc);
}

/* Shows what is no leak, by library. */
static void show_kept(
	const struct gpc_report *report, const struct gpc_leaks *leaks, struct sum kept)
{
	static const struct gpc_column kept_columns[] = { GPC_HOLDER_COLUMNS,
		{ "library", "library" } };
	static const struct gpc_section libraries_section = { "held_by_libraries", "LIBRARY",
		GPC_COLUMNS(kept_columns) };
	struct gpc_groups libraries = { .total_bytes = kept.bytes };

	for (size_t i = 0; i < leaks->n_kept; i++) {
		GPC_TEXT(text, 64);

		gpc_library_name(report->recording, leaks->kept[i].id, &text);
		gpc_groups_add(
			&libraries, text.buf, leaks->kept[i].bytes, leaks->kept[i].n_blocks, 0);
	}
	gpc_groups_sort(&libraries);
	gpc_document_open(report->doc, &libraries_section);
	if (libraries.n)
		gpc_document_say(report->doc,
			"%s held by libraries until the process ends: no leak",
			gpc_show_bytes(kept.bytes));
	gpc_groups_show(&libraries, report->doc);
	gpc_document_close(report->doc);
	gpc_groups_fini(&libraries);
}

static void show_devices(const struct gpc_report *report)
{
	struct gpc_document *doc = report->doc;
	struct gpucache_device device;
	uint64_t bytes;
	uint64_t n;

	gpc_document_open(doc, &gpc_page_devices);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		GPC_TEXT(where, 80);

		if (gpc_recording_find_device(report->recording, 1, &(struct gpucache_device){ 0 }))
			gpc_text_add(&where, "on GPU %d, ", device.ordinal);
		gpc_text_add(&where, "%s", ending_of(report));
		n = gpc_report_count_live(report, device.ordinal, &bytes);
		gpc_page_open_device(doc, &device);
		gpc_document_member(doc, "not_freed_bytes", gpc_bytes(bytes));
		gpc_document_member(doc, "not_freed_blocks", gpc_count(n));
		gpc_tag_rows_show(report, device.ordinal, NULL, where.buf);
		gpc_asker_rows_show(report, device.ordinal, where.buf);
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
}

static void say_head(const struct gpc_report *report, bool is_known, size_t n)
{
	const struct gpc_recording *rec = report->recording;
	struct gpc_document *doc = report->doc;
	struct gpucache_oom oom;

	gpc_document_say(doc, "%s, pid %u on %s: device memory %s", gpc_base_name(rec->header.exe),
		rec->header.pid, rec->header.host, ending_of(report));
	if (n)
		gpc_document_say(
			doc, "Biggest first; times are since the program first used CUDA.");
	if (n && rec->run_state == GPC_RUN_ALIVE)
		gpc_document_say(doc, "The process is alive; most of this may be wanted.");
	else if (n && gpc_report_find_oom(report, -1, true, &oom))
		gpc_document_say(doc, "It ran out of memory; most of this may have been in use.");
	gpc_document_gap(doc);
	if (n == 0)
		gpc_document_say(doc, is_known ? "None." : "Unknown: BLOCKS cannot be read.");
}

/* One line, as the sanitizers' are: programs look for it. */
static void say_summary(const struct gpc_report *report, struct sum leaked, size_t n)
{
	static const struct gpc_section summary = { .flags = GPC_TEXT_ONLY | GPC_RAW };

	gpc_document_gap(report->doc);
	gpc_document_open(report->doc, &summary);
	gpc_document_say(report->doc,
		"SUMMARY: gpumem-report: %llu bytes %s in %llu allocation(s) from %zu call site(s)",
		(unsigned long long)leaked.bytes,
		report->recording->run_state == GPC_RUN_ALIVE ? "live" : "not freed",
		(unsigned long long)leaked.n_blocks, n);
	gpc_document_close(report->doc);
}

static void show(const struct gpc_report *report, const struct gpc_leaks *leaks)
{
	bool is_known = report->recording->regions[GPUCACHE_REGION_BLOCKS].count > 0;
	struct sum kept = sum_of(leaks->kept, leaks->n_kept);
	struct gpc_document *doc = report->doc;
	struct sum all;

	all.n_blocks = gpc_report_count_live(report, -1, &all.bytes);
	gpc_page_begin(report, "leaks");
	say_head(report, is_known, leaks->n);
	gpc_document_member(doc, "not_freed_bytes", gpc_bytes(all.bytes));
	gpc_document_member(doc, "not_freed_blocks", gpc_count(all.n_blocks));
	gpc_document_member(doc, "held_by_libraries_bytes", gpc_bytes(kept.bytes));
	gpc_document_member(doc, "held_by_libraries_blocks", gpc_count(kept.n_blocks));
	gpc_document_member(doc, "call_sites", gpc_count(leaks->n + leaks->n_kept));
	show_groups(report, leaks);
	show_devices(report);
	show_kept(report, leaks, kept);
	gpc_page_notes(report);
	all.bytes = gpc_bytes_less(all.bytes, kept.bytes);
	all.n_blocks = gpc_bytes_less(all.n_blocks, kept.n_blocks);
	if (is_known)
		say_summary(report, all, leaks->n);
	gpc_document_end(doc);
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
	struct gpc_leaks leaks;

	gpc_leaks_find(&leaks, report);
	leaks.n = tidy(report, leaks.rows, leaks.n);
	leaks.n_kept = tidy(report, leaks.kept, leaks.n_kept);
	show(report, &leaks);
	gpc_leaks_fini(&leaks);
	return GPC_EXIT_MADE;
}
