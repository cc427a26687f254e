/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our descriptors in the host process.
 *
 * A program may close any descriptor, as daemons do, and the kernel may reuse its number for a file of
 * the program.  So a descriptor is kept together with the identity of its file, which is checked before
 * each use: a descriptor that is another file now is neither written nor closed.
 *
 * Invariant   Our descriptors are above 2 and closed on exec.  A program without standard output prints to number 1
 *             all the same, and must not print into a file of ours.  So only base/io.c makes descriptors (base/banned.h).
 * Limits      Between check and use another thread may still close the descriptor: a window of one system
 *             call.  For two system calls a new descriptor may have a number below 3.
 */
#ifndef GPC_BASE_IO_H
#define GPC_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The identity of a file; all zero: none. */
struct gpc_io_file {
	uint64_t device;
	uint64_t inode;
};

/* The identity of the file behind `fd`; all zero if `fd` is not open. */
struct gpc_io_file gpc_io_file_of(int fd);

/* Returns true if `fd` still is `file`. */
bool gpc_io_is(int fd, const struct gpc_io_file *file);

/* Closes `fd` and preserves errno.  Like gpc_io_lift, no cancellation point. */
void gpc_io_drop(int fd);

/* Moves a new descriptor of ours above 2, closed on exec.  -1 with errno set if that fails or `fd` is -1. */
int gpc_io_lift(int fd);

/* As openat, but above 2 and closed on exec. */
int gpc_io_open_at(int dir_fd, const char *path, int flags, mode_t mode);
int gpc_io_open(const char *path, int flags);

/* A pipe that does not block, from ends[1] to ends[0].  Returns false with errno set if there is none. */
bool gpc_io_pipe(int ends[2]);

/*
 * While a library of others opens files on our account, occupies those of the numbers 0, 1 and 2 that are closed: reads
 * and writes there still fail with EBADF.  give_back closes them.
 */
struct gpc_io_low {
	bool is_taken[3];
	struct gpc_io_file file;
};
struct gpc_io_low gpc_io_low_take(void);
void gpc_io_low_give_back(const struct gpc_io_low *low);

/* Closes `fd` if it still is `file`. */
void gpc_io_close(int fd, const struct gpc_io_file *file);

/*
 * Reads the file `path` into buf[0 .. size) and terminates the text by a NUL.  Returns its length, or -1 with
 * errno set.  What does not fit is dropped: the function is for small files of /proc.
 */
ssize_t gpc_io_read_file(const char *path, char *buf, size_t size);

/* Reads from a /proc/PID/stat when the process began, in clock ticks since boot.  Returns false if that fails. */
bool gpc_io_read_start(const char *path, uint64_t *ret_ticks);

/* Reads up to `size` bytes at `offset`.  Returns the number read, fewer at end of file, or -1 with errno set. */
ssize_t gpc_io_read_at(int fd, void *buf, size_t size, uint64_t offset);

/* A listing of the open folder `fd`, from its offset on.  opendir() is not used, because it would call malloc. */
struct gpc_io_listing {
	int fd;
	unsigned n_left; /* so many more names are returned at most */
	long n;          /* bytes in `buf` */
	long at;         /* of these, bytes of entries that were returned */
	_Alignas(uint64_t) char buf[2048];
};

/* The next name, valid until the next call; NULL at the end of the folder, after n_left names, or after an error. */
const char *gpc_io_next_entry(struct gpc_io_listing *listing);

#endif
