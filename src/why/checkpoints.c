/* SPDX-License-Identifier: Apache-2.0 */
/* From the outermost call of a module inwards, which is that of the model: the first one that runs more often. */
#include "why/checkpoints.h"

#include <string.h>

#include "base/saturating.h"
#include "why/libraries.h"
#include "why/purposes.h"
#include "why/torch_stacks.h"

/* The file of PyTorch that calls the forward() of a module. */
#define MODULE "/torch/nn/modules/module.py"

/* Of a model; those beyond are not looked at. */
#define MOST_LINES 32

/* Finds the next frame of the program inwards of `at`; -1: there is none. */
static int next_inwards(const struct gpc_stack_frames *stack, int at)
{
	while (--at >= 0 && !gpc_torch_is_of_program(&stack->frames[at]))
		;
	return at;
}

/* True if PyTorch calls a module between the two frames. */
static bool passes_module(const struct gpc_stack_frames *stack, int inner, int outer)
{
	while (++inner < outer)
		if (gpc_is_in_library(&stack->frames[inner], MODULE))
			return true;
	return false;
}

/* "Block" of "Block.forward" and "make.<locals>.Block.forward"; false: it is no forward() of a class. */
static bool class_of(const struct gpc_frame *frame, struct gpc_text *ret_name)
{
	static const char forward[] = ".forward";
	const size_t len = strlen(frame->function);
	size_t begin;

	if (len < sizeof forward ||
		strcmp(frame->function + len - (sizeof forward - 1), forward) != 0)
		return false;
	begin = len - (sizeof forward - 1);
	while (begin > 0 && frame->function[begin - 1] != '.')
		begin--;
	gpc_text_add(ret_name, "%.*s", (int)(len - (sizeof forward - 1) - begin),
		frame->function + begin);
	return true;
}

static bool passes(const struct gpc_stack_frames *stack, uint64_t place)
{
	for (size_t i = 0; stack && i < stack->n; i++)
		if (stack->frames[i].place == place)
			return true;
	return false;
}

/* A line of the program that makes activations, and the most blocks that one stack has made there: a first call has its own. */
struct line {
	uint64_t place;
	uint64_t n_blocks;
};

static void add_line(struct line lines[MOST_LINES], uint64_t place, uint64_t n_blocks)
{
	for (size_t i = 0; i < MOST_LINES; i++) {
		if (lines[i].place && lines[i].place != place)
			continue;
		lines[i].place = place;
		lines[i].n_blocks = gpc_larger(lines[i].n_blocks, n_blocks);
		return;
	}
}

/* How often the call at `place` was made at least: the fewest blocks of a line of activations behind it. */
static uint64_t count_calls(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom, uint64_t place)
{
	struct line lines[MOST_LINES] = { 0 };
	struct gpucache_site site;
	uint64_t least;

	for (uint64_t i = 0; i < evidence->n_sites; i++) {
		const struct gpc_stack_frames *stack;

		if (!gpc_evidence_site(evidence, i, oom->device, &site))
			continue;
		stack = gpc_evidence_frames(evidence, site.stack);
		if (passes(stack, place) && gpc_purpose_of(stack) == GPC_PURPOSE_ACTIVATIONS)
			add_line(lines, stack->frames[stack->site].place, site.total_blocks);
	}
	least = lines[0].n_blocks;
	for (size_t i = 1; i < MOST_LINES && lines[i].place; i++)
		least = gpc_smaller(least, lines[i].n_blocks);
	return least;
}

void gpc_checkpoint_place(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	uint32_t stack, struct gpc_text *ret_text)
{
	const struct gpc_stack_frames *frames = gpc_evidence_frames(evidence, stack);
	uint64_t n_passes = 0;
	int inner;

	for (int at = frames ? next_inwards(frames, (int)frames->n) : -1; at >= 0; at = inner) {
		uint64_t n_calls;
		GPC_TEXT(name, 100);

		inner = next_inwards(frames, at);
		if (inner < 0 || !passes_module(frames, inner, at))
			continue;
		n_calls = count_calls(evidence, oom, frames->frames[at].place);
		if (!n_passes) {
			n_passes = n_calls;
		} else if (n_calls / 2 >= n_passes && class_of(&frames->frames[inner], &name)) {
			gpc_text_add(ret_text, "each %s where it is called, ", name.buf);
			gpc_frames_chain(frames, (size_t)at, 0, ret_text);
			return;
		}
	}
}
