/* SPDX-License-Identifier: Apache-2.0 */
/* Speedscope's own JSON, streamed: one sampled profile per GPU, in bytes; the frames come last. */
#include <stdlib.h>

#include "format/memory.h"
#include "gpucache_version.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/output/json.h"

struct scope {
	const struct gpc_report *report;
	const struct gpc_export_samples *samples;
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

static unsigned frame_number(struct scope *scope, const struct gpc_export_sample *sample, size_t i)
{
	const struct gpc_frame *frame = gpc_export_frame(scope->report, sample, i);
	GPC_TEXT(text, GPC_EXPORT_NAME_SIZE);
	unsigned number;

	if (!gpc_export_number(&scope->numbers, scope->report, sample, i, &text, &number))
		return number;
	fputs(number ? ",\n{" : "{", scope->frames);
	put_text(scope->frames, "name", text.buf);
	if (frame && frame->file) {
		fputs(", ", scope->frames);
		put_text(scope->frames, "file", frame->file);
		if (frame->line)
			fprintf(scope->frames, ", \"line\": %u", (unsigned)frame->line);
	}
	fputc('}', scope->frames);
	return number;
}

static void put_path(struct scope *scope, const struct gpc_export_sample *sample)
{
	size_t depth = gpc_export_depth(scope->report, sample);

	/* Name 0, the GPU, is in the profile's name. */
	for (size_t i = 1; i < depth; i++)
		fprintf(scope->out, "%c%u", i > 1 ? ',' : '[', frame_number(scope, sample, i));
	fputc(']', scope->out);
}

/* Writes the paths, or the bytes, of a device's samples. */
static uint64_t put_samples(struct scope *scope, int32_t ordinal, bool is_paths)
{
	const char *before = "";
	uint64_t total = 0;

	for (size_t i = 0; i < scope->samples->n; i++) {
		const struct gpc_export_sample *sample = &scope->samples->rows[i];

		if (sample->device != ordinal)
			continue;
		fputs(before, scope->out);
		before = ",\n";
		if (is_paths)
			put_path(scope, sample);
		else
			fprintf(scope->out, "%llu", (unsigned long long)sample->bytes);
		total = gpc_bytes_add(total, sample->bytes);
	}
	return total;
}

static void put_profile(struct scope *scope, int32_t ordinal)
{
	char name[80];
	uint64_t total;

	snprintf(name, sizeof name, "GPU %d, %s", ordinal, gpc_export_moment(scope->report));
	fputs("{\"type\": \"sampled\", ", scope->out);
	put_text(scope->out, "name", name);
	fputs(", \"unit\": \"bytes\", \"startValue\": 0,\n\"samples\": [", scope->out);
	(void)put_samples(scope, ordinal, true);
	fputs("],\n\"weights\": [", scope->out);
	total = put_samples(scope, ordinal, false);
	fprintf(scope->out, "],\n\"endValue\": %llu}", (unsigned long long)total);
}

static void put_file(struct scope *scope)
{
	struct gpucache_device device;
	const char *before = "";

	fputs("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\": \"gpumem-report@" GPUCACHE_VERSION "\", \"activeProfileIndex\": 0, ",
		scope->out);
	put_text(scope->out, "name", gpc_base_name(scope->report->recording->path));
	fputs(",\n\"profiles\": [", scope->out);
	for (uint64_t i = 0; gpc_report_next_device(scope->report, &i, &device);) {
		fputs(before, scope->out);
		put_profile(scope, device.ordinal);
		before = ",\n";
	}
	fputs("],\n\"shared\": {\"frames\": [", scope->out);
}

enum gpc_exit gpc_export_speedscope(struct gpc_report *report)
{
	char *frames = NULL;
	size_t size = 0;
	struct gpc_export_samples samples;
	struct scope scope = { .report = report,
		.samples = &samples,
		.out = report->paper.out,
		.frames = gpc_checked(open_memstream(&frames, &size)) };

	gpc_export_samples_create(&samples, report);
	put_file(&scope);
	fclose(scope.frames);
	fprintf(scope.out, "%s]}}\n", frames);
	free(frames);
	gpc_export_numbers_fini(&scope.numbers);
	gpc_export_samples_fini(&samples);
	return GPC_EXIT_MADE;
}
