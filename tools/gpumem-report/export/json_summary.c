/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON document: the holders of each GPU with their whole stacks, and its history. */
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/output/json.h"

static void add_holders(struct json_object *object, const struct gpc_report *report,
	const struct gpc_export_samples *samples, int32_t ordinal)
{
	struct json_object *array = gpc_json_add(object, "holders", json_object_new_array());

	for (size_t i = 0; i < samples->n; i++) {
		const struct gpc_export_sample *sample = &samples->rows[i];
		struct json_object *row;

		if (sample->device != ordinal)
			continue;
		row = gpc_json_row(array);
		gpc_json_bytes(row, "live_bytes", sample->bytes);
		gpc_json_bytes(row, "blocks",
			sample->is_rest || sample->is_cache ? GPUCACHE_UNKNOWN : sample->n_blocks);
		gpc_json_text(row, "kind", sample->what);
		gpc_json_bool(row, "is_rest", sample->is_rest);
		gpc_json_bool(row, "is_torch_cache", sample->is_cache);
		json_object_object_add(row, "stack", gpc_json_stack(report, sample->stack));
	}
}

static void add_history(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal)
{
	struct json_object *array = gpc_json_add(object, "history", json_object_new_array());
	struct gpc_history_view history;

	(void)gpc_recording_find_history(report->recording, ordinal, &history);
	for (size_t p = 0; p < history.n_points; p++) {
		struct json_object *row = gpc_json_row(array);

		gpc_json_bytes(row, "time_ns", history.points[p].time_ns);
		gpc_json_point(row, &history, p);
	}
}

enum gpc_exit gpc_export_json(struct gpc_report *report)
{
	struct json_object *root = gpc_json_begin(report, "export");
	struct gpc_export_samples samples;
	struct gpucache_device device;
	struct json_object *array;

	gpc_export_samples_create(&samples, report);
	gpc_json_text(root, "moment", gpc_export_moment(report));
	gpc_json_bytes(root, "start_monotonic_ns", report->recording->header.start_monotonic_ns);
	array = gpc_json_add(root, "devices", json_object_new_array());
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		struct json_object *object = gpc_json_device(&device);

		json_object_array_add(array, object);
		add_holders(object, report, &samples, device.ordinal);
		add_history(object, report, device.ordinal);
	}
	gpc_json_end(report, root);
	gpc_export_samples_fini(&samples);
	return GPC_EXIT_MADE;
}
