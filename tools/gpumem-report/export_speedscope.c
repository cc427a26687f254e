/* SPDX-License-Identifier: Apache-2.0 */
/* Speedscope's own JSON, streamed: one sampled profile per GPU, in bytes; the frames come last. */
#include <stdlib.h>

#include "format/memory.h"
#include "gpucache_version.h"
#include "tools/gpumem-report/export.h"
#include "tools/gpumem-report/json.h"

struct scope {
	FILE *out;
	struct gpc_export_numbers numbers; /* of frames */
	FILE *frames;                      /* their objects, in the order of the numbers */
};

static void put_text(FILE *out, const char *key, const char *text)
{
	struct json_object *string = json_object_new_string(text);

	fprintf(out, "\"%s\": %s", key,
		json_object_to_json_string_ext(string, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(string);
}

static unsigned frame_number(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_sample *sample, size_t i)
{
	const struct gpc_frame *frame = gpc_export_frame(report, sample, i);
	char buf[GPC_EXPORT_NAME_SIZE];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);
	unsigned number;

	if (!gpc_export_number(&scope->numbers, report, sample, i, &text, &number))
		return number;
	fputs(number ? ",\n{" : "{", scope->frames);
	put_text(scope->frames, "name", buf);
	if (frame && frame->file) {
		fputs(", ", scope->frames);
		put_text(scope->frames, "file", frame->file);
		if (frame->line)
			fprintf(scope->frames, ", \"line\": %u", (unsigned)frame->line);
	}
	fputc('}', scope->frames);
	return number;
}

static void put_path(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_sample *sample)
{
	size_t depth = gpc_export_depth(report, sample);

	/* Name 0, the GPU, is in the profile's name. */
	for (size_t i = 1; i < depth; i++)
		fprintf(scope->out, "%c%u", i > 1 ? ',' : '[',
			frame_number(scope, report, sample, i));
	fputc(']', scope->out);
}

/* Writes the paths, or the bytes, of a device's samples. */
static uint64_t put_samples(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_samples *samples, int32_t ordinal, bool is_paths)
{
	const char *before = "";
	uint64_t total = 0;

	for (size_t i = 0; i < samples->n; i++) {
		const struct gpc_export_sample *sample = &samples->rows[i];

		if (sample->device != ordinal)
			continue;
		fputs(before, scope->out);
		before = ",\n";
		if (is_paths)
			put_path(scope, report, sample);
		else
			fprintf(scope->out, "%llu", (unsigned long long)sample->bytes);
		total = gpc_bytes_add(total, sample->bytes);
	}
	return total;
}

static void put_profile(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_samples *samples, int32_t ordinal)
{
	char name[80];
	uint64_t total;

	snprintf(name, sizeof name, "GPU %d, %s", ordinal, gpc_export_moment(report));
	fputs("{\"type\": \"sampled\", ", scope->out);
	put_text(scope->out, "name", name);
	fputs(", \"unit\": \"bytes\", \"startValue\": 0,\n\"samples\": [", scope->out);
	(void)put_samples(scope, report, samples, ordinal, true);
	fputs("],\n\"weights\": [", scope->out);
	total = put_samples(scope, report, samples, ordinal, false);
	fprintf(scope->out, "],\n\"endValue\": %llu}", (unsigned long long)total);
}

static void put_file(struct scope *scope, const struct gpc_report *report,
	const struct gpc_export_samples *samples)
{
	struct gpucache_device device;
	const char *before = "";

	fputs("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\": \"gpumem-report@" GPUCACHE_VERSION "\", \"activeProfileIndex\": 0, ",
		scope->out);
	put_text(scope->out, "name", gpc_base_name(report->recording->path));
	fputs(",\n\"profiles\": [", scope->out);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		fputs(before, scope->out);
		put_profile(scope, report, samples, device.ordinal);
		before = ",\n";
	}
	fputs("],\n\"shared\": {\"frames\": [", scope->out);
}

enum gpc_exit gpc_export_speedscope(struct gpc_report *report)
{
	char *frames = NULL;
	size_t size = 0;
	struct scope scope = { .out = report->paper.out,
		.frames = gpc_checked(open_memstream(&frames, &size)) };
	struct gpc_export_samples samples;

	gpc_export_samples_create(&samples, report);
	put_file(&scope, report, &samples);
	fclose(scope.frames);
	fprintf(scope.out, "%s]}}\n", frames);
	free(frames);
	gpc_export_numbers_fini(&scope.numbers);
	gpc_export_samples_fini(&samples);
	return GPC_EXIT_MADE;
}
