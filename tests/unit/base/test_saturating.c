/* SPDX-License-Identifier: Apache-2.0 */
#include "base/saturating.h"
#include "unit.h"

TEST(sums_stop_at_the_ends)
{
	assert_true(gpc_bytes_add(2, 3) == 5);
	assert_true(gpc_bytes_add(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_true(gpc_bytes_add(UINT64_MAX, 1) == UINT64_MAX);
	assert_true(gpc_bytes_add(UINT64_C(1) << 63, UINT64_C(1) << 63) == UINT64_MAX);
	assert_true(gpc_bytes_less(3, 2) == 1);
	assert_true(gpc_bytes_less(2, 3) == 0);
	assert_true(gpc_bytes_less(0, UINT64_MAX) == 0);
}

TEST(products_stop_at_the_end)
{
	assert_true(gpc_bytes_times(6, 7) == 42);
	assert_true(gpc_bytes_times(0, UINT64_MAX) == 0);
	assert_true(gpc_bytes_times(UINT64_MAX, 1) == UINT64_MAX);
	assert_true(gpc_bytes_times(UINT64_C(1) << 32, UINT64_C(1) << 32) == UINT64_MAX);
	assert_true(gpc_bytes_times(3, UINT64_MAX / 2) == UINT64_MAX);
}

TEST(signed_sums_stop_at_both_ends)
{
	assert_true(gpc_signed_of(UINT64_MAX) == INT64_MAX);
	assert_true(gpc_signed_of((uint64_t)INT64_MAX + 1) == INT64_MAX);
	assert_true(gpc_signed_of(7) == 7);
	assert_true(gpc_signed_add(INT64_MAX, 1) == INT64_MAX);
	assert_true(gpc_signed_add(INT64_MIN, -1) == INT64_MIN);
	assert_true(gpc_signed_add(INT64_MAX, INT64_MIN) == -1);
	assert_true(gpc_signed_less(INT64_MIN, 1) == INT64_MIN);
	assert_true(gpc_signed_less(INT64_MAX, -1) == INT64_MAX);
	assert_true(gpc_signed_less(0, INT64_MIN) == INT64_MAX);
	assert_true(gpc_signed_less(-5, -7) == 2);
}
