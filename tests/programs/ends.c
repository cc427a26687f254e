/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs out of memory, and ends.
 *
 *   ends WAY [WHAT]
 *
 *   WAY    return, exit, _exit, _Exit, quick_exit, abort, assert, terminate, trap
 *          thread        each of eight threads runs out of memory, and calls exit
 *          handler       a handler of a signal calls _exit
 *          in-a-handler  exit is called while another exit is under way
 *          child         a child of fork does all that, and ends by _exit; then the parent does so, too
 *          after-a-child the parent does all that; a child of fork, which has no CUDA, ends by _exit before
 *   WHAT   fatal         the request fails; the status is 3
 *          passed        it fails, and the status is 0
 *          recovered     it succeeds after something was freed; the status is 3
 *          less          a smaller one succeeds; the status is 3
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulated.h"

#define BLOCK (100 * MIB)

static int status_at_end = 3;

static void run_out(void)
{
	void *ptr;

	while (cudaMalloc(&ptr, BLOCK) == cudaSuccess)
		;
}

static void *run_out_and_exit(void *arg)
{
	(void)arg;
	run_out();
	exit(status_at_end);
}

static void in_threads(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, run_out_and_exit, NULL))
			_exit(1);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void end_in_handler(int number)
{
	(void)number;
	_exit(status_at_end);
}

static void exit_again(void)
{
	_exit(status_at_end);
}

static void terminate(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW);
	void (*end)(void) = NULL;

	if (!library)
		exit(77);
	*(void **)&end = dlsym(library, "_ZSt9terminatev");
	end();
}

/* False: this way is no way to end. */
static int end_by(const char *way)
{
	if (!strcmp(way, "exit"))
		exit(status_at_end);
	if (!strcmp(way, "_exit"))
		_exit(status_at_end);
	if (!strcmp(way, "_Exit"))
		_Exit(status_at_end);
	if (!strcmp(way, "quick_exit"))
		quick_exit(status_at_end);
	if (!strcmp(way, "abort"))
		abort();
	if (!strcmp(way, "assert"))
		assert(status_at_end == 0);
	if (!strcmp(way, "terminate"))
		terminate();
	if (!strcmp(way, "trap"))
		__builtin_trap();
	if (!strcmp(way, "handler")) {
		signal(SIGUSR1, end_in_handler);
		raise(SIGUSR1);
	}
	if (!strcmp(way, "in-a-handler")) {
		atexit(exit_again);
		exit(status_at_end);
	}
	return 0;
}

static void wait_for(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		_exit(1);
	printf("child: %d\n", WEXITSTATUS(status));
	fflush(stdout);
}

static void recover(size_t size, void *held)
{
	void *ptr;

	if (held)
		OK(cudaFree(held));
	OK(cudaMalloc(&ptr, size));
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	const char *what = argc > 2 ? argv[2] : "fatal";
	void *held;
	pid_t child;

	if (!strcmp(what, "passed"))
		status_at_end = 0;
	if (!strcmp(way, "child")) {
		child = fork();
		if (child == 0) {
			run_out();
			_exit(status_at_end);
		}
		wait_for(child);
		_exit(status_at_end);
	}
	held = allocate(BLOCK);
	if (!strcmp(way, "thread"))
		in_threads();
	run_out();
	if (!strcmp(what, "recovered"))
		recover(BLOCK, held);
	if (!strcmp(what, "less"))
		recover(BLOCK / 100, NULL);
	if (!strcmp(way, "after-a-child")) {
		child = fork();
		if (child == 0)
			_exit(5);
		wait_for(child);
		_exit(status_at_end);
	}
	return end_by(way) + status_at_end;
}
