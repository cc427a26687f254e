/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Odd arguments and odd results; run.py compares the output with gpucache and without.
 *
 *   odd questions    cuGetProcAddress: empty and missing names, NULL outputs, unknown versions and flags
 *   odd lookups      each row by v1 and v2: whether it is ours, in the version that the driver means
 *   odd reopened     closes and reopens the driver's library
 *   odd nothing      calls every hooked function, each in a process of its own, with NULL or 0 for all parameters
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"

typedef int (*proc_v1)(const char *, void **, int, uint64_t);
typedef int (*proc_v2)(const char *, void **, int, uint64_t, int *);

static void *driver;

static void *find(const char *name)
{
	return dlsym(driver, name);
}

/* A word for a pointer that is the same for the driver's function and for ours. */
static const char *word(const void *pointer)
{
	Dl_info info;

	if (!pointer)
		return "nothing";
	return dladdr(pointer, &info) && info.dli_sname ? info.dli_sname : "a function";
}

/* An output's initial value: shows whether a call wrote to it. */
static char untouched;

static void ask(const char *name, int version, unsigned flags)
{
	void *pointer = &untouched;
	int status = 77;
	int result;
	proc_v2 get_v2;
	proc_v1 get_v1;

	*(void **)(void *)&get_v2 = find("cuGetProcAddress_v2");
	*(void **)(void *)&get_v1 = find("cuGetProcAddress");
	result = get_v2(name, &pointer, version, flags, &status);
	printf("v2 %s %d %u: %d %d %s\n", name ? name : "NULL", version, flags, result, status,
		pointer == &untouched ? "untouched" : word(pointer));
	pointer = &untouched;
	result = get_v1(name, &pointer, version, flags);
	printf("v1 %s %d %u: %d %s\n", name ? name : "NULL", version, flags, result,
		pointer == &untouched ? "untouched" : word(pointer));
	printf("nowhere: %d", get_v2(name, NULL, version, flags, NULL));
	printf(" %d\n", get_v1(name, NULL, version, flags));
}

static void questions(void)
{
	static const char *const names[] = { "", NULL, "cuMemAlloc", "cuMemAllocAsync", "cuInit",
		"cuNothing", "cudaMalloc", "cuGetProcAddress" };
	static const int versions[] = { 0, -1, 1, 2000, 3020, 11030, 12000, 13000, 13050, 99999 };
	static const unsigned flags[] = { 0, 1, 2, 3, 4, 64 };

	for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
		for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
			for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++)
				ask(names[n], versions[v], flags[f]);
}

/* NAME VERSION FLAGS ...: prints which of our functions v2 returns, if any. */
static void lookups(char **words)
{
	proc_v2 get;

	*(void **)(void *)&get = find("cuGetProcAddress_v2");
	for (; get && words[0] && words[1] && words[2]; words += 3) {
		void *pointer = NULL;
		Dl_info info = { 0 };
		int result =
			get(words[0], &pointer, atoi(words[1]), (unsigned)atoi(words[2]), NULL);
		bool is_ours =
			pointer && dladdr(pointer, &info) && strstr(info.dli_fname, "libgpucache");

		printf("%d %s\n", result,
			is_ours && info.dli_sname ? info.dli_sname
			: pointer                 ? "the driver's"
						  : "nothing");
	}
}

static void reopened(void)
{
	int (*init)(unsigned);
	void *first = find("cuInit");

	for (int i = 0; i < 3; i++) {
		printf("closed: %d\n", dlclose(driver));
		driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
		*(void **)(void *)&init = find("cuInit");
		printf("opened: %d, %s, cuInit %d\n", driver != NULL,
			(void *)init == first ? "the same" : "another", init(0));
	}
}

static const char *const rows[] = {
#define ROW(name, since) #name,
#include "rows.def"
};

/* Passes more zeros than any function has parameters. */
static int call_with_nothing(const char *name)
{
	int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

	*(void **)(void *)&function = find(name);
	return function ? function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) : -1;
}

static void start(void)
{
	int (*init)(unsigned);
	int (*retain)(void **, int);
	int (*set)(void *);
	void *context = NULL;

	*(void **)(void *)&init = find("cuInit");
	*(void **)(void *)&retain = find("cuDevicePrimaryCtxRetain");
	*(void **)(void *)&set = find("cuCtxSetCurrent");
	if (init(0) || retain(&context, 0) || set(context))
		_exit(98);
}

static void nothing(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			start();
			printf("%s: %d\n", rows[i], call_with_nothing(rows[i]));
			fflush(stdout);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			exit(3);
		if (status)
			printf("%s: ended with 0x%x\n", rows[i], (unsigned)status);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	if (!driver || argc < 2) {
		fprintf(stderr, "odd: no driver, or no word\n");
		return 2;
	}
	if (strcmp(argv[1], "questions") == 0)
		questions();
	else if (strcmp(argv[1], "lookups") == 0)
		lookups(argv + 2);
	else if (strcmp(argv[1], "reopened") == 0)
		reopened();
	else if (strcmp(argv[1], "nothing") == 0)
		nothing();
	else
		return 2;
	return 0;
}
