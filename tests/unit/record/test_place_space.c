/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of a recording, whose folders are used, and what remains after a failure; the test defines the C library's
 * calls for space and files.
 */
#include <dirent.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "place_stage.h"

#define ANOTHER_UID 61236

static char path[sizeof directory + 32];

/* The room that files find: more than that is `full_error`. */
static off_t room;
static int full_error;
static unsigned n_signals;         /* that interrupt it first */
static const struct statvfs *said; /* of the file system; NULL: what it says itself */
static int said_error;
static bool refuses_truncation;

int posix_fallocate(int fd, off_t offset, off_t size)
{
	if (n_signals > 0) {
		n_signals--;
		return EINTR;
	}
	return size > room ? full_error : ftruncate(fd, offset + size) ? errno : 0;
}

int fstatvfs(int fd, struct statvfs *ret_fs)
{
	struct statfs fs;

	if (said_error) {
		*ret_fs = (struct statvfs){ .f_blocks = 1, .f_frsize = 4096 };
		errno = said_error;
		return -1;
	}
	if (fstatfs(fd, &fs))
		return -1;
	*ret_fs = (struct statvfs){ .f_blocks = fs.f_blocks,
		.f_bavail = fs.f_bavail,
		.f_frsize = (unsigned long)fs.f_frsize };
	if (said)
		*ret_fs = *said;
	return 0;
}

int ftruncate(int fd, off_t size)
{
	if (refuses_truncation && size == 0) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_ftruncate, fd, size);
}

static int begin(void **state)
{
	if (!make_directory() || chmod(directory, 0700))
		return -1;
	snprintf(path, sizeof path, "%s/recording", directory);
	room = 1024 * (off_t)GPC_MIB;
	full_error = ENOSPC;
	n_signals = 0;
	said = NULL;
	said_error = 0;
	refuses_truncation = false;
	return 0;
}

static int end(void **state)
{
	return remove_directory(ANOTHER_UID);
}

FIXTURE(begin, end);

/* 8 MiB are wished for. */
static enum gpc_status open_as(struct gpc_place *place, const char *pattern, uint32_t uid)
{
	return open_wished(place, pattern, uid, 8 * GPC_MIB);
}

/* The size that it gets in the test's folder. */
static size_t size_there(void)
{
	struct gpc_place place;
	struct stat st;
	size_t size;

	assert_int_equal(open_as(&place, path, geteuid()), GPC_OK);
	assert_string_equal(place.path, path);
	assert_int_equal(fstat(place.fd, &st), 0);
	assert_int_equal(st.st_size, place.size);
	size = place.size;
	close_place(&place);
	return size;
}

TEST(a_full_file_system_halves_the_size_until_it_fits)
{
	for (int i = 0; i < 2; i++) {
		full_error = i ? EDQUOT : ENOSPC;
		room = 8 * (off_t)GPC_MIB - 1;
		assert_int_equal(size_there(), 4 * GPC_MIB);
		room = 1 * (off_t)GPC_MIB;
		assert_int_equal(size_there(), 1 * GPC_MIB);
		room = 65536;
		assert_int_equal(size_there(), 65536);
	}
}

TEST(the_eighth_of_what_is_free_is_taken_at_most)
{
	const char *options = "size=16m";

	if (geteuid() != 0 || mount("none", directory, "tmpfs", 0, options))
		skip();
	assert_int_equal(size_there(), 2 * GPC_MIB);
	assert_int_equal(umount(directory), 0);
}

TEST(no_file_passes_the_limit_of_the_process)
{
	static const struct {
		size_t limit;
		size_t size;
	} rows[] = { { 3 * GPC_MIB, 2 * GPC_MIB }, { 8 * GPC_MIB, 8 * GPC_MIB }, { 65536, 65536 } };
	struct rlimit limit;
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit.rlim_max = before.rlim_max;
	for (size_t i = 0; i < N_OF(rows); i++) {
		limit.rlim_cur = rows[i].limit;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(size_there(), rows[i].size);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(a_file_system_that_does_not_say_what_is_free_is_asked_for_all)
{
	static const struct statvfs nothing = { .f_frsize = 4096 };

	said = &nothing;
	assert_int_equal(size_there(), 8 * GPC_MIB);
	said = NULL;
	said_error = ENOSYS;
	assert_int_equal(size_there(), 8 * GPC_MIB);
}

static unsigned n_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static unsigned n_maps_here(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof line, maps))
		n += strstr(line, directory) != NULL;
	fclose(maps);
	return n;
}

TEST(where_there_is_no_room_nothing_is_left)
{
	unsigned before = n_open_files();
	struct gpc_place place;

	room = 4096;
	for (int i = 0; i < 2; i++) {
		has_unnamed_files = i == 0;
		setenv("TMPDIR", directory, 1);
		setenv("XDG_RUNTIME_DIR", directory, 1);
		assert_int_equal(open_as(&place, path, ANOTHER_UID), GPC_IO);
		assert_int_equal(place.fd, -1);
		assert_int_equal(place.pattern_errno, ENOSPC);
		assert_int_equal(place.default_errno, ENOSPC);
		assert_int_equal(access(path, F_OK), -1);
	}
	unsetenv("TMPDIR");
	unsetenv("XDG_RUNTIME_DIR");
	rmdir("/dev/shm/gpucache-61236");
	assert_int_equal(n_open_files(), before);
}

/* Of all our places the error is the same; that of the first is what is told. */
static void expect_no_place(int error)
{
	struct gpc_place place;

	setenv("TMPDIR", directory, 1);
	assert_int_equal(open_as(&place, path, ANOTHER_UID), GPC_IO);
	unsetenv("TMPDIR");
	rmdir("/dev/shm/gpucache-61236");
	assert_int_equal(place.pattern_errno, error);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(signals_without_end_do_not_keep_the_program)
{
	n_signals = 1000000;
	expect_no_place(EINTR);
	assert_true(n_signals > 1000000 - 10000);
}

TEST(pages_that_cannot_be_given_back_end_the_search_for_a_size)
{
	room = 1 * (off_t)GPC_MIB;
	refuses_truncation = true;
	expect_no_place(ENOSPC);
}

TEST(a_name_that_is_taken_leaves_no_mapping_and_no_descriptor)
{
	unsigned before = n_open_files();
	struct gpc_place first;
	struct gpc_place second;

	assert_int_equal(open_as(&first, path, geteuid()), GPC_OK);
	assert_int_equal(open_as(&second, path, geteuid()), GPC_OK);
	assert_true(second.is_name_taken);
	assert_int_equal(n_open_files(), before + 2);
	assert_int_equal(n_maps_here(), 2);
	close_place(&first);
	close_place(&second);
}

TEST(a_place_is_locked_and_says_which_file_it_is)
{
	struct gpc_place place;
	struct stat st;
	int reader;

	n_signals = 3;
	assert_int_equal(open_as(&place, path, geteuid()), GPC_OK);
	reader = open(path, O_RDONLY);
	assert_int_equal(fstat(reader, &st), 0);
	assert_int_equal(place.file.device, st.st_dev);
	assert_int_equal(place.file.inode, st.st_ino);
	assert_int_equal(flock(reader, LOCK_SH | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	close(reader);
	close_place(&place);
}

TEST(a_pattern_that_leads_through_a_file_is_told)
{
	static const char *const rests[] = { "/a/b", "/b" };
	char through[sizeof path + 8];
	struct gpc_place place;
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
	setenv("TMPDIR", directory, 1);
	for (size_t i = 0; i < N_OF(rests); i++) {
		snprintf(through, sizeof through, "%s%s", path, rests[i]);
		assert_int_equal(open_as(&place, through, geteuid()), GPC_OK);
		assert_int_equal(place.pattern_errno, ENOTDIR);
		assert_null(strstr(place.path, through));
		close_place(&place);
	}
	unsetenv("TMPDIR");
}

/* Root can open the closed folder of anybody: only its owner tells whose it is. */
TEST(a_closed_directory_of_another_user_is_refused_even_by_root)
{
	const char *usual = "/dev/shm/gpucache-61236";
	unsigned before = n_open_files();
	struct gpc_place place;

	if (geteuid() != 0 || mkdir(usual, 0700))
		skip();
	assert_int_equal(chown(usual, ANOTHER_UID, ANOTHER_UID), 0);
	setenv("TMPDIR", directory, 1);
	assert_int_equal(open_as(&place, NULL, ANOTHER_UID), GPC_OK);
	unsetenv("TMPDIR");
	assert_int_equal(rmdir(usual), 0); /* nothing is in it */
	assert_int_equal(place.default_errno, EPERM);
	assert_int_equal(n_open_files(), before + 1);
	assert_non_null(strstr(place.path, directory));
	close_place(&place);
}
