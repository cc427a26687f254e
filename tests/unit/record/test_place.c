/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our directories have the uid in their names, so each test that attacks them switches to an unused uid in a child
 * process.  That needs root; otherwise these tests are skipped.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "record/identity.h"
#include "record/name.h"
#include "record/place.h"
#include "verify.h"

#define TEST_UID 61234
#define SHM      "/dev/shm/gpucache-61234"

static char directory[] = "/tmp/gpc-place-XXXXXX";

static __attribute__((format(printf, 1, 2))) int run(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	return system(command);
}

static int set_up(void **state)
{
	own_shared_memory(state);
	return !mkdtemp(directory) || chmod(directory, 0777) ? -1 : 0;
}

static int tear_down(void **state)
{
	return run("rm -rf %s %s", directory, geteuid() == 0 ? SHM : "");
}

GROUP(set_up, tear_down);

/* Runs `test` as the user TEST_UID, with `directory`/<name> as both fallbacks. */
static void as_other_user(bool (*test)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		unsetenv("XDG_RUNTIME_DIR");
		setenv("TMPDIR", directory, 1);
		if (setgid(TEST_UID) || setuid(TEST_UID))
			_exit(2);
		_exit(test() ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	run("rm -rf %s %s-*", SHM, SHM);
	assert_int_equal(status, 0);
}

/* What every file must begin with, and how often one was begun. */
static const char first_words[] = "filled before it was named";
static int n_filled;

static void fill(void *arg, void *base, size_t size)
{
	memcpy(base, arg, sizeof first_words);
	n_filled++;
}

static enum gpc_status open_place(struct gpc_place *place, const char *pattern)
{
	const struct gpc_place_wish wish = { .size = 2 * GPC_MIB,
		.least = GPC_MIB,
		.fill = fill,
		.arg = (void *)(uintptr_t)first_words };
	struct gpucache_header identity;

	gpc_identity_read(&identity, -1);
	return gpc_place_open(place, pattern, &identity, &wish);
}

static void close_place(struct gpc_place *place)
{
	munmap(place->base, place->size);
	close(place->fd);
	unlink(place->path);
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* --- Our own directories ---------------------------------------------------------------------- */

static bool default_place(void)
{
	struct gpc_place place;
	struct stat st;

	EXPECT(open_place(&place, NULL) == GPC_OK);
	EXPECT(starts_with(place.path, SHM "/" GPC_NAME_PREFIX));
	EXPECT(place.default_errno == 0);
	EXPECT(stat(SHM, &st) == 0 && (st.st_mode & 07777) == 0700 && st.st_uid == TEST_UID);
	EXPECT(fstat(place.fd, &st) == 0 && (st.st_mode & 07777) == 0600);
	EXPECT(fcntl(place.fd, F_GETFD) == FD_CLOEXEC);
	close_place(&place);
	return true;
}

TEST(the_default_place_is_a_closed_directory_in_shared_memory)
{
	as_other_user(default_place);
}

static bool falls_back(void)
{
	struct gpc_place place;

	EXPECT(open_place(&place, "") == GPC_OK);
	EXPECT(starts_with(place.path, directory));
	EXPECT(strstr(place.path, "/gpucache-61234/"));
	EXPECT(place.default_errno != 0);
	close_place(&place);
	return true;
}

TEST(a_directory_that_is_a_symbolic_link_is_refused)
{
	if (geteuid() == 0)
		run("rm -rf %s; mkdir -m 0777 %s/target; chown %d %s/target; ln -s %s/target %s",
			SHM, directory, TEST_UID, directory, directory, SHM);
	as_other_user(falls_back);
}

TEST(a_directory_of_another_user_is_refused)
{
	if (geteuid() == 0)
		run("rm -rf %s; mkdir %s; chmod 0777 %s", SHM, SHM, SHM);
	as_other_user(falls_back);
}

TEST(a_directory_that_the_group_may_write_is_refused)
{
	if (geteuid() == 0)
		run("rm -rf %s; mkdir %s; chown %d %s; chmod 0770 %s", SHM, SHM, TEST_UID, SHM,
			SHM);
	as_other_user(falls_back);
}

TEST(a_file_in_place_of_the_directory_is_refused)
{
	if (geteuid() == 0)
		run("rm -rf %s; touch %s; chown %d %s; chmod 0700 %s", SHM, SHM, TEST_UID, SHM,
			SHM);
	as_other_user(falls_back);
}

static bool falls_back_to_runtime_dir(void)
{
	struct gpc_place place;
	char expected[256];

	setenv("XDG_RUNTIME_DIR", directory, 1);
	snprintf(expected, sizeof expected, "%s/gpucache/", directory);
	EXPECT(open_place(&place, NULL) == GPC_OK);
	EXPECT(starts_with(place.path, expected));
	close_place(&place);
	return true;
}

TEST(the_runtime_directory_comes_second)
{
	if (geteuid() == 0)
		run("rm -rf %s; touch %s", SHM, SHM);
	as_other_user(falls_back_to_runtime_dir);
}

static bool finds_nothing(void)
{
	struct gpc_place place;

	setenv("TMPDIR", "/proc", 1);
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	EXPECT(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 0, 0 }) == 0);
	EXPECT(open_place(&place, "/proc/no/such/place") == GPC_IO);
	EXPECT(place.fd == -1 && place.path[0] == '\0' && place.pattern_errno != 0);
	return true;
}

TEST(without_any_place_it_says_so)
{
	if (geteuid() == 0)
		run("rm -rf %s; touch %s", SHM, SHM);
	as_other_user(finds_nothing);
}

static bool records_privately(void)
{
	struct gpc_record_params params = { .pattern = "/proc/no/%z", .rank = -1 };
	struct gpc_record rec;

	setenv("TMPDIR", "/proc", 1);
	EXPECT(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 0, 0 }) == 0);
	EXPECT(gpc_record_open(&rec, &params) == GPC_IO);
	EXPECT(errno == ENOENT || errno == EACCES || errno == EPERM || errno == EFBIG);
	EXPECT(rec.fd == -1 && rec.path[0] == '\0');
	EXPECT(rec.pattern_errno != 0 && rec.pattern_error == 'z');
	EXPECT(rec.header->state == GPUCACHE_STATE_OPENED);
	EXPECT(gpc_record_append_line(&rec, "still recorded"));
	gpc_record_close(&rec);
	return true;
}

TEST(a_recording_without_a_place_lies_on_private_memory)
{
	if (geteuid() == 0)
		run("rm -rf %s; touch %s", SHM, SHM);
	as_other_user(records_privately);
}

static bool cannot_be_mapped(void)
{
	struct rlimit limit = { 4096, 4096 };
	struct gpc_place place;
	char path[300];

	snprintf(path, sizeof path, "%s/unmapped", directory);
	EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
	EXPECT(open_place(&place, path) == GPC_IO);
	EXPECT(place.pattern_errno == ENOMEM);
	EXPECT(access(path, F_OK) == -1);
	return true;
}

TEST(a_file_that_cannot_be_mapped_is_removed)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* the sanitizer needs address space of its own */
#endif
	as_other_user(cannot_be_mapped);
}

static bool name_is_taken(void)
{
	struct gpucache_header identity;
	struct gpc_place first;
	struct gpc_place second;
	char expected[300];

	gpc_identity_read(&identity, -1);
	EXPECT(open_place(&first, NULL) == GPC_OK);
	EXPECT(open_place(&second, NULL) == GPC_OK);
	snprintf(expected, sizeof expected, "-%u-1" GPC_NAME_SUFFIX, identity.pid);
	EXPECT(strstr(second.path, expected));
	close_place(&first);
	close_place(&second);
	return true;
}

TEST(a_name_that_exists_is_never_opened)
{
	as_other_user(name_is_taken);
}

/* --- The user's pattern ----------------------------------------------------------------------- */

TEST(a_pattern_makes_its_directories)
{
	struct gpc_place place;
	char pattern[256];
	struct stat st;

	snprintf(pattern, sizeof pattern, "%s/a/b/c/file-%%p", directory);
	assert_int_equal(open_place(&place, pattern), GPC_OK);
	snprintf(pattern, sizeof pattern, "%s/a/b/c/file-%d", directory, getpid());
	assert_string_equal(place.path, pattern);
	assert_int_equal(place.pattern_errno, 0);
	snprintf(pattern, sizeof pattern, "%s/a/b", directory);
	assert_int_equal(stat(pattern, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close_place(&place);
}

TEST(a_pattern_that_is_a_directory_gets_the_default_name)
{
	struct gpc_place place;
	char expected[300];

	assert_int_equal(open_place(&place, directory), GPC_OK);
	snprintf(expected, sizeof expected, "%s/" GPC_NAME_PREFIX, directory);
	assert_true(starts_with(place.path, expected));
	close_place(&place);
	snprintf(expected, sizeof expected, "%s/new/", directory);
	assert_int_equal(open_place(&place, expected), GPC_OK);
	assert_true(starts_with(place.path, expected));
	close_place(&place);
}

TEST(a_relative_pattern_is_reported_as_an_absolute_path)
{
	struct gpc_place place;
	char before[512];
	char expected[300];

	assert_non_null(getcwd(before, sizeof before));
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(open_place(&place, "plain"), GPC_OK);
	snprintf(expected, sizeof expected, "%s/plain", directory);
	assert_string_equal(place.path, expected);
	close_place(&place);
	assert_int_equal(chdir(before), 0);
}

TEST(two_processes_of_one_name_do_not_share_a_file)
{
	struct gpc_place places[3];
	char expected[400];
	char pattern[300];

	snprintf(pattern, sizeof pattern, "%s/same", directory);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(open_place(&places[i], pattern), GPC_OK);
		assert_int_equal(places[i].is_name_taken, i > 0);
	}
	assert_string_equal(places[0].path, pattern);
	snprintf(expected, sizeof expected, "%s.%d", pattern, getpid());
	assert_string_equal(places[1].path, expected);
	snprintf(expected, sizeof expected, "%s.%d.2", pattern, getpid());
	assert_string_equal(places[2].path, expected);
	for (int i = 0; i < 3; i++)
		close_place(&places[i]);
}

TEST(a_counter_takes_the_first_number_that_is_free)
{
	struct gpc_place places[2];
	char pattern[300];

	snprintf(pattern, sizeof pattern, "%s/count-%%n", directory);
	assert_int_equal(open_place(&places[0], pattern), GPC_OK);
	assert_int_equal(open_place(&places[1], pattern), GPC_OK);
	assert_non_null(strstr(places[0].path, "/count-0"));
	assert_non_null(strstr(places[1].path, "/count-1"));
	assert_false(places[1].is_name_taken);
	close_place(&places[0]);
	close_place(&places[1]);
}

TEST(a_symbolic_link_of_the_patterns_name_is_not_followed)
{
	struct gpc_place place;
	char pattern[300];
	char target[300];

	snprintf(pattern, sizeof pattern, "%s/link", directory);
	snprintf(target, sizeof target, "%s/must-not-appear", directory);
	assert_int_equal(symlink(target, pattern), 0);
	assert_int_equal(open_place(&place, pattern), GPC_OK);
	assert_int_equal(access(target, F_OK), -1);
	assert_string_not_equal(place.path, pattern);
	close_place(&place);
}

TEST(beside_a_pipe_of_the_patterns_name_nothing_is_made)
{
	struct gpc_place place;
	char pattern[300];

	snprintf(pattern, sizeof pattern, "%s/pipe", directory);
	assert_int_equal(mkfifo(pattern, 0600), 0);
	if (open_place(&place, pattern) == GPC_OK)
		close_place(&place);
	assert_int_equal(place.pattern_errno, EEXIST);
	snprintf(pattern, sizeof pattern, "%s/pipe.%d", directory, getpid());
	assert_int_equal(access(pattern, F_OK), -1);
}

static bool refused_pattern(void)
{
	struct gpc_place place;

	EXPECT(open_place(&place, "/etc/gpucache-must-not-appear") == GPC_OK);
	EXPECT(place.pattern_errno == EACCES);
	EXPECT(starts_with(place.path, SHM));
	close_place(&place);
	return true;
}

TEST(a_pattern_that_cannot_be_used_is_told_and_the_default_used)
{
	as_other_user(refused_pattern);
}

TEST(a_pattern_too_long_is_told)
{
	struct gpc_place place;
	char pattern[2000] = "/";

	memset(pattern + 1, 'x', sizeof pattern - 2);
	if (open_place(&place, pattern) == GPC_OK)
		close_place(&place);
	assert_int_equal(place.pattern_errno, ENAMETOOLONG);
}

/* --- Space ------------------------------------------------------------------------------------ */

static bool in_small_tmpfs(int fill_kib, struct gpc_place *place, enum gpc_status *ret_st)
{
	char path[300];

	snprintf(path, sizeof path, "%s/small", directory);
	mkdir(path, 0755);
	if (mount("tmpfs", path, "tmpfs", 0, "size=6m") != 0)
		return false;
	run("head -c %dK /dev/zero > %s/fill", fill_kib, path);
	snprintf(path, sizeof path, "%s/small/file", directory);
	setenv("TMPDIR", "/proc", 1);
	*ret_st = open_place(place, path);
	return true;
}

static void leave_small_tmpfs(void)
{
	char path[300];

	unsetenv("TMPDIR");
	snprintf(path, sizeof path, "%s/small", directory);
	umount2(path, MNT_DETACH);
}

TEST(a_file_system_with_little_room_gets_the_least_size)
{
	struct gpc_place place;
	enum gpc_status st;

	if (!in_small_tmpfs(4600, &place, &st))
		skip();
	assert_int_equal(st, GPC_OK);
	assert_int_equal(place.pattern_errno, 0);
	assert_int_equal(place.size, GPC_MIB);
	memset(place.base, 1, place.size); /* no SIGBUS */
	close_place(&place);
	leave_small_tmpfs();
}

TEST(a_full_file_system_is_left_as_it_was)
{
	struct gpc_place place;
	enum gpc_status st;
	char path[300];

	if (!in_small_tmpfs(5800, &place, &st))
		skip();
	assert_int_equal(place.pattern_errno, ENOSPC);
	snprintf(path, sizeof path, "%s/small/file", directory);
	assert_int_equal(access(path, F_OK), -1);
	if (st == GPC_OK)
		close_place(&place);
	leave_small_tmpfs();
}

static bool limited_file_size(void)
{
	struct rlimit limit = { GPC_MIB + 4096, GPC_MIB + 4096 };
	struct gpc_place place;

	/* Passing the limit would raise SIGXFSZ, whose default is death. */
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(open_place(&place, NULL) == GPC_OK);
	EXPECT(place.size == GPC_MIB);
	close_place(&place);
	limit.rlim_cur = 4096;
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(open_place(&place, NULL) == GPC_IO);
	EXPECT(errno == EFBIG);
	return true;
}

TEST(a_limit_on_file_sizes_is_kept_without_a_signal)
{
	as_other_user(limited_file_size);
}

TEST(a_file_that_has_its_name_begins_with_what_it_was_filled_with)
{
	struct gpc_place places[2];
	char pattern[300];

	snprintf(pattern, sizeof pattern, "%s/filled", directory);
	n_filled = 0;
	for (int i = 0; i < 2; i++) {
		char found[sizeof first_words] = "";

		assert_int_equal(open_place(&places[i], pattern), GPC_OK);
		assert_int_equal(pread(places[i].fd, found, sizeof found, 0), sizeof found);
		assert_string_equal(found, first_words);
	}
	/* The name of the second was taken: what it had begun was begun again. */
	assert_int_equal(n_filled, 3);
	for (int i = 0; i < 2; i++)
		close_place(&places[i]);
}

/* Without /proc an unnamed file cannot get its name: then it is made with one, as on old file systems. */
static int open_without_proc(void)
{
	struct gpc_place place;
	char path[300];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", "/proc", "tmpfs", 0, NULL))
		return 77;
	snprintf(path, sizeof path, "%s/without-proc", directory);
	if (open_place(&place, path) != GPC_OK || access(path, F_OK) != 0 ||
		strcmp(place.base, first_words) != 0)
		return 1;
	return open_place(&place, path) == GPC_OK && strcmp(place.path, path) == 0;
}

TEST(without_proc_the_file_is_made_with_its_name)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(open_without_proc());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}
