/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "unit.h"

TEST(a_file_is_read_whole_and_ended)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	char buf[16];
	int fd = mkstemp(path);

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

TEST(a_missing_file_says_so)
{
	char buf[16];

	assert_int_equal(gpc_io_read_file("/no/such/file", buf, sizeof buf), -1);
	assert_int_equal(errno, ENOENT);
}

TEST(a_descriptor_is_known_by_its_file)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	int fd = mkstemp(path);
	struct gpc_io_file file = gpc_io_file_of(fd);
	const struct gpc_io_file none = gpc_io_file_of(-1);

	assert_true(gpc_io_is(fd, &file));
	assert_false(gpc_io_is(-1, &file));
	assert_false(gpc_io_is(-1, &none));
	assert_false(gpc_io_is(fd, &none));
	close(fd);
	assert_false(gpc_io_is(fd, &file));
	unlink(path);
}

TEST(a_number_that_is_another_file_now_is_not_closed)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	int fd = mkstemp(path);
	struct gpc_io_file file = gpc_io_file_of(fd);
	int other = open("/dev/null", O_RDONLY);

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

TEST(a_read_ends_with_the_file)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	int fd = mkstemp(path);
	char buf[8] = "";

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

/* Runs a test in a child whose descriptors below `end` are closed. */
static void without_descriptors(int end, bool (*test)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		for (int fd = 0; fd < end; fd++)
			close(fd);
		_exit(test() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

static bool are_standard_closed(void)
{
	return is_closed(0) && is_closed(1) && is_closed(2);
}

static bool is_high(int fd)
{
	return fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC && are_standard_closed();
}

static bool open_all(void)
{
	int ends[2];
	char byte = 0;
	int file = gpc_io_open("/proc/self/comm", O_RDWR);
	int folder = gpc_io_open("/proc", O_RDONLY | O_DIRECTORY);

	return is_high(file) && is_high(folder) && is_high(gpc_io_open_at(folder, "stat", 0, 0)) &&
	       gpc_io_pipe(ends) && is_high(ends[0]) && is_high(ends[1]) &&
	       write(ends[1], "x", 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'x' &&
	       read(ends[0], &byte, 1) == -1 && errno == EAGAIN;
}

TEST(what_is_opened_leaves_the_standard_numbers_free_and_ends_with_exec)
{
	without_descriptors(3, open_all);
}

static bool open_nothing(void)
{
	const struct rlimit three = { 3, 3 };
	int ends[2];

	return gpc_io_lift(-1) == -1 && gpc_io_open("/no/such/file", O_RDONLY) == -1 &&
	       errno == ENOENT && setrlimit(RLIMIT_NOFILE, &three) == 0 &&
	       gpc_io_open("/proc", O_RDONLY) == -1 && !gpc_io_pipe(ends) && are_standard_closed();
}

TEST(without_a_number_above_them_nothing_is_opened)
{
	without_descriptors(3, open_nothing);
}

static bool occupy(void)
{
	struct gpc_io_low low;
	int between, after;

	low = gpc_io_low_take();
	between = open("/proc", O_RDONLY);
	if (between < 3 || fcntl(0, F_GETFD) != FD_CLOEXEC || write(1, "x", 1) != -1 ||
		errno != EBADF || dup2(between, 2) != 2)
		return false;
	gpc_io_low_give_back(&low);
	after = open("/proc", O_RDONLY);
	return after == 0 && is_closed(1) && fcntl(2, F_GETFD) == 0;
}

TEST(a_library_of_others_finds_the_standard_numbers_taken)
{
	without_descriptors(3, occupy);
}

static bool occupy_one(void)
{
	struct gpc_io_low low = gpc_io_low_take();

	gpc_io_low_give_back(&low);
	return is_closed(0) && !is_closed(1) && !is_closed(2);
}

TEST(what_is_open_there_stays_open)
{
	without_descriptors(1, occupy_one);
}
