/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/bytes.h"
#include "oom/holder_rows.h"

#define SECOND UINT64_C(1000000000)

static void describe(void *self, uint32_t stack, bool has_via, char *buf, size_t size)
{
	static const char *const via[] = { "", ", via empty", ", via relu", ", via cudaMalloc" };

	snprintf(buf, size, "%s%s", stack < 3 ? "step train.py:40" : "load_weights loader.cpp:88",
		has_via ? via[stack] : "");
}

static void tell_history(void *self, uint32_t stack, uint64_t *ret_oldest_ns, uint64_t *ret_growth)
{
	*ret_oldest_ns = stack == 3 ? 0 : (100 - stack) * SECOND;
	*ret_growth = stack * GPC_MIB;
}

static const struct gpc_describer describer = { .describe = describe, .history = tell_history };

static const struct gpucache_holder holders[] = { { 3, 5, 30 * GPC_MIB }, { 1, 2, 20 * GPC_MIB },
	{ 2, 1, 20 * GPC_MIB } };

TEST(holders_that_read_the_same_share_a_row)
{
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS];

	assert_int_equal(gpc_holder_rows_fill(rows, holders, 3, &describer, 50), 2);
	assert_string_equal(rows[0].site, "step train.py:40");
	assert_int_equal(rows[0].bytes, 40 * GPC_MIB);
	assert_int_equal(rows[0].n_blocks, 3);
	assert_int_equal(rows[0].oldest_ns, 98 * SECOND);
	assert_int_equal(rows[0].growth, 3 * GPC_MIB);
	assert_int_equal(rows[1].oldest_ns, 0);
	/* What only one holder called is said. */
	assert_string_equal(rows[1].site, "load_weights loader.cpp:88, via cudaMalloc");
	assert_int_equal(gpc_holder_rows_fill(rows, holders, 3, &describer, 5), 2);
	assert_string_equal(rows[0].site, "step");
	assert_int_equal(gpc_holder_rows_fill(rows, holders, 0, NULL, 40), 0);
}

static const char *table_of(uint32_t max, uint64_t total)
{
	static char buf[1000];
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);
	uint32_t n = gpc_holder_rows_fill(rows, holders, 3, &describer, GPC_HOLDER_SITE_SIZE);

	gpc_holder_rows_write(&text, rows, n, max, total, 100 * SECOND);
	assert_false(text.cut);
	return buf;
}

TEST(a_table_has_age_and_growth)
{
	assert_string_equal(table_of(8, 70 * GPC_MIB),
		"        bytes    blocks  oldest        growth  call site\n"
		"    40.00 MiB         3     2 s     +3.00 MiB  step train.py:40\n"
		"    30.00 MiB         5             +3.00 MiB  load_weights loader.cpp:88, via "
		"cudaMalloc\n");
	/* The rest of the total is nobody's who is listed. */
	assert_string_equal(table_of(1, 90 * GPC_MIB),
		"        bytes    blocks  oldest        growth  call site\n"
		"    40.00 MiB         3     2 s     +3.00 MiB  step train.py:40\n"
		"    50.00 MiB         5             +3.00 MiB  others\n");
}

TEST(ages_are_short)
{
	static const struct {
		uint64_t ns;
		const char *words;
	} cases[] = { { 0, "0 ms" }, { SECOND - 1, "999 ms" }, { 59 * SECOND, "59 s" },
		{ 61 * SECOND, "1 min" }, { 7200 * SECOND, "2 h" }, { 3 * 86400 * SECOND, "3 d" } };

	for (size_t i = 0; i < N_OF(cases); i++) {
		char buf[20];
		struct gpc_text text = gpc_text_init(buf, sizeof buf);

		gpc_text_add_age(&text, cases[i].ns);
		assert_string_equal(buf, cases[i].words);
	}
}
