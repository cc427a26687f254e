/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/lib/clean_stream.h"
#include "unit.h"

/* Writes and flushes each piece, and checks what the stream has written in the end. */
static void assert_written(const char *const pieces[], const char *expected)
{
	char buf[256] = "";
	int ends[2];
	FILE *stream;

	assert_int_equal(pipe(ends), 0);
	stream = gpc_clean_stream(ends[1]);
	assert_non_null(stream);
	for (; *pieces; pieces++) {
		assert_true(fputs(*pieces, stream) >= 0);
		assert_int_equal(fflush(stream), 0);
	}
	assert_int_equal(fclose(stream), 0);
	assert_true(read(ends[0], buf, sizeof buf - 1) >= 0);
	assert_string_equal(buf, expected);
	close(ends[0]);
}

TEST(text_passes_and_controls_do_not)
{
	assert_written((const char *const[]){ "a\tb\n\r\033]0;x\a\177", NULL }, "a\tb\n??]0;x??");
	assert_written((const char *const[]){ "\xc2\x9b \xe2\x80\xae \x9b", NULL }, "?? ??? ?");
	assert_written(
		(const char *const[]){ "träge \xf0\x9f\x90\x8c", NULL }, "träge \xf0\x9f\x90\x8c");
}

TEST(a_letter_may_come_in_two_writes)
{
	assert_written((const char *const[]){ "tr\xc3", "\xa4ge", NULL }, "träge");
	assert_written((const char *const[]){ "tr\xc3", "x", NULL }, "tr?x");
	assert_written((const char *const[]){ "\xe2", "\x80", "\xae.", NULL }, "???.");
	assert_written((const char *const[]){ "end\xe2\x80", NULL }, "end??");
}

TEST(colours_pass_where_they_are_wanted)
{
	gpc_clean_let_colours(true);
	assert_written(
		(const char *const[]){ "\033[1;31mred\033[0m", NULL }, "\033[1;31mred\033[0m");
	assert_written(
		(const char *const[]){ "\033[1;3", "1mred\033[2J", NULL }, "\033[1;31mred?[2J");
	gpc_clean_let_colours(false);
	assert_written((const char *const[]){ "\033[1mx", NULL }, "?[1mx");
}

/* The message "out of memory" also passes through a clean stream. */
TEST(what_is_written_needs_no_memory)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* sanitizers map memory of their own */
#else
	static char text[8 << 20];
	FILE *stream = gpc_clean_stream(open("/dev/null", O_WRONLY | O_CLOEXEC));
	struct rlimit before;
	struct rlimit none;
	size_t n;

	assert_non_null(stream);
	memset(text, 'x', sizeof text);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	n = fwrite(text, 1, sizeof text, stream);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(n, sizeof text);
	assert_int_equal(fclose(stream), 0);
#endif
}
