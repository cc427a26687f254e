/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/bytes.h"
#include "document/document.h"
#include "gpucache_format.h"
#include "unit.h"

#define S UINT64_C(1000000000)

static void(assert_cell)(const char *expected, struct gpc_cell cell)
{
	GPC_TEXT(text, 100);

	gpc_cell_write(&text, cell);
	_assert_string_equal(text.buf, expected, unit_at.file, unit_at.line);
}
#define assert_cell(expected, cell) AT((assert_cell)(expected, cell))

TEST(quantities_have_one_text)
{
	assert_cell("1.50 GiB", gpc_bytes(GPC_GIB + GPC_GIB / 2));
	assert_cell("0 B", gpc_bytes(0));
	assert_cell("12.3M", gpc_brief(12 * GPC_MIB + 300 * GPC_KIB));
	assert_cell("9.99K", gpc_brief(10229));
	assert_cell("10.0K", gpc_brief(10240));
	assert_cell("100K", gpc_brief(102390));
	assert_cell("999", gpc_brief(999));
	assert_cell("0.98K", gpc_brief(1000));
	assert_cell("16.0E", gpc_brief(UINT64_MAX - 1));
	assert_cell("1,234,567", gpc_count(1234567));
	assert_cell("123", gpc_count(123));
	assert_cell("1234567", gpc_number(1234567));
	assert_cell("33.3 %", gpc_share(1, 3));
	assert_cell("100.0 %", gpc_share(UINT64_MAX - 1, UINT64_MAX - 1));
	assert_cell("yes", gpc_truth(true));
	assert_cell("name", gpc_name("name"));
}

TEST(a_change_has_its_sign)
{
	assert_cell("+1.00 MiB", gpc_change(GPC_MIB, 2 * GPC_MIB));
	assert_cell("-1.00 MiB", gpc_change(2 * GPC_MIB, GPC_MIB));
	assert_cell("0 B", gpc_change(5, 5));
}

TEST(durations_have_at_most_two_units)
{
	assert_cell("0 ms", gpc_duration(0));
	assert_cell("12 ns", gpc_duration(12));
	assert_cell("850 us", gpc_duration(850 * 1000));
	assert_cell("850 ms", gpc_duration(850 * (S / 1000)));
	assert_cell("12.3 s", gpc_duration(12345 * (S / 1000)));
	assert_cell("12 min 03 s", gpc_duration((12 * 60 + 3) * S));
	assert_cell("3 h 05 min", gpc_duration((3 * 60 + 5) * 60 * S));
	assert_cell("2 d 04 h", gpc_duration((2 * 24 + 4) * 3600 * S));
}

TEST(only_bytes_say_that_they_are_unknown)
{
	assert_cell("unknown", gpc_bytes(GPUCACHE_UNKNOWN));
	assert_cell("", gpc_count(GPUCACHE_UNKNOWN));
	assert_cell("", gpc_duration(GPUCACHE_UNKNOWN));
	assert_cell("", gpc_share(1, 0));
	assert_cell("", gpc_share(GPUCACHE_UNKNOWN, 7));
	assert_cell("", gpc_blank());
	assert_cell("", gpc_name(NULL));
}

TEST(times_are_those_of_the_c_library)
{
	/* A day of each month for 400 years, with their leap days. */
	const time_t step = 29 * 86400 + 12345;

	for (time_t t = 0; t < (time_t)400 * 366 * 86400; t += step) {
		struct tm tm;
		char expected[40];

		assert_non_null(gmtime_r(&t, &tm));
		strftime(expected, sizeof expected, "%Y-%m-%d %H:%M:%S", &tm);
		assert_cell(expected, gpc_time((uint64_t)t * S));
	}
}
