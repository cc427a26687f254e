/* SPDX-License-Identifier: Apache-2.0 */
#include "private_record.h"

TEST(an_oom_is_torn_until_it_is_committed)
{
	struct gpucache_oom *oom = gpc_record_oom_begin(&rec);

	assert_non_null(oom);
	assert_ptr_equal(oom, record_at(GPUCACHE_REGION_OOMS, 0));
	assert_int_equal(oom->seq % 2, 1);
	assert_int_equal(oom->number, 1);
	assert_int_equal(rec.header->state & GPUCACHE_STATE_OOM_SEEN, 0);
	gpc_record_oom_commit(&rec, oom);
	assert_int_equal(oom->seq, 2);
	assert_int_equal(rec.header->state & GPUCACHE_STATE_OOM_SEEN, GPUCACHE_STATE_OOM_SEEN);
}

TEST(the_ring_keeps_the_last_ones)
{
	for (unsigned i = 1; i <= GPUCACHE_MAX_OOMS + 3; i++) {
		struct gpucache_oom *oom = gpc_record_oom_begin(&rec);

		assert_int_equal(oom->requested, 0);
		oom->requested = i;
		gpc_record_oom_commit(&rec, oom);
	}
	for (unsigned i = 0; i < GPUCACHE_MAX_OOMS; i++) {
		const struct gpucache_oom *oom = record_at(GPUCACHE_REGION_OOMS, i);

		assert_int_equal(oom->requested, i < 3 ? GPUCACHE_MAX_OOMS + i + 1 : i + 1);
		assert_int_equal(oom->number, oom->requested);
	}
}

TEST(a_slot_that_is_being_filled_is_not_taken)
{
	struct gpucache_oom *first = gpc_record_oom_begin(&rec);

	for (unsigned i = 1; i < GPUCACHE_MAX_OOMS; i++)
		gpc_record_oom_commit(&rec, gpc_record_oom_begin(&rec));
	assert_null(gpc_record_oom_begin(&rec));
	gpc_record_oom_commit(&rec, NULL);
	gpc_record_oom_commit(&rec, first);
	assert_ptr_equal(gpc_record_oom_begin(&rec), first);
	assert_int_equal(first->number, GPUCACHE_MAX_OOMS + 1);
}

TEST(a_mark_reaches_its_oom_only)
{
	struct gpucache_oom *oom = gpc_record_oom_begin(&rec);

	gpc_record_oom_recover(&rec, 1, 0); /* not committed yet */
	assert_int_equal(oom->recovered, 0);
	gpc_record_oom_commit(&rec, oom);
	gpc_record_oom_recover(&rec, 0, 0);
	gpc_record_oom_recover(&rec, 1 + GPUCACHE_MAX_OOMS, 0);
	gpc_record_oom_say(&rec, 1 + GPUCACHE_MAX_OOMS);
	assert_int_equal(oom->recovered, 0);
	assert_int_equal(oom->reported, 0);
	gpc_record_oom_recover(&rec, 1, 0);
	assert_int_equal(oom->recovered, 1);
	assert_int_equal(oom->reported, 0);
	gpc_record_oom_say(&rec, 1); /* it ended the process after all */
	assert_int_equal(oom->recovered, 0);
	assert_int_equal(oom->reported, 1);
	assert_int_equal(oom->seq % 2, 0);
}

TEST(what_pytorch_says_reaches_its_oom_only)
{
	struct gpucache_oom told = { .number = 1,
		.verdict = GPUCACHE_VERDICT_FRAGMENTED,
		.strength = GPUCACHE_STRENGTH_LIKELY,
		.torch = { .requested = 1, .allocated = 2, .reserved = 3 } };
	struct gpucache_oom *oom = gpc_record_oom_begin(&rec);

	gpc_record_oom_set_torch(&rec, &told); /* not committed yet */
	gpc_record_oom_commit(&rec, oom);
	told.number = 0;
	gpc_record_oom_set_torch(&rec, &told);
	told.number = 1 + GPUCACHE_MAX_OOMS;
	gpc_record_oom_set_torch(&rec, &told);
	assert_int_equal(oom->torch.reserved, 0);
	told.number = 1;
	gpc_record_oom_set_torch(&rec, &told);
	assert_memory_equal(&oom->torch, &told.torch, sizeof told.torch);
	assert_int_equal(oom->verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(oom->strength, GPUCACHE_STRENGTH_LIKELY);
	assert_int_equal(oom->seq % 2, 0);
}

TEST(a_cause_reaches_its_oom_only)
{
	struct gpucache_oom *oom = gpc_record_oom_begin(&rec);

	oom->verdict = GPUCACHE_VERDICT_EXHAUSTED;
	gpc_record_oom_commit(&rec, oom);
	gpc_record_oom_set_cause(
		&rec, 1 + GPUCACHE_MAX_OOMS, GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY, 6);
	assert_int_equal(oom->verdict, GPUCACHE_VERDICT_EXHAUSTED);
	gpc_record_oom_set_cause(&rec, 1, GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY, 6);
	assert_int_equal(oom->verdict, GPUCACHE_VERDICT_GROWTH);
	assert_int_equal(oom->strength, GPUCACHE_STRENGTH_LIKELY);
	assert_int_equal(oom->also, 6);
	assert_int_equal(oom->seq % 2, 0);
}
