/* SPDX-License-Identifier: Apache-2.0 */
/* `oom`: everything recorded about one failed request. */
#include "tools/gpumem-report/holders/by_tag.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/holdings.h"
#include "tools/gpumem-report/output/balance_sheet.h"
#include "tools/gpumem-report/output/json.h"
#include "tools/gpumem-report/why/failure.h"
#include "why/why.h"

#define DEFAULT_HOLDERS 8
/* Frames shown of a stack: enough for most programs; `-n` sets another number. */
#define DEFAULT_FRAMES 24

static void print_head(struct gpc_report *report, const struct gpucache_oom *oom,
	const struct gpucache_device *device)
{
	const struct gpc_recording *rec = report->recording;
	const struct gpc_paper *paper = &report->paper;
	GPC_TEXT(names, 120);

	fprintf(paper->out, "%sOUT OF MEMORY%s on GPU %d%s%s, %s\n",
		gpc_paper_ink(paper, GPC_INK_ALARM), gpc_paper_ink(paper, GPC_INK_PLAIN),
		oom->device, device->name[0] ? ", " : "", device->name,
		gpc_show_bytes(oom->balance.device_total));
	fprintf(paper->out, "%s, pid %u on %s", gpc_base_name(rec->header.exe), rec->header.pid,
		rec->header.host);
	if (rec->header.rank >= 0)
		fprintf(paper->out, ", rank %d", rec->header.rank);
	if (rec->header.rank >= 0 && rec->header.world_size > 0)
		fprintf(paper->out, " of %d", rec->header.world_size);
	gpc_report_add_names(device, &names);
	fputc('\n', paper->out);
	if (names.len)
		gpc_paper_head(paper, "%s", names.buf);
	fprintf(paper->out, "%s", gpc_show_time(gpc_report_realtime(rec, oom->time_ns)));
	if (oom->time_ns >= rec->header.start_monotonic_ns)
		fprintf(paper->out, ", %s after the start",
			gpc_show_duration(oom->time_ns - rec->header.start_monotonic_ns));
	fputc('\n', paper->out);
	gpc_paper_head(paper, "failure %s: the program %s", gpc_show_count(oom->number),
		oom->recovered ? "recovered; a later request of this size succeeded"
			       : "did not recover from it");
	fputc('\n', paper->out);
}

static const char *show_tag(const struct gpc_report *report, uint32_t tag)
{
	static char buf[512];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_recording_add_tag(report->recording, tag, &text);
	return buf;
}

static void print_request(struct gpc_report *report, const struct gpucache_oom *oom)
{
	const struct gpc_paper *paper = &report->paper;

	if (gpc_kind_is_implicit(oom->kind))
		gpc_paper_section(paper, "REQUEST",
			"%s; the driver names no size, taken for %s here",
			gpc_kind_words(oom->kind), gpc_show_bytes(oom->requested));
	else
		gpc_paper_section(paper, "REQUEST", "%s of %s (%s B)",
			gpc_show_bytes(oom->requested), gpc_kind_words(oom->kind),
			gpc_show_count(oom->requested));
	if (oom->rounded > oom->requested)
		gpc_paper_line(paper, "rounded to %s (%s B)", gpc_show_bytes(oom->rounded),
			gpc_show_count(oom->rounded));
	gpc_paper_line(paper, "by thread %u", oom->thread);
	if (oom->tag)
		gpc_paper_line(paper, "in the range %s", show_tag(report, oom->tag));
	gpc_stack_print(report, oom->stack, gpc_report_limit(report, DEFAULT_FRAMES));
}

static void print_holders(struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_holdings holdings;

	gpc_holdings_from_oom(&holdings, report, oom);
	if (holdings.n == 0)
		gpc_paper_section(&report->paper, "HOLDERS", "none with a stack");
	else
		gpc_paper_section(&report->paper, "HOLDERS",
			"who holds it: %s live by call site, %u stacks in all",
			gpc_show_bytes(holdings.total_bytes), oom->n_sites);
	if (oom->growth_bytes)
		gpc_paper_line(&report->paper,
			"the fastest growing: +%s in the later part of the run",
			gpc_show_bytes(oom->growth_bytes));
	if (holdings.n)
		gpc_holdings_print(&holdings, report, gpc_report_limit(report, DEFAULT_HOLDERS));
	gpc_holdings_fini(&holdings);
}

static void print_neighbours(struct gpc_report *report, const struct gpucache_oom *oom)
{
	const struct gpc_paper *paper = &report->paper;

	gpc_paper_section(paper, "OTHERS",
		oom->n_neighbours ? "other processes on this GPU"
		: oom->balance.other_processes == GPUCACHE_UNKNOWN
			? "processes on this GPU could not be seen from here"
			: "no other process on this GPU is visible from here");
	for (unsigned i = 0; i < oom->n_neighbours; i++)
		gpc_paper_line(paper, "%11s  pid %-8u %s", gpc_show_bytes(oom->neighbours[i].bytes),
			oom->neighbours[i].pid,
			oom->neighbours[i].name[0] ? oom->neighbours[i].name
						   : "(name not visible)");
}

static void print_tried(struct gpc_report *report, const struct gpucache_oom *oom)
{
	const struct gpc_paper *paper = &report->paper;
	unsigned n_helped = 0;

	if (oom->n_rungs == 0)
		return;
	for (unsigned i = 0; i < oom->n_rungs; i++)
		n_helped += oom->rung_freed[i] != 0;
	gpc_paper_section(paper, "TRIED", "%u steps before giving up%s", oom->n_rungs,
		n_helped ? "" : "; none made memory available");
	for (unsigned i = 0; i < oom->n_rungs; i++)
		gpc_paper_line(paper, "%11s  %s", gpc_show_bytes(oom->rung_freed[i]),
			gpc_rung_words(i).text);
}

static void print_setup(struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	const struct gpc_paper *paper = &report->paper;
	unsigned version = rec->header.driver_version;
	enum gpc_text_kind kind;
	const unsigned n_recovered = gpc_report_count_ooms(report, true);
	unsigned n_changed = 0;

	gpc_paper_section(paper, "SETUP", "gpucache %s%s",
		rec->header.version[0] ? rec->header.version : "?",
		version ? "" : ", CUDA version unknown");
	if (version)
		gpc_paper_line(
			paper, "the driver's CUDA is %u.%u", version / 1000, version % 1000 / 10);
	for (size_t i = 0;; i++) {
		GPC_TEXT(text, 300);

		if (!gpc_report_read_line(rec, i, &kind, &text))
			break;
		if (kind != GPC_TEXT_CHANGED)
			continue;
		gpc_paper_line(paper, "%s", text.buf);
		n_changed++;
	}
	if (n_changed == 0)
		gpc_paper_line(paper, "all options at their defaults");
	if (n_recovered)
		gpc_paper_line(paper, "the program recovered from %u other failure%s", n_recovered,
			n_recovered == 1 ? "" : "s");
}

static void add_tries(const struct gpc_failure *failure, struct json_object *verdict)
{
	struct json_object *tries = gpc_json_add(verdict, "try", json_object_new_array());
	const char *reach;

	for (unsigned n = 0; n < GPC_MAX_TRIES; n++) {
		struct json_object *row;
		GPC_TEXT(text, 800);

		if (!gpc_failure_say_try(failure, n, &text, &reach))
			return;
		row = gpc_json_row(tries);
		gpc_json_text(row, "advice", text.buf);
		gpc_json_text(row, "reach", reach);
	}
}

/* The facts that are known, as src/why/facts.def names them; a site is the number of its stack. */
static void add_facts(const struct gpc_facts *facts, struct json_object *verdict)
{
	struct json_object *object = gpc_json_add(verdict, "facts", json_object_new_object());

	for (size_t i = 0; i < gpc_n_fact_rows; i++) {
		const struct gpc_fact_row *row = &gpc_fact_rows[i];
		const char *words = NULL;
		uint64_t number = 0;

		if (!gpc_fact_read(facts, row, &number, &words))
			continue;
		if (row->kind == GPC_FACT_WORDS)
			gpc_json_text(object, row->name, words);
		else if (row->kind == GPC_FACT_TRUTH)
			gpc_json_bool(object, row->name, number == GPC_YES);
		else if (row->kind == GPC_FACT_PURPOSE)
			gpc_json_text(
				object, row->name, gpc_purpose_words((enum gpc_purpose)number));
		else
			gpc_json_bytes(object, row->name, number);
	}
}

static void print_json(struct gpc_report *report, const struct gpc_failure *failure,
	const struct gpucache_device *device)
{
	const struct gpucache_oom *oom = &failure->oom;
	struct json_object *root = gpc_json_begin(report, "oom");
	struct json_object *request = json_object_new_object();
	struct json_object *verdict = json_object_new_object();
	struct json_object *others = json_object_new_array();
	struct json_object *tried = json_object_new_array();
	struct json_object *also = json_object_new_array();
	struct gpc_holdings holdings;
	GPC_TEXT(text, 800);

	gpc_json_bytes(root, "number", oom->number);
	gpc_json_time(root, "time", report, oom->time_ns);
	gpc_json_bool(root, "recovered", oom->recovered);
	json_object_object_add(root, "device", gpc_json_device(device));
	gpc_json_bytes(request, "requested_bytes", oom->requested);
	gpc_json_bytes(request, "rounded_bytes", oom->rounded);
	gpc_json_bytes(request, "short_by_bytes", oom->short_by);
	gpc_json_bytes(request, "limit_bytes", oom->limit ? oom->limit : GPUCACHE_UNKNOWN);
	gpc_json_text(request, "kind", gpc_kind_words(oom->kind));
	gpc_json_bytes(request, "thread", oom->thread);
	gpc_json_text(request, "tag", show_tag(report, oom->tag));
	json_object_object_add(request, "stack", gpc_json_stack(report, oom->stack));
	json_object_object_add(root, "request", request);
	json_object_object_add(root, "torch", gpc_torch_json_at(oom));
	gpc_json_text(verdict, "word", gpc_cause_word(oom->verdict));
	gpc_json_text(verdict, "strength", gpc_strength_word(oom->strength));
	gpc_failure_say_why(failure, &text);
	gpc_json_text(verdict, "why", text.buf);
	gpc_json_text(verdict, "then", gpc_cause_word(failure->answer.then_cause));
	gpc_json_text(verdict, "then_strength", gpc_strength_word(failure->answer.then_strength));
	add_tries(failure, verdict);
	add_facts(&failure->facts, verdict);
	for (unsigned v = 1; v < GPUCACHE_VERDICT_COUNT; v++)
		if (oom->also >> v & 1)
			json_object_array_add(also, json_object_new_string(gpc_cause_word(v)));
	json_object_object_add(verdict, "also", also);
	json_object_object_add(root, "verdict", verdict);
	json_object_object_add(root, "balance", gpc_json_balance(&oom->balance, oom->kind_bytes));
	gpc_holdings_from_oom(&holdings, report, oom);
	gpc_holdings_json(&holdings, report, root);
	gpc_holdings_fini(&holdings);
	gpc_tag_rows_json(root, report, oom->device, oom);
	for (unsigned i = 0; i < oom->n_neighbours; i++) {
		struct json_object *other = gpc_json_row(others);

		gpc_json_bytes(other, "pid", oom->neighbours[i].pid);
		gpc_json_text(other, "name", oom->neighbours[i].name);
		gpc_json_bytes(other, "used_bytes", oom->neighbours[i].bytes);
		if (oom->neighbours[i].own_age_s)
			gpc_json_bytes(other, "own_age_s", oom->neighbours[i].own_age_s);
	}
	json_object_object_add(root, "neighbours", others);
	for (unsigned i = 0; i < oom->n_rungs; i++)
		json_object_array_add(tried, json_object_new_uint64(oom->rung_freed[i]));
	json_object_object_add(root, "rungs_freed_bytes", tried);
	gpc_json_end(report, root);
}

/* Chooses the failure by number; without one, the newest that the program did not recover from, else the newest. */
static bool choose_oom(const struct gpc_report *report, struct gpucache_oom *ret_oom)
{
	if (report->options->number)
		return gpc_recording_find_oom(report->recording, report->options->number, ret_oom);
	return gpc_report_find_oom(report, -1, true, ret_oom) ||
	       gpc_report_find_oom(report, -1, false, ret_oom);
}

/* Complains that no request failed.  Names a framework's pool: it may have run out without asking the driver. */
static void complain_none(const struct gpc_report *report)
{
	struct gpucache_device device;

	gpc_complain("no request failed in %s", report->recording->path);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		GPC_TEXT(text, 900);

		if (gpc_framework_add_pool(report, &device, &text))
			gpc_complain("GPU %d: %s", device.ordinal, text.buf);
	}
}

enum gpc_exit gpc_cmd_oom(struct gpc_report *report)
{
	struct gpucache_device device = { .ordinal = -1 };
	struct gpc_failure failure;
	struct gpucache_oom oom;

	if (!choose_oom(report, &oom)) {
		unsigned long long number = report->options->number;

		if (number)
			gpc_complain(
				"failure %llu is not in %s: `gpumem-report summary` counts them",
				number, report->recording->path);
		else
			complain_none(report);
		return GPC_EXIT_NOT_FOUND;
	}
	device.ordinal = oom.device;
	(void)gpc_recording_find_device(report->recording, oom.device, &device);
	gpc_failure_explain(report, &oom, &failure);
	if (report->options->json) {
		print_json(report, &failure, &device);
		return GPC_EXIT_MADE;
	}
	print_head(report, &oom, &device);
	gpc_failure_print(&failure, true);
	print_request(report, &oom);
	gpc_paper_section(&report->paper, "BALANCE", "GPU %d at that moment", oom.device);
	gpc_sheet_print(report, oom.device, &oom.balance, oom.kind_bytes, &oom);
	print_holders(report, &oom);
	gpc_tag_rows_print(report, oom.device, &oom, "at that moment");
	print_neighbours(report, &oom);
	print_tried(report, &oom);
	print_setup(report);
	gpc_report_print_notes(report);
	return GPC_EXIT_MADE;
}
