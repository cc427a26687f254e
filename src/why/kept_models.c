/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's weights are made before its first pass: a stack that made one before a pass, and another one after it, made
 * two models.  With fewer than MODELS one of them may be an extra (an average, a teacher); a cache of models frees some.
 */
#include "why/kept_models.h"

#include <stdbool.h>

#include "base/saturating.h"
#include "why/purposes.h"

#define MODELS 3u

/* True if passes ran between the first block of this site of weights and its last: nearly one for each. */
static bool has_passes_between(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpucache_site *weights)
{
	struct gpucache_site site;

	for (uint64_t i = 0; i < evidence->n_sites; i++)
		if (gpc_evidence_site(evidence, i, oom->device, &site) &&
			site.first_ns > weights->first_ns && site.first_ns < weights->last_ns &&
			site.total_blocks + 1 >= weights->total_blocks &&
			gpc_purpose_of(gpc_evidence_frames(evidence, site.stack)) ==
				GPC_PURPOSE_ACTIVATIONS)
			return true;
	return false;
}

struct gpc_kept_models gpc_kept_models_find(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom)
{
	struct gpc_kept_models models = { 0 };
	struct gpucache_site site;

	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];

		if (holder->n_blocks < MODELS ||
			gpc_purpose_of(gpc_evidence_frames(evidence, holder->stack)) !=
				GPC_PURPOSE_WEIGHTS ||
			!gpc_evidence_find_site(evidence, oom->device, holder->stack, &site) ||
			holder->n_blocks < site.total_blocks / 8 * 7 ||
			!has_passes_between(evidence, oom, &site))
			continue;
		if (!models.stack) /* the largest is listed first */
			models.stack = holder->stack;
		models.held = gpc_bytes_add(models.held, holder->bytes);
		models.bytes = gpc_bytes_add(
			models.bytes, holder->bytes - holder->bytes / holder->n_blocks);
		models.n_blocks += holder->n_blocks;
	}
	return models;
}
