/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

static int ends[2];

static int open_pipe(void **state)
{
	(void)state;
	if (pipe(ends) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		return -1;
	gpc_log_to(ends[1]);
	return 0;
}

static int close_pipe(void **state)
{
	(void)state;
	gpc_log_to(2);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static const char *written(void)
{
	static char buf[65536];
	ssize_t n = read(ends[0], buf, sizeof buf - 1);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void a_line_has_our_name_and_an_end(void **state)
{
	(void)state;
	gpc_log("%s %d", "number", 7);
	assert_string_equal(written(), "gpucache: number 7\n");
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
	static char text[5000];
	const char *line;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	gpc_log("%s", text);
	line = written();
	assert_int_equal(strlen(line), 1023);
	assert_int_equal(line[1022], '\n');
	assert_int_equal(line[1021], 'x');
}

static void lines_are_bounded_and_the_last_one_says_so(void **state)
{
	unsigned n_lines = 0;
	const char *text;

	(void)state;
	for (int i = 0; i < GPC_LOG_MAX_LINES + 50; i++)
		gpc_log("line");
	text = written();
	assert_non_null(strstr(text, "gpucache: further lines of this process are not shown\n"));
	for (; *text; text++)
		n_lines += *text == '\n';
	assert_int_equal(n_lines, GPC_LOG_MAX_LINES);
}

static void a_block_is_written_as_it_is(void **state)
{
	(void)state;
	gpc_log_block("a\nb\n", 4);
	assert_string_equal(written(), "a\nb\n");
}

static void errno_is_kept_even_when_nobody_listens(void **state)
{
	(void)state;
	gpc_log_to(-1);
	errno = 42;
	gpc_log("x");
	assert_int_equal(errno, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_line_has_our_name_and_an_end, open_pipe, close_pipe),
		cmocka_unit_test_setup_teardown(
			a_long_line_is_cut_and_still_ends, open_pipe, close_pipe),
		cmocka_unit_test_setup_teardown(
			lines_are_bounded_and_the_last_one_says_so, open_pipe, close_pipe),
		cmocka_unit_test_setup_teardown(a_block_is_written_as_it_is, open_pipe, close_pipe),
		cmocka_unit_test_setup_teardown(
			errno_is_kept_even_when_nobody_listens, open_pipe, close_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
