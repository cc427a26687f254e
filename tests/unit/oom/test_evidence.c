/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "oom/evidence.h"
#include "scene.h"

static void evidence_has_the_numbers_of_its_verdict(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();
	static const char *const wanted[GPUCACHE_VERDICT_COUNT] = {
		[GPUCACHE_VERDICT_NONE] = "8.00 GiB was asked for; the numbers do not say",
		[GPUCACHE_VERDICT_IMPOSSIBLE] = "the whole GPU has 100.00 GiB",
		[GPUCACHE_VERDICT_LIMIT] = "pass the limit of 95.00 GiB",
		[GPUCACHE_VERDICT_FRAGMENTED] = "largest piece 1.00 GiB",
		[GPUCACHE_VERDICT_PENDING] = "2.00 GiB was freed but the GPU",
		[GPUCACHE_VERDICT_ROUNDING] = "3.00 GiB is lost to rounding 90.00 GiB",
		[GPUCACHE_VERDICT_NEIGHBOUR] = "3.00 GiB is held by other processes, 3.00 GiB more",
		[GPUCACHE_VERDICT_UNTRACKED] = "2.00 GiB is held by this process and not tracked",
		[GPUCACHE_VERDICT_GROWTH] =
			"grew by 7.00 GiB in the later part of the run, in 40 blocks",
		[GPUCACHE_VERDICT_SPIKE] = "101.00 GiB is needed now, 11.00 GiB was usual",
		[GPUCACHE_VERDICT_EXHAUSTED] = "84.00 GiB is live here",
		[GPUCACHE_VERDICT_DRIVER] =
			"8.00 GiB with 12.00 GiB free before and 13.00 GiB free",
		[GPUCACHE_VERDICT_CONTEXTS] = "3 contexts of this process hold 6.00 GiB",
		[GPUCACHE_VERDICT_MANAGED] = "9.00 GiB is managed memory, of which",
		[GPUCACHE_VERDICT_PREALLOCATED] = "8.00 GiB was asked for",
		[GPUCACHE_VERDICT_PINNED] = "17.00 GiB of the host's memory is pinned",
		[GPUCACHE_VERDICT_WRONG_POOL] = "14.00 GiB is free in one piece in another pool",
	};

	(void)state;
	s.oom.limit = 95 * GPC_GIB;
	s.oom.balance.pending = 2 * GPC_GIB;
	s.oom.balance.rounding = 3 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	s.oom.balance.device_free = 5 * GPC_GIB;
	s.oom.limit = 95 * GPC_GIB;
	s.oom.growth_bytes = 7 * GPC_GIB;
	s.facts.growth_blocks = 40;
	s.facts.n_contexts = 3;
	s.facts.host_bytes = 17 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 6 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 9 * GPC_GIB;
	s.facts.usual_live = 11 * GPC_GIB;
	s.facts.free_before = 12 * GPC_GIB;
	s.facts.free_after = 13 * GPC_GIB;
	s.facts.largest_other_pool = 14 * GPC_GIB;
	for (unsigned v = 0; v < GPUCACHE_VERDICT_COUNT; v++) {
		char buf[256];
		struct gpc_text text = gpc_text_init(buf, sizeof buf);

		/* A limit that refuses would change the shortage of the others. */
		s.oom.limit = v == GPUCACHE_VERDICT_LIMIT ? 95 * GPC_GIB : 0;
		s.oom.verdict = (uint8_t)v;
		gpc_evidence_write(&s.oom, &s.facts, &text);
		if (!strstr(buf, wanted[v]))
			fail_msg("verdict %u: %s", v, buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_has_the_numbers_of_its_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
