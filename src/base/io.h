/* SPDX-License-Identifier: Apache-2.0 */
/* Whole writes and reads on file descriptors, with EINTR handled and nothing allocated. */
#ifndef GPC_BASE_IO_H
#define GPC_BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

/* Writes all of data[0 .. len).  GPC_IO with errno set where that is impossible. */
GPC_MUST_CHECK enum gpc_status gpc_io_write(int fd, const void *data, size_t len);

/*
 * Reads the file `path` into buf[0 .. size - 1) and terminates it.  Returns the length, or -1 with
 * errno set.  Meant for small files of /proc; what does not fit is left out.
 */
ssize_t gpc_io_read_file(const char *path, char *buf, size_t size);

#endif
