/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own_folder.h"
#include "unit.h"

#define SOMEBODY_ELSE 12345

static char parent[] = "/tmp/gpucache-own-XXXXXX";
static char path[64];

static int begin(void **state)
{
	strcpy(parent + sizeof parent - 7, "XXXXXX");
	if (!mkdtemp(parent))
		return -1;
	snprintf(path, sizeof path, "%s/gpucache-2001", parent);
	return 0;
}

static int end(void **state)
{
	char command[96];

	snprintf(command, sizeof command, "rm -rf %s", parent);
	return system(command);
}

FIXTURE(begin, end);

static mode_t mode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_mode & 07777;
}

static void assert_made(void)
{
	int fd = gpc_own_folder_make(path);

	assert_true(fd >= 0);
	assert_int_equal(mode_of(fd), 0700);
	close(fd);
}

static void assert_refused(int error)
{
	errno = 0;
	assert_int_equal(gpc_own_folder_make(path), -1);
	assert_int_equal(errno, error);
	assert_int_equal(gpc_own_folder_open(path, 0), -1);
}

TEST(it_is_made_closed_under_every_umask)
{
	mode_t before = umask(0777);

	assert_made();
	umask(before);
	assert_int_equal(chmod(path, 0500), 0);
	assert_made();
	assert_int_equal(chmod(path, 0), 0);
	assert_made();
}

TEST(a_folder_open_to_others_or_no_folder_is_refused)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_refused(EPERM);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(parent, path), 0);
	assert_int_equal(gpc_own_folder_make(path), -1);
	assert_int_equal(unlink(path), 0);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_refused(ENOTDIR);
}

/* Closed, as one of ours would be: only the owner tells. */
TEST(a_closed_folder_of_another_user_is_refused)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE), 0);
	assert_refused(EPERM);
}

TEST(a_random_one_is_found_again)
{
	uint32_t suffix = 0;
	uint32_t again = 0;
	int fd = gpc_own_folder_make_random(path, &suffix);

	assert_true(fd >= 0);
	assert_int_not_equal(suffix, 0);
	assert_int_equal(mode_of(fd), 0700);
	close(fd);
	fd = gpc_own_folder_make_random(path, &again);
	assert_true(fd >= 0);
	assert_int_equal(again, suffix);
	close(fd);
	fd = gpc_own_folder_open(path, suffix);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(gpc_own_folder_open(path, suffix + 1), -1);
}

TEST(a_random_folder_of_another_user_is_skipped)
{
	char theirs[80];
	uint32_t suffix = 0;
	int fd;

	snprintf(theirs, sizeof theirs, "%s-0000beef", path);
	assert_int_equal(mkdir(theirs, 0700), 0);
	assert_int_equal(chmod(theirs, 0777), 0);
	fd = gpc_own_folder_make_random(path, &suffix);
	assert_true(fd >= 0);
	assert_int_not_equal(suffix, 0xbeef);
	close(fd);
}

TEST(without_a_parent_there_is_none)
{
	uint32_t suffix;

	assert_int_equal(gpc_own_folder_make("/proc/none/gpucache"), -1);
	assert_int_equal(gpc_own_folder_make_random("/proc/none/gpucache", &suffix), -1);
}
