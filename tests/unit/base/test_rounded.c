/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "base/rounded.h"
#include "tests/model/random.h"
#include "unit.h"

__extension__ typedef __int128 wide;

#define MOST 60

/* In hundredths of a byte. */
static wide value_of(struct gpc_rounded rounded)
{
	return (wide)rounded.hundredths << (10 * rounded.unit);
}

static wide step_of(struct gpc_rounded rounded)
{
	return (wide)1 << (10 * rounded.unit);
}

static wide distance(wide a, wide b)
{
	return a > b ? a - b : b - a;
}

/* What rounded.h promises of any parts. */
static void assert_adds_up(const uint64_t parts[], size_t n)
{
	struct gpc_rounded rounded[MOST];
	struct gpc_rounded sum;
	uint32_t tenths[MOST];
	uint64_t bytes = 0;
	uint64_t shares = 0;
	wide printed = 0;

	for (size_t i = 0; i < n; i++)
		bytes += parts[i];
	sum = gpc_rounded_of(bytes);
	gpc_rounded_parts(sum, parts, n, rounded);
	gpc_rounded_shares(bytes, parts, n, tenths);
	for (size_t i = 0; i < n; i++) {
		assert_true(
			distance(value_of(rounded[i]), (wide)parts[i] * 100) < step_of(rounded[i]));
		assert_true(distance((wide)tenths[i] * bytes, (wide)parts[i] * 1000) <
			    (wide)bytes + (bytes == 0));
		printed += value_of(rounded[i]);
		shares += tenths[i];
	}
	assert_true(distance(printed, value_of(sum)) * 2 <= step_of(sum));
	assert_int_equal(shares, bytes ? 1000 : 0);
}

static void parts_drawn_at_random_add_up(void **state)
{
	struct random random = random_start(20260809, 0);
	uint64_t parts[MOST];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = random_below(&random, MOST) + 1;
		unsigned bits = (unsigned)random_below(&random, 50);

		for (size_t i = 0; i < n; i++)
			parts[i] = random_below(
				&random, UINT64_C(1) << (random_below(&random, 8) + bits));
		assert_adds_up(parts, n);
	}
}

static void parts_of_the_same_size_add_up(void **state)
{
	uint64_t parts[MOST];

	(void)state;
	for (size_t n = 1; n < MOST; n++) {
		for (size_t i = 0; i < n; i++)
			parts[i] = GPC_GIB + 4 * GPC_MIB;
		assert_adds_up(parts, n);
		assert_adds_up((uint64_t[]){ 0, GPC_GIB, n }, 3);
	}
}

static void the_largest_remainder_is_rounded_up(void **state)
{
	/* 1.004, 1.003, 0.999: in sum 3.006 GiB. */
	const uint64_t parts[] = { 1078036791, 1076963049, 1072668082 };
	struct gpc_rounded rounded[3];

	(void)state;
	gpc_rounded_parts(gpc_rounded_of(parts[0] + parts[1] + parts[2]), parts, 3, rounded);
	assert_int_equal(rounded[0].hundredths, 101);
	assert_int_equal(rounded[1].hundredths, 100);
	assert_int_equal(rounded[2].hundredths, 102298); /* MiB */
}

static void an_unknown_part_gets_no_share(void **state)
{
	const uint64_t parts[] = { GPC_GIB, UINT64_MAX, GPC_GIB };
	struct gpc_rounded rounded[3] = { { 7, 7 }, { 7, 7 }, { 7, 7 } };
	uint32_t tenths[3] = { 7, 7, 7 };

	(void)state;
	gpc_rounded_parts(gpc_rounded_of(2 * GPC_GIB), parts, 3, rounded);
	gpc_rounded_shares(4 * GPC_GIB, parts, 3, tenths);
	assert_int_equal(rounded[0].hundredths, 100);
	assert_int_equal(rounded[1].hundredths, 0);
	assert_int_equal(tenths[0] + tenths[2], 500);
	assert_int_equal(tenths[1], 0);
	gpc_rounded_shares(0, parts, 0, tenths);
}

static void parts_beyond_64_bits_together_get_their_shares(void **state)
{
	const uint64_t parts[] = { UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 62 };
	uint32_t tenths[3];

	(void)state;
	gpc_rounded_shares(UINT64_C(1) << 63, parts, 2, tenths);
	assert_int_equal(tenths[0], 1000);
	assert_int_equal(tenths[1], 1000);
	gpc_rounded_split(1000, parts, 3, tenths);
	assert_int_equal(tenths[0], 400);
	assert_int_equal(tenths[1], 400);
	assert_int_equal(tenths[2], 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_drawn_at_random_add_up),
		cmocka_unit_test(parts_of_the_same_size_add_up),
		cmocka_unit_test(the_largest_remainder_is_rounded_up),
		cmocka_unit_test(an_unknown_part_gets_no_share),
		cmocka_unit_test(parts_beyond_64_bits_together_get_their_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
