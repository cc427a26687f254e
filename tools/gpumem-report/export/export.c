/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the holdings of a moment into samples with paths of names; the formats only write them. */
#include "tools/gpumem-report/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "tools/gpumem-report/holders/holdings.h"

const char *gpc_export_moment(const struct gpc_report *report)
{
	if (report->options->moment == GPC_AT_PEAK)
		return "at the peak";
	if (report->options->moment == GPC_AT_OOM)
		return "when memory ran out";
	return report->recording->run_state == GPC_RUN_ALIVE ? "live now" : "live at the end";
}

static void add_holdings(
	struct gpc_export_samples *samples, const struct gpc_holdings *holdings, int32_t ordinal)
{
	struct gpc_export_sample *rows =
		gpc_resize(samples->rows, samples->n + holdings->n + 2, sizeof *rows);
	const uint64_t rest = gpc_bytes_add(holdings->rest_bytes, holdings->refused_bytes);

	samples->rows = rows;
	for (size_t i = 0; i < holdings->n; i++) {
		const struct gpc_row *row = &holdings->rows[i];

		rows[samples->n++] = (struct gpc_export_sample){ .device = ordinal,
			.stack = row->id,
			.what = row->kind ? gpc_kind_words(row->kind) : NULL,
			.bytes = row->bytes,
			.n_blocks = row->n_blocks };
	}
	if (rest)
		rows[samples->n++] = (struct gpc_export_sample){
			.device = ordinal, .is_rest = true, .bytes = rest
		};
	if (holdings->torch_bytes)
		rows[samples->n++] = (struct gpc_export_sample){
			.device = ordinal, .is_cache = true, .bytes = holdings->torch_bytes
		};
}

void gpc_export_samples_create(struct gpc_export_samples *samples, const struct gpc_report *report)
{
	struct gpucache_device device;

	*samples = (struct gpc_export_samples){ 0 };
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		struct gpc_holdings holdings;
		struct gpc_moment moment;

		gpc_moment_find(&moment, report, device.ordinal);
		gpc_holdings_at(&holdings, report, &moment);
		add_holdings(samples, &holdings, device.ordinal);
		gpc_holdings_fini(&holdings);
	}
}

void gpc_export_samples_fini(struct gpc_export_samples *samples)
{
	free(samples->rows);
	*samples = (struct gpc_export_samples){ 0 };
}

static const struct gpc_stack_frames *frames_of(
	const struct gpc_report *report, const struct gpc_export_sample *sample)
{
	const struct gpc_stack_frames *stack =
		sample->stack ? gpc_frames_find(report->frames, sample->stack) : NULL;

	return stack && stack->n ? stack : NULL;
}

size_t gpc_export_depth(const struct gpc_report *report, const struct gpc_export_sample *sample)
{
	const struct gpc_stack_frames *stack = frames_of(report, sample);

	return 1 + (stack ? stack->n : 1) + (sample->what != NULL);
}

const struct gpc_frame *gpc_export_frame(
	const struct gpc_report *report, const struct gpc_export_sample *sample, size_t i)
{
	const struct gpc_stack_frames *stack = frames_of(report, sample);

	return stack && i > 0 && i <= stack->n ? &stack->frames[stack->n - i] : NULL;
}

void gpc_export_name(const struct gpc_report *report, const struct gpc_export_sample *sample,
	size_t i, struct gpc_text *ret_text)
{
	const struct gpc_frame *frame = gpc_export_frame(report, sample, i);

	if (i == 0)
		gpc_text_add(ret_text, "GPU %d", sample->device);
	else if (frame)
		gpc_frame_describe(frame, false, ret_text);
	else if (sample->what && i + 1 == gpc_export_depth(report, sample))
		gpc_text_add(ret_text, "(%s)", sample->what);
	else if (sample->is_rest)
		gpc_text_add(ret_text, "(others, not listed)");
	else if (sample->is_cache)
		gpc_text_add(ret_text, "(PyTorch's cache, in no tensor)");
	else
		gpc_frames_site(report->frames, sample->stack, ret_text);
}

bool gpc_export_number(struct gpc_export_numbers *numbers, const struct gpc_report *report,
	const struct gpc_export_sample *sample, size_t i, struct gpc_text *ret_text,
	unsigned *ret_number)
{
	const struct gpc_frame *frame = gpc_export_frame(report, sample, i);
	uint64_t *known = frame ? gpc_map_at(&numbers->by_place, frame->place) : NULL;
	uint64_t none = 0;
	bool is_new = false;

	known = known ? known : &none;
	if (!*known) {
		gpc_export_name(report, sample, i, ret_text);
		*known = gpc_map_number(&numbers->by_name, ret_text->buf, &is_new) + 1;
	}
	*ret_number = (unsigned)*known - 1;
	return is_new;
}

void gpc_export_numbers_fini(struct gpc_export_numbers *numbers)
{
	gpc_map_fini(&numbers->by_name);
	gpc_map_fini(&numbers->by_place);
}
