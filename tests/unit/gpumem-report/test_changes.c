/* SPDX-License-Identifier: Apache-2.0 */
/* What changes of the program save, by facts of a failure that a test invents. */
#include "tests/unit/document/page.h"
#include "tools/gpumem-report/cure/cure.h"

#define MIB (UINT64_C(1) << 20)

static struct gpc_cure cure;

static int set_up(void **state)
{
	cure = (struct gpc_cure){ .failure.facts = gpc_facts_unknown() };
	return 0;
}

FIXTURE(set_up, NULL);

/* Writes the section into `page`. */
static void show(const struct gpc_renderer *renderer)
{
	struct gpc_document doc = page_new(renderer);

	doc.width = 200;
	gpc_document_begin(&doc);
	gpc_cure_show_changes(&cure, &doc);
	gpc_document_end(&doc);
}

/* The row that has the words, to its end. */
static const char *row_of(const char *words)
{
	static char row[512];
	const char *at = strstr(page, words);
	const char *begin = at;
	size_t n;

	if (!at)
		return "";
	while (begin > page && begin[-1] != '\n')
		begin--;
	n = strcspn(begin, "\n");
	assert_in_range(n, 1, sizeof row - 1);
	memcpy(row, begin, n);
	row[n] = '\0';
	return row;
}

TEST(what_only_bounds_are_known_of_is_never_called_enough)
{
	static const char *const words[] = { "torch.utils.checkpoint", "autocast to bfloat16",
		"an 8-bit optimizer", "the model in bfloat16" };

	cure.failure.facts.short_by = 100 * MIB;
	cure.failure.facts.activations = 1000 * MIB;
	cure.failure.facts.optimizer = 1000 * MIB;
	cure.failure.facts.weights = 1000 * MIB;
	show(&gpc_render_text);
	for (size_t i = 0; i < N_OF(words); i++) {
		assert_non_null(strstr(row_of(words[i]), "at most"));
		assert_null(strstr(row_of(words[i]), "enough"));
	}
	show(&gpc_render_json);
	for (size_t i = 0; i < N_OF(words); i++)
		assert_non_null(
			strstr(row_of(words[i]), "\"enough\": null, \"bound\": \"at most\""));
	cure.failure.facts.short_by = 1001 * MIB;
	show(&gpc_render_json);
	for (size_t i = 0; i < N_OF(words); i++)
		assert_non_null(strstr(row_of(words[i]), "\"enough\": false"));
}

/* At this request.  What comes after it is recorded only if steps like it were over. */
TEST(nothing_is_called_enough_before_a_whole_step_was_recorded)
{
	static const char *const words[] = { "drop the checkpoint", "zero_grad(set_to_none=True)" };

	cure.failure.facts.short_by = 100 * MIB;
	cure.failure.facts.loaded_bytes = 200 * MIB;
	cure.failure.facts.gradients = 200 * MIB;
	cure.failure.facts.activations = 1000 * MIB;
	cure.failure.facts.asked_purpose = GPC_PURPOSE_ACTIVATIONS;
	cure.failure.facts.freed_before = 3;
	cure.failure.facts.gpu = "l4";
	for (cure.n_steps = 1; cure.n_steps <= 2; cure.n_steps++) {
		show(&gpc_render_text);
		for (size_t i = 0; i < N_OF(words); i++)
			assert_non_null(strstr(
				row_of(words[i]), cure.n_steps == 2 ? "enough" : "this request"));
		assert_non_null(strstr(row_of("a smaller batch"), "MiB  this request  a smaller"));
		assert_non_null(strstr(page, "gpucache-run --fit --on l4 --sweep BATCH=1..N"));
	}
	cure.failure.answer.also = 1u << GPUCACHE_VERDICT_SPIKE; /* they were smaller */
	show(&gpc_render_text);
	assert_null(strstr(page, "enough"));
	cure.failure.answer.also = 0;
	cure.failure.facts.failed_bytes = 200 * MIB; /* the retry is not recorded */
	show(&gpc_render_json);
	assert_non_null(
		strstr(row_of("retry behind"), "\"enough\": null, \"bound\": \"this request\""));
}

TEST(results_that_no_backward_pass_has_used_are_enough_for_one_request)
{
	cure.failure.facts.short_by = 100 * MIB;
	cure.failure.facts.kept_bytes = 1000 * MIB;
	show(&gpc_render_text);
	assert_non_null(strstr(row_of("do not keep"), "enough"));
	cure.failure.facts.grows_summed = GPC_YES;
	show(&gpc_render_text);
	assert_non_null(strstr(row_of("do not keep"), "this request"));
	cure.failure.facts.evaluation_place = "evaluate train.py:9";
	show(&gpc_render_text);
	assert_non_null(strstr(row_of("do not keep"), "enough"));
}

TEST(without_a_backward_pass_to_come_nothing_is_computed_twice)
{
	cure.failure.facts.short_by = 100 * MIB;
	cure.failure.facts.activations = 1000 * MIB;
	cure.failure.facts.checkpoint_place =
		"each Block where it is called, GPT.forward model.py:27";
	show(&gpc_render_text);
	assert_non_null(strstr(row_of("torch.utils.checkpoint"),
		"around each Block where it is called, GPT.forward model.py:27: activations are "
		"computed twice"));
	assert_non_null(strstr(row_of("autocast"), "at most"));
	cure.failure.facts.is_generating = GPC_YES;
	show(&gpc_render_text);
	assert_string_equal(row_of("torch.utils.checkpoint"), "");
	assert_string_equal(row_of("autocast"), "");
}

TEST(a_batch_shrinks_by_what_is_missing_of_any_size)
{
	static const struct {
		uint64_t missing;
		uint64_t activations;
		const char *words;
	} cases[] = {
		{ 6 * MIB, 100 * MIB, "94 % of its samples would get past this request" },
		{ 6 * MIB, 99 * MIB, "93 % of its samples would get past this request" },
		{ UINT64_MAX / 4, UINT64_MAX / 2,
			"50 % of its samples would get past this request" },
		{ UINT64_MAX / 100 + 1, UINT64_MAX - 1,
			"98 % of its samples would get past this request" },
	};

	for (size_t i = 0; i < N_OF(cases); i++) {
		cure.failure.facts.short_by = cases[i].missing;
		cure.failure.facts.activations = cases[i].activations;
		show(&gpc_render_text);
		assert_non_null(strstr(row_of("a smaller batch"), cases[i].words));
	}
	cure.failure.facts.short_by = 100 * MIB;
	cure.failure.facts.activations = 100 * MIB;
	show(&gpc_render_text);
	assert_string_equal(row_of("a smaller batch"), "");
}
