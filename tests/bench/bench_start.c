/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of the library in a process that never uses CUDA: every child inherits LD_PRELOAD.
 *
 *   true_preloaded      start and end of /bin/true with the library; baseline: without
 *   true_preloaded_any  the same with an almost empty library, glibc's libdl.so.2: the loader's own cost
 *
 * The three are started alternately; the time of each is its best: slower starts were disturbed by other processes.
 */
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"

#define N_ROUNDS 1500

enum {
	PLAIN,
	OURS,
	ANY,
	N_KINDS
};

static double start_and_end_us(const char *preload)
{
	char program[] = "/bin/true";
	char variable[PATH_MAX + 16];
	char *const arguments[] = { program, NULL };
	char *const environment[] = { preload ? variable : NULL, NULL };
	uint64_t start;
	int status;
	pid_t pid;

	snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload ? preload : "");
	start = gpc_clock_monotonic_ns();
	bench_check(
		"posix_spawn", posix_spawn(&pid, program, NULL, NULL, arguments, environment) == 0);
	bench_check("waitpid", waitpid(pid, &status, 0) == pid && status == 0);
	return (double)(gpc_clock_monotonic_ns() - start) / 1000;
}

int main(void)
{
	static double us[N_KINDS][N_ROUNDS];
	const char *preload[N_KINDS] = { NULL, NULL, "libdl.so.2" };
	char library[PATH_MAX];

	bench_find_build(library, sizeof library - sizeof "/libgpucache.so");
	strcat(library, "/libgpucache.so");
	bench_check("finding the library", access(library, R_OK) == 0);
	preload[OURS] = library;
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		for (unsigned kind = 0; kind < N_KINDS; kind++)
			us[kind][i] = start_and_end_us(preload[kind]);
	}
	for (unsigned kind = OURS; kind < N_KINDS; kind++)
		bench_row(kind == OURS ? "true_preloaded" : "true_preloaded_any",
			bench_quantile(us[kind], N_ROUNDS, 0), "us",
			bench_quantile(us[PLAIN], N_ROUNDS, 0));
	return 0;
}
