/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor is ours while fstat reports the device and inode that it had when it was opened; callers compare them
 * before each use.  After EINTR, or if fewer bytes come than requested, the read functions go on reading.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* base/banned.h forbids the names, so that nobody else opens a file at a number below 3. */
extern int libc_openat(int dir_fd, const char *path, int flags, ...) __asm__("openat");
extern int libc_pipe2(int ends[2], int flags) __asm__("pipe2");

struct gpc_io_file gpc_io_file_of(int fd)
{
	struct gpc_io_file file = { 0 };
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		file = (struct gpc_io_file){ (uint64_t)st.st_dev, (uint64_t)st.st_ino };
	return file;
}

bool gpc_io_is(int fd, const struct gpc_io_file *file)
{
	struct gpc_io_file now = gpc_io_file_of(fd);

	return now.inode != 0 && now.inode == file->inode && now.device == file->device;
}

void gpc_io_drop(int fd)
{
	int error = errno;

	(void)syscall(SYS_close, fd);
	errno = error;
}

int gpc_io_lift(int fd)
{
	int lifted;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	gpc_io_drop(fd);
	return lifted;
}

int gpc_io_open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
	return gpc_io_lift(libc_openat(dir_fd, path, flags | O_CLOEXEC, mode));
}

int gpc_io_open(const char *path, int flags)
{
	return gpc_io_open_at(AT_FDCWD, path, flags, 0);
}

bool gpc_io_pipe(int ends[2])
{
	if (libc_pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	ends[0] = gpc_io_lift(ends[0]);
	ends[1] = gpc_io_lift(ends[1]);
	if (ends[0] >= 0 && ends[1] >= 0)
		return true;
	gpc_io_drop(ends[0]);
	gpc_io_drop(ends[1]);
	return false;
}

/* The kernel gives the lowest free number. */
struct gpc_io_low gpc_io_low_take(void)
{
	struct gpc_io_low low = { 0 };

	for (int fd = 0; fd < 3; fd++) {
		int taken;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		taken = libc_openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC);
		if (taken < 0 || taken > 2) {
			gpc_io_drop(taken);
			continue;
		}
		low.is_taken[taken] = true;
		low.file = gpc_io_file_of(taken);
	}
	return low;
}

void gpc_io_low_give_back(const struct gpc_io_low *low)
{
	for (int fd = 0; fd < 3; fd++)
		if (low->is_taken[fd])
			gpc_io_close(fd, &low->file);
}

void gpc_io_close(int fd, const struct gpc_io_file *file)
{
	if (gpc_io_is(fd, file))
		gpc_io_drop(fd);
}

ssize_t gpc_io_read_at(int fd, void *buf, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t gpc_io_read_file(const char *path, char *buf, size_t size)
{
	int fd = gpc_io_open(path, O_RDONLY);
	ssize_t len;

	if (fd < 0)
		return -1;
	len = gpc_io_read_at(fd, buf, size - 1, 0);
	buf[len > 0 ? len : 0] = '\0';
	gpc_io_drop(fd);
	return len;
}

/* The start is field 22.  The name, field 2, may contain any character, so fields are counted from the last ')'. */
bool gpc_io_read_start(const char *path, uint64_t *ret_ticks)
{
	char buf[1024];
	const char *at;

	if (gpc_io_read_file(path, buf, sizeof buf) <= 0)
		return false;
	at = strrchr(buf, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || at[1] < '0' || at[1] > '9')
		return false;
	*ret_ticks = 0;
	for (at++; *at >= '0' && *at <= '9'; at++)
		*ret_ticks = *ret_ticks * 10 + (uint64_t)(*at - '0');
	return true;
}

/* A directory entry as getdents64 writes it. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

const char *gpc_io_next_entry(struct gpc_io_listing *listing)
{
	const struct entry *entry;

	if (listing->at >= listing->n) {
		listing->n =
			syscall(SYS_getdents64, listing->fd, listing->buf, sizeof listing->buf);
		listing->at = 0;
	}
	if (listing->n <= 0 || listing->n_left == 0)
		return NULL;
	listing->n_left--;
	entry = (const void *)(listing->buf + listing->at);
	listing->at += entry->size;
	return entry->name;
}
