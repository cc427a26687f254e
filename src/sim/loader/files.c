/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpusim-files.so: the device files of the simulated GPU exist.
 *
 *     LD_PRELOAD=.../libgpusim-files.so python train.py
 *
 * JAX loads no CUDA plugin unless /dev/nvidia0 or /dev/nvidiactl exists.  The functions by which a program asks whether a
 * file exists answer for these two as for /dev/null, another character device.  Nobody can open them: only the driver
 * would.
 *
 * Threads     Any: there is no state.
 * Failure     That of the function behind.
 * Limits      stat and access, by the names that C libraries since 2.17 have given them; not statx and fstatat.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int __xstat(int version, const char *path, struct stat *ret);
EXPORT int __xstat64(int version, const char *path, struct stat *ret);
EXPORT int files_stat(const char *path, struct stat *ret) __asm__("stat");
EXPORT int files_stat64(const char *path, struct stat *ret) __asm__("stat64");
EXPORT int files_access(const char *path, int mode) __asm__("access");

/* The file to ask about in place of `path`. */
static const char *shown(const char *path)
{
	return path && (strcmp(path, "/dev/nvidia0") == 0 || strcmp(path, "/dev/nvidiactl") == 0)
		       ? "/dev/null"
		       : path;
}

/* By the kernel's call, whose struct is that of 64-bit C libraries: fstatat has another name in glibc before 2.33. */
int files_stat(const char *path, struct stat *ret)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, shown(path), ret, 0);
}

int files_stat64(const char *path, struct stat *ret)
{
	return files_stat(path, ret);
}

int __xstat(int version, const char *path, struct stat *ret)
{
	(void)version;
	return files_stat(path, ret);
}

int __xstat64(int version, const char *path, struct stat *ret)
{
	(void)version;
	return files_stat(path, ret);
}

int files_access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, shown(path), mode, 0);
}
