/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

static int ends[2];

static int open_pipe(void **state)
{
	if (pipe(ends) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		return -1;
	gpc_log_to(ends[1]);
	return 0;
}

static int close_pipe(void **state)
{
	gpc_log_to(2);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

FIXTURE(open_pipe, close_pipe);

static const char *read_all(int fd)
{
	static char buf[200000];
	size_t len = 0;
	ssize_t n;

	while (len < sizeof buf - 1 && (n = read(fd, buf + len, sizeof buf - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	return buf;
}

static const char *written(void)
{
	return read_all(ends[0]);
}

/* What a file holds, whatever is at its descriptor. */
static const char *content(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *text = read_all(fd);

	close(fd);
	return text;
}

TEST(a_line_has_our_name_and_an_end)
{
	gpc_log("%s %d", "number", 7);
	assert_string_equal(written(), "gpucache: number 7\n");
}

TEST(a_long_line_is_cut_and_still_ends)
{
	static char text[5000];
	const char *line;

	memset(text, 'x', sizeof text - 1);
	gpc_log("%s", text);
	line = written();
	assert_int_equal(strlen(line), 1023);
	assert_int_equal(line[1022], '\n');
	assert_int_equal(line[1021], 'x');
}

TEST(lines_are_bounded_and_the_last_one_says_so)
{
	unsigned n_lines = 0;
	const char *text;

	for (int i = 0; i < GPC_LOG_MAX_LINES + 50; i++)
		gpc_log("line");
	text = written();
	assert_non_null(strstr(text, "gpucache: further lines of this process are not shown\n"));
	for (; *text; text++)
		n_lines += *text == '\n';
	assert_int_equal(n_lines, GPC_LOG_MAX_LINES);
}

TEST(a_block_is_written_as_it_is)
{
	gpc_log_block("a\nb\n", 4);
	assert_string_equal(written(), "a\nb\n");
}

TEST(errno_is_kept_even_when_nobody_listens)
{
	gpc_log_to(-1);
	errno = 42;
	gpc_log("x");
	assert_int_equal(errno, 42);
}

/* --- Never an end, never a wait --------------------------------------------------------------- */

#define LINE     "forty bytes of a line that has an end ..\n"
#define LINE_LEN (sizeof LINE - 1)
#define N_LINES  1000

/* About 40 KB in whole lines: more than any piece. */
static const char *long_text(void)
{
	static char text[N_LINES * LINE_LEN + 1];

	for (size_t i = 0; i < N_LINES; i++)
		memcpy(text + i * LINE_LEN, LINE, LINE_LEN);
	return text;
}

TEST(without_a_reader_there_is_no_signal_in_any_disposition)
{
	sigset_t now;

	close(ends[0]);
	signal(SIGPIPE, SIG_DFL);
	gpc_log("x");
	signal(SIGPIPE, SIG_IGN);
	gpc_log("x");
	signal(SIGPIPE, SIG_DFL);
	/* Nothing is left behind, and the mask is the program's. */
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	assert_false(sigismember(&now, SIGPIPE) || sigismember(&now, SIGTERM));
	assert_int_equal(sigpending(&now), 0);
	assert_false(sigismember(&now, SIGPIPE));
	assert_int_equal(pipe(ends), 0);
}

TEST(a_signal_that_was_waiting_before_still_waits)
{
	sigset_t blocked;
	sigset_t old;
	sigset_t now;
	int number = 0;

	close(ends[0]);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGPIPE);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &blocked, &old), 0);
	assert_int_equal(raise(SIGPIPE), 0);
	gpc_log("x");
	assert_int_equal(sigpending(&now), 0);
	assert_true(sigismember(&now, SIGPIPE));
	assert_int_equal(sigwait(&blocked, &number), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	assert_int_equal(pipe(ends), 0);
}

/* Readers come and go while we write: the look before a write is always too early. */
static void *open_and_close(void *arg)
{
	const char *path = arg;

	for (int i = 0; i < 20000; i++) {
		int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		close(fd);
	}
	return NULL;
}

TEST(a_reader_that_goes_between_look_and_write_sends_no_signal)
{
	char folder[] = "/tmp/gpc-log-XXXXXX";
	char path[64];
	pthread_t reader;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	gpc_log_to(open(path, O_WRONLY | O_CLOEXEC));
	close(fd);
	assert_int_equal(pthread_create(&reader, NULL, open_and_close, path), 0);
	for (int i = 0; i < 20000; i++)
		gpc_log_block("x\n", 2);
	pthread_join(reader, NULL);
	unlink(path);
	rmdir(folder);
}

TEST(a_full_pipe_is_left_alone)
{
	char byte = 'x';

	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	while (write(ends[1], &byte, 1) == 1)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	gpc_log("never seen");
	assert_null(strstr(written(), "never"));
	/* And is written again when there is room. */
	gpc_log("seen");
	assert_string_equal(written(), "gpucache: seen\n");
}

TEST(a_text_longer_than_the_room_ends_with_a_line)
{
	const char *text = long_text();
	const char *found;

	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, 16384), 16384);
	gpc_log_block(text, N_LINES * LINE_LEN);
	found = written();
	assert_true(strlen(found) >= 4 * LINE_LEN && strlen(found) <= 16384);
	assert_int_equal(strlen(found) % LINE_LEN, 0);
	assert_memory_equal(found, text, strlen(found));
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
}

TEST(a_text_of_many_pieces_is_whole_where_there_is_room)
{
	const char *text = long_text();

	gpc_log_block(text, N_LINES * LINE_LEN);
	assert_string_equal(written(), text);
}

/* As su and some containers leave it: the pipe cannot be opened again. */
TEST(a_pipe_of_another_user_is_written_and_never_waited_for)
{
	char byte = 'x';
	pid_t child;
	int status;

	if (geteuid() != 0)
		skip();
	child = fork();
	if (child == 0) {
		if (setresuid(61234, 61234, 61234) != 0)
			_exit(1);
		gpc_log("seen");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_string_equal(written(), "gpucache: seen\n");
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	while (write(ends[1], &byte, 1) == 1)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	child = fork();
	if (child == 0) {
		if (setresuid(61234, 61234, 61234) != 0)
			_exit(1);
		gpc_log("not seen");
		close(ends[0]);
		gpc_log("nobody is there");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(a_limit_of_the_file_size_sends_no_signal)
{
	char path[] = "/tmp/gpc-log-XXXXXX";
	int fd = mkstemp(path);
	struct rlimit old;
	struct rlimit tight;

	gpc_log_to(fd);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){ .rlim_cur = 10, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	gpc_log("more than ten bytes");
	gpc_log("and none after them");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_string_equal(content(path), "gpucache: ");
	close(fd);
	unlink(path);
}

TEST(a_socket_is_written_and_neither_waited_for_nor_missed)
{
	static char fill[4096];
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	gpc_log_to(pair[1]);
	gpc_log("seen");
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	assert_string_equal(read_all(pair[0]), "gpucache: seen\n");
	while (send(pair[1], fill, sizeof fill, MSG_DONTWAIT) > 0)
		;
	gpc_log("no room");
	close(pair[0]);
	gpc_log("nobody is there");
	close(pair[1]);
}

TEST(a_terminal_that_is_held_is_left_alone)
{
	const char *text = long_text();
	struct termios raw;
	int master;
	int terminal;

	assert_int_equal(openpty(&master, &terminal, NULL, NULL, NULL), 0);
	assert_int_equal(tcgetattr(terminal, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(terminal, TCSANOW, &raw), 0);
	assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
	gpc_log_to(terminal);
	assert_int_equal(tcflow(terminal, TCOOFF), 0);
	gpc_log("held by control-S");
	assert_int_equal(tcflow(terminal, TCOON), 0);
	gpc_log("seen");
	assert_string_equal(read_all(master), "gpucache: seen\n");
	/* Nobody reads: no more than fits, and no waiting. */
	for (int i = 0; i < 20; i++)
		gpc_log_block(text, N_LINES * LINE_LEN);
	assert_memory_equal(read_all(master), text, LINE_LEN);
	assert_int_equal(fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
	close(terminal);
	close(master);
}

/* `stty tostop`: a write in the background would stop the whole job. */
TEST(a_terminal_with_tostop_stops_no_writer)
{
	struct termios modes;
	int master;
	int terminal;
	int status = 0;
	pid_t child;

	assert_int_equal(openpty(&master, &terminal, NULL, NULL, NULL), 0);
	assert_int_equal(tcgetattr(terminal, &modes), 0);
	modes.c_lflag |= TOSTOP;
	assert_int_equal(tcsetattr(terminal, TCSANOW, &modes), 0);
	child = fork();
	if (child == 0) {
		pid_t worker;

		/* A session whose terminal this is; the worker is in its background. */
		if (setsid() < 0 || ioctl(terminal, TIOCSCTTY, 0) != 0)
			_exit(1);
		worker = fork();
		if (worker == 0) {
			if (setpgid(0, 0) != 0)
				_exit(2);
			gpc_log_to(terminal);
			gpc_log("from behind");
			_exit(0);
		}
		if (waitpid(worker, &status, WUNTRACED) != worker || status != 0)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(terminal);
	close(master);
}

/* --- Whose file it is ------------------------------------------------------------------------- */

static char file_path[] = "/tmp/gpc-log-XXXXXX";

/* The number of the log is a new file's, opened with these flags. */
static void reuse_number(int flags)
{
	int fd;

	strcpy(file_path + sizeof file_path - 7, "XXXXXX");
	close(mkstemp(file_path));
	fd = open(file_path, flags);
	assert_true(fd >= 0);
	if (fd == ends[1])
		return;
	assert_int_equal(dup3(fd, ends[1], flags & O_CLOEXEC), ends[1]);
	close(fd);
}

/* One line is said; true if it is in the file, which then goes. */
static bool gets_the_line(void)
{
	bool is_written;

	gpc_log("x");
	is_written = strcmp(content(file_path), "gpucache: x\n") == 0;
	if (!is_written)
		assert_string_equal(content(file_path), "");
	unlink(file_path);
	return is_written;
}

TEST(a_file_of_the_program_that_got_the_number_is_not_written)
{
	static const int flags[] = { O_RDWR, O_WRONLY, O_RDWR | O_CLOEXEC, O_WRONLY | O_CLOEXEC,
		O_WRONLY | O_APPEND | O_CLOEXEC, O_RDONLY };

	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		reuse_number(flags[i]);
		assert_false(gets_the_line());
	}
	/* The same where nothing was there at the start. */
	close(ends[1]);
	gpc_log_to(ends[1]);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		reuse_number(flags[i]);
		assert_false(gets_the_line());
	}
}

TEST(a_file_opened_for_appending_is_a_log)
{
	reuse_number(O_WRONLY | O_APPEND);
	assert_true(gets_the_line());
	reuse_number(O_RDWR | O_APPEND);
	assert_true(gets_the_line());
}

TEST(a_file_that_has_another_number_too_was_put_there_by_dup2)
{
	int fd;

	/* As Python: its own is closed by exec, what dup2 made is inherited. */
	reuse_number(O_WRONLY);
	fd = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
	gpc_log("x");
	close(fd);
	/* What it is, it stays. */
	gpc_log("y");
	assert_string_equal(content(file_path), "gpucache: x\ngpucache: y\n");
	unlink(file_path);
	/* The same file, opened twice, is not that. */
	reuse_number(O_RDWR);
	fd = open(file_path, O_WRONLY | O_CLOEXEC);
	assert_false(gets_the_line());
	close(fd);
}

TEST(the_file_that_was_there_at_the_start_is_written_in_every_mode)
{
	static const int flags[] = { O_RDWR, O_WRONLY, O_RDWR | O_CLOEXEC, O_WRONLY | O_APPEND };

	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		reuse_number(flags[i]);
		gpc_log_to(ends[1]);
		assert_true(gets_the_line());
	}
}

TEST(a_pipe_or_socket_of_the_program_that_got_the_number_is_not_written)
{
	int other[2];
	int pair[2];
	int log_fd = ends[1];

	assert_int_equal(pipe(other), 0);
	assert_int_equal(fcntl(other[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(dup2(other[1], log_fd), log_fd);
	close(other[1]);
	gpc_log("x");
	assert_string_equal(read_all(other[0]), "");
	/* As a notebook redirects it: the end that was put there stays open. */
	other[1] = dup(log_fd);
	gpc_log("x");
	assert_string_equal(read_all(other[0]), "gpucache: x\n");
	close(other[0]);
	close(other[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(dup2(pair[1], log_fd), log_fd);
	gpc_log("x");
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	assert_string_equal(read_all(pair[0]), "");
	close(pair[0]);
	close(pair[1]);
}

TEST(a_terminal_may_come_later_and_a_device_may_not)
{
	int full = open("/dev/full", O_WRONLY);
	int master;
	int terminal;

	assert_int_equal(openpty(&master, &terminal, NULL, NULL, NULL), 0);
	assert_int_equal(dup2(terminal, ends[1]), ends[1]);
	assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
	gpc_log("x");
	assert_string_equal(read_all(master), "gpucache: x\r\n");
	assert_int_equal(dup2(full, ends[1]), ends[1]);
	errno = 42;
	gpc_log("x");
	assert_int_equal(errno, 42);
	close(full);
	close(terminal);
	close(master);
}
