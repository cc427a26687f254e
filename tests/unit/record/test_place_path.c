/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that patterns expand to, and the errors; the test defines mkdir, close and flock. */
#include <sys/file.h>
#include <sys/wait.h>

#include "place_stage.h"
#include "record/name.h"

#define NAMED_UID 61237 /* whose folder in shared memory we take */

static char path[sizeof directory + 300];
static char start_directory[512];

static int mkdir_error; /* 0: it does what it should */
static unsigned n_lock_refusals;
static unsigned n_locks;

/* A call that succeeds may change errno. */
int mkdir(const char *name, mode_t mode)
{
	long rc = mkdir_error ? -1 : syscall(SYS_mkdirat, AT_FDCWD, name, mode);

	if (mkdir_error)
		errno = mkdir_error;
	else if (rc == 0)
		errno = 0;
	return (int)rc;
}

int close(int fd)
{
	long rc = syscall(SYS_close, fd);

	if (rc == 0)
		errno = EBADMSG;
	return (int)rc;
}

int flock(int fd, int operation)
{
	n_locks++;
	if (n_lock_refusals > 0) {
		n_lock_refusals--;
		errno = EWOULDBLOCK;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static int begin(void **state)
{
	if (!make_directory() || !getcwd(start_directory, sizeof start_directory))
		return -1;
	setenv("TMPDIR", directory, 1);
	mkdir_error = 0;
	n_lock_refusals = 0;
	return 0;
}

static int end(void **state)
{
	unsetenv("TMPDIR");
	return chdir(start_directory) ? -1 : remove_directory(NAMED_UID);
}

FIXTURE(begin, end);

static enum gpc_status open_place(struct gpc_place *place, const char *pattern)
{
	return open_wished(place, pattern, NAMED_UID, 65536);
}

/* Why the pattern could not be used; 0: it was. */
static int error_of(const char *pattern)
{
	struct gpc_place place;

	assert_int_equal(open_place(&place, pattern), GPC_OK);
	close_place(&place);
	return place.pattern_errno;
}

TEST(a_directory_that_cannot_be_made_is_told_unless_it_is_there)
{
	static const int is_there[] = { EEXIST, EISDIR, EROFS, EACCES };
	static const int is_not[] = { ENOSPC, EDQUOT, EMLINK };

	snprintf(path, sizeof path, "%s/a/b/file", directory);
	assert_int_equal(error_of(path), 0); /* both are made */
	for (size_t i = 0; i < N_OF(is_there); i++) {
		mkdir_error = is_there[i];
		assert_int_equal(error_of(path), 0);
	}
	for (size_t i = 0; i < N_OF(is_not); i++) {
		struct gpc_place place;

		mkdir_error = is_not[i];
		assert_int_equal(open_place(&place, path), GPC_IO); /* nor can our own */
		assert_int_equal(errno, is_not[i]);
		assert_int_equal(place.pattern_errno, is_not[i]);
		assert_int_equal(place.default_errno, is_not[i]);
	}
}

TEST(why_a_pattern_failed_survives_what_is_undone_after_it)
{
	snprintf(path, sizeof path, "%s/", directory);
	memset(path + strlen(path), 'x', 256); /* one more than a name may have */
	for (int i = 0; i < 2; i++) {
		has_unnamed_files = i == 0;
		assert_int_equal(error_of(path), ENAMETOOLONG);
	}
}

TEST(a_file_without_an_unnamed_one_is_closed_to_others_and_new)
{
	struct gpc_place places[2];
	struct stat st;

	has_unnamed_files = false;
	snprintf(path, sizeof path, "%s/file", directory);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_place(&places[i], path), GPC_OK);
		assert_int_equal(places[i].pattern_errno, 0);
		assert_int_equal(places[i].is_name_taken, i > 0);
		assert_int_equal(fstat(places[i].fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	for (int i = 0; i < 2; i++)
		close_place(&places[i]);
}

TEST(a_pattern_that_is_a_directory_is_one_with_or_without_a_slash)
{
	static const char *const patterns[] = { "", "/", "/new/" };
	struct gpc_place place;
	char expected[sizeof path];

	for (size_t i = 0; i < N_OF(patterns); i++) {
		snprintf(path, sizeof path, "%s%s", directory, patterns[i]);
		snprintf(expected, sizeof expected, "%s%s" GPC_NAME_PREFIX, directory,
			i == 0 ? "/" : patterns[i]);
		assert_int_equal(open_place(&place, path), GPC_OK);
		assert_int_equal(strncmp(place.path, expected, strlen(expected)), 0);
		close_place(&place);
	}
	assert_int_equal(chdir(directory), 0);
	snprintf(expected, sizeof expected, "%s/./" GPC_NAME_PREFIX, directory);
	assert_int_equal(open_place(&place, "."), GPC_OK);
	assert_int_equal(strncmp(place.path, expected, strlen(expected)), 0);
	close_place(&place);
}

TEST(a_pattern_of_nothing_is_told)
{
	unsetenv("GPC_TEST_NO_SUCH_VARIABLE");
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(error_of("%q{GPC_TEST_NO_SUCH_VARIABLE}"), ENOENT);
}

TEST(a_relative_path_becomes_absolute_as_long_as_it_fits)
{
	size_t cwd = strlen(directory);
	char name[256];

	memset(name, 'd', 200);
	name[200] = '\0';
	assert_int_equal(chdir(directory), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(mkdir(name, 0700), 0);
		assert_int_equal(chdir(name), 0);
		cwd += 201;
	}
	for (size_t length = GPC_PLACE_MAX_PATH - 2; length <= GPC_PLACE_MAX_PATH; length++) {
		struct gpc_place place;
		struct stat st;

		memset(name, 'f', sizeof name);
		name[length - cwd - 1] = '\0';
		assert_int_equal(open_place(&place, name), GPC_OK);
		assert_int_equal(place.pattern_errno, 0);
		assert_int_equal(place.path[0] == '/', length < GPC_PLACE_MAX_PATH);
		assert_int_equal(
			strlen(place.path), length < GPC_PLACE_MAX_PATH ? length : strlen(name));
		assert_int_equal(stat(name, &st), 0);
		assert_int_equal(st.st_ino, place.file.inode);
		close_place(&place);
	}
}

TEST(the_longest_path_is_used_and_one_longer_is_told)
{
	char long_path[GPC_PLACE_MAX_PATH + 1];

	for (size_t length = GPC_PLACE_MAX_PATH - 1; length <= GPC_PLACE_MAX_PATH; length++) {
		memset(long_path, 'f', sizeof long_path);
		memcpy(long_path, directory, strlen(directory));
		for (size_t i = strlen(directory); i < length; i += 200)
			long_path[i] = '/';
		long_path[length] = '\0';
		assert_int_equal(
			error_of(long_path), length < GPC_PLACE_MAX_PATH ? 0 : ENAMETOOLONG);
	}
}

TEST(a_folder_may_get_the_number_of_a_stream_that_was_closed)
{
	int input = dup(STDIN_FILENO);

	assert_true(input > 0);
	close(STDIN_FILENO);
	snprintf(path, sizeof path, "%s/file", directory);
	assert_int_equal(error_of(path), 0);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* closed again */
	assert_int_equal(error_of(NULL), 0);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
	close(input);
}

TEST(a_lock_that_somebody_holds_is_tried_again_and_not_for_ever)
{
	struct gpc_place place;
	int reader;

	snprintf(path, sizeof path, "%s/file", directory);
	for (unsigned i = 0; i < 3; i++) {
		n_lock_refusals = i < 2 ? 5 * i : 1000000;
		n_locks = 0;
		assert_int_equal(open_place(&place, path), GPC_OK);
		assert_int_equal(place.pattern_errno, 0);
		if (i < 2)
			assert_int_equal(n_locks, 5 * i + 1);
		else
			assert_in_range(n_locks, 100, 100000);
		n_lock_refusals = 0;
		reader = open(path, O_RDONLY);
		assert_true(reader >= 0);
		assert_int_equal(flock(reader, LOCK_SH | LOCK_NB), i < 2 ? -1 : 0);
		close(reader);
		close_place(&place);
	}
}

static bool is_refused_at_the_root(void)
{
	struct gpc_place place;

	EXPECT(open_place(&place, "/gpucache-must-not-appear") == GPC_OK);
	EXPECT(place.pattern_errno == EACCES);
	close_place(&place);
	return rmdir("/dev/shm/gpucache-61237") == 0;
}

TEST(a_path_in_the_root_directory_is_tried_there)
{
	int status = -1;
	pid_t child;

	if (geteuid() != 0)
		skip();
	child = fork();
	if (child == 0)
		_exit(setgid(NAMED_UID) || setuid(NAMED_UID) || !is_refused_at_the_root());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
