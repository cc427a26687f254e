/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is formatted on the stack and written at once, with the signals that a write may raise blocked and consumed.
 * Before each line we check that descriptor 2 is still standard error: by the file it was at the start, or by a second
 * descriptor of the same open file.  Logging never blocks: if a pipe is full, the line is lost.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"

/* has_twin() searches only the descriptors below this: the source of a dup2 usually has a low number. */
#define MAX_TWIN 256

#define KERNEL_SIGSET_BYTES 8

static struct {
	int fd;
	bool is_known;
	struct gpc_io_file start; /* the file behind fd when the library was loaded */
	/* The file behind fd later, when it had a second descriptor; the program may have closed that one since. */
	_Atomic uint64_t later_device;
	_Atomic uint64_t later_inode;
	atomic_uint n_lines;
} log_state = { .fd = 2 };

/* gpc_log_block() calls this, too: a constructor that runs before ours may log a line. */
__attribute__((constructor)) static void remember_start(void)
{
	if (log_state.is_known)
		return;
	log_state.start = gpc_io_file_of(log_state.fd);
	log_state.is_known = true;
}

void gpc_log_to(int fd)
{
	log_state.fd = fd;
	log_state.is_known = false;
	atomic_store(&log_state.later_inode, 0);
	remember_start();
	atomic_store(&log_state.n_lines, 0);
}

/* --- Whether this is standard error ----------------------------------------------------------- */

static bool is_terminal(int fd)
{
	struct termios modes;

	return tcgetattr(fd, &modes) == 0;
}

/* True if the open file has a second descriptor, or had one at an earlier line: same file, same flags, same offset. */
static bool has_twin(int fd, const struct stat *st, int flags)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	struct stat other;

	if (atomic_load(&log_state.later_device) == st->st_dev &&
		atomic_load(&log_state.later_inode) == st->st_ino)
		return true;
	for (int twin = 0; twin < MAX_TWIN; twin++) {
		if (twin == fd || fstat(twin, &other) != 0 || other.st_ino != st->st_ino ||
			other.st_dev != st->st_dev || fcntl(twin, F_GETFL) != flags ||
			lseek(twin, 0, SEEK_CUR) != at)
			continue;
		atomic_store(&log_state.later_device, st->st_dev);
		atomic_store(&log_state.later_inode, st->st_ino);
		return true;
	}
	return false;
}

static bool is_standard_error(int fd, const struct stat *st)
{
	int flags;

	if (gpc_io_is(fd, &log_state.start))
		return true;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (fcntl(fd, F_GETFD) & FD_CLOEXEC))
		return false;
	if (S_ISCHR(st->st_mode))
		return is_terminal(fd);
	if (S_ISREG(st->st_mode) && (flags & O_APPEND))
		return true;
	return (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode)) && has_twin(fd, st, flags);
}

/* --- One text, without signals, waits and cancellation points --------------------------------- */

/* Opens the pipe or terminal behind `fd` again, as a file description that does not block; -1 if that is impossible. */
static int open_own(int fd, const struct stat *st)
{
	const struct gpc_io_file file = { (uint64_t)st->st_dev, (uint64_t)st->st_ino };
	char path[48];
	int own;

	if (!S_ISFIFO(st->st_mode) && !(S_ISCHR(st->st_mode) && is_terminal(fd)))
		return -1;
	gpc_format(path, sizeof path, "/proc/thread-self/fd/%d", fd);
	own = gpc_io_lift((int)syscall(
		SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0));
	if (own >= 0 && !gpc_io_is(own, &file)) {
		(void)syscall(SYS_close, own);
		own = -1;
	}
	return own;
}

static bool has_room(int fd)
{
	struct pollfd asked = { .fd = fd, .events = POLLOUT };
	const struct timespec now = { 0, 0 };

	return syscall(SYS_ppoll, &asked, 1, &now, NULL, 0) == 1 && asked.revents == POLLOUT;
}

/* How many bytes to write at once: PIPE_BUF at most, and only whole lines if one fits. */
static size_t piece_of(const char *text, size_t len)
{
	const char *end;

	if (len <= PIPE_BUF)
		return len;
	end = memrchr(text, '\n', PIPE_BUF);
	return end ? (size_t)(end + 1 - text) : PIPE_BUF;
}

static ssize_t write_piece(int fd, int own, const struct stat *st, const char *text, size_t len)
{
	if (S_ISSOCK(st->st_mode))
		return syscall(SYS_sendto, fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	if (S_ISREG(st->st_mode))
		return syscall(SYS_write, fd, text, len);
	len = piece_of(text, len);
	if (own >= 0)
		return syscall(SYS_write, own, text, len);
	return has_room(fd) ? syscall(SYS_write, fd, text, len) : -1;
}

static void write_text(int fd, const struct stat *st, const char *text, size_t len)
{
	int own = open_own(fd, st);

	while (len > 0) {
		ssize_t n = write_piece(fd, own, st, text, len);

		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	if (own >= 0)
		(void)syscall(SYS_close, own);
}

/* Consumes the signals that a write may have sent to this thread, except those that were pending before. */
static void take_off_signals(const sigset_t *before)
{
	static const int numbers[] = { SIGPIPE, SIGXFSZ };
	const struct timespec now = { 0, 0 };
	sigset_t caused;
	sigset_t pending;

	sigemptyset(&caused);
	sigpending(&pending);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		if (!sigismember(&pending, numbers[i]) || sigismember(before, numbers[i]))
			continue;
		sigaddset(&caused, numbers[i]);
		(void)syscall(SYS_rt_sigtimedwait, &caused, NULL, &now, KERNEL_SIGSET_BYTES);
		sigdelset(&caused, numbers[i]);
	}
}

void gpc_log_block(const char *text, size_t len)
{
	int saved_errno = errno;
	int fd = log_state.fd;
	sigset_t all;
	sigset_t old;
	sigset_t before;
	struct stat st;

	remember_start();
	if (fd >= 0 && fstat(fd, &st) == 0 && is_standard_error(fd, &st)) {
		sigfillset(&all);
		if (pthread_sigmask(SIG_SETMASK, &all, &old) == 0) {
			sigpending(&before);
			write_text(fd, &st, text, len);
			take_off_signals(&before);
			(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
		}
	}
	errno = saved_errno;
}

void gpc_log(const char *format, ...)
{
	unsigned n = atomic_fetch_add_explicit(&log_state.n_lines, 1, memory_order_relaxed);
	char buf[1024];
	struct gpc_text text = gpc_text_init(buf, sizeof buf - 1);
	va_list args;

	if (n >= GPC_LOG_MAX_LINES)
		return;
	gpc_text_add(&text, "gpucache: ");
	if (n == GPC_LOG_MAX_LINES - 1) {
		gpc_text_add(&text, "further lines of this process are not shown");
	} else {
		va_start(args, format);
		gpc_text_vadd(&text, format, args);
		va_end(args);
	}
	buf[text.len++] = '\n';
	gpc_log_block(buf, text.len);
}
