/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "unit.h"

/* Formats with ours and with libc's and compares. */
#define assert_like_printf(...)                                                    \
	do {                                                                       \
		char ours[256];                                                    \
		char theirs[256];                                                  \
		size_t n = gpc_format(ours, sizeof ours, __VA_ARGS__);             \
		assert_int_equal(n, snprintf(theirs, sizeof theirs, __VA_ARGS__)); \
		assert_string_equal(ours, theirs);                                 \
	} while (0)

TEST(it_formats_as_printf_does)
{
	assert_like_printf("plain");
	assert_like_printf("%s|%s", "a", "");
	assert_like_printf("%.*s|%.2s", 3, "abcdef", "xyz");
	assert_like_printf("%c%c", 'a', 'b');
	assert_like_printf("%d %d %i", 0, -1, INT_MIN);
	assert_like_printf("%ld %lld %zd", LONG_MIN, LLONG_MIN, (ssize_t)-5);
	assert_like_printf("%u %lu %llu %zu", UINT_MAX, ULONG_MAX, ULLONG_MAX, SIZE_MAX);
	assert_like_printf("%x %lx", 0xdeadbeefu, 0x123456789abcdefUL);
	assert_like_printf("%5d|%-5d|%05d", 42, 42, 42);
	assert_like_printf("%8s|%-8s|%*s|%-*s", "ab", "cd", 6, "ef", 6, "gh");
	assert_like_printf("%016lx", 0xabcUL);
	assert_like_printf("100%%");
	assert_like_printf("%p", (void *)0x1234);
}

TEST(a_negative_number_is_padded_with_zeros_behind_its_sign)
{
	assert_like_printf("%05d|%06ld", -42, -7L);
}

TEST(a_missing_string_is_shown)
{
	const char *volatile nothing = NULL;
	char buf[32];

	gpc_format(buf, sizeof buf, "%s", nothing);
	assert_string_equal(buf, "(null)");
}

TEST(too_long_a_text_is_cut_and_marked)
{
	char buf[8];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_text_add(&text, "1234567");
	assert_false(text.cut);
	assert_int_equal(text.len, 7);
	gpc_text_add(&text, "%d", 8);
	assert_true(text.cut);
	assert_string_equal(buf, "1234567");
	gpc_text_add(&text, "%1000000000d", 8);
	gpc_text_pad_to(&text, 100);
	assert_string_equal(buf, "1234567");
	text = gpc_text_init(buf, 1);
	gpc_text_add(&text, "x");
	assert_string_equal(buf, "");
}

static const char *bytes(uint64_t n)
{
	static char buf[64];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_text_add_bytes(&text, n);
	return buf;
}

TEST(bytes_are_shown_in_the_unit_that_fits)
{
	assert_string_equal(bytes(0), "0 B");
	assert_string_equal(bytes(1023), "1023 B");
	assert_string_equal(bytes(1024), "1.00 KiB");
	assert_string_equal(bytes(1536), "1.50 KiB");
	assert_string_equal(bytes(UINT64_C(3) << 29), "1.50 GiB");
	assert_string_equal(bytes(UINT64_C(5) << 40), "5.00 TiB");
	assert_string_equal(bytes(UINT64_C(5) << 49), "2.50 PiB");
	assert_string_equal(bytes(UINT64_MAX), "16.00 EiB");
	assert_string_equal(bytes(UINT64_C(1) << 63), "8.00 EiB");
}

TEST(each_place_of_a_sentence_takes_an_amount)
{
	static const uint64_t amounts[] = { 1, 2048, 3 };
	GPC_TEXT(text, 64);

	gpc_text_add_amounts(&text, "@ of @", 1, 2048);
	assert_string_equal(text.buf, "1 B of 2.00 KiB");
	text = gpc_text_init(text.buf, 64);
	gpc_text_add_amounts_of(&text, "@, @, @.", amounts, 1);
	assert_string_equal(text.buf, "1 B, , .");
}

TEST(a_share_has_one_decimal)
{
	GPC_TEXT(text, 80);

	gpc_text_add_share(&text, 1, 3);
	gpc_text_add(&text, ", ");
	gpc_text_add_share(&text, UINT64_MAX / 2, UINT64_MAX);
	gpc_text_add(&text, ", ");
	gpc_text_add_share(&text, 2999, 3000);
	gpc_text_add(&text, ", ");
	gpc_text_add_share(&text, 3, 2);
	assert_string_equal(text.buf, "33.3 %, 50.0 %, 100.0 %, 150.0 %");
}

TEST(bytes_that_round_up_to_the_next_unit_are_shown_in_it)
{
	assert_string_equal(bytes((UINT64_C(1) << 20) - 1), "1.00 MiB");
	assert_string_equal(bytes((UINT64_C(1) << 30) - 1), "1.00 GiB");
	assert_string_equal(bytes((UINT64_C(1) << 20) - 6 * 1024), "1018.00 KiB");
}

TEST(padding_reaches_the_column_and_no_further)
{
	char buf[32];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_text_add(&text, "ab");
	gpc_text_pad_to(&text, 4);
	gpc_text_add(&text, "c");
	gpc_text_pad_to(&text, 2);
	assert_string_equal(buf, "ab  c");
}

TEST(an_unknown_conversion_is_shown)
{
	const char *volatile format = "%y|%";
	char buf[32];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
	gpc_format(buf, sizeof buf, format);
#pragma GCC diagnostic pop
	assert_string_equal(buf, "%y|");
}

TEST(a_control_character_becomes_a_question_mark)
{
	char buf[16];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_text_add_clean(&text, "a\033[31m\177\303\244", 9);
	assert_string_equal(buf, "a?[31m?\303\244");
}

/* Bytes that are no letter, are cut, are too long a way to write one, or turn the direction of writing. */
TEST(an_invalid_character_becomes_a_question_mark_per_byte)
{
	static const struct {
		const char *from;
		const char *expected;
	} cases[] = {
		{ "tr\xc3\xa4ge \xf0\x9f\x90\x8c", "tr\xc3\xa4ge \xf0\x9f\x90\x8c" },
		{ "a\xffz", "a?z" },
		{ "a\xc3", "a?" },
		{ "\xc3z", "?z" },
		{ "\xc0\xaf", "??" },
		{ "\xe0\x80\xaf", "???" },
		{ "\xed\xa0\x80", "???" },
		{ "\xf4\x90\x80\x80", "????" },
		{ "\xc2\x9b[31m", "??[31m" },
		{ "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c", "????????" },
		{ "\xe2\x80\xa8", "???" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char buf[64];
		struct gpc_text text;

		strcpy(buf, cases[i].from);
		gpc_text_clean(buf);
		assert_string_equal(buf, cases[i].expected);
		text = gpc_text_init(buf, sizeof buf);
		gpc_text_add_clean(&text, cases[i].from, strlen(cases[i].from));
		assert_string_equal(buf, cases[i].expected);
	}
}

TEST(a_character_is_encoded_in_as_few_bytes_as_it_needs)
{
	static const struct {
		uint32_t letter;
		const char *expected;
	} cases[] = {
		{ 'a', "a" },
		{ 0x7f, "\x7f" },
		{ 0x80, "\xc2\x80" },
		{ 0x7ff, "\xdf\xbf" },
		{ 0x800, "\xe0\xa0\x80" },
		{ 0xffff, "\xef\xbf\xbf" },
		{ 0x10000, "\xf0\x90\x80\x80" },
		{ 0x10ffff, "\xf4\x8f\xbf\xbf" },
		{ 0xd800, "\xef\xbf\xbd" },
		{ 0x110000, "\xef\xbf\xbd" },
		{ UINT32_MAX, "\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char out[4];

		assert_int_equal(gpc_text_encode(cases[i].letter, out), strlen(cases[i].expected));
		assert_memory_equal(out, cases[i].expected, strlen(cases[i].expected));
	}
}

TEST(a_character_that_is_cut_becomes_question_marks)
{
	char buf[4];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_text_add_clean(&text, "a\xf0\x9f\x90\x8c", 5);
	assert_string_equal(buf, "a??");
	assert_true(text.cut);
}

TEST(what_a_shell_would_change_is_not_plain)
{
	assert_true(gpc_text_is_plain("/dev/shm/a-b_c.1+2=3:4,5@6%7"));
	assert_true(gpc_text_is_plain(""));
	assert_false(gpc_text_is_plain("a b"));
	assert_false(gpc_text_is_plain("a$b"));
	assert_string_equal(gpc_base_name("/usr/bin/python3"), "python3");
	assert_string_equal(gpc_base_name("train"), "train");
}

TEST(the_distance_of_words_counts_letters_without_regard_to_case)
{
	char longest[64];

	memset(longest, 'a', sizeof longest);
	assert_int_equal(gpc_text_distance("leaks", "leaks", 5), 0);
	assert_int_equal(gpc_text_distance("leaks", "LEAKS", 5), 0);
	assert_int_equal(gpc_text_distance("leaks", "laeks", 5), 2);
	assert_int_equal(gpc_text_distance("leaks", "leak", 4), 1);
	assert_int_equal(gpc_text_distance("leaks", "", 0), 5);
	assert_int_equal(gpc_text_distance("", "leaks", 5), 5);
	assert_true(gpc_text_distance("leaks", longest, sizeof longest) == SIZE_MAX);
}
