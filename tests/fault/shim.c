/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before libgpucache.so.  Counts the library's own file and mmap calls, and makes call FAULT_NTH (with
 * FAULT_ALL, all later ones, too) fail with FAULT_ERRNO.  Writes the count to the file FAULT_COUNT at exit.  The
 * program's own calls are unaffected.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic long n_seen;

static int fails(const void *caller)
{
	static long nth = -1;
	Dl_info info;
	long n;

	if (nth < 0)
		nth = getenv("FAULT_NTH") ? strtol(getenv("FAULT_NTH"), NULL, 10) : 0;
	if (!dladdr(caller, &info) || !info.dli_fname || !strstr(info.dli_fname, "/libgpucache.so"))
		return 0;
	n = ++n_seen;
	if (nth == 0 || n < nth || (n > nth && !getenv("FAULT_ALL")))
		return 0;
	errno = atoi(getenv("FAULT_ERRNO"));
	return 1;
}

__attribute__((destructor)) static void tell(void)
{
	char text[32];
	int size = snprintf(text, sizeof text, "%ld\n", n_seen);
	int fd = getenv("FAULT_COUNT") ? (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULT_COUNT"),
						 O_WRONLY | O_CREAT, 0600)
				       : -1;

	if (fd >= 0) {
		syscall(SYS_write, fd, text, (size_t)size);
		syscall(SYS_close, fd);
	}
}

#define CALL(failed, ...) (fails(__builtin_return_address(0)) ? (failed) : syscall(__VA_ARGS__))

static int mode_of(int flags, va_list args)
{
	return flags & O_CREAT ? va_arg(args, int) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return (int)CALL(-1, SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return (int)CALL(-1, SYS_openat, dir, path, flags, mode);
}

int ftruncate(int fd, off_t size)
{
	return (int)CALL(-1, SYS_ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
	return (int)CALL(-1, SYS_fallocate, fd, mode, at, size);
}

int posix_fallocate(int fd, off_t at, off_t size)
{
	if (fails(__builtin_return_address(0)))
		return errno;
	return syscall(SYS_fallocate, fd, 0, at, size) ? errno : 0;
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	return (void *)CALL(-1L, SYS_mmap, at, size, prot, flags, fd, offset);
}

int mkdir(const char *path, mode_t mode)
{
	return (int)CALL(-1, SYS_mkdir, path, mode);
}

int fchmod(int fd, mode_t mode)
{
	return (int)CALL(-1, SYS_fchmod, fd, mode);
}

int fstat(int fd, struct stat *st)
{
	return (int)CALL(-1, SYS_fstat, fd, st);
}

int fcntl(int fd, int what, ...)
{
	va_list args;
	long arg;

	va_start(args, what);
	arg = va_arg(args, long);
	va_end(args);
	return (int)CALL(-1, SYS_fcntl, fd, what, arg);
}

int flock(int fd, int what)
{
	return (int)CALL(-1, SYS_flock, fd, what);
}

ssize_t read(int fd, void *data, size_t size)
{
	return CALL(-1, SYS_read, fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	return CALL(-1, SYS_pread64, fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size)
{
	return CALL(-1, SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return CALL(-1, SYS_pwrite64, fd, data, size, at);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return (int)CALL(-1, SYS_renameat, from_dir, from, to_dir, to);
}

int unlinkat(int dir, const char *path, int flags)
{
	return (int)CALL(-1, SYS_unlinkat, dir, path, flags);
}
