/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "record/name.h"
#include "record/stale.h"
#include "verify.h"

#define HOUR 3600

static char directory[] = "/tmp/gpc-stale-XXXXXX";
static int dir_fd = -1;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[256];

	(void)state;
	close(dir_fd);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

static int empty_directory(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s/*", directory);
	return system(command);
}

/* A recording that was last changed `age` seconds ago; the descriptor stays open. */
static int make_recording(const char *name, time_t age, uint32_t state)
{
	struct gpucache_header header = { .magic = GPUCACHE_FORMAT_MAGIC, .state = state };
	struct timespec times[2] = { { .tv_sec = time(NULL) - age },
		{ .tv_sec = time(NULL) - age } };
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &header, sizeof header), sizeof header);
	assert_int_equal(futimens(fd, times), 0);
	return fd;
}

static void make_dead(const char *name, time_t age, uint32_t state)
{
	close(make_recording(name, age, GPUCACHE_STATE_OPENED | state));
}

static bool is_there(const char *name)
{
	return faccessat(dir_fd, name, F_OK, 0) == 0;
}

static void clean(void)
{
	gpc_stale_clean(dir_fd, gpc_clock_realtime_ns());
}

static void old_recordings_go_and_young_ones_stay(void **state)
{
	(void)state;
	make_dead("gpucache-a-1.gpucache", 73 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("gpucache-a-2.gpucache", 71 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("gpucache-a-3.gpucache", 0, GPUCACHE_STATE_CLEAN_EXIT);
	clean();
	assert_false(is_there("gpucache-a-1.gpucache"));
	assert_true(is_there("gpucache-a-2.gpucache"));
	assert_true(is_there("gpucache-a-3.gpucache"));
}

static void a_recording_that_somebody_writes_stays(void **state)
{
	int fd = make_recording("gpucache-live-1.gpucache", 1000 * HOUR, GPUCACHE_STATE_OPENED);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	make_dead("gpucache-dead-1.gpucache", 1, 0);
	clean();
	assert_true(is_there("gpucache-live-1.gpucache"));
	close(fd);
	clean();
	assert_false(is_there("gpucache-live-1.gpucache"));
}

static void the_newest_of_a_killed_process_stays_whatever_its_age(void **state)
{
	(void)state;
	make_dead("gpucache-old-1.gpucache", 200 * HOUR, 0);
	make_dead("gpucache-new-1.gpucache", 100 * HOUR, 0);
	make_dead("gpucache-end-1.gpucache", 90 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	clean();
	assert_false(is_there("gpucache-old-1.gpucache"));
	assert_true(is_there("gpucache-new-1.gpucache"));
	assert_false(is_there("gpucache-end-1.gpucache"));
}

static void only_the_newest_ones_stay(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GPC_STALE_KEEP + 10; i++) {
		char name[64];

		snprintf(name, sizeof name, "gpucache-n-%u.gpucache", i);
		make_dead(name, HOUR + 60 * (time_t)i, GPUCACHE_STATE_CLEAN_EXIT);
	}
	clean();
	for (unsigned i = 0; i < GPC_STALE_KEEP + 10; i++) {
		char name[64];

		snprintf(name, sizeof name, "gpucache-n-%u.gpucache", i);
		assert_int_equal(is_there(name), i < GPC_STALE_KEEP);
	}
}

static void files_of_the_last_minute_stay_even_when_there_are_many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GPC_STALE_KEEP + 5; i++) {
		char name[64];

		snprintf(name, sizeof name, "gpucache-y-%u.gpucache", i);
		make_dead(name, (time_t)i, GPUCACHE_STATE_CLEAN_EXIT);
	}
	clean();
	assert_true(is_there("gpucache-y-24.gpucache"));
}

static void what_is_not_ours_stays(void **state)
{
	(void)state;
	make_dead("gpucache-x.txt", 1000 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("other-1.gpucache", 1000 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("gpucache-.gpucache", 1000 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	assert_int_equal(mkdirat(dir_fd, "gpucache-dir-1.gpucache", 0700), 0);
	assert_int_equal(symlinkat("gpucache-x.txt", dir_fd, "gpucache-link-1.gpucache"), 0);
	assert_int_equal(mkfifoat(dir_fd, "gpucache-fifo-1.gpucache", 0600), 0);
	if (geteuid() == 0) {
		make_dead("gpucache-foreign-1.gpucache", 1000 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
		assert_int_equal(
			fchownat(dir_fd, "gpucache-foreign-1.gpucache", 61234, 61234, 0), 0);
	}
	clean();
	assert_true(is_there("gpucache-x.txt"));
	assert_true(is_there("other-1.gpucache"));
	assert_true(is_there("gpucache-.gpucache"));
	assert_true(is_there("gpucache-dir-1.gpucache"));
	assert_true(is_there("gpucache-link-1.gpucache"));
	assert_true(is_there("gpucache-fifo-1.gpucache"));
	if (geteuid() == 0)
		assert_true(is_there("gpucache-foreign-1.gpucache"));
}

static void an_unfinished_file_goes_by_its_age(void **state)
{
	(void)state;
	close(make_recording("gpucache-torn-1.gpucache", 100 * HOUR, 0));
	clean();
	assert_false(is_there("gpucache-torn-1.gpucache"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(old_recordings_go_and_young_ones_stay, empty_directory),
		cmocka_unit_test_teardown(a_recording_that_somebody_writes_stays, empty_directory),
		cmocka_unit_test_teardown(
			the_newest_of_a_killed_process_stays_whatever_its_age, empty_directory),
		cmocka_unit_test_teardown(only_the_newest_ones_stay, empty_directory),
		cmocka_unit_test_teardown(
			files_of_the_last_minute_stay_even_when_there_are_many, empty_directory),
		cmocka_unit_test_teardown(what_is_not_ours_stays, empty_directory),
		cmocka_unit_test_teardown(an_unfinished_file_goes_by_its_age, empty_directory),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
