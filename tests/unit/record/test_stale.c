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
	if (!mkdtemp(directory))
		return -1;
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[256];

	close(dir_fd);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

GROUP(set_up, tear_down);

static int empty_directory(void **state)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf %s/*", directory);
	return system(command);
}

FIXTURE(NULL, empty_directory);

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

static void clean_within(uint64_t total_bytes, uint64_t free_bytes)
{
	const struct gpc_stale_space space = { total_bytes, free_bytes };

	gpc_stale_clean(dir_fd, gpc_clock_realtime_ns(), &space);
}

/* Where room is plenty. */
static void clean(void)
{
	clean_within(0, 0);
}

TEST(old_recordings_go_and_young_ones_stay)
{
	make_dead("gpucache-a-1.gpucache", 73 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("gpucache-a-2.gpucache", 71 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("gpucache-a-3.gpucache", 0, GPUCACHE_STATE_CLEAN_EXIT);
	clean();
	assert_false(is_there("gpucache-a-1.gpucache"));
	assert_true(is_there("gpucache-a-2.gpucache"));
	assert_true(is_there("gpucache-a-3.gpucache"));
}

TEST(a_recording_that_somebody_writes_stays)
{
	int fd = make_recording("gpucache-live-1.gpucache", 1000 * HOUR, GPUCACHE_STATE_OPENED);

	assert_int_equal(flock(fd, LOCK_EX), 0);
	make_dead("gpucache-dead-1.gpucache", 1, 0);
	clean();
	assert_true(is_there("gpucache-live-1.gpucache"));
	close(fd);
	clean();
	assert_false(is_there("gpucache-live-1.gpucache"));
}

TEST(the_newest_of_a_killed_process_stays_whatever_its_age)
{
	make_dead("gpucache-old-1.gpucache", 200 * HOUR, 0);
	make_dead("gpucache-new-1.gpucache", 100 * HOUR, 0);
	make_dead("gpucache-end-1.gpucache", 90 * HOUR, GPUCACHE_STATE_CLEAN_EXIT);
	clean();
	assert_false(is_there("gpucache-old-1.gpucache"));
	assert_true(is_there("gpucache-new-1.gpucache"));
	assert_false(is_there("gpucache-end-1.gpucache"));
}

TEST(only_the_newest_ones_stay)
{
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

TEST(files_of_the_last_minute_stay_even_when_there_are_many)
{
	for (unsigned i = 0; i < GPC_STALE_KEEP + 5; i++) {
		char name[64];

		snprintf(name, sizeof name, "gpucache-y-%u.gpucache", i);
		make_dead(name, (time_t)i, GPUCACHE_STATE_CLEAN_EXIT);
	}
	clean();
	assert_true(is_there("gpucache-y-24.gpucache"));
}

TEST(what_is_not_ours_stays)
{
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

TEST(an_unfinished_file_goes_by_its_age)
{
	close(make_recording("gpucache-torn-1.gpucache", 100 * HOUR, 0));
	clean();
	assert_false(is_there("gpucache-torn-1.gpucache"));
}

static uint64_t bytes_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, name, &st, 0), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A recording of `n_used` written pages of `n`, all of them allocated, as long as the last is. */
static void make_dead_of(const char *name, time_t age, uint32_t state, unsigned n_used, unsigned n)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - age },
		{ .tv_sec = time(NULL) - age } };
	int fd = make_recording(name, age, GPUCACHE_STATE_OPENED | state);
	char page[GPUCACHE_PAGE];

	memset(page, 'x', sizeof page);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)n * GPUCACHE_PAGE), 0);
	/* Every other one, so that there are holes between. */
	for (unsigned i = 1; i < n_used; i++)
		assert_int_equal(
			pwrite(fd, page, sizeof page, 2 * (off_t)i * GPUCACHE_PAGE), sizeof page);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

TEST(a_failed_request_outlives_any_number_of_short_runs)
{
	char name[64];

	make_dead("gpucache-oom-1.gpucache", 50 * HOUR,
		GPUCACHE_STATE_OOM_SEEN | GPUCACHE_STATE_CLEAN_EXIT);
	make_dead("gpucache-old-1.gpucache", 73 * HOUR,
		GPUCACHE_STATE_OOM_SEEN | GPUCACHE_STATE_CLEAN_EXIT);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "gpucache-short-%u.gpucache", i);
		make_dead(name, i % 2 ? (time_t)i : HOUR + (time_t)i, GPUCACHE_STATE_CLEAN_EXIT);
	}
	clean();
	assert_true(is_there("gpucache-oom-1.gpucache"));
	assert_false(is_there("gpucache-old-1.gpucache"));
	assert_true(is_there("gpucache-short-1.gpucache"));
	assert_false(is_there("gpucache-short-98.gpucache"));
}

TEST(as_many_stay_in_which_a_request_failed)
{
	char name[64];

	for (unsigned i = 0; i < 2 * (GPC_STALE_KEEP + 3); i++) {
		snprintf(name, sizeof name, "gpucache-m-%u.gpucache", i);
		make_dead(name, HOUR + (time_t)i,
			GPUCACHE_STATE_CLEAN_EXIT | (i % 2 ? GPUCACHE_STATE_OOM_SEEN : 0));
	}
	clean();
	for (unsigned i = 0; i < 2 * (GPC_STALE_KEEP + 3); i++) {
		snprintf(name, sizeof name, "gpucache-m-%u.gpucache", i);
		assert_int_equal(is_there(name), i < 2 * GPC_STALE_KEEP);
	}
}

TEST_WITH(the_budget_leaves_half_of_a_file_system_free, NULL, NULL)
{
	const struct gpc_stale_space empty = { 64 << 20, 64 << 20 };
	const struct gpc_stale_space half = { 64 << 20, 30 << 20 };
	const struct gpc_stale_space full = { 64 << 20, 0 };
	const struct gpc_stale_space unknown = { 0, 0 };

	assert_int_equal(gpc_stale_budget(&empty, 0), 8 << 20);
	assert_int_equal(gpc_stale_budget(&half, 20 << 20), 8 << 20);
	assert_int_equal(gpc_stale_budget(&half, 5 << 20), 3 << 20);
	assert_int_equal(gpc_stale_budget(&half, 0), 2 << 20);
	assert_int_equal(gpc_stale_budget(&full, 8 << 20), 2 << 20);
	assert_int_equal(gpc_stale_budget(&unknown, 8 << 20), UINT64_MAX);
}

#define PAGES(n) ((uint64_t)(n)*GPUCACHE_PAGE)

TEST(beyond_the_budget_empty_pages_go_first)
{
	struct timespec before;
	struct stat st;
	char data[GPUCACHE_PAGE];
	int fd;

	make_dead_of("gpucache-a-1.gpucache", HOUR, GPUCACHE_STATE_CLEAN_EXIT, 3, 100);
	make_dead_of("gpucache-b-1.gpucache", HOUR, 0, 1, 100);
	fd = openat(dir_fd, "gpucache-a-1.gpucache", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	before = st.st_mtim;
	/* Within it nothing happens. */
	clean_within(PAGES(1600), PAGES(1600));
	assert_int_equal(bytes_of("gpucache-a-1.gpucache"), PAGES(100));
	clean_within(PAGES(800), PAGES(800));
	assert_int_equal(bytes_of("gpucache-a-1.gpucache"), PAGES(3));
	assert_int_equal(bytes_of("gpucache-b-1.gpucache"), PAGES(1));
	/* It reads as before, and is as old as before. */
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, PAGES(100));
	assert_memory_equal(&st.st_mtim, &before, sizeof before);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(pread(fd, data, sizeof data, (off_t)PAGES(i)), sizeof data);
		assert_int_equal(data[8], i == 2 || i == 4 ? 'x' : i == 0 ? '-' : 0);
	}
	close(fd);
}

TEST(a_recording_that_somebody_writes_keeps_its_pages)
{
	int fd;

	make_dead_of("gpucache-a-1.gpucache", HOUR, 0, 1, 100);
	fd = openat(dir_fd, "gpucache-a-1.gpucache", O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	make_dead_of("gpucache-b-1.gpucache", HOUR, 0, 1, 100);
	clean_within(PAGES(80), PAGES(80));
	assert_int_equal(bytes_of("gpucache-a-1.gpucache"), PAGES(100));
	assert_int_equal(bytes_of("gpucache-b-1.gpucache"), PAGES(1));
	close(fd);
}

TEST(then_recordings_go_and_the_most_valuable_stay)
{
	const uint32_t clean_exit = GPUCACHE_STATE_CLEAN_EXIT;

	make_dead_of("gpucache-new-1.gpucache", 1, clean_exit, 10, 30);
	make_dead_of("gpucache-new-2.gpucache", 2, clean_exit, 10, 30);
	make_dead_of("gpucache-new-3.gpucache", 3, clean_exit, 10, 30);
	make_dead_of("gpucache-oom-1.gpucache", 9, clean_exit | GPUCACHE_STATE_OOM_SEEN, 10, 30);
	make_dead_of("gpucache-oom-2.gpucache", 10, clean_exit | GPUCACHE_STATE_OOM_SEEN, 10, 30);
	make_dead_of("gpucache-end-1.gpucache", 8, 0, 10, 30);
	clean_within(PAGES(8 * 45), PAGES(8 * 45));
	assert_true(is_there("gpucache-oom-1.gpucache"));
	assert_true(is_there("gpucache-end-1.gpucache"));
	assert_true(is_there("gpucache-new-1.gpucache"));
	assert_true(is_there("gpucache-oom-2.gpucache"));
	assert_false(is_there("gpucache-new-2.gpucache"));
	assert_false(is_there("gpucache-new-3.gpucache"));
	clean_within(PAGES(8 * 25), PAGES(8 * 25));
	assert_true(is_there("gpucache-oom-1.gpucache"));
	assert_true(is_there("gpucache-end-1.gpucache"));
	assert_false(is_there("gpucache-new-1.gpucache"));
	clean_within(PAGES(8 * 15), PAGES(8 * 15));
	assert_true(is_there("gpucache-oom-1.gpucache"));
	assert_false(is_there("gpucache-end-1.gpucache"));
	clean_within(PAGES(8 * 5), PAGES(8 * 5));
	assert_false(is_there("gpucache-oom-1.gpucache"));
}

TEST(a_young_file_that_holds_nothing_yet_stays_beyond_every_budget)
{
	close(make_recording("gpucache-torn-1.gpucache", 1, 0));
	clean_within(1, 0);
	assert_true(is_there("gpucache-torn-1.gpucache"));
}
