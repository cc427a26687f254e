/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about each cause, and that the table behind it is whole. */
#include "tests/unit/unit.h"

#include "tests/unit/why/scene.h"

static char said[1024];

static void add_number(void *self, uint32_t stack, struct gpc_text *text)
{
	gpc_text_add(text, "model.py:%u", stack);
}

static const struct gpc_site_names by_number = { .add = add_number };

TEST(every_row_of_the_table_is_sound)
{
	const char *wrong = NULL;
	const char *row = gpc_sentences_check(&wrong);

	if (row)
		fail_msg("\"%s\" %s", row, wrong);
}

TEST(what_is_assumed_is_not_said_to_be_missing)
{
	struct scene s = scene_of_an_exhausted_gpu();
	GPC_TEXT(text, 400);

	s.oom.kind = GPUCACHE_KIND_CONTEXT;
	judge(&s);
	gpc_say_short(&text, &s.facts, NULL);
	assert_non_null(
		strstr(text.buf, "a context or a module asked for, assumed to need 8.00 GiB"));
	assert_null(strstr(text.buf, "8.00 GiB asked for"));
	assert_null(strstr(text.buf, "by 4.00 GiB"));
}

TEST(because_has_the_numbers_of_its_cause)
{
	struct scene s = scene_of_an_exhausted_gpu();
	static const char *const wanted[GPUCACHE_VERDICT_COUNT] = {
		[GPUCACHE_VERDICT_NONE] = "8.00 GiB was asked for; the numbers do not say",
		[GPUCACHE_VERDICT_IMPOSSIBLE] = "the whole GPU has 100.00 GiB",
		[GPUCACHE_VERDICT_LIMIT] = "pass the limit of 95.00 GiB",
		[GPUCACHE_VERDICT_FRAGMENTED] = "largest piece 1.00 GiB",
		[GPUCACHE_VERDICT_PENDING] = "2.00 GiB was freed but the GPU",
		[GPUCACHE_VERDICT_ROUNDING] = "3.00 GiB is lost to rounding live allocations up",
		[GPUCACHE_VERDICT_NEIGHBOUR] = "3.00 GiB is held by other processes, 3.00 GiB more",
		[GPUCACHE_VERDICT_UNTRACKED] = "2.00 GiB is held by this process and not tracked",
		[GPUCACHE_VERDICT_GROWTH] =
			"grew by 7.00 GiB in the later part of the run, and keeps 9.00 GiB in 40 "
			"blocks",
		[GPUCACHE_VERDICT_SPIKE] = "8.00 GiB was asked for on top of 84.00 GiB; 11.00 GiB",
		[GPUCACHE_VERDICT_EXHAUSTED] = "84.00 GiB is held here",
		[GPUCACHE_VERDICT_DRIVER] =
			"8.00 GiB with 12.00 GiB free before and 13.00 GiB free",
		[GPUCACHE_VERDICT_CONTEXTS] = "3 contexts of this process hold 6.00 GiB",
		[GPUCACHE_VERDICT_MANAGED] = "9.00 GiB is managed memory, of which",
		[GPUCACHE_VERDICT_PREALLOCATED] =
			"a framework or a pool preallocated the missing memory",
		[GPUCACHE_VERDICT_PINNED] = "17.00 GiB of the host's memory is pinned",
		[GPUCACHE_VERDICT_WRONG_POOL] = "14.00 GiB is free in one piece in another pool",
	};

	s.oom.balance.pending = 2 * GPC_GIB;
	s.oom.balance.rounding = 3 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	s.oom.balance.device_free = 5 * GPC_GIB;
	s.oom.growth_bytes = 7 * GPC_GIB;
	s.oom.growth_held = 9 * GPC_GIB;
	s.oom.growth_blocks = 40;
	s.oom.n_contexts = 3;
	s.oom.host_bytes = 17 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 6 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 9 * GPC_GIB;
	s.oom.usual_live = 11 * GPC_GIB;
	s.oom.free_before = 12 * GPC_GIB;
	s.oom.free_after = 13 * GPC_GIB;
	s.oom.other_piece = 14 * GPC_GIB;
	for (unsigned cause = 0; cause < GPUCACHE_VERDICT_COUNT; cause++) {
		struct gpc_text text = gpc_text_init(said, sizeof said);

		/* A limit that refuses would change the shortage of the others. */
		s.oom.limit = cause == GPUCACHE_VERDICT_LIMIT ? 95 * GPC_GIB : 0;
		judge(&s);
		s.answer.cause = (enum gpucache_verdict)cause;
		gpc_say_why(&text, &s.facts, &s.answer, &by_number);
		assert_memory_equal(said, gpc_cause_word(cause), strlen(gpc_cause_word(cause)));
		if (!wanted[cause])
			fail_msg("no text is wanted for %s: add a row", gpc_cause_word(cause));
		if (!strstr(said, wanted[cause]))
			fail_msg("%s", said);
	}
}

TEST(words_accept_any_number_of_a_recording)
{
	assert_string_equal(gpc_cause_word(GPUCACHE_VERDICT_FRAGMENTED), "fragmented");
	assert_string_equal(gpc_cause_word(255), "unknown");
	assert_string_equal(gpc_cause_meaning(255), gpc_cause_meaning(GPUCACHE_VERDICT_NONE));
	assert_string_equal(gpc_strength_word(GPUCACHE_STRENGTH_CERTAIN), "certain");
	assert_string_equal(gpc_strength_word(9), "unknown");
	for (unsigned v = 0; v < GPUCACHE_VERDICT_COUNT; v++)
		for (unsigned w = 0; w < v; w++)
			assert_string_not_equal(gpc_cause_word(v), gpc_cause_word(w));
}

TEST(the_shortage_is_told_in_its_parts)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_text text = gpc_text_init(said, sizeof said);

	s.oom.requested = 7 * GPC_GIB;
	s.oom.balance.cached_largest = GPC_GIB;
	judge(&s);
	gpc_say_short(&text, &s.facts, &by_number);
	assert_string_equal(said,
		"by 4.00 GiB: 7.00 GiB asked for, by model.py:7, rounded to 8.00 GiB, "
		"4.00 GiB free on the GPU, largest cached piece 1.00 GiB");
}

TEST(a_cause_that_names_or_a_replay_changed_is_told_with_the_first_one)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_text text = gpc_text_init(said, sizeof said);

	s.oom.balance.requested = 80 * GPC_GIB;
	s.oom.balance.cached = 10 * GPC_GIB;
	s.oom.balance.cached_largest = GPC_GIB;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
	gpc_say_change(&text, &s.answer);
	assert_string_equal(said, "");
	s.facts.kept_passes = 20;
	s.facts.kept_bytes = 50 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	gpc_say_change(&text, &s.answer);
	assert_string_equal(said, "at the failure: fragmented (likely)");
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	assert_true(s.answer.also >> GPUCACHE_VERDICT_FRAGMENTED & 1);
}

TEST(what_arithmetic_proves_no_replay_overturns)
{
	struct scene s = scene_of_an_exhausted_gpu();

	judge(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	s.facts.remedy = "vmm:on";
	s.facts.remedy_free = GPC_GIB;
	s.facts.is_replayed = s.facts.is_whole = s.facts.plain_serves = GPC_YES;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
}

TEST(nothing_that_rests_on_records_is_certain_once_one_was_dropped)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.n_dropped = 1;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.rounded = 200 * GPC_GIB; /* the GPU's size is no record */
	judge(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
}

/* Facts drawn at random: no sentence has a number that is unknown, and none is empty. */
TEST(whatever_the_facts_are_no_unknown_number_is_said)
{
	uint64_t seed = 88172645463325252u;

	for (unsigned n = 0; n < 20000; n++) {
		struct gpc_facts facts = gpc_facts_unknown();
		struct gpc_answer answer;
		const char *reach;

		for (size_t i = 0; i < gpc_n_fact_rows; i++) {
			const struct gpc_fact_row *row = &gpc_fact_rows[i];
			char *at = (char *)&facts + row->offset;
			static const char *const words = "words";
			uint64_t number;

			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			number = seed % 5 == 0   ? GPC_GIB
				 : seed % 5 == 1 ? seed % (64 * GPC_GIB)
						 : seed % 4;
			if (seed >> 20 & 1)
				continue;
			if (row->kind == GPC_FACT_WORDS)
				memcpy(at, &words, sizeof words);
			else if (row->kind == GPC_FACT_TRUTH || row->kind == GPC_FACT_PURPOSE)
				*(uint64_t *)(void *)at = number % 3;
			else
				*(uint64_t *)(void *)at = number;
		}
		answer = gpc_why(&facts);
		for (unsigned t = 0; t <= GPC_MAX_TRIES + 1; t++) {
			struct gpc_text text = gpc_text_init(said, sizeof said);

			if (t == GPC_MAX_TRIES)
				gpc_say_why(&text, &facts, &answer, &by_number);
			else if (t > GPC_MAX_TRIES)
				gpc_say_short(&text, &facts, &by_number);
			else if (!gpc_say_try(&text, &facts, &answer, &by_number, t, &reach))
				continue;
			assert_null(strstr(said, "16777216.00 TiB"));
			assert_null(strchr(said, '{'));
			assert_true(text.len > 0 || facts.asked == GPUCACHE_UNKNOWN);
		}
	}
}
