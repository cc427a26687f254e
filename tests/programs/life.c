/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose process lives and ends in an unusual way, chosen by its argument.  It prints each
 * error code it got; with and without gpucache the output must be the same.
 *
 *   life MODE [PATH]     `life list` prints the modes, one a line; exec and spawn start PATH, the
 *                        mode library loads it
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define BLOCK_BYTES ((size_t)3 << 20)
#define N_THREADS   1000
#define N_FORKS     40
#define N_BUSY      4

extern char **environ;

static const char *path;

static void say(const char *what, int number)
{
	printf("%s: %d\n", what, number);
	fflush(stdout);
}

static void *block(void)
{
	void *ptr = NULL;

	say("malloc", (int)cudaMalloc(&ptr, BLOCK_BYTES));
	return ptr;
}

/* Allocates, writes, reads back and frees. */
static void use(void)
{
	unsigned char byte = 0;
	void *ptr = block();

	say("memset", (int)cudaMemset(ptr, 9, BLOCK_BYTES));
	say("memcpy", (int)cudaMemcpy(&byte, ptr, 1, cudaMemcpyDeviceToHost));
	say("byte", byte);
	say("free", (int)cudaFree(ptr));
}

static void wait_for(pid_t child)
{
	int status = 0;

	if (child < 0 || waitpid(child, &status, 0) != child)
		say("no child", errno);
	else
		say("child ended", status);
}

/* ---- children ---- */

/* What a child may still try with the memory of its parent. */
static void misuse_as_child(void *inherited)
{
	void *ptr = NULL;

	say("child malloc", (int)cudaMalloc(&ptr, BLOCK_BYTES));
	say("child free of the parent's", (int)cudaFree(inherited));
	exit(7);
}

static void fork_after(void)
{
	void *ptr = block();
	pid_t child = fork();

	if (child == 0)
		misuse_as_child(ptr);
	wait_for(child);
	say("free", (int)cudaFree(ptr));
	use();
}

static void fork_before(void)
{
	pid_t child = fork();

	if (child == 0) {
		use();
		exit(3);
	}
	wait_for(child);
	use();
}

/* The handlers of pthread_atfork do not run. */
static void clone_after(void)
{
	void *ptr = block();
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (child == 0)
		misuse_as_child(ptr);
	wait_for(child);
	say("free", (int)cudaFree(ptr));
	use();
}

static void vfork_after(void)
{
	void *ptr = block();
	pid_t child = vfork();

	if (child == 0)
		_exit(5);
	wait_for(child);
	say("free", (int)cudaFree(ptr));
}

/* What the child says to the kernel, the parent did not say. */
static void vfork_and_be_killed(void)
{
	pid_t child;

	(void)block();
	child = vfork();
	if (child == 0)
		_exit(5);
	wait_for(child);
	raise(SIGKILL);
}

static void spawn(void)
{
	char *arguments[] = { (char *)path, (char *)"plain", NULL };
	pid_t child = -1;
	void *ptr = block();
	int status;

	status = posix_spawn(&child, path, NULL, NULL, arguments, environ);
	wait_for(child);
	say("posix_spawn", status);
	say("free", (int)cudaFree(ptr));
}

static void exec(void)
{
	(void)block();
	(void)execl(path, path, "plain", NULL);
	say("exec", errno);
}

static atomic_bool is_over;

static void *keep_busy(void *arg)
{
	(void)arg;
	while (!atomic_load(&is_over)) {
		void *ptr = NULL;

		if (cudaMalloc(&ptr, BLOCK_BYTES) || cudaFree(ptr))
			say("busy", (int)cudaGetLastError());
	}
	return NULL;
}

/* Locks of ours are held at the moment of the fork, by threads that the child does not have. */
static void fork_busy(void)
{
	pthread_t threads[N_BUSY];
	int n_bad = 0;

	say("free", (int)cudaFree(block()));
	for (int i = 0; i < N_BUSY; i++)
		pthread_create(&threads[i], NULL, keep_busy, NULL);
	for (int i = 0; i < N_FORKS; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			void *ptr = NULL;

			_exit(cudaMalloc(&ptr, BLOCK_BYTES) == cudaSuccess);
		}
		n_bad += waitpid(child, &status, 0) != child || status != 0;
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < N_BUSY; i++)
		pthread_join(threads[i], NULL);
	say("children that did not fail well", n_bad);
}

/* ---- threads ---- */

static void *use_a_little(void *arg)
{
	atomic_int *n_bad = arg;
	void *ptr = NULL;

	if (cudaMalloc(&ptr, 1000) || cudaMemset(ptr, 1, 1000) || cudaFree(ptr))
		atomic_fetch_add(n_bad, 1);
	return NULL;
}

static void threads(void)
{
	static pthread_t threads[N_THREADS];
	atomic_int n_bad = 0;
	int n = 0;

	while (n < N_THREADS && !pthread_create(&threads[n], NULL, use_a_little, &n_bad))
		n++;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	say("threads", n);
	say("of them failed", atomic_load(&n_bad));
}

/* ---- ends ---- */

static void *left;
static bool frees_late;

/* After every handler of exit: also after the driver's. */
__attribute__((destructor)) static void free_late(void)
{
	if (frees_late) {
		say("free in a destructor", (int)cudaFree(left));
		say("malloc in a destructor", (int)cudaMalloc(&left, BLOCK_BYTES));
	}
}

static void destructor(void)
{
	left = block();
	frees_late = true;
}

static void free_at_exit(void)
{
	say("free at exit", (int)cudaFree(left));
}

static void handler(void)
{
	atexit(free_at_exit); /* before CUDA: it runs after the driver's */
	left = block();
}

static void end_at_once(void)
{
	(void)block();
	_exit(4);
}

static void end_at_once_by_another_name(void)
{
	(void)block();
	_Exit(4);
}

static void end_in_a_handler(int number)
{
	_exit(number);
}

/* Ends from a signal handler, at an arbitrary point of the library. */
static void end_by_a_signal_handler(void)
{
	(void)block();
	signal(SIGUSR1, end_in_a_handler);
	raise(SIGUSR1);
}

static void fork_before_and_end_at_once(void)
{
	pid_t child = fork();

	if (child == 0)
		end_at_once();
	wait_for(child);
	use();
}

static void end_quickly(void)
{
	(void)block();
	quick_exit(5);
}

static void end_by_abort(void)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)block();
	abort();
}

static void *exit_here(void *arg)
{
	(void)arg;
	exit(6);
}

static void exit_in_a_thread(void)
{
	pthread_t thread;

	(void)block();
	pthread_create(&thread, NULL, exit_here, NULL);
	pthread_join(thread, NULL);
}

/* Once the driver is gone, every call must return at once, with any error. */
static void *allocate_for_ever(void *arg)
{
	for (;;) {
		void *ptr = NULL;

		if (!cudaMalloc(&ptr, BLOCK_BYTES))
			(void)cudaFree(ptr);
		atomic_fetch_add((atomic_int *)arg, 1);
	}
	return NULL;
}

static void exit_while_others_allocate(void)
{
	static atomic_int n;
	pthread_t threads[N_BUSY];

	(void)block();
	for (int i = 0; i < N_BUSY; i++)
		pthread_create(&threads[i], NULL, allocate_for_ever, &n);
	while (atomic_load(&n) < 2000)
		sched_yield();
	exit(8);
}

/* ---- surroundings ---- */

/* The library of CUDA is loaded, used, closed, and loaded again. */
static void library(void)
{
	for (int i = 0; i < 3; i++) {
		void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		cudaError_t (*malloc_of)(void **, size_t) = NULL;
		cudaError_t (*free_of)(void *) = NULL;
		void *ptr = NULL;

		if (runtime) {
			*(void **)(void *)&malloc_of = dlsym(runtime, "cudaMalloc");
			*(void **)(void *)&free_of = dlsym(runtime, "cudaFree");
		}
		if (!malloc_of || !free_of) {
			say("not loaded", i);
			return;
		}
		say("malloc", (int)malloc_of(&ptr, BLOCK_BYTES));
		say("free", (int)free_of(ptr));
		say("dlclose", dlclose(runtime));
	}
}

/* Closes all descriptors and reuses the numbers for its own files, which the library must not touch. */
static void descriptors(void)
{
	char text[32] = "";
	void *ptr = block();
	int fds[16];

	(void)syscall(SYS_close_range, 3U, ~0U, 0U);
	for (int i = 3; i < 1024; i++)
		(void)close(i);
	for (int i = 0; i < 16; i++) {
		snprintf(text, sizeof text, "own-%d", i);
		fds[i] = open(text, O_RDWR | O_CREAT | O_EXCL, 0600);
	}
	use();
	say("free", (int)cudaFree(ptr));
	for (int i = 0; i < 16; i++)
		say("bytes in a file of the program", (int)lseek(fds[i], 0, SEEK_END));
	printf("closed\n");
	fflush(stdout);
	raise(SIGSTOP);
	use();
}

static void no_descriptors(void)
{
	const struct rlimit three = { 3, 3 };

	(void)dlopen("libcuda.so.1", RTLD_NOW); /* what must be opened is open */
	say("setrlimit", setrlimit(RLIMIT_NOFILE, &three));
	use();
}

static void change_directory(void)
{
	void *ptr = block();

	say("chdir", chdir("/"));
	say("free", (int)cudaFree(ptr));
	use();
}

static void plain(void)
{
	use();
}

static const struct mode {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "plain", plain },
	{ "fork-after", fork_after },
	{ "fork-before", fork_before },
	{ "fork-busy", fork_busy },
	{ "clone-after", clone_after },
	{ "vfork-after", vfork_after },
	{ "vfork-and-be-killed", vfork_and_be_killed },
	{ "spawn", spawn },
	{ "exec", exec },
	{ "threads", threads },
	{ "destructor", destructor },
	{ "handler", handler },
	{ "_exit", end_at_once },
	{ "_Exit", end_at_once_by_another_name },
	{ "_exit-in-a-handler", end_by_a_signal_handler },
	{ "_exit-of-a-child", fork_before_and_end_at_once },
	{ "quick_exit", end_quickly },
	{ "abort", end_by_abort },
	{ "exit-in-a-thread", exit_in_a_thread },
	{ "exit-while-others-allocate", exit_while_others_allocate },
	{ "library", library },
	{ "descriptors", descriptors },
	{ "no-descriptors", no_descriptors },
	{ "change-directory", change_directory },
};

int main(int argc, char **argv)
{
	path = argc > 2 ? argv[2] : argv[0];
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (argc > 1 && strcmp(argv[1], "list") == 0) {
			printf("%s\n", modes[i].name);
		} else if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			return 0;
		}
	}
	return argc > 1 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}
