/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory is missing is told by which is more: what the process has itself, or what else is in use. */
#include "oom/gave_up.h"

#include "base/bytes.h"
#include "oom/lines.h"
#include "why/why.h"

#define MAX_LINES 10u
#define SENTENCE  400

void gpc_gave_up_write(const struct gpc_gave_up *gave_up, struct gpc_text *ret_text)
{
	const uint64_t used = gpc_bytes_less(gave_up->total, gave_up->available);
	const uint64_t others = gpc_bytes_less(used, gave_up->own);
	const bool is_theirs = others > gave_up->own;
	struct gpc_lines lines = { .out = ret_text,
		.max_lines = MAX_LINES,
		.max_bytes = MAX_LINES * (GPC_LINES_WIDTH + 1) };
	GPC_TEXT(words, SENTENCE);

	gpc_text_add(&words, "gpucache: GAVE UP on GPU %d (", gave_up->device);
	if (gave_up->gpu_name && *gave_up->gpu_name)
		gpc_text_add(&words, "%.40s, ", gave_up->gpu_name);
	gpc_text_add_amounts(&words, "@)", gave_up->total);
	gpc_text_add(&words, " - pid %u, %s", gave_up->pid, gave_up->program);
	gpc_lines_put(&lines, words.buf, words.len);

	gpc_text_clear(&words);
	gpc_text_add(&words, "%s (%s): ",
		gpc_cause_word(is_theirs ? GPUCACHE_VERDICT_NEIGHBOUR : GPUCACHE_VERDICT_EXHAUSTED),
		gpc_strength_word(GPUCACHE_STRENGTH_POSSIBLE));
	gpc_text_add_amounts(&words,
		"no request failed; it ended with an error after it had read that @ is free; ",
		gave_up->available);
	if (is_theirs)
		gpc_text_add_amounts(
			&words, "@ is held by other processes, or not tracked", others);
	else
		gpc_text_add_amounts(&words, "@ is held by this process", gave_up->own);
	gpc_lines_put_words(&lines, "WHY", words.buf, words.len);

	gpc_text_clear(&words);
	gpc_text_add(&words, "by %s", gave_up->site);
	if (*gave_up->site)
		gpc_lines_put_words(&lines, "READ", words.buf, words.len);

	gpc_text_clear(&words);
	gpc_text_add(&words, "with %s: ", gave_up->sizer->name);
	gpc_sizer_say(gave_up->sizer, gave_up->available, gave_up->total, &words);
	if (is_theirs)
		gpc_text_add(&words, "; or end what else uses the GPU (nvidia-smi)");
	gpc_lines_put_words(&lines, "TRY", words.buf, words.len);
}
