/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "stack/python_layout.h"
#include "stack/python_text.h"

static const int text_type = 0;
#define TYPE ((uintptr_t)&text_type)

/* A string object of 3.12: head of 40 or 56 bytes, then characters. */
struct fake {
	uint64_t refs;
	uintptr_t type;
	uint64_t length;
	uint64_t hash;
	uint32_t state;
	uint32_t padding;
	char data[256];
};

static struct gpc_python_layout layout;

static int setup(void **state)
{
	return gpc_python_layout_find("3.12.1", NULL, &layout) == GPC_OK ? 0 : -1;
}

GROUP(setup, NULL);

static struct fake make(unsigned kind, unsigned is_ascii, const void *data, uint64_t length)
{
	struct fake fake = {
		.type = TYPE, .length = length, .state = kind << 2 | 1u << 5 | is_ascii << 6
	};

	memcpy(fake.data + (is_ascii ? 0 : 16), data, length * kind);
	return fake;
}

static void check(const struct fake *fake, uint32_t room, const char *expected)
{
	char buf[64];

	memset(buf, '#', sizeof(buf));
	assert_int_equal(
		gpc_python_text_read(&layout, (uintptr_t)fake, TYPE, buf, room), strlen(expected));
	assert_memory_equal(buf, expected, strlen(expected));
	assert_int_equal(buf[room], '#');
}

TEST(ascii_is_copied)
{
	struct fake fake = make(1, 1, "train.py", 8);

	check(&fake, 32, "train.py");
	fake.length = 0;
	check(&fake, 32, "");
}

TEST(characters_of_one_two_and_four_bytes_become_utf8)
{
	static const uint8_t latin[] = { 'g', 'r', 0xf6, 0xdf, 'e' };
	static const uint16_t two[] = { 0x65e5, 0x672c, '!' };
	static const uint32_t four[] = { 0x1f600, 'x', 0xd800, 0x110000 };
	struct fake fake = make(1, 0, latin, 5);

	check(&fake, 32,
		"gr\xc3\xb6\xc3\x9f"
		"e");
	fake = make(2, 0, two, 3);
	check(&fake, 32, "\xe6\x97\xa5\xe6\x9c\xac!");
	fake = make(4, 0, four, 4);
	check(&fake, 32, "\xf0\x9f\x98\x80x\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(a_long_string_is_cut_between_characters)
{
	static const uint16_t two[] = { 0x65e5, 0x672c, 0x65e5 };
	struct fake fake = make(2, 0, two, 3);

	check(&fake, 8, "\xe6\x97\xa5\xe6\x9c\xac");
}

TEST(what_is_no_compact_string_is_a_question_mark)
{
	struct fake fake = make(1, 1, "train.py", 8);

	fake.type = 4711;
	check(&fake, 32, "?");
	fake = make(1, 1, "train.py", 8);
	fake.state &= ~(1u << 5);
	check(&fake, 32, "?");
	fake = make(1, 0, "train.py", 8);
	fake.state = 3u << 2 | 1u << 5;
	check(&fake, 32, "?");
	fake = make(1, 1, "train.py", 8);
	fake.length = UINT64_MAX;
	check(&fake, 32, "?");
	check(NULL, 32, "?");
}
