/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of ours in a process that is not ours.
 *
 * A program may close any descriptor, daemons close all of them, and the number is then a file of
 * the program.  So whoever keeps a descriptor keeps with it which file it was opened for, and looks
 * before each use: what is another file now is neither written nor closed.
 *
 * Limits   Between the look and the use another thread may still close the number: a window of a
 *          system call, as for a descriptor that is closed by the function that opened it.
 */
#ifndef GPC_BASE_IO_H
#define GPC_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a file is called by the kernel; all zero: no file. */
struct gpc_io_file {
	uint64_t device;
	uint64_t inode;
};

/* The file behind a descriptor; all zero where it is not open. */
struct gpc_io_file gpc_io_file_of(int fd);

/* True where `fd` still is `file`. */
bool gpc_io_is(int fd, const struct gpc_io_file *file);

/* Closes `fd` where it still is `file`. */
void gpc_io_close(int fd, const struct gpc_io_file *file);

/*
 * Reads the file `path` into buf[0 .. size - 1) and terminates it.  Returns the length, or -1 with
 * errno set.  Meant for small files of /proc; what does not fit is left out.
 */
ssize_t gpc_io_read_file(const char *path, char *buf, size_t size);

/* Reads up to `size` bytes at `offset`; the number read, fewer at the end of the file, or -1 with errno. */
ssize_t gpc_io_read_at(int fd, void *buf, size_t size, uint64_t offset);

#endif
