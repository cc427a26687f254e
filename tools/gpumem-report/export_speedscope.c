/* SPDX-License-Identifier: Apache-2.0 */
/* Speedscope's own JSON: one sampled profile a GPU, in bytes. */
#include "gpucache_version.h"
#include "tools/gpumem-report/export.h"
#include "tools/gpumem-report/json.h"

struct scope {
	struct json_object *frames;
	struct json_object *numbers; /* of a frame, by its name */
};

static struct json_object *frame_number(
	struct scope *scope, const char *name, const struct gpc_frame *frame)
{
	struct json_object *number;
	struct json_object *object;

	if (json_object_object_get_ex(scope->numbers, name, &number))
		return json_object_get(number);
	number = json_object_new_uint64(json_object_array_length(scope->frames));
	object = json_object_new_object();
	gpc_json_text(object, "name", name);
	if (frame && frame->file) {
		gpc_json_text(object, "file", frame->file);
		if (frame->line)
			gpc_json_bytes(object, "line", frame->line);
	}
	json_object_array_add(scope->frames, object);
	json_object_object_add(scope->numbers, name, json_object_get(number));
	return number;
}

static struct json_object *path_of(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_sample *sample)
{
	struct json_object *path = json_object_new_array();
	size_t depth = gpc_export_depth(report, sample);

	/* The GPU is the profile's name already. */
	for (size_t i = 1; i < depth; i++) {
		char buf[GPC_EXPORT_NAME_SIZE];
		struct gpc_text text = gpc_text_init(buf, sizeof buf);
		const struct gpc_frame *frame = gpc_export_name(report, sample, i, &text);

		json_object_array_add(path, frame_number(scope, buf, frame));
	}
	return path;
}

static struct json_object *profile_of(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_samples *samples, int32_t ordinal)
{
	struct json_object *profile = json_object_new_object();
	struct json_object *paths = json_object_new_array();
	struct json_object *weights = json_object_new_array();
	uint64_t total = 0;
	char name[80];

	for (size_t i = 0; i < samples->n; i++) {
		const struct gpc_export_sample *sample = &samples->rows[i];

		if (sample->device != ordinal)
			continue;
		json_object_array_add(paths, path_of(scope, report, sample));
		json_object_array_add(weights, json_object_new_uint64(sample->bytes));
		total = gpc_bytes_add(total, sample->bytes);
	}
	snprintf(name, sizeof name, "GPU %d, %s", ordinal, gpc_export_moment(report));
	gpc_json_text(profile, "type", "sampled");
	gpc_json_text(profile, "name", name);
	gpc_json_text(profile, "unit", "bytes");
	gpc_json_bytes(profile, "startValue", 0);
	gpc_json_bytes(profile, "endValue", total);
	json_object_object_add(profile, "samples", paths);
	json_object_object_add(profile, "weights", weights);
	return profile;
}

enum gpc_exit gpc_export_speedscope(struct gpc_report *report)
{
	struct json_object *root = json_object_new_object();
	struct json_object *shared = json_object_new_object();
	struct json_object *profiles = json_object_new_array();
	struct scope scope = { json_object_new_array(), json_object_new_object() };
	struct gpc_export_samples samples;
	struct gpucache_device device;
	enum gpc_status status = gpc_export_samples_create(&samples, report);

	gpc_json_text(root, "$schema", "https://www.speedscope.app/file-format-schema.json");
	gpc_json_text(root, "exporter", "gpumem-report@" GPUCACHE_VERSION);
	gpc_json_text(root, "name", gpc_base_name(report->recording->path));
	gpc_json_bytes(root, "activeProfileIndex", 0);
	for (uint64_t i = 0; status == GPC_OK && gpc_export_next_device(report, &i, &device);)
		json_object_array_add(
			profiles, profile_of(&scope, report, &samples, device.ordinal));
	json_object_object_add(shared, "frames", scope.frames);
	json_object_object_add(root, "shared", shared);
	json_object_object_add(root, "profiles", profiles);
	json_object_put(scope.numbers);
	if (status != GPC_OK) {
		gpc_complain("no memory for the samples");
		json_object_put(root);
		return GPC_EXIT_IO;
	}
	gpc_json_end(report, root);
	gpc_export_samples_fini(&samples);
	return GPC_EXIT_MADE;
}
