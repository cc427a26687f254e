/* SPDX-License-Identifier: Apache-2.0 */
/* A filter of blocks is tested on each block, a filter of stacks once on each stack: many blocks share a stack. */
#include "tools/gpumem-report/holders/filter.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/streams.h"
#include "tools/gpumem-report/holders/by_library.h"

/* What gpc_report.taken_stacks has for a stack; 0: not tested yet. */
enum {
	TAKEN = 1,
	LEFT_OUT,
};

const struct gpc_filter_row gpc_filter_rows[] = {
#define OF_BLOCK                         true
#define OF_STACK                         false
#define FILTER(name, value, is_of, help) { #name, value, help, is_of },
#include "tools/gpumem-report/holders/filters.def"
#undef OF_BLOCK
#undef OF_STACK
};

static const char *text_of(const struct gpc_options *options, size_t i)
{
	const char *text;

	memcpy(&text, (const char *)&options->filters + i * sizeof text, sizeof text);
	return text;
}

bool gpc_filter_is_set(const struct gpc_options *options)
{
	for (size_t i = 0; i < GPC_N_FILTERS; i++)
		if (text_of(options, i))
			return true;
	return false;
}

bool gpc_filter_is_of_blocks(const struct gpc_options *options)
{
	for (size_t i = 0; i < GPC_N_FILTERS; i++)
		if (text_of(options, i) && gpc_filter_rows[i].is_of_block)
			return true;
	return false;
}

void gpc_filter_describe(const struct gpc_options *options, struct gpc_text *ret_text)
{
	for (size_t i = 0; i < GPC_N_FILTERS; i++)
		if (text_of(options, i))
			gpc_text_add(
				ret_text, ", %s=%s", gpc_filter_rows[i].name, text_of(options, i));
}

static bool is_on_stack(const struct gpc_report *report, uint32_t id, const char *wanted)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, id);

	for (size_t i = 0; stack && i < stack->n; i++) {
		GPC_TEXT(text, 1200);

		gpc_frame_describe(&stack->frames[i], true, &text);
		if (strstr(text.buf, wanted))
			return true;
	}
	return false;
}

static bool takes_stack(const struct gpc_report *report, uint32_t id)
{
	const struct gpc_filters *filters = &report->options->filters;
	GPC_TEXT(text, 64);

	if (filters->library) {
		gpc_library_name(report->recording, id, &text);
		if (strcasecmp(text.buf, filters->library) != 0)
			return false;
	}
	return !filters->where || is_on_stack(report, id, filters->where);
}

bool gpc_filter_takes_stack(const struct gpc_report *report, uint32_t stack)
{
	uint64_t *answer;

	if (!report->options->filters.where && !report->options->filters.library)
		return true;
	if (!report->taken_stacks)
		return takes_stack(report, stack);
	answer = gpc_map_at(report->taken_stacks, UINT64_C(1) + stack);
	if (!*answer)
		*answer = takes_stack(report, stack) ? TAKEN : LEFT_OUT;
	return *answer == TAKEN;
}

bool gpc_filter_takes_block(const struct gpc_report *report, const struct gpucache_block *block)
{
	const struct gpc_filters *filters = &report->options->filters;
	GPC_TEXT(text, GPC_LABEL_SIZE);

	if (filters->thread && strtoul(filters->thread, NULL, 10) != block->thread)
		return false;
	if (filters->stream && !gpc_recording_is_stream(report->recording,
				       GPUCACHE_BLOCK_STREAM(block->flags), filters->stream))
		return false;
	if (filters->tag) {
		gpc_recording_add_tag(report->recording, block->tag, &text);
		if (!strstr(text.buf, filters->tag))
			return false;
	}
	return gpc_filter_takes_stack(report, block->stack);
}
