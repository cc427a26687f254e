/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A nameless file (O_TMPFILE) is locked, allocated, mapped, filled, and at last linked to its name.  So a process
 * killed on the way leaves nothing, and a reader never sees a partial header.  If there is too little space for all
 * pages, the size is halved.
 */
#include "record/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "gpucache_format.h"
#include "record/name.h"
#include "record/stale.h"

/* Other processes, which clean or read, lock a file only for microseconds: more tries would not help. */
#define MAX_LOCK_TRIES 1000

/* A signal, such as a timer's, may interrupt posix_fallocate; it is called again at most this often. */
#define MAX_SIGNALS 100

/* Take at most 1/FREE_SHARE of the free space: other libraries, such as NCCL, need space in /dev/shm, too. */
#define FREE_SHARE 8

/* The most names that are tried for a pattern without %n. */
#define MAX_PLAIN_ATTEMPTS 64u

/* --- Space ------------------------------------------------------------------------------------ */

static size_t halve(size_t size, size_t least)
{
	return gpc_larger(least, gpc_round_up(size / 2, GPUCACHE_PAGE));
}

/* The size to allocate; 0 if even the least exceeds the process's limit. */
static size_t choose_size(int fd, size_t size, size_t least)
{
	struct statvfs fs;
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
		if (limit.rlim_cur < least)
			return 0;
		while (size > limit.rlim_cur)
			size = halve(size, least);
	}
	if (fstatvfs(fd, &fs) == 0 && fs.f_blocks > 0) {
		uint64_t share = (uint64_t)fs.f_bavail * fs.f_frsize / FREE_SHARE;

		while (size > share && size > least)
			size = halve(size, least);
	}
	return size;
}

static int allocate(int fd, size_t size)
{
	int error = EINTR;

	for (int i = 0; error == EINTR && i < MAX_SIGNALS; i++)
		error = posix_fallocate(fd, 0, (off_t)size);
	return error;
}

/* Allocates all pages of the file.  Returns the file's size, or 0 with errno set. */
static size_t take_space(int fd, size_t size, size_t least)
{
	int error;

	size = choose_size(fd, size, least);
	if (size == 0) {
		errno = EFBIG;
		return 0;
	}
	for (;;) {
		error = allocate(fd, size);
		if (error == 0)
			return size;
		if ((error != ENOSPC && error != EDQUOT) || size == least)
			break;
		/* glibc may emulate the allocation by writing pages, which stay if it fails: free them. */
		if (ftruncate(fd, 0) != 0)
			break;
		size = halve(size, least);
	}
	errno = error;
	return 0;
}

/* --- The file --------------------------------------------------------------------------------- */

static void lock_file(int fd)
{
	for (int i = 0; i < MAX_LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
		sched_yield();
}

/* Opens a nameless file in the directory; -1 if the file system does not support such files. */
static int open_unnamed(int dir_fd)
{
	return gpc_io_open_at(dir_fd, ".", O_RDWR | O_TMPFILE, 0600);
}

static int open_named(int dir_fd, const char *name)
{
	return gpc_io_open_at(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

/* Links the file to a name.  Fails with EEXIST if the name exists, also as a dangling link. */
static bool give_name(int fd, int dir_fd, const char *name)
{
	char path[32];

	gpc_format(path, sizeof path, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Locks, maps and fills an open, empty file. */
static bool prepare(struct gpc_place *place, int fd, const struct gpc_place_wish *wish)
{
	size_t size;
	void *base;

	lock_file(fd);
	/* The umask may have removed the owner's permissions. */
	(void)fchmod(fd, 0600);
	size = take_space(fd, wish->size, wish->least);
	if (size == 0)
		return false;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return false;
	place->fd = fd;
	place->base = base;
	place->size = size;
	place->file = gpc_io_file_of(fd);
	wish->fill(wish->arg, base, size);
	return true;
}

/*
 * Makes a nameless file, and names it after its pages are allocated (a millisecond) and its header is written.  A
 * process killed before leaves nothing.  GPC_UNSUPPORTED: there are no nameless files here, or they cannot be named.
 */
static enum gpc_status make_file_at_once(
	struct gpc_place *place, int dir_fd, const char *name, const struct gpc_place_wish *wish)
{
	int fd = open_unnamed(dir_fd);
	enum gpc_status st;

	if (fd < 0)
		return GPC_UNSUPPORTED;
	if (!prepare(place, fd, wish)) {
		st = GPC_IO;
		goto undo_file;
	}
	if (give_name(fd, dir_fd, name))
		return GPC_OK;
	st = errno == EEXIST ? GPC_EXISTS : GPC_UNSUPPORTED;
	munmap(place->base, place->size);
undo_file:
	gpc_io_drop(fd);
	return st;
}

/* Creates file `name` in the directory.  GPC_EXISTS: try another name. */
static enum gpc_status make_file(
	struct gpc_place *place, int dir_fd, const char *name, const struct gpc_place_wish *wish)
{
	enum gpc_status st = make_file_at_once(place, dir_fd, name, wish);
	int error;
	int fd;

	if (st != GPC_UNSUPPORTED)
		return st;
	fd = open_named(dir_fd, name);
	if (fd < 0)
		return errno == EEXIST ? GPC_EXISTS : GPC_IO;
	if (prepare(place, fd, wish))
		return GPC_OK;
	error = errno;
	unlinkat(dir_fd, name, 0);
	gpc_io_drop(fd);
	errno = error;
	return GPC_IO;
}

/* --- The place that the user named ------------------------------------------------------------ */

/* True if `path` is /dev, by whatever name: what is created there stays in memory, among the devices. */
static bool is_devices(const char *path)
{
	struct stat devices;
	struct stat st;

	return stat("/dev", &devices) == 0 && stat(path, &st) == 0 && st.st_dev == devices.st_dev &&
	       st.st_ino == devices.st_ino;
}

/* Creates the missing directories of `path`, which is changed and restored. */
static enum gpc_status make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		bool is_refused;
		int rc;

		*slash = '\0';
		rc = mkdir(path, 0700);
		is_refused = rc != 0 && is_devices(path) && strncmp(slash + 1, "shm/", 4) != 0;
		*slash = '/';
		if (is_refused) {
			errno = EPERM;
			return GPC_IO;
		}
		if (rc != 0 && errno != EEXIST && errno != EISDIR && errno != EROFS &&
			errno != EACCES)
			return GPC_IO;
	}
	return GPC_OK;
}

/* Prepends the current directory to a relative path. */
static void make_absolute(char *path, size_t size)
{
	char buf[GPC_PLACE_MAX_PATH];
	size_t len;

	if (path[0] == '/' || !getcwd(buf, sizeof buf))
		return;
	len = strlen(buf);
	if (len + 1 + strlen(path) >= size)
		return;
	memmove(path + len + 1, path, strlen(path) + 1);
	memcpy(path, buf, len);
	path[len] = '/';
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum gpc_status expand_path(struct gpc_place *place, const char *pattern,
	const struct gpucache_header *identity, uint64_t seconds, unsigned attempt)
{
	struct gpc_text text = gpc_text_init(place->path, sizeof place->path);

	gpc_name_expand(&text, pattern, identity, seconds, 0, &place->pattern_error);
	if (text.len > 0 && (place->path[text.len - 1] == '/' || is_directory(place->path))) {
		if (place->path[text.len - 1] != '/')
			gpc_text_add(&text, "/");
		gpc_name_default(&text, identity, attempt);
	} else if (attempt > 0) {
		text = gpc_text_init(place->path, sizeof place->path);
		gpc_name_expand(&text, pattern, identity, seconds, attempt, &place->pattern_error);
	}
	if (text.cut) {
		errno = ENAMETOOLONG;
		return GPC_IO;
	}
	make_absolute(place->path, sizeof place->path);
	return GPC_OK;
}

/* True for a device, pipe or socket, or a link to one: its user wants no file of a similar name instead. */
static bool is_special(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, 0) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static enum gpc_status try_path(struct gpc_place *place, const struct gpc_place_wish *wish)
{
	char *slash = strrchr(place->path, '/');
	enum gpc_status st;
	int dir_fd;

	if (!slash)
		return make_file(place, AT_FDCWD, place->path, wish);
	if (make_directories(place->path))
		return GPC_IO;
	*slash = '\0';
	dir_fd = gpc_io_open(slash == place->path ? "/" : place->path, O_RDONLY | O_DIRECTORY);
	*slash = '/';
	if (dir_fd < 0)
		return GPC_IO;
	st = make_file(place, dir_fd, slash + 1, wish);
	if (st == GPC_EXISTS && is_special(dir_fd, slash + 1)) {
		st = GPC_IO;
		errno = EEXIST;
	}
	gpc_io_drop(dir_fd);
	return st;
}

static enum gpc_status try_pattern(struct gpc_place *place, const char *pattern,
	const struct gpucache_header *identity, const struct gpc_place_wish *wish)
{
	unsigned max = strstr(pattern, "%n") ? GPC_NAME_MAX_ATTEMPTS : MAX_PLAIN_ATTEMPTS;
	uint64_t seconds = gpc_clock_realtime_ns() / UINT64_C(1000000000);
	enum gpc_status st = GPC_EXISTS;

	for (unsigned attempt = 0; st == GPC_EXISTS && attempt < max; attempt++) {
		st = expand_path(place, pattern, identity, seconds, attempt);
		if (st == GPC_OK)
			st = try_path(place, wish);
		place->is_name_taken = attempt > 0 && !strstr(pattern, "%n");
	}
	place->pattern_errno = st == GPC_OK ? 0 : errno;
	return st == GPC_OK ? GPC_OK : GPC_IO;
}

/* --- Our own places --------------------------------------------------------------------------- */

static void clean_directory(int dir_fd)
{
	struct gpc_stale_space space = { 0 };
	struct statvfs fs;

	if (fstatvfs(dir_fd, &fs) == 0) {
		space.total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
		space.free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	}
	gpc_stale_clean(dir_fd, gpc_clock_realtime_ns(), &space);
}

/* is_random: append a random suffix to the directory's name, which another user has taken. */
static enum gpc_status try_directory(struct gpc_place *place, const char *directory, bool is_random,
	const struct gpucache_header *identity, const struct gpc_place_wish *wish)
{
	enum gpc_status st = GPC_EXISTS;
	uint32_t suffix = 0;
	int dir_fd = is_random ? gpc_own_folder_make_random(directory, &suffix)
			       : gpc_own_folder_make(directory);

	if (dir_fd < 0)
		return GPC_IO;
	clean_directory(dir_fd);
	for (unsigned attempt = 0; st == GPC_EXISTS && attempt < MAX_PLAIN_ATTEMPTS; attempt++) {
		struct gpc_text text = gpc_text_init(place->path, sizeof place->path);
		size_t start;

		/* Never truncated: `directory` fits into half of the buffer, our name into the other half. */
		gpc_text_add(&text, "%s", directory);
		if (suffix)
			gpc_text_add(&text, "-%08x", suffix);
		gpc_text_add(&text, "/");
		start = text.len;
		gpc_name_default(&text, identity, attempt);
		st = make_file(place, dir_fd, place->path + start, wish);
	}
	gpc_io_drop(dir_fd);
	return st;
}

static enum gpc_status try_own_places(struct gpc_place *place,
	const struct gpucache_header *identity, const struct gpc_place_wish *wish)
{
	const char *runtime_dir = gpc_env_get("XDG_RUNTIME_DIR");
	const char *temporary = gpc_env_get("TMPDIR");
	char directory[GPC_PLACE_MAX_PATH / 2];
	char shared[40];

	gpc_format(shared, sizeof shared, "/dev/shm/gpucache-%u", identity->uid);
	if (try_directory(place, shared, false, identity, wish) == GPC_OK)
		return GPC_OK;
	place->default_errno = errno;
	if (runtime_dir && runtime_dir[0] == '/') {
		gpc_format(directory, sizeof directory, "%s/gpucache", runtime_dir);
		if (try_directory(place, directory, false, identity, wish) == GPC_OK)
			return GPC_OK;
	}
	gpc_format(directory, sizeof directory, "%s/gpucache-%u",
		temporary && temporary[0] == '/' ? temporary : "/tmp", identity->uid);
	if (try_directory(place, directory, false, identity, wish) == GPC_OK)
		return GPC_OK;
	return try_directory(place, shared, true, identity, wish) == GPC_OK ||
			       try_directory(place, directory, true, identity, wish) == GPC_OK
		       ? GPC_OK
		       : GPC_IO;
}

enum gpc_status gpc_place_open(struct gpc_place *place, const char *pattern,
	const struct gpucache_header *identity, const struct gpc_place_wish *wish)
{
	memset(place, 0, sizeof *place);
	place->fd = -1;
	if (pattern && *pattern && try_pattern(place, pattern, identity, wish) == GPC_OK)
		return GPC_OK;
	if (try_own_places(place, identity, wish) == GPC_OK)
		return GPC_OK;
	place->path[0] = '\0';
	return GPC_IO;
}
