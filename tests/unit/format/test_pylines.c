/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "format/pylines.h"

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
#include "tests/unit/format/pylines_cases.inc"
};

static void every_instruction_has_the_line_that_cpython_gives_it(void **state)
{
	(void)state;
	for (size_t c = 0; c < N_OF(cases); c++) {
		const struct line_case *one = &cases[c];

		for (size_t i = 0; i < one->n_lines; i++) {
			uint32_t line = 0;

			(void)gpc_pylines_find(one->version, one->table, one->table_size,
				one->first_line, (uint32_t)(2 * i), &line);
			if (line != one->lines[i])
				fail_msg("Python %x, %s, offset %zu: line %u, CPython says %u",
					one->version, one->name, 2 * i, line, one->lines[i]);
		}
	}
}

static void all_five_pythons_are_covered(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (size_t c = 0; c < N_OF(cases); c++)
		seen |= 1u << (cases[c].version & 0xff);
	assert_int_equal(seen, 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 13);
}

static void an_offset_behind_the_table_has_no_line(void **state)
{
	static const unsigned char table_310[] = { 4, 1 };
	static const unsigned char table_311[] = { 0x80 | 10 << 3 | 1, 0, 0 };
	uint32_t line = 77;

	(void)state;
	assert_false(gpc_pylines_find(0x030a, table_310, sizeof table_310, 1, 4, &line));
	assert_false(gpc_pylines_find(0x030b, table_311, sizeof table_311, 1, 4, &line));
	assert_int_equal(line, 77);
}

static void an_empty_table_gives_the_first_line_before_3_10_and_none_later(void **state)
{
	uint32_t line = 0;

	(void)state;
	assert_true(gpc_pylines_find(0x0309, NULL, 0, 12, 8, &line));
	assert_int_equal(line, 12);
	assert_false(gpc_pylines_find(0x030a, NULL, 0, 12, 8, &line));
	assert_false(gpc_pylines_find(0x030d, NULL, 0, 12, 8, &line));
}

/* Cut anywhere, a table may give no line or a wrong one; the sanitizers watch what is read. */
static void a_cut_table_is_never_read_beyond_its_end(void **state)
{
	(void)state;
	for (size_t c = 0; c < N_OF(cases); c++) {
		for (size_t size = 0; size < cases[c].table_size; size++) {
			unsigned char *copy = malloc(size + 1);
			uint32_t line;

			memcpy(copy, cases[c].table, size);
			copy = realloc(copy, size ? size : 1);
			(void)gpc_pylines_find(cases[c].version, copy, size, 1, 1000000, &line);
			free(copy);
		}
	}
}

static void noise_is_no_table_but_does_no_harm(void **state)
{
	unsigned char noise[64];
	uint32_t seed = 12345;
	uint32_t line;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof noise; i++) {
			seed = seed * 1664525 + 1013904223;
			noise[i] = (unsigned char)(seed >> 24);
		}
		for (uint16_t version = 0x0308; version < 0x030f; version++)
			(void)gpc_pylines_find(
				version, noise, sizeof noise, seed, seed >> 20, &line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_has_the_line_that_cpython_gives_it),
		cmocka_unit_test(all_five_pythons_are_covered),
		cmocka_unit_test(an_offset_behind_the_table_has_no_line),
		cmocka_unit_test(an_empty_table_gives_the_first_line_before_3_10_and_none_later),
		cmocka_unit_test(a_cut_table_is_never_read_beyond_its_end),
		cmocka_unit_test(noise_is_no_table_but_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
