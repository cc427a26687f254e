/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our words to a person: single lines on standard error, each starting "gpucache: ".
 *
 * A line is put together on the stack and written with one write(2), so that lines of several
 * threads or processes do not mix.  errno is kept.  At most GPC_LOG_MAX_LINES lines a process; the
 * last one says that there would be more.
 */
#ifndef GPC_BASE_LOG_H
#define GPC_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#define GPC_LOG_MAX_LINES 200

/* Writes one line; the newline is added. */
void gpc_log(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

/* Writes a whole text as it is: several lines that belong together.  Not counted. */
void gpc_log_block(const char *text, size_t len);

/* Where lines go instead of descriptor 2.  For tests; not while other threads log. */
void gpc_log_to(int fd);

#endif
