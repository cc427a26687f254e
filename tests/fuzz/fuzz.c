/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz [-n INPUTS | -s SECONDS] [-S SEED]... [-t TARGET] CORPUS OUT   all targets, or one; OUT keeps failures
 * fuzz -t TARGET -i FILE                                              one input, with its whole report
 *
 * The first inputs of a target are the files of its corpus; all further ones are mutations of these files.  With -n the
 * inputs depend on the seeds alone, for a gate.  With -s and no -S the clock gives the seed, for a search.
 *
 * A child process runs one input after the other, and keeps the number of the current input in shared memory.  If the
 * child dies, the parent makes that input again and saves it, and a new child continues with the next one.  The last
 * line is "N passed, N failed"; a target passes if none of its inputs failed.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_CORPUS    256
#define MAX_MUTATIONS 8
#define MAX_SEEDS     16
#define CUT_ONE_IN    8

/* A target ends after this many failures. */
#define MAX_FAILURES 10

/* The limit of CPU time per input, which normally takes milliseconds. */
#define HANG_S 2

/* The limit of elapsed time per input: a child that blocks on a pipe uses no CPU time.  Generous for busy machines. */
#define STUCK_S 60

/* The seconds with -n: in effect no limit. */
#define ENOUGH_S 1e9

/* An allocation of more than 128 MiB is a failure, because no input has more than 4 MiB. */
FUZZ_FOR_SANITIZER const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=128:hard_rss_limit_mb=1024:quarantine_size_mb=16:"
	       "detect_stack_use_after_return=0";
}

/* NULL in a build without sanitizers. */
void __sanitizer_print_stack_trace(void) __attribute__((weak));

static const struct fuzz_target *const targets[] = { &fuzz_recording, &fuzz_config, &fuzz_sim,
	&fuzz_trace, &fuzz_pack, &fuzz_object, &fuzz_arguments, &fuzz_replay, &fuzz_tag };

#define N_TARGETS (sizeof targets / sizeof targets[0])

struct fuzzer {
	const struct fuzz_target *target;
	struct fuzz_input corpus[MAX_CORPUS];
	unsigned n_corpus;
	uint64_t seed;
	uint64_t end;              /* inputs in all, unless the time ends earlier */
	struct fuzz_input input;   /* the current one */
	volatile uint64_t *number; /* of the current input; shared memory */
};

/* The folder of fuzz_folder(), the same for all children. */
static char folder_path[64];

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

void fuzz_broken(const char *condition, const char *file, int line)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, condition);
	if (__sanitizer_print_stack_trace)
		__sanitizer_print_stack_trace();
	_exit(98);
}

const char *fuzz_folder(void)
{
	return folder_path;
}

const char *fuzz_file(const char *name, const unsigned char *data, size_t size)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder_path, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0)
		fail(path);
	return path;
}

static void remove_folder(void)
{
	struct dirent **items;
	char path[1024];
	int n = scandir(folder_path, &items, NULL, NULL);

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s", folder_path, items[i]->d_name);
		if (items[i]->d_name[0] != '.')
			unlink(path);
		free(items[i]);
	}
	if (n >= 0)
		free(items);
	rmdir(folder_path);
}

/* --- Inputs ----------------------------------------------------------------------------------- */

static void load(struct fuzz_input *input, const char *path, bool is_packed)
{
	gzFile packed = is_packed ? gzopen(path, "rb") : NULL;
	FILE *plain = is_packed ? NULL : fopen(path, "rb");
	unsigned char *data = malloc(FUZZ_MAX_INPUT);

	if ((!packed && !plain) || !data)
		fail(path);
	input->size = packed ? (size_t)gzread(packed, data, FUZZ_MAX_INPUT)
			     : fread(data, 1, FUZZ_MAX_INPUT, plain);
	input->data = realloc(data, input->size + 1);
	if (packed)
		gzclose(packed);
	else
		fclose(plain);
}

/* Loads the files in the order of their names, so that an input has the same number on every machine. */
static void load_corpus(struct fuzzer *fuzzer, const char *corpus)
{
	struct dirent **items;
	char path[1024];
	int n;

	snprintf(path, sizeof path, "%s/%s", corpus, fuzzer->target->name);
	n = scandir(path, &items, NULL, alphasort);
	if (n < 0)
		fail(path);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s/%s", corpus, fuzzer->target->name,
			items[i]->d_name);
		if (items[i]->d_name[0] != '.' && fuzzer->n_corpus < MAX_CORPUS)
			load(&fuzzer->corpus[fuzzer->n_corpus++], path, fuzzer->target->is_packed);
		free(items[i]);
	}
	free(items);
	if (fuzzer->n_corpus == 0) {
		fprintf(stderr, "fuzz: no corpus in %s\n", corpus);
		exit(2);
	}
}

static void free_corpus(struct fuzzer *fuzzer)
{
	for (unsigned i = 0; i < fuzzer->n_corpus; i++)
		free(fuzzer->corpus[i].data);
	free(fuzzer->input.data);
}

static void copy_input(struct fuzzer *fuzzer, const struct fuzz_input *from, size_t size)
{
	memcpy(fuzzer->input.data, from->data, size);
	fuzzer->input.size = size;
}

/* Truncates the input at one of the places that the target's cut() knows, drawn at random. */
static void cut(struct fuzzer *fuzzer, struct fuzz_random *random)
{
	struct fuzz_input whole = fuzzer->input;
	unsigned n = 0;

	while (fuzzer->target->cut(&whole, n)) {
		whole = fuzzer->input;
		n++;
	}
	if (n)
		fuzzer->target->cut(&fuzzer->input, (unsigned)fuzz_draw(random, n));
}

static void make_input(struct fuzzer *fuzzer, uint64_t number)
{
	struct fuzz_random random = { .state = fuzzer->seed ^
					       number * UINT64_C(0x2545f4914f6cdd1d) };
	const struct fuzz_input *from = &fuzzer->corpus[fuzz_draw(&random, fuzzer->n_corpus)];

	if (number < fuzzer->n_corpus) {
		copy_input(fuzzer, &fuzzer->corpus[number], fuzzer->corpus[number].size);
		return;
	}
	copy_input(fuzzer, from, from->size);
	for (uint64_t n = 1 + fuzz_draw(&random, MAX_MUTATIONS); n > 0; n--)
		fuzzer->target->mutate(&random, &fuzzer->input,
			&fuzzer->corpus[fuzz_draw(&random, fuzzer->n_corpus)]);
	if (fuzzer->target->cut && fuzz_draw(&random, CUT_ONE_IN) == 0)
		cut(fuzzer, &random);
}

/* --- The child -------------------------------------------------------------------------------- */

static void end_hang(int number)
{
	dprintf(STDERR_FILENO, "it hangs: %s\n",
		number == SIGPROF ? "2 s of CPU time" : "60 s without an end");
	if (__sanitizer_print_stack_trace)
		__sanitizer_print_stack_trace();
	_exit(97);
}

static void set_timer(int which, long seconds)
{
	const struct itimerval timer = { .it_value.tv_sec = seconds };

	setitimer(which, &timer, NULL);
}

static void run_one(const struct fuzzer *fuzzer)
{
	/* A heap block of exactly this size, so that the sanitizer detects any read past the input. */
	unsigned char *data = malloc(fuzzer->input.size);

	memcpy(data, fuzzer->input.data, fuzzer->input.size);
	set_timer(ITIMER_PROF, HANG_S);
	set_timer(ITIMER_REAL, STUCK_S);
	fuzzer->target->run(data, fuzzer->input.size);
	set_timer(ITIMER_PROF, 0);
	set_timer(ITIMER_REAL, 0);
	free(data);
}

/* Discards what the targets print.  Descriptor 2 stays open, because the sanitizers write to it. */
static void hide_output(void)
{
	FILE *nowhere = fopen("/dev/null", "w");

	if (!nowhere)
		fail("/dev/null");
	stdout = stderr = nowhere;
	(void)dup2(fileno(nowhere), STDOUT_FILENO);
	signal(SIGPROF, end_hang);
	signal(SIGALRM, end_hang);
}

static void run_child(struct fuzzer *fuzzer, uint64_t number, double end_s)
{
	hide_output();
	do {
		*fuzzer->number = number;
		make_input(fuzzer, number++);
		run_one(fuzzer);
	} while (number < fuzzer->end && (now_s() < end_s || number < fuzzer->n_corpus));
	free_corpus(fuzzer);
	exit(0);
}

/* --- The parent ------------------------------------------------------------------------------- */

static void keep_failure(struct fuzzer *fuzzer, const char *out, int status)
{
	char path[1024];
	FILE *file;

	make_input(fuzzer, *fuzzer->number);
	snprintf(path, sizeof path, "%s/%s-%llu-%llu", out, fuzzer->target->name,
		(unsigned long long)fuzzer->seed, (unsigned long long)*fuzzer->number);
	file = fopen(path, "wb");
	if (!file ||
		fwrite(fuzzer->input.data, 1, fuzzer->input.size, file) != fuzzer->input.size ||
		fclose(file) != 0)
		fail(path);
	printf("FAIL %s: input %llu ended with %s %d; again: fuzz -t %s -i %s\n",
		fuzzer->target->name, (unsigned long long)*fuzzer->number,
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), fuzzer->target->name,
		path);
}

/* Runs children until all inputs are done or the time is over.  Returns true if no input failed. */
static bool fuzz(struct fuzzer *fuzzer, double seconds, const char *out)
{
	double start_s = now_s();
	double end_s = start_s + seconds;
	uint64_t number = 0;
	int n_failures = 0;
	int status;

	do {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0)
			run_child(fuzzer, number, end_s);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			fail("fork");
		number = *fuzzer->number;
		if (status) {
			keep_failure(fuzzer, out, status);
			n_failures++;
			number++;
		}
	} while (status && number < fuzzer->end && now_s() < end_s && n_failures < MAX_FAILURES);
	printf("%s %s: %llu inputs in %.0f s, seed %llu\n", n_failures ? "FAIL" : "ok",
		fuzzer->target->name, (unsigned long long)number, now_s() - start_s,
		(unsigned long long)fuzzer->seed);
	return n_failures == 0;
}

static const struct fuzz_target *find_target(const char *name)
{
	for (size_t i = 0; i < N_TARGETS; i++)
		if (strcmp(targets[i]->name, name) == 0)
			return targets[i];
	fprintf(stderr, "fuzz: no target %s\n", name);
	exit(2);
}

struct plan {
	const struct fuzz_target *only;
	double seconds; /* of all targets, for each seed */
	uint64_t inputs;
	uint64_t seeds[MAX_SEEDS];
	unsigned n_seeds;
};

static bool fuzz_target(
	const struct fuzz_target *target, const struct plan *plan, uint64_t seed, char **folders)
{
	static struct fuzzer fuzzer;
	unsigned share = plan->only ? 100 : target->share;
	bool is_good;

	fuzzer = (struct fuzzer){ .target = target, .seed = seed };
	fuzzer.input.data = malloc(FUZZ_MAX_INPUT);
	fuzzer.number = mmap(NULL, sizeof *fuzzer.number, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!fuzzer.input.data || fuzzer.number == MAP_FAILED)
		fail("fuzz");
	load_corpus(&fuzzer, folders[0]);
	fuzzer.end = plan->inputs ? fuzzer.n_corpus + plan->inputs * share / 100 : UINT64_MAX;
	is_good = fuzz(&fuzzer, plan->seconds * share / 100, folders[1]);
	free_corpus(&fuzzer);
	munmap((void *)(uintptr_t)fuzzer.number, sizeof *fuzzer.number);
	return is_good;
}

static int fuzz_all(const struct plan *plan, char **folders)
{
	int n_passed = 0;
	int n_failed = 0;

	mkdir(folders[1], 0777);
	for (unsigned k = 0; k < plan->n_seeds; k++)
		for (size_t i = 0; i < N_TARGETS; i++) {
			if (plan->only && targets[i] != plan->only)
				continue;
			if (fuzz_target(targets[i], plan, plan->seeds[k], folders))
				n_passed++;
			else
				n_failed++;
		}
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed > 0;
}

static void run_file(const struct fuzz_target *target, const char *path)
{
	struct fuzzer fuzzer = { .target = target };

	load(&fuzzer.input, path, target->is_packed);
	signal(SIGPROF, end_hang);
	run_one(&fuzzer);
	free(fuzzer.input.data);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: fuzz [-n INPUTS | -s SECONDS] [-S SEED]... [-t TARGET] CORPUS OUT\n"
		"       fuzz -t TARGET -i FILE\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct plan plan = { .seconds = 300 };
	const char *file = NULL;
	int letter;
	int code = 0;

	while ((letter = getopt(argc, argv, "n:s:S:t:i:")) != -1) {
		if (letter == 's')
			plan.seconds = strtod(optarg, NULL);
		else if (letter == 'n')
			plan.inputs = strtoull(optarg, NULL, 10);
		else if (letter == 'S' && plan.n_seeds < MAX_SEEDS)
			plan.seeds[plan.n_seeds++] = strtoull(optarg, NULL, 10);
		else if (letter == 't')
			plan.only = find_target(optarg);
		else if (letter == 'i')
			file = optarg;
		else
			return usage();
	}
	if (file ? !plan.only : argc - optind != 2)
		return usage();
	if (__sanitizer_print_stack_trace && !dlsym(RTLD_DEFAULT, "__asan_default_options")) {
		fprintf(stderr, "fuzz: the sanitizers do not see our limits\n");
		return 2;
	}
	if (plan.n_seeds == 0)
		plan.seeds[plan.n_seeds++] = plan.inputs ? 1 : (uint64_t)time(NULL);
	if (plan.inputs)
		plan.seconds = ENOUGH_S;
	snprintf(folder_path, sizeof folder_path, "%s/gpucache-fuzz-%d",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
	if (mkdir(folder_path, 0700) != 0)
		fail(folder_path);
	if (file)
		run_file(plan.only, file);
	else
		code = fuzz_all(&plan, argv + optind);
	remove_folder();
	return code;
}
