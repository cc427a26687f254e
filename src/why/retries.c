/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line that failed before in this thread, with another size, and held then what it holds now: data that are to stay are
 * seldom made by the line that runs out of memory and goes on.  But it may have taken all there was for a pool; then what
 * asks now is new.
 */
#include "why/retries.h"

/* Less of all that is held is no reason. */
#define PART 4u

/* True if the line that asks now had allocated before `time_ns`. */
static bool had_allocated(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom, uint64_t time_ns)
{
	struct gpucache_site site;

	return gpc_evidence_find_site(evidence, oom->device, oom->stack, &site) &&
	       site.total_blocks && site.first_ns <= time_ns;
}

static bool failed_before(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpucache_holder *holder)
{
	const struct gpucache_holder *then;
	struct gpucache_oom earlier;

	for (uint64_t number = oom->number; number-- > 1;) {
		if (!evidence->find_oom(evidence->self, number, &earlier) ||
			earlier.device != oom->device || earlier.thread != oom->thread ||
			earlier.stack != holder->stack || earlier.requested == oom->requested ||
			!had_allocated(evidence, oom, earlier.time_ns))
			continue;
		then = gpc_holder_of(&earlier, holder->stack);
		if (then && then->bytes >= holder->bytes / 4 * 3)
			return true;
	}
	return false;
}

void gpc_retries_find(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts)
{
	uint64_t total = oom->balance.requested + oom->balance.direct;

	if (oom->torch.reserved)
		return;
	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];

		if (holder->bytes < total / PART || !failed_before(evidence, oom, holder))
			continue;
		facts->retried_site = holder->stack;
		facts->retried_bytes = holder->bytes;
		return;
	}
}
