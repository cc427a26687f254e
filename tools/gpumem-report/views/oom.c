/* SPDX-License-Identifier: Apache-2.0 */
/* `oom`: everything recorded about one failed request. */
#include "model/sheet.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/by_tag.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/holdings.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/output/stack.h"
#include "tools/gpumem-report/why/failure.h"
#include "why/why.h"

#define N_HOLDERS 8
/* Frames shown of a stack: enough for most programs; `-n` sets another number. */
#define DEFAULT_FRAMES 24

static void show_head(const struct gpc_report *report, const struct gpucache_oom *oom,
	const struct gpucache_device *device)
{
	const struct gpucache_header *header = &report->recording->header;
	struct gpc_document *doc = report->doc;
	struct gpucache_oom before;
	GPC_TEXT(text, 200);
	GPC_TEXT(again, 100);

	gpc_document_shout(doc, GPC_INK_ALARM, "OUT OF MEMORY on GPU %d%s%s, %s", oom->device,
		device->name[0] ? ", " : "", device->name,
		gpc_show_bytes(oom->balance.device_total));
	if (header->rank >= 0)
		gpc_text_add(&text, ", rank %d", header->rank);
	if (header->rank >= 0 && header->world_size > 0)
		gpc_text_add(&text, " of %d", header->world_size);
	gpc_document_say(doc, "%s, pid %u on %s%s", gpc_base_name(header->exe), header->pid,
		header->host, text.buf);
	gpc_text_clear(&text);
	gpc_report_add_names(device, &text);
	if (text.len)
		gpc_document_say(doc, "%s", text.buf);
	gpc_text_clear(&text);
	if (oom->time_ns >= header->start_monotonic_ns)
		gpc_text_add(&text, ", %s after the start",
			gpc_show_duration(oom->time_ns - header->start_monotonic_ns));
	gpc_document_say(doc, "%s%s",
		gpc_show_time(gpc_report_realtime(report->recording, oom->time_ns)), text.buf);
	if (gpc_recording_find_oom(report->recording, oom->number - 1, &before) &&
		gpc_torch_repeats(oom, &before))
		gpc_text_add(&again,
			", of the same request as %s before PyTorch returned its cache",
			gpc_show_count(before.number));
	gpc_document_say(doc, "failure %s%s: the program %s", gpc_show_count(oom->number),
		again.buf,
		oom->recovered == GPC_RECOVERED_BY_END
			? "made no such request again, and ended with status 0"
		: oom->recovered ? "recovered; a later request of this size succeeded"
				 : "did not recover from it");
	gpc_document_member(doc, "number", gpc_number(oom->number));
	gpc_document_member(doc, "time", gpc_page_time(report, oom->time_ns));
	gpc_document_member(doc, "recovered",
		gpc_truth(oom->recovered && oom->recovered != GPC_RECOVERED_BY_END));
	gpc_document_open_object(doc, "device");
	gpc_page_tell_device(doc, device);
	gpc_document_close(doc);
}

static void show_request(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	static const struct gpc_section section = { "request", "REQUEST", .flags = GPC_OBJECT };
	struct gpc_document *doc = report->doc;
	GPC_TEXT(tag, 512);

	gpc_recording_add_tag(report->recording, oom->tag, &tag);
	gpc_document_open(doc, &section);
	gpc_document_member(doc, "requested_bytes", gpc_bytes(oom->requested));
	gpc_document_member(doc, "rounded_bytes", gpc_bytes(oom->rounded));
	gpc_document_member(doc, "short_by_bytes", gpc_bytes(oom->short_by));
	gpc_document_member(doc, "limit_bytes", gpc_bytes(gpc_unless_zero(oom->limit)));
	gpc_document_member(doc, "kind", gpc_name(gpc_kind_words(oom->kind)));
	gpc_document_member(doc, "thread", gpc_number(oom->thread));
	gpc_document_member(doc, "tag", gpc_name(tag.buf));
	if (gpc_kind_is_implicit(oom->kind))
		gpc_document_say(doc, "%s; the driver names no size, taken for %s here",
			gpc_kind_words(oom->kind), gpc_show_bytes(oom->requested));
	else
		gpc_document_say(doc, "%s of %s (%s B)", gpc_show_bytes(oom->requested),
			gpc_kind_words(oom->kind), gpc_show_count(oom->requested));
	if (oom->rounded > oom->requested)
		gpc_document_say(doc, "rounded to %s (%s B)", gpc_show_bytes(oom->rounded),
			gpc_show_count(oom->rounded));
	gpc_document_say(doc, "by thread %u", oom->thread);
	if (oom->tag)
		gpc_document_say(doc, "in the range %s", tag.buf);
	gpc_stack_show(report, oom->stack, gpc_report_limit(report, DEFAULT_FRAMES));
	gpc_document_close(doc);
}

static void show_balance(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	static const struct gpc_section section = { "balance", "BALANCE", gpc_sheet_columns, 4,
		.flags = GPC_SHEET_FLAGS };

	gpc_document_open(report->doc, &section);
	gpc_document_say(report->doc, "GPU %d at that moment", oom->device);
	gpc_torch_show_sheet(report, oom->device, &oom->balance, oom->kind_bytes, oom);
	gpc_document_close(report->doc);
}

static void show_holders(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_holdings holdings;
	GPC_TEXT(title, 300);

	gpc_holdings_from_oom(&holdings, report, oom);
	if (holdings.n == 0)
		gpc_text_add(&title, "none with a stack");
	else
		gpc_text_add(&title, "who holds it: %s by call site, %u stack%s in all",
			gpc_show_bytes(holdings.total_bytes), oom->n_sites,
			oom->n_sites == 1 ? "" : "s");
	if (oom->growth_bytes)
		gpc_text_add(&title, "; the fastest growing: +%s in the later part of the run",
			gpc_show_bytes(oom->growth_bytes));
	gpc_holdings_show(&holdings, report, N_HOLDERS, title.buf);
	gpc_holdings_fini(&holdings);
}

static void show_neighbours(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	static const struct gpc_column columns[] = { { "used_bytes", "", 11 }, { NULL, "" },
		{ "pid" }, { "name" }, { "own_age_s" } };
	static const struct gpc_section section = { "neighbours", "OTHERS", GPC_COLUMNS(columns),
		.flags = GPC_BESIDE };
	struct gpc_document *doc = report->doc;

	gpc_document_open(doc, &section);
	gpc_document_say(doc, "%s",
		oom->n_neighbours ? "other processes on this GPU"
		: oom->balance.other_processes == GPUCACHE_UNKNOWN
			? "processes on this GPU could not be seen from here"
			: "no other process on this GPU is visible from here");
	for (unsigned i = 0; i < oom->n_neighbours; i++) {
		const struct gpucache_neighbour *row = &oom->neighbours[i];
		GPC_TEXT(text, 200);

		gpc_text_add(&text, "pid %-8u %s", row->pid,
			row->name[0] ? row->name : "(name not visible)");
		gpc_document_row(doc, gpc_bytes(row->bytes), gpc_sentence(text.buf),
			gpc_number(row->pid), gpc_name(row->name),
			gpc_number(gpc_unless_zero(row->own_age_s)));
	}
	gpc_document_close(doc);
}

static void show_tried(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	static const struct gpc_column columns[] = { { "freed_bytes", "", 11 }, { NULL, "" },
		{ "rung" } };
	static const struct gpc_section section = { "tried", "TRIED", GPC_COLUMNS(columns),
		.flags = GPC_BESIDE };
	struct gpc_document *doc = report->doc;
	unsigned n_helped = 0;

	for (unsigned i = 0; i < oom->n_rungs; i++)
		n_helped += oom->rung_freed[i] != 0;
	gpc_document_open(doc, &section);
	if (oom->n_rungs)
		gpc_document_say(doc, "%u steps before giving up%s", oom->n_rungs,
			n_helped ? "" : "; none made memory available");
	for (unsigned i = 0; i < oom->n_rungs && (n_helped || gpc_document_is_whole(doc)); i++)
		gpc_document_row(doc, gpc_bytes(oom->rung_freed[i]),
			gpc_name(gpc_rung_words(i).text), gpc_name(gpc_rung_words(i).word));
	gpc_document_close(doc);
}

static void show_setup(const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	unsigned version = rec->header.driver_version;
	const unsigned n_recovered = gpc_report_count_ooms(report, true);
	struct gpc_document *doc = report->doc;
	enum gpc_text_kind kind;
	unsigned n_changed = 0;

	gpc_document_open_text(doc, "SETUP");
	gpc_document_say(doc, "gpucache %s%s", rec->header.version[0] ? rec->header.version : "?",
		version ? "" : ", CUDA version unknown");
	if (version)
		gpc_document_say(
			doc, "the driver's CUDA is %u.%u", version / 1000, version % 1000 / 10);
	for (size_t i = 0;; i++) {
		GPC_TEXT(text, 300);

		if (!gpc_report_read_line(rec, i, &kind, &text))
			break;
		if (kind == GPC_TEXT_CALLER)
			gpc_document_say(doc, GPC_CALLER_WORDS, text.buf);
		if (kind != GPC_TEXT_CHANGED)
			continue;
		gpc_document_say(doc, "%s", text.buf);
		n_changed++;
	}
	if (n_changed == 0)
		gpc_document_say(doc, "all options at their defaults");
	if (n_recovered)
		gpc_document_say(doc, "the program recovered from %u other failure%s", n_recovered,
			n_recovered == 1 ? "" : "s");
	gpc_document_close(doc);
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
	gpc_page_begin(report, "oom");
	show_head(report, &oom, &device);
	gpc_failure_show(&failure);
	show_request(report, &oom);
	gpc_torch_tell_at(report, &oom);
	show_balance(report, &oom);
	show_holders(report, &oom);
	gpc_tag_rows_show(report, oom.device, &oom, "at that moment");
	show_neighbours(report, &oom);
	show_tried(report, &oom);
	show_setup(report);
	gpc_page_notes(report);
	gpc_document_end(report->doc);
	return GPC_EXIT_MADE;
}
