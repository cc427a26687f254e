/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON document: the holders of each GPU with their whole stacks, and its history. */
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/output/stack.h"

static void show_holders(
	const struct gpc_report *report, const struct gpc_export_samples *samples, int32_t ordinal)
{
	static const struct gpc_column columns[] = { { "live_bytes" }, { "blocks" }, { "kind" },
		{ "is_rest" }, { "is_torch_cache" } };
	static const struct gpc_section section = { "holders", NULL, GPC_COLUMNS(columns) };

	gpc_document_open(report->doc, &section);
	for (size_t i = 0; i < samples->n; i++) {
		const struct gpc_export_sample *sample = &samples->rows[i];

		if (sample->device != ordinal)
			continue;
		gpc_document_row(report->doc, gpc_bytes(sample->bytes),
			gpc_count(sample->is_rest || sample->is_cache ? GPUCACHE_UNKNOWN
								      : sample->n_blocks),
			gpc_name(sample->what), gpc_truth(sample->is_rest),
			gpc_truth(sample->is_cache));
		gpc_stack_show(report, sample->stack, 0);
	}
	gpc_document_close(report->doc);
}

static void show_history(const struct gpc_report *report, int32_t ordinal)
{
	static const struct gpc_column columns[] = { { "time_ns" }, GPC_POINT_COLUMNS };
	static const struct gpc_section section = { "history", NULL, GPC_COLUMNS(columns) };
	struct gpc_history_view history;

	(void)gpc_recording_find_history(report->recording, ordinal, &history);
	gpc_document_open(report->doc, &section);
	for (size_t i = 0; i < history.n_points; i++)
		gpc_document_row(report->doc, gpc_number(history.points[i].time_ns),
			GPC_POINT_CELLS(&history, i));
	gpc_document_close(report->doc);
}

enum gpc_exit gpc_export_json(struct gpc_report *report)
{
	struct gpc_document *doc = report->doc;
	struct gpc_export_samples samples;
	struct gpucache_device device;

	doc->renderer = &gpc_render_json;
	gpc_export_samples_create(&samples, report);
	gpc_page_begin(report, "export");
	gpc_document_member(doc, "moment", gpc_name(gpc_export_moment(report)));
	gpc_document_member(doc, "start_monotonic_ns",
		gpc_number(report->recording->header.start_monotonic_ns));
	gpc_document_open(doc, &gpc_page_devices);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		gpc_page_open_device(doc, &device);
		show_holders(report, &samples, device.ordinal);
		show_history(report, device.ordinal);
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
	gpc_document_end(doc);
	gpc_export_samples_fini(&samples);
	return GPC_EXIT_MADE;
}
