/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the call sites: those of the function, and those of backward passes. */
#include "why/evaluation.h"

#include <string.h>

#include "base/bytes.h"
#include "why/purposes.h"

/*
 * With a backward pass to come some third stays, or more: a convolution's result goes once the activation behind it has its
 * own.  Without one, as many as skip layers: in a U-net a quarter.
 */
#define MIN_KEPT 5

int gpc_evaluation_find(const struct gpc_stack_frames *stack)
{
	static const char *const words[] = { "eval", "valid", "test", "infer", "predict",
		"generate", "sample" };

	for (size_t i = 0; i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (!frame->is_python || frame->is_library || !frame->function)
			continue;
		for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
			if (strstr(frame->function, words[w]))
				return (int)i;
	}
	return -1;
}

static bool is_same_function(const struct gpc_frame *a, const struct gpc_frame *b)
{
	return strcmp(a->function, b->function) == 0 && a->file && b->file &&
	       strcmp(a->file, b->file) == 0;
}

bool gpc_evaluation_keeps(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpc_frame *function)
{
	uint64_t first_ns = UINT64_MAX;
	uint64_t gradient_ns = 0;
	uint64_t n_live = 0;
	uint64_t live = 0;
	uint64_t made = 0;
	struct gpucache_site site;

	for (uint64_t i = 0; i < evidence->n_sites; i++) {
		const struct gpc_stack_frames *frames;
		const struct gpucache_holder *holder;
		enum gpc_purpose purpose;
		int at;

		if (!gpc_evidence_site(evidence, i, oom->device, &site))
			continue;
		frames = gpc_evidence_frames(evidence, site.stack);
		purpose = gpc_purpose_of(frames);
		if (purpose == GPC_PURPOSE_GRADIENTS)
			gradient_ns = gpc_larger(gradient_ns, site.last_ns);
		at = frames ? gpc_evaluation_find(frames) : -1;
		if (at < 0 || purpose != GPC_PURPOSE_ACTIVATIONS ||
			!is_same_function(&frames->frames[at], function))
			continue;
		first_ns = gpc_smaller(first_ns, site.first_ns);
		holder = gpc_holder_of(oom, site.stack);
		n_live += holder ? holder->n_blocks : 0;
		live = gpc_bytes_add(live, holder ? holder->bytes : 0);
		made = gpc_bytes_add(made, site.total_bytes);
	}
	return n_live >= MIN_KEPT && live >= made / 10 * 3 && gradient_ns && gradient_ns < first_ns;
}
