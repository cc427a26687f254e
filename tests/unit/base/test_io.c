/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "unit.h"

static void a_file_is_read_whole_and_ended(void **state)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	char buf[16];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "0123456789", 10), 10);
	close(fd);
	memset(buf, 'x', sizeof buf);
	assert_int_equal(gpc_io_read_file(path, buf, sizeof buf), 10);
	assert_string_equal(buf, "0123456789");
	assert_int_equal(gpc_io_read_file(path, buf, 5), 4);
	assert_string_equal(buf, "0123");
	assert_int_equal(gpc_io_read_file(path, buf, 1), 0);
	assert_string_equal(buf, "");
	unlink(path);
}

static void a_missing_file_says_so(void **state)
{
	char buf[16];

	(void)state;
	assert_int_equal(gpc_io_read_file("/no/such/file", buf, sizeof buf), -1);
	assert_int_equal(errno, ENOENT);
}

static void a_descriptor_is_known_by_its_file(void **state)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	int fd = mkstemp(path);
	struct gpc_io_file file = gpc_io_file_of(fd);
	const struct gpc_io_file none = gpc_io_file_of(-1);

	(void)state;
	assert_true(gpc_io_is(fd, &file));
	assert_false(gpc_io_is(-1, &file));
	assert_false(gpc_io_is(-1, &none));
	assert_false(gpc_io_is(fd, &none));
	close(fd);
	assert_false(gpc_io_is(fd, &file));
	unlink(path);
}

static void a_number_that_is_another_file_now_is_not_closed(void **state)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	int fd = mkstemp(path);
	struct gpc_io_file file = gpc_io_file_of(fd);
	int other = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(dup2(other, fd), fd);
	gpc_io_close(fd, &file);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	file = gpc_io_file_of(fd);
	gpc_io_close(fd, &file);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	close(other);
	unlink(path);
}

static void a_read_ends_with_the_file(void **state)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	int fd = mkstemp(path);
	char buf[8] = "";

	(void)state;
	assert_int_equal(write(fd, "abcdef", 6), 6);
	assert_int_equal(gpc_io_read_at(fd, buf, 3, 2), 3);
	assert_memory_equal(buf, "cde", 3);
	assert_int_equal(gpc_io_read_at(fd, buf, sizeof buf, 4), 2);
	assert_memory_equal(buf, "ef", 2);
	assert_int_equal(gpc_io_read_at(fd, buf, sizeof buf, 6), 0);
	close(fd);
	unlink(path);
	assert_int_equal(gpc_io_read_at(fd, buf, sizeof buf, 0), -1);
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_and_ended),
		cmocka_unit_test(a_missing_file_says_so),
		cmocka_unit_test(a_descriptor_is_known_by_its_file),
		cmocka_unit_test(a_number_that_is_another_file_now_is_not_closed),
		cmocka_unit_test(a_read_ends_with_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
