/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/io.h"
#include "unit.h"

static void a_file_is_read_whole_and_ended(void **state)
{
	char path[] = "/tmp/gpc-io-XXXXXX";
	char buf[16];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(gpc_io_write(fd, "0123456789", 10), GPC_OK);
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

static void a_full_device_is_an_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(gpc_io_write(fd, "x", 1), GPC_IO);
	assert_int_equal(errno, ENOSPC);
	close(fd);
	assert_int_equal(gpc_io_write(-1, "x", 1), GPC_IO);
	assert_int_equal(errno, EBADF);
	assert_int_equal(gpc_io_write(-1, "x", 0), GPC_OK);
}

static void do_nothing(int number)
{
	(void)number;
}

static void *drain_slowly(void *arg)
{
	int fd = *(int *)arg;
	char buf[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0) {
		total += (size_t)n;
		usleep(200);
	}
	return (void *)total;
}

static void *disturb(void *arg)
{
	pthread_t *writer = arg;

	for (int i = 0; i < 50; i++) {
		pthread_kill(*writer, SIGUSR1);
		usleep(500);
	}
	return NULL;
}

static void signals_do_not_cut_a_write(void **state)
{
	struct sigaction action = { .sa_handler = do_nothing };
	static char data[1 << 20];
	pthread_t self = pthread_self();
	pthread_t reader;
	pthread_t disturber;
	int ends[2];
	void *total;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&reader, NULL, drain_slowly, &ends[0]), 0);
	assert_int_equal(pthread_create(&disturber, NULL, disturb, &self), 0);
	assert_int_equal(gpc_io_write(ends[1], data, sizeof data), GPC_OK);
	pthread_join(disturber, NULL);
	close(ends[1]);
	pthread_join(reader, &total);
	assert_int_equal((size_t)total, sizeof data);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_and_ended),
		cmocka_unit_test(a_missing_file_says_so),
		cmocka_unit_test(a_full_device_is_an_error),
		cmocka_unit_test(signals_do_not_cut_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
