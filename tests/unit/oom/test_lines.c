/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "oom/lines.h"

static char buf[4096];
static struct gpc_text text;
static struct gpc_lines lines;

static int set_up(void **state)
{
	text = gpc_text_init(buf, sizeof buf);
	lines = (struct gpc_lines){ .out = &text, .max_lines = 100, .max_bytes = 4000 };
	return 0;
}

FIXTURE(set_up, NULL);

static size_t longest_line(void)
{
	size_t most = 0;

	for (const char *at = buf; *at;) {
		size_t n = strcspn(at, "\n");

		most = n > most ? n : most;
		at += n + (at[n] == '\n');
	}
	return most;
}

static void words(char *ret, int n)
{
	*ret = '\0';
	for (int i = 0; i < n; i++)
		strcat(ret, i % 7 ? "some words " : "12.00 GiB ");
}

TEST(numbers_keep_their_units)
{
	char many[2000];

	words(many, 150);
	gpc_lines_put_words(&lines, "TRY", many, strlen(many));
	assert_true(longest_line() <= GPC_LINES_WIDTH);
	assert_null(strstr(buf, "12.00\n"));
	assert_null(strstr(buf, "..."));
}

/* Whatever the room in lines or bytes, half a sentence says that it goes on. */
TEST(words_without_room_end_with_dots)
{
	char many[2000];

	words(many, 60);
	for (unsigned n = 1; n < 7; n++)
		for (size_t bytes = 120; bytes < 640; bytes++) {
			assert_int_equal(set_up(NULL), 0);
			lines.max_lines = n;
			lines.max_bytes = bytes;
			gpc_lines_put_words(&lines, "TRY", many, strlen(many));
			assert_true(strlen(buf) <= bytes && lines.n_bytes == strlen(buf));
			assert_true(longest_line() <= GPC_LINES_WIDTH);
			assert_string_equal(buf + strlen(buf) - 5, " ...\n");
		}
}

TEST(a_line_without_room_is_left_out)
{
	lines.max_lines = 1;
	assert_true(gpc_lines_put(&lines, "one", 3));
	assert_false(gpc_lines_put(&lines, "two", 3));
	assert_string_equal(buf, "one\n");
}
