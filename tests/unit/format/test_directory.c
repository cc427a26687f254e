/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/directory.h"
#include "tests/unit/format/recording_builder.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static char shared[64];

static int begin(void **state)
{
	char *dir = strdup("/tmp/gpucache-test-XXXXXX");

	assert_non_null(mkdtemp(dir));
	/* Not the usual places of the user who runs the tests. */
	unsetenv("GPUCACHE_OUTPUT");
	setenv("XDG_RUNTIME_DIR", dir, 1);
	setenv("TMPDIR", dir, 1);
	snprintf(shared, sizeof shared, "%s/shm", dir);
	gpc_directory_shared = shared;
	*state = dir;
	return 0;
}

static int end(void **state)
{
	nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(*state);
	return 0;
}

FIXTURE(begin, end);

/* A recording of process `pid` that started `started_s` after all others, as dir/name. */
static void write_recording(const char *dir, const char *name, uint32_t pid, uint64_t started_s)
{
	struct recording_builder b;
	char path[400];

	mkdir(dir, 0700);
	builder_init(&b);
	b.header->pid = pid;
	/* Far in the future: newer than anything that a machine under test may have. */
	b.header->start_realtime_ns = (UINT64_C(8000000000) + started_s) * 1000000000;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	builder_write(&b, path);
	builder_fini(&b);
}

TEST(the_newest_start_comes_first_whatever_the_name)
{
	struct gpc_directory directory;
	const char *dir = *state;

	write_recording(dir, "c.gpucache", 1, 10);
	write_recording(dir, "a.gpucache", 2, 30);
	write_recording(dir, "b.gpucache", 3, 20);
	gpc_directory_open(&directory, dir);
	assert_int_equal(directory.n_entries, 3);
	assert_int_equal(directory.entries[0].header.pid, 2);
	assert_int_equal(directory.entries[1].header.pid, 3);
	assert_int_equal(gpc_directory_find(&directory, 0)->header.pid, 2);
	assert_int_equal(gpc_directory_find(&directory, 1)->header.pid, 1);
	assert_null(gpc_directory_find(&directory, 99));
	gpc_directory_close(&directory);
}

TEST(other_names_are_left_alone_and_bad_files_are_listed_last)
{
	struct gpc_directory directory;
	const char *dir = *state;
	char path[300];
	FILE *file;

	write_recording(dir, "good.gpucache", 1, 0);
	write_recording(dir, "other.txt", 2, 5);
	write_recording(dir, ".gpucache", 3, 5);
	snprintf(path, sizeof path, "%s/bad.gpucache", dir);
	file = fopen(path, "w");
	fputs("hello", file);
	fclose(file);
	gpc_directory_open(&directory, dir);
	assert_int_equal(directory.n_entries, 2);
	assert_int_equal(directory.entries[1].status, GPC_INVALID);
	assert_true(strlen(directory.entries[1].why) > 0);
	assert_int_equal(gpc_directory_find(&directory, 0)->header.pid, 1);
	gpc_directory_close(&directory);
}

TEST(the_output_pattern_is_followed_up_to_its_first_percent)
{
	struct gpc_directory directory;
	const char *dir = *state;
	char pattern[300];
	char sub[300];

	snprintf(sub, sizeof sub, "%s/runs", dir);
	write_recording(sub, "x.gpucache", 77, 50);
	snprintf(pattern, sizeof pattern, "%s/runs/job-%%j/%%p.gpucache", dir);
	setenv("GPUCACHE_OUTPUT", pattern, 1);
	gpc_directory_open(&directory, NULL);
	assert_string_equal(directory.dirs[0], sub);
	assert_true(directory.is_there[0]);
	assert_int_equal(gpc_directory_find(&directory, 0)->header.pid, 77);
	gpc_directory_close(&directory);
}

TEST(directories_that_the_output_pattern_may_stand_for_are_read_newest_first)
{
	struct gpc_directory directory;
	const char *dir = *state;
	char pattern[300];
	char sub[300];

	snprintf(sub, sizeof sub, "%s/a[b]", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	for (unsigned i = 0; i < 9; i++) {
		const struct timespec times[] = { { .tv_sec = 100 + i }, { .tv_sec = 100 + i } };

		snprintf(sub, sizeof sub, "%s/a[b]/%%-%u-x", dir, i);
		write_recording(sub, "x.gpucache", 70 + i, 50);
		assert_int_equal(utimensat(AT_FDCWD, sub, times, 0), 0);
	}
	snprintf(pattern, sizeof pattern, "%s/a[b]/%%%%-%%j-%%q{NAME}/%%p.gpucache", dir);
	setenv("GPUCACHE_OUTPUT", pattern, 1);
	gpc_directory_open(&directory, NULL);
	assert_int_equal(directory.n_entries, GPC_DIRECTORY_MAX_MATCHES);
	assert_non_null(gpc_directory_find(&directory, 78));
	assert_null(gpc_directory_find(&directory, 70));
	gpc_directory_close(&directory);
}

TEST(the_runtime_and_temporary_directories_are_looked_into)
{
	struct gpc_directory directory;
	const char *dir = *state;
	char sub[300];

	snprintf(sub, sizeof sub, "%s/gpucache", dir);
	write_recording(sub, "x.gpucache", 5, 1);
	snprintf(sub, sizeof sub, "%s/gpucache-%u", dir, (unsigned)geteuid());
	write_recording(sub, "y.gpucache", 6, 2);
	gpc_directory_open(&directory, NULL);
	assert_int_equal(directory.n_dirs, 3);
	assert_int_equal(gpc_directory_find(&directory, 0)->header.pid, 6);
	assert_int_equal(gpc_directory_find(&directory, 5)->header.pid, 5);
	gpc_directory_close(&directory);
}

TEST(a_usual_directory_that_is_a_link_or_another_users_is_not_read)
{
	struct gpc_directory directory;
	const char *dir = *state;
	char sub[300];
	char link[300];

	snprintf(sub, sizeof sub, "%s/elsewhere", dir);
	write_recording(sub, "x.gpucache", 5, 1);
	snprintf(link, sizeof link, "%s/gpucache", dir);
	assert_int_equal(symlink(sub, link), 0);
	/* Giving a directory away takes root. */
	if (geteuid() == 0) {
		snprintf(sub, sizeof sub, "%s/gpucache-0", dir);
		write_recording(sub, "y.gpucache", 6, 2);
		assert_int_equal(chown(sub, 12345, (gid_t)-1), 0);
	}
	gpc_directory_open(&directory, NULL);
	assert_null(gpc_directory_find(&directory, 5));
	assert_null(gpc_directory_find(&directory, 6));
	gpc_directory_close(&directory);
}

TEST(a_directory_that_is_not_there_is_empty)
{
	struct gpc_directory directory;

	gpc_directory_open(&directory, "/nowhere/at/all");
	assert_int_equal(directory.n_entries, 0);
	assert_false(directory.is_there[0]);
	assert_null(gpc_directory_find(&directory, 0));
	gpc_directory_close(&directory);
}

/* A process that used a GPU, if it did, and whose request failed and was recovered from, if it was. */
static void write_run(const char *dir, const char *name, uint64_t started_s, bool used, int failed)
{
	struct recording_builder b;
	char path[400];

	builder_init(&b);
	b.header->start_realtime_ns = (UINT64_C(8000000000) + started_s) * 1000000000;
	b.counters[1].context = used;
	if (failed) {
		b.header->state |= GPUCACHE_STATE_OOM_SEEN;
		b.ooms[0] =
			(struct gpucache_oom){ .seq = 2, .number = 1, .recovered = failed == 2 };
	}
	snprintf(path, sizeof path, "%s/%s.gpucache", dir, name);
	builder_write(&b, path);
	builder_fini(&b);
}

/* Of a job, that failed so many seconds after its start. */
static void write_rank(
	const char *dir, const char *name, uint64_t started_s, const char *job, double failed_s)
{
	struct recording_builder b;
	char path[512];

	builder_init(&b);
	b.header->start_realtime_ns = (UINT64_C(8000000000) + started_s) * 1000000000;
	strcpy(b.header->job, job);
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.ooms[0] = (struct gpucache_oom){ .seq = 2, .number = 1, .time_ns = builder_ns(failed_s) };
	snprintf(path, sizeof path, "%s/%s.gpucache", dir, name);
	builder_write(&b, path);
	builder_fini(&b);
}

static struct gpc_directory_choice choose_of(const char *dir, bool is_usual, const char *wanted)
{
	struct gpc_directory_choice choice;
	struct gpc_directory directory;

	gpc_directory_open(&directory, dir);
	choice = gpc_directory_choose(&directory, is_usual);
	if (wanted)
		assert_non_null(strstr(choice.entry->path, wanted));
	else
		assert_null(choice.entry);
	gpc_directory_close(&directory);
	return choice;
}

static struct gpc_directory_choice choose(const char *dir, const char *wanted)
{
	return choose_of(dir, false, wanted);
}

TEST(of_the_usual_directories_the_first_of_the_newest_job_is_chosen)
{
	const char *dir = *state;

	/* Long over when the others ran. */
	write_run(dir, "yesterday", 10, true, 1);
	write_run(dir, "newest", 60, true, 1);
	(void)choose_of(dir, true, "newest");
	(void)choose_of(dir, false, "newest");
	/* Ranks of one job: the last to start failed last. */
	write_rank(dir, "rank0", 70, "job7", 9);
	write_rank(dir, "rank1", 71, "job7", 4);
	write_rank(dir, "rank2", 72, "job7", 7);
	(void)choose_of(dir, true, "rank1");
	/* Started later, and failed before it. */
	write_rank(dir, "beside", 73, "", 90);
	write_rank(dir, "beside_too", 74, "", 2);
	(void)choose_of(dir, true, "beside_too");
}

TEST(the_first_that_ran_out_of_memory_is_chosen_then_the_newest_that_used_a_gpu)
{
	const char *dir = *state;
	struct gpc_directory_choice choice;

	assert_int_equal(choose(dir, NULL).n_recordings, 0);
	write_run(dir, "idle", 60, false, 0);
	assert_int_equal(choose(dir, "idle").worth, GPC_WORTH_NOTHING);
	write_run(dir, "old", 10, true, 0);
	write_run(dir, "recovered", 50, true, 2);
	choice = choose(dir, "recovered");
	assert_true(choice.worth == GPC_WORTH_USED && choice.n_newer == 1);
	write_run(dir, "failed", 20, true, 1);
	write_run(dir, "failed_later", 30, true, 1);
	choice = choose(dir, "failed_later");
	assert_true(choice.worth == GPC_WORTH_OOM && choice.n_newer == 2 && choice.n_failed == 2);
	assert_int_equal(choice.n_recordings, 5);
}
