/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program by fork and exec, reads its recordings once in a while, and ends it after enough steps. */
#include "tools/gpumem-report/fit/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/balance.h"
#include "tools/gpumem-report/target.h"
#include "tools/replay/steps.h"

#define DEFAULT_STEPS 20
#define S_NS          UINT64_C(1000000000)
#define TICK_NS       100000000
#define LOOK_NS       S_NS
#define PATIENCE_NS   (5 * S_NS)

static volatile sig_atomic_t n_interrupts;

/* What clean_up_at_exit() ends and removes if this tool runs out of memory. */
static struct {
	const struct fit_program *program;
	pid_t pid; /* 0: it has ended */
} left;

/* watch() ends the program once n_interrupts exceeds 1: the terminal sends the first SIGINT to the program, too. */
static void on_signal(int signal)
{
	n_interrupts += signal == SIGINT ? 1 : 2;
}

static bool make_folder(struct fit_program *program)
{
	const char *output = getenv("GPUCACHE_OUTPUT");
	const char *temporary = getenv("TMPDIR");
	struct gpc_text text = gpc_text_init(program->folder, sizeof program->folder);
	const char *end = output ? output + strcspn(output, "%") : NULL;

	while (end && end > output && end[-1] != '/')
		end--;
	program->is_temporary = !end || end == output;
	if (program->is_temporary) {
		gpc_text_add(&text, "%s/gpucache-fit-XXXXXX",
			temporary && *temporary ? temporary : "/tmp");
		if (!mkdtemp(program->folder))
			return false;
		program->contents = opendir(program->folder);
		if (!program->contents)
			(void)rmdir(program->folder);
		return program->contents;
	}
	gpc_text_add(&text, "%.*s", (int)(end - output), output);
	return true;
}

static void to_file(const struct fit_program *program)
{
	char path[400];
	int fd;

	gpc_format(path, sizeof path, "%s/output", program->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)dup2(fd, STDOUT_FILENO);
	(void)dup2(fd, STDERR_FILENO);
}

static void become(const struct fit_program *program, const struct gpc_options *options,
	const char *variable, const char *value)
{
	char output[400];

	gpc_format(output, sizeof output, "%s/%%p.gpucache", program->folder);
	if (program->is_temporary)
		(void)setenv("GPUCACHE_OUTPUT", output, 1);
	if (variable)
		(void)setenv(variable, value, 1);
	if (variable && program->is_temporary)
		to_file(program);
	else if (options->json)
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	(void)execvp(options->program[0], options->program);
	gpc_complain("%s: %s", options->program[0], strerror(errno));
	_exit(127);
}

static uint64_t peak_of(const struct gpc_recording *recording)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_DEVICES].count; i++) {
		struct gpucache_device device;
		struct gpc_device_totals totals;

		if (!gpc_recording_read_device(recording, i, &device))
			continue;
		totals = gpc_recording_totals(recording, device.ordinal);
		most = gpc_larger(most, gpc_bytes_add(totals.sum.peak_reserved_bytes,
						totals.sum.peak_direct_bytes));
	}
	return most;
}

/* Opens the recording with the highest peak among those begun since the program started; NULL if there is none yet. */
static struct gpc_recording *open_most(const struct fit_program *program, unsigned *ret_n)
{
	struct gpc_recording *best = NULL;
	struct gpc_directory directory;

	*ret_n = 0;
	gpc_directory_open(&directory, program->folder);
	for (size_t i = 0; i < directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &directory.entries[i];
		struct gpc_recording *recording;
		GPC_TEXT(text, 200);

		if (entry->status != GPC_OK ||
			entry->header.start_realtime_ns < program->start_ns ||
			gpc_recording_open(entry->path, &recording, &text) != GPC_OK)
			continue;
		*ret_n += peak_of(recording) > 0;
		if (peak_of(recording) > (best ? peak_of(best) : 0)) {
			gpc_recording_close(best);
			best = recording;
		} else {
			gpc_recording_close(recording);
		}
	}
	gpc_directory_close(&directory);
	return best;
}

static void show_progress(
	const struct gpc_steps *steps, const struct gpc_trace *trace, uint64_t elapsed_ns)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rstep %s, %s asked for, %s \033[K", gpc_show_count(steps->n),
			gpc_show_bytes(trace->peak_live_bytes), gpc_show_duration(elapsed_ns));
}

/* Counts the steps recorded so far, and shows them; true if they are enough. */
static bool look(const struct fit_program *program, const struct gpc_options *options)
{
	uint64_t most = options->steps ? options->steps : DEFAULT_STEPS;
	struct gpc_steps steps = { 0 };
	struct gpc_trace trace;
	unsigned n;
	struct gpc_recording *recording = open_most(program, &n);

	if (recording) {
		gpc_trace_from_recording(recording, options->device, true, &trace);
		steps = gpc_steps_count(&trace);
		show_progress(&steps, &trace, gpc_clock_realtime_ns() - program->start_ns);
		gpc_trace_fini(&trace);
	}
	gpc_recording_close(recording);
	return steps.n > most;
}

/* Polls until `pid` ends.  A poll reads the whole recording, so polls are at least ten times its duration apart. */
static void watch(struct fit_program *program, const struct gpc_options *options, pid_t pid)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };
	uint64_t next_ns = gpc_clock_monotonic_ns() + LOOK_NS;
	uint64_t kill_ns = 0;

	while (waitpid(pid, &program->status, WNOHANG) == 0) {
		uint64_t now_ns = gpc_clock_monotonic_ns();

		(void)nanosleep(&tick, NULL);
		if (kill_ns) {
			if (now_ns > kill_ns)
				(void)kill(pid, SIGKILL);
			continue;
		}
		if (n_interrupts <= 1 && now_ns >= next_ns) {
			program->is_stopped = look(program, options);
			next_ns = gpc_clock_monotonic_ns();
			next_ns += gpc_larger(LOOK_NS, 10 * (next_ns - now_ns));
		}
		if (n_interrupts > 1 || program->is_stopped) {
			(void)kill(pid, SIGTERM);
			kill_ns = now_ns + PATIENCE_NS;
		}
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	program->is_interrupted = n_interrupts > 0;
	if (program->is_stopped)
		program->status = 0;
}

static void remove_folder(const struct fit_program *program)
{
	const struct dirent *entry;

	rewinddir(program->contents);
	while ((entry = readdir(program->contents)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(program->contents), entry->d_name, 0);
	(void)rmdir(program->folder);
}

static void end_program(pid_t pid)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };

	(void)kill(pid, SIGTERM);
	for (uint64_t waited_ns = 0; waited_ns < PATIENCE_NS; waited_ns += TICK_NS) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		(void)nanosleep(&tick, NULL);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* Runs at exit(), which may be due to a failed allocation: allocates nothing. */
static void clean_up_at_exit(void)
{
	if (left.pid)
		end_program(left.pid);
	if (left.program)
		remove_folder(left.program);
}

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define N_SIGNALS (sizeof signals / sizeof signals[0])

static struct sigaction before[N_SIGNALS];

static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < N_SIGNALS; i++)
		if (sigaction(signals[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &action, NULL);
}

/* Removes the temporary folder and restores the signals' actions. */
static void end(struct fit_program *program)
{
	if (program->contents) {
		remove_folder(program);
		(void)closedir(program->contents);
	}
	left.program = NULL;
	for (size_t i = 0; i < N_SIGNALS; i++)
		(void)sigaction(signals[i], &before[i], NULL);
}

enum gpc_exit fit_program_run(struct fit_program *program, const struct gpc_options *options,
	const char *variable, const char *value)
{
	static bool is_registered;
	pid_t pid;

	*program = (struct fit_program){ .start_ns = gpc_clock_realtime_ns() };
	catch_signals();
	if (!make_folder(program)) {
		gpc_complain("%s: %s", program->folder, strerror(errno));
		end(program);
		return GPC_EXIT_IO;
	}
	if (!is_registered)
		is_registered = atexit(clean_up_at_exit) == 0;
	left.program = program->is_temporary ? program : NULL;
	pid = fork();
	if (pid == 0)
		become(program, options, variable, value);
	if (pid < 0) {
		int error = errno;

		end(program);
		gpc_complain("no process for %s: %s", options->program[0], strerror(error));
		return GPC_EXIT_IO;
	}
	left.pid = pid;
	watch(program, options, pid);
	left.pid = 0;
	return GPC_EXIT_MADE;
}

enum gpc_exit fit_program_open(struct fit_program *program, struct gpc_report *report)
{
	report->recording = open_most(program, &program->n_processes);
	end(program);
	if (!report->recording) {
		gpc_complain("the program took no memory of a GPU; it ended with %s %d",
			WIFSIGNALED(program->status) ? "signal" : "status",
			WIFSIGNALED(program->status) ? WTERMSIG(program->status)
						     : WEXITSTATUS(program->status));
		return GPC_EXIT_NOT_FOUND;
	}
	report->frames = gpc_frames_create(report->recording, &report->options->places);
	return GPC_EXIT_MADE;
}
