/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "model/python_lines.h"

/* Reading real tables is tested with real interpreters in test_python.c. */

static uint32_t line_of(uint16_t version, const char *table, size_t size, uint32_t offset)
{
	return gpc_python_line(version, table, size, 10, offset);
}

TEST(lnotab_of_39_adds_up_to_the_last_entry_before_the_offset)
{
	/* Bytes 0..5: line 10; 6..7: line 11; 8..: line 9. */
	static const char table[] = { 6, 1, 2, (char)-2 };

	assert_int_equal(line_of(0x0309, table, 4, 0), 10);
	assert_int_equal(line_of(0x0309, table, 4, 5), 10);
	assert_int_equal(line_of(0x0309, table, 4, 6), 11);
	assert_int_equal(line_of(0x0309, table, 4, 8), 9);
	assert_int_equal(line_of(0x0309, table, 4, 4000), 9);
	assert_int_equal(line_of(0x0309, table, 0, 4), 10);
}

TEST(linetable_of_310_knows_instructions_without_a_line)
{
	/* Bytes 0..3: line 11; 4..5: none; 6..7: line 13. */
	static const char table[] = { 4, 1, 2, (char)-128, 2, 2 };

	assert_int_equal(line_of(0x030a, table, 6, 0), 11);
	assert_int_equal(line_of(0x030a, table, 6, 4), 0);
	assert_int_equal(line_of(0x030a, table, 6, 6), 13);
	assert_int_equal(line_of(0x030a, table, 6, 8), 0);
}

TEST(location_table_of_311_reads_every_form)
{
	static const char table[] = {
		(char)0x80, 0x11,                         /* short form 0, 1 unit: line 10 */
		(char)(0x80 | 11 << 3 | 1), 4, 8,         /* one line further, 2 units: line 11 */
		(char)(0x80 | 12 << 3), 4, 8,             /* two lines further: line 13 */
		(char)(0x80 | 13 << 3), 5,                /* no column, -2: line 11 */
		(char)(0x80 | 14 << 3), 0x40, 4, 0, 1, 1, /* long, +128: line 139 */
		(char)(0x80 | 15 << 3 | 2),               /* none, 3 units */
		(char)(0x80 | 10 << 3), 1, 2,             /* same line: 139 */
	};
	static const uint32_t lines[] = { 10, 11, 11, 13, 11, 139, 0, 0, 0, 139, 0 };

	for (uint32_t unit = 0; unit < N_OF(lines); unit++)
		assert_int_equal(line_of(0x030c, table, sizeof(table), 2 * unit), lines[unit]);
}

TEST(an_unknown_instruction_is_on_the_first_line)
{
	assert_int_equal(line_of(0x0309, "", 0, GPC_PYTHON_NO_OFFSET), 10);
	assert_int_equal(line_of(0x030d, "", 0, GPC_PYTHON_NO_OFFSET), 10);
}

TEST(changes_beyond_any_source_are_no_line)
{
	/* The largest change that a number has room for, again and again. */
	static const char leap[] = "\xf0\x7e\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x3f";
	char table[20 * (sizeof leap - 1)];

	for (size_t i = 0; i < 20; i++)
		memcpy(table + i * (sizeof leap - 1), leap, sizeof leap - 1);
	for (uint32_t offset = 0; offset < 50; offset += 2)
		assert_int_equal(line_of(0x030b, table, sizeof table, offset), 0);
}

TEST(random_bytes_do_no_harm)
{
	uint64_t x = 88172645463325252u;

	for (int round = 0; round < 20000; round++) {
		uint8_t *table;
		size_t size;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		size = x % 40;
		table = malloc(
			size + 1); /* a heap block of its own: the sanitizer sees a read beyond */
		assert_non_null(table);
		for (size_t i = 0; i < size; i++)
			table[i] = (uint8_t)(x >> (i % 56)) ^ (uint8_t)(i * 37);
		table = realloc(table, size ? size : 1);
		assert_non_null(table);
		for (uint16_t version = 0x0309; version <= 0x030e; version++)
			(void)gpc_python_line(
				version, table, size, (uint32_t)(x >> 40), (uint32_t)(x % 90));
		free(table);
	}
}

struct line_case {
	uint16_t version;
	const char *name;
	uint32_t first_line;
	const unsigned char *table;
	size_t table_size;
	const uint32_t *lines; /* of each instruction of 2 bytes; 0: none */
	size_t n_lines;
};

#define TABLE(...) ((const unsigned char[]){ __VA_ARGS__ })
#define LINES(...) ((const uint32_t[]){ __VA_ARGS__ })
#define CASE(version, name, first, table, lines) \
	{ version, name, first, table, sizeof table, lines, sizeof lines / sizeof(uint32_t) },
static const struct line_case cases[] = {
#include "tests/unit/model/python_lines_cases.inc"
};

TEST(every_instruction_has_the_line_that_cpython_gives_it)
{
	for (size_t c = 0; c < N_OF(cases); c++) {
		const struct line_case *one = &cases[c];

		for (size_t i = 0; i < one->n_lines; i++) {
			uint32_t line = gpc_python_line(one->version, one->table, one->table_size,
				one->first_line, (uint32_t)(2 * i));

			if (line != one->lines[i])
				fail_msg("Python %x, %s, offset %zu: line %u, CPython says %u",
					one->version, one->name, 2 * i, line, one->lines[i]);
		}
	}
}

TEST(all_five_pythons_are_covered)
{
	unsigned seen = 0;

	for (size_t c = 0; c < N_OF(cases); c++)
		seen |= 1u << (cases[c].version & 0xff);
	assert_int_equal(seen, 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 13);
}
