/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pause.h"

#include "unit.h"

TEST(a_wait_is_as_many_pauses_as_there_are_steps_in_its_bound)
{
	uint64_t left_ms = 5;

	assert_true(gpc_pause(2, &left_ms));
	assert_int_equal(left_ms, 3);
	assert_true(gpc_pause(2, &left_ms));
	assert_true(gpc_pause(2, &left_ms)); /* what is left */
	assert_int_equal(left_ms, 0);
	assert_false(gpc_pause(2, &left_ms));
	assert_int_equal(left_ms, 0);
}
