/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpucache-wait REPORT [ARGUMENT]... -- PROGRAM [ARGUMENT]...: runs PROGRAM as a child, and REPORT if it failed.
 *
 * gpucache-run --wait becomes this.  To whoever started it, it is as if it were PROGRAM:
 *
 *      group        PROGRAM stays in our process group, which a shell has put in the foreground, or has not: Ctrl-C,
 *                   Ctrl-Z, fg, bg and a kill of the group get to PROGRAM without us, as to any other member.  A group of
 *                   its own would need tcsetpgrp, and hide Ctrl-C from the script around us and from the pipe behind us.
 *      signals      What was sent to us alone is passed on.  A witness, a process that does nothing, tells these from
 *                   what was sent to the whole group: then it has the signal, too, and so has PROGRAM.
 *      stop         When PROGRAM stops, we stop by the same signal, for the shell to see.
 *      end          By the same status, or by the same signal.  Process 1 of a namespace ends by no signal of its own:
 *                   there the status is 128 + the signal, as of a container.
 *      orphans      are reaped, if we are process 1.
 *      SIGKILL      of us kills PROGRAM (PR_SET_PDEATHSIG).
 *      descriptors  We keep stderr only, for REPORT.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of whoever started us, for the programs that we start. */
static sigset_t callers_mask;
static void (*callers_chld)(int);

static sigset_t all_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	return set;
}

static sigset_t only(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	return set;
}

/* PATH is searched, and a script without an interpreter's name runs in the shell, as in exec of the shell. */
static _Noreturn void become(char **command)
{
	int status;

	signal(SIGCHLD, callers_chld);
	sigprocmask(SIG_SETMASK, &callers_mask, NULL);
	execvp(command[0], command);
	status = errno == ENOENT ? 127 : 126;
	dprintf(STDERR_FILENO, "gpucache-run: %s: %s\n", command[0], strerror(errno));
	_exit(status);
}

/* Starts a program that ends when we do; with its stdout on our stderr if that is all we have. */
static pid_t start(char **command, bool is_on_stderr)
{
	const pid_t us = getpid();
	const pid_t child = fork();

	if (child != 0)
		return child;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != us)
		_exit(EXIT_FAILURE);
	if (is_on_stderr)
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	become(command);
}

/* Whoever reads what PROGRAM writes, or writes what it reads, learns of its end, and not of ours. */
static void keep_stderr_only(void)
{
	int fd;

	(void)close(STDIN_FILENO);
	(void)close(STDOUT_FILENO);
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
}

/* The witness: says which of the signals that it is asked for it has, and has them no more. */
static _Noreturn void bear_witness(int fd)
{
	char number;

	(void)dup2(STDIN_FILENO, STDERR_FILENO);
	while (recv(fd, &number, 1, 0) == 1) {
		const sigset_t set = only(number);
		const struct timespec now = { 0 };
		const char has = sigtimedwait(&set, NULL, &now) == number;

		(void)send(fd, &has, 1, MSG_NOSIGNAL);
	}
	_exit(EXIT_SUCCESS);
}

/*
 * Started after PROGRAM: what is sent to the group in between seems to be sent to us alone, and is passed on to a program
 * that has it.  Linux signals the youngest member of a group first, so the witness has what we have.
 * Returns the descriptor by which it is asked, -1 without a witness.
 */
static int post_witness(void)
{
	int ends[2];
	pid_t witness;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	witness = fork();
	if (witness == 0) {
		(void)close(ends[0]);
		bear_witness(ends[1]);
	}
	(void)close(ends[1]);
	return ends[0];
}

static bool has_witness(int witness, int number)
{
	char text = (char)number;

	return send(witness, &text, 1, MSG_NOSIGNAL) == 1 && recv(witness, &text, 1, 0) == 1 &&
	       text;
}

/* Returns when we are continued, or at once where this signal stops nobody: in an orphaned group, and as process 1. */
static void stop_by(int number, int witness)
{
	const sigset_t set = only(number);

	(void)raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)has_witness(witness, number);
}

/* Returns how the child ended. */
static int attend(pid_t child, int witness)
{
	const sigset_t all = all_signals();

	for (;;) {
		const int number = sigwaitinfo(&all, NULL);
		int status;
		pid_t pid;

		/* A program that left our group, such as a shell, has nothing of what is sent to the group. */
		if (number > 0 && number != SIGCHLD &&
			(!has_witness(witness, number) || getpgid(child) != getpgrp()))
			(void)kill(child, number);
		while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (pid != child)
				continue;
			if (!WIFSTOPPED(status))
				return status;
			stop_by(WSTOPSIG(status), witness);
		}
	}
}

static _Noreturn void end_by(int status)
{
	if (WIFSIGNALED(status)) {
		const int number = WTERMSIG(status);
		const sigset_t set = only(number);

		/* A core of us would tell nothing. */
		(void)prctl(PR_SET_DUMPABLE, 0);
		signal(number, SIG_DFL);
		(void)raise(number);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		_exit(128 + number);
	}
	_exit(WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	const sigset_t all = all_signals();
	int n = 1;
	int witness;
	int status;
	pid_t child;

	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	if (n < 2 || n + 1 >= argc) {
		dprintf(STDERR_FILENO, "gpucache-wait: this is a part of gpucache-run --wait\n");
		return 2;
	}
	argv[n] = NULL;
	sigprocmask(SIG_SETMASK, &all, &callers_mask);
	/* Who ignores it gets no status of a child. */
	callers_chld = signal(SIGCHLD, SIG_DFL);
	child = start(&argv[n + 1], false);
	if (child < 0)
		become(&argv[n + 1]);
	keep_stderr_only();
	witness = post_witness();
	status = attend(child, witness);
	if (status != 0) {
		child = start(&argv[1], true);
		if (child > 0)
			(void)attend(child, witness);
	}
	end_by(status);
}
