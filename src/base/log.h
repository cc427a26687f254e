/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: lines on standard error, each starting with "gpucache: ".  All messages of the library go
 * through here.
 *
 * A line is formatted on the stack and written with one system call, so that lines of several threads
 * or processes do not interleave.  A process writes at most GPC_LOG_MAX_LINES lines; the last one says
 * that more were dropped.
 *
 * Descriptor 2 belongs to the program: it may be a pipe that nobody reads, or a data file.  A message
 * that cannot be written safely is dropped; the recording has it all.
 *
 * Invariants  1 Logging never ends the process.  A pipe without a reader, RLIMIT_FSIZE and a terminal
 *               that stops background writers raise SIGPIPE, SIGXFSZ or SIGTTOU.  Testing first would
 *               race, and only sockets have MSG_NOSIGNAL.  So this thread blocks signals around the
 *               write and consumes the signal that the write caused.  Dispositions, which are process-wide, are
 *               not touched, and no handler of the program runs meanwhile.
 *             2 Logging never blocks.  Pipes and terminals are written through an open file description
 *               of our own with O_NONBLOCK (on the program's, everyone who shares it would see the
 *               flag), sockets with MSG_DONTWAIT.  If we cannot open one, as for a pipe of another
 *               user, poll decides when to write and PIPE_BUF how much; that blocks only if another
 *               writer takes the room in between.  Long text is written in pieces of whole lines, until
 *               one does not fit.
 *             3 Logging never writes into a data file of the program.  Standard error is what
 *               descriptor 2 was when we were loaded.  Anything else there now is written only if it is
 *               open for writing, without FD_CLOEXEC (which Python, Go, Rust and others set on files),
 *               and one of
 *                 - a terminal
 *                 - a file opened with O_APPEND, as logs are
 *                 - a file or pipe that is also open under another number, as after dup2, now or at
 *                   an earlier line
 *               So a daemon's log, `os.dup2(log.fileno(), 2)` and a notebook's pipe are written; a data
 *               file, pipe, socket or device that happened to get number 2 is not.  Nor is a log
 *               without O_APPEND whose other descriptor was closed before the first line: it looks the
 *               same.
 *             4 errno is preserved, and no call is a cancellation point.
 * Threads     Any.
 */
#ifndef GPC_BASE_LOG_H
#define GPC_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#define GPC_LOG_MAX_LINES 200

/* Writes one line; the newline is added. */
void gpc_log(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

/* Writes text[0 .. len) unchanged: lines that belong together.  They do not count for GPC_LOG_MAX_LINES. */
void gpc_log_block(const char *text, size_t len);

/*
 * Redirects the log to `fd`, which then counts as the descriptor 2 of load time.  For tests; not while
 * other threads log.
 */
void gpc_log_to(int fd);

#endif
