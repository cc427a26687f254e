/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "unit.h"

static void assert_reads(const char *text, uint64_t expected)
{
	uint64_t bytes = 0;

	if (!gpc_bytes_parse(text, strlen(text), &bytes))
		fail_msg("%s is not read", text);
	assert_true(bytes == expected);
}

static void assert_refused(const char *text)
{
	uint64_t bytes = 77;

	if (gpc_bytes_parse(text, strlen(text), &bytes))
		fail_msg("%s is read", text);
	assert_int_equal(bytes, 77);
}

TEST(every_spelling_of_a_unit_is_read)
{
	assert_reads("0", 0);
	assert_reads("123", 123);
	assert_reads("123B", 123);
	assert_reads("1k", 1024);
	assert_reads("1K", 1024);
	assert_reads("1KB", 1024);
	assert_reads("1kib", 1024);
	assert_reads("512M", 512 * GPC_MIB);
	assert_reads("20 MB", 20 * GPC_MIB);
	assert_reads("2GiB", 2 * GPC_GIB);
	assert_reads("1T", GPC_GIB << 10);
	assert_reads("1P", GPC_GIB << 20);
	assert_reads("15E", UINT64_C(15) << 60);
}

TEST(decimals_are_read)
{
	assert_reads("1.5GiB", 3 * GPC_GIB / 2);
	assert_reads("0.25k", 256);
	assert_reads("1.9999999999", 1);
	assert_reads("2.", 2);
}

TEST(the_largest_number_is_read_and_one_more_refused)
{
	assert_reads("18446744073709551615", UINT64_MAX);
	assert_refused("18446744073709551616");
	assert_refused("99999999999999999999999999999999999999999999");
	assert_refused("16E");
	assert_refused("18446744073709551615K");
}

TEST(an_invalid_size_is_refused)
{
	assert_refused("");
	assert_refused(" 1");
	assert_refused("-1");
	assert_refused(".5");
	assert_refused("x");
	assert_refused("1x");
	assert_refused("1KiBs");
	assert_refused("1BB");
	assert_refused("1Ki");
	assert_refused("1 K B");
	assert_refused("1.2.3");
	assert_refused("0x10");
	assert_refused("1\"");
}

TEST(only_the_given_length_is_read)
{
	uint64_t bytes = 0;

	assert_true(gpc_bytes_parse("12345", 2, &bytes));
	assert_int_equal(bytes, 12);
	assert_false(gpc_bytes_parse("1\0", 2, &bytes));
}

TEST(rounding_up_keeps_multiples)
{
	assert_int_equal(gpc_round_up(0, 512), 0);
	assert_int_equal(gpc_round_up(1, 512), 512);
	assert_int_equal(gpc_round_up(512, 512), 512);
	assert_int_equal(gpc_round_up(513, 512), 1024);
}

TEST(sums_saturate_at_both_ends)
{
	assert_int_equal(gpc_bytes_add(2, 3), 5);
	assert_true(gpc_bytes_add(UINT64_MAX, 1) == UINT64_MAX);
	assert_true(gpc_bytes_add(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_int_equal(gpc_bytes_less(5, 3), 2);
	assert_int_equal(gpc_bytes_less(3, 5), 0);
}

TEST(a_unit_is_known_by_its_first_word)
{
	assert_true(gpc_bytes_is_unit("MiB free"));
	assert_true(gpc_bytes_is_unit("B,"));
	assert_true(gpc_bytes_is_unit("%"));
	assert_false(gpc_bytes_is_unit("MiBs"));
	assert_false(gpc_bytes_is_unit("Mix"));
	assert_false(gpc_bytes_is_unit(""));
}
