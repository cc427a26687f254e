/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the benchmarks: time, medians, and the rows that tests/bench/run.sh collects.
 *
 *      name,value,unit,baseline,ratio        value and baseline are measured alternately in the same run
 *
 * Threads     Pure functions, except bench_row, which prints.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Ends the benchmark if `what` failed. */
static inline void bench_check(const char *what, bool is_good)
{
	if (is_good)
		return;
	fprintf(stderr, "%s: %s failed\n", program_invocation_short_name, what);
	exit(1);
}

/* Finds BUILD from the path of the running BUILD/tests/bench/bench_x. */
static inline void bench_find_build(char *build, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", build, size - 1);

	bench_check("readlink", len > 0);
	build[len] = '\0';
	for (int i = 0; i < 3; i++) {
		char *slash = strrchr(build, '/');

		bench_check("finding the build folder", slash != NULL);
		*slash = '\0';
	}
}

/* The CPU time of this thread, which other processes do not affect. */
static inline uint64_t bench_cpu_ns(void)
{
	struct timespec t;

	bench_check("clock_gettime", clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Keeps the compiler from removing the code that computed `ptr`. */
static inline void bench_use(const void *ptr)
{
	__asm__ volatile("" : : "r"(ptr) : "memory");
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the quantile `part` (0 .. 1); sorts `values`. */
static inline double bench_quantile(double *values, unsigned n, double part)
{
	qsort(values, n, sizeof *values, bench_compare);
	return values[(unsigned)((n - 1) * part)];
}

static inline double bench_median(double *values, unsigned n)
{
	return bench_quantile(values, n, 0.5);
}

/* Nanoseconds of a host malloc and free of 64 bytes, the baseline of hits. */
static inline double bench_malloc_pair_ns(unsigned n_pairs)
{
	uint64_t start = bench_cpu_ns();

	for (unsigned i = 0; i < n_pairs; i++) {
		void *ptr = malloc(64);

		bench_use(ptr);
		free(ptr);
	}
	return (double)(bench_cpu_ns() - start) / n_pairs;
}

static inline void bench_row(const char *name, double value, const char *unit, double baseline)
{
	printf("%s,%.3f,%s,%.3f,%.3f\n", name, value, unit, baseline,
		baseline > 0 ? value / baseline : 0);
	fflush(stdout);
}

/* How often each child is measured; children alternate. */
#define BENCH_TURNS 7

/* Prints the turn with the median ratio: its value and baseline were measured one after the other. */
static inline void bench_turns_row(
	const char *name, const double *values, const char *unit, const double *baselines)
{
	double ratios[BENCH_TURNS];
	double median;
	unsigned turn = 0;

	for (unsigned i = 0; i < BENCH_TURNS; i++)
		ratios[i] = values[i] / baselines[i];
	median = bench_median(ratios, BENCH_TURNS);
	while (values[turn] / baselines[turn] != median)
		turn++;
	bench_row(name, values[turn], unit, baselines[turn]);
}

#endif
