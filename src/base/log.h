/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our words to a person: single lines on standard error, each starting "gpucache: ".  Everything that
 * the library says goes through here.
 *
 * A line is put together on the stack and written with one system call, so that lines of several
 * threads or processes do not mix.  At most GPC_LOG_MAX_LINES lines a process; the last one says that
 * there would be more.
 *
 * Descriptor 2 is the program's: it may be a pipe that nobody reads, or a file that is none of ours.
 * What cannot be said is left unsaid; the recording has it all.
 *
 * Invariants  1 No line ends the process.  A pipe without a reader, a limit on the size of files and
 *               a terminal that stops background writers answer a write with SIGPIPE, SIGXFSZ or
 *               SIGTTOU.  To look first is not enough, for a reader may go in between, and only
 *               sockets can be told to send no signal.  So the signals of this thread are blocked
 *               around the write, and the one that it caused is taken off; dispositions, which are
 *               the whole process's, are not touched, and no handler of the program runs meanwhile.
 *             2 No line waits.  A pipe and a terminal are written by a description of our own that
 *               does not block (O_NONBLOCK on the program's would be seen by all who share it), a
 *               socket with MSG_DONTWAIT.  Where a description of our own cannot be had, as of a pipe
 *               of another user, a piece goes out when poll says so and is no longer than what fits
 *               then; that waits only if another writer takes the room in between.  A long text goes
 *               in pieces that end with a line, until one does not fit.
 *             3 No line goes into a file of the program.  Standard error is what descriptor 2 was when
 *               we were loaded.  Anything else there now is written only if it is open for writing,
 *               inherited by children (standard error is; files of Python, Go, Rust and others are
 *               not), and one of
 *                 - a terminal
 *                 - a file opened with O_APPEND, as logs are
 *                 - a file or pipe that is open under another number as well, as dup2 leaves it,
 *                   or was at an earlier line
 *               So a daemon's log, `os.dup2(log.fileno(), 2)` and a notebook's pipe are written; a data
 *               file, pipe, socket or device that got the free number 2 is not.  Nor is, for it looks
 *               the same, a log without O_APPEND whose other descriptor was closed before the first line.
 *             4 errno is kept, and no call is a cancellation point.
 * Threads     Any.
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

/*
 * Where lines go instead of descriptor 2, which from now on counts as what it was at the load.  For
 * tests; not while other threads log.
 */
void gpc_log_to(int fd);

#endif
