/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `export --watch`: writes the metrics of all processes to one file periodically, for node_exporter's textfile
 * collector.
 *
 * The file is replaced by rename, so readers see it whole.  The temporary name does not end in .prom, so the collector
 * ignores it.  An ended process stays for GRACE_NS: its last numbers are scraped, and a failed request that ended it
 * can raise an alert.
 *
 * The file is bounded, and no series is in it twice, or the collector would refuse it: of more than MAX_PROCESSES those
 * that run stay, then those that ran out of memory, then the latest; of two with one pid on one host, such as a container's
 * before and after its restart, the later.  How many are left out is a metric.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/array.h"
#include "format/memory.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/target.h"

#define GRACE_NS (UINT64_C(600) * 1000000000)

/* Each has some thirty series a GPU. */
#define MAX_PROCESSES 128

/* Files to remove at exit: the metrics, which would go stale, and an unfinished temporary file. */
static struct {
	const char *path;
	char *beside;
} left;

struct look {
	struct gpc_report *reports;
	size_t n;
	uint64_t n_left_out;
};

static bool is_fresh(const struct gpc_recording *recording)
{
	uint64_t last_ns = gpc_report_realtime(recording, gpc_recording_last_ns(recording));

	return recording->run_state == GPC_RUN_ALIVE ||
	       gpc_clock_realtime_ns() < gpc_bytes_add(last_ns, GRACE_NS);
}

/* Those that run first, then those that ran out of memory, then the latest. */
static int by_worth(const struct gpc_recording *a, const struct gpc_recording *b)
{
	const bool is_alive[] = { a->run_state == GPC_RUN_ALIVE, b->run_state == GPC_RUN_ALIVE };
	const bool has_failed[] = { a->header.state & GPUCACHE_STATE_OOM_SEEN,
		b->header.state & GPUCACHE_STATE_OOM_SEEN };

	return GPC_ORDER(is_alive[0], is_alive[1])
		       ?: GPC_ORDER(has_failed[0], has_failed[1])
		       ?: GPC_ORDER(a->header.start_realtime_ns, b->header.start_realtime_ns);
}

static bool is_same_process(const struct gpc_recording *a, const struct gpc_recording *b)
{
	return a->header.pid == b->header.pid && strcmp(a->header.host, b->header.host) == 0;
}

/* The place of a recording: a new one, or that of the one that it replaces; NULL if it is left out. */
static struct gpc_report *find_place(struct look *look, const struct gpc_recording *recording)
{
	struct gpc_report *least = NULL;

	for (size_t i = 0; i < look->n; i++) {
		struct gpc_report *one = &look->reports[i];

		if (is_same_process(one->recording, recording))
			return by_worth(recording, one->recording) > 0 ? one : NULL;
		if (!least || by_worth(one->recording, least->recording) < 0)
			least = one;
	}
	if (look->n < MAX_PROCESSES)
		return &look->reports[look->n];
	look->n_left_out++;
	return by_worth(recording, least->recording) > 0 ? least : NULL;
}

static void look_at(
	struct look *look, const struct gpc_options *options, const char *path, bool must)
{
	GPC_TEXT(text, 200);
	struct gpc_report report = { .options = options };
	struct gpc_report *place = NULL;

	if (gpc_recording_open(path, &report.recording, &text) != GPC_OK)
		return;
	if (must || is_fresh(report.recording))
		place = find_place(look, report.recording);
	if (!place) {
		gpc_recording_close(report.recording);
		return;
	}
	if (place == &look->reports[look->n])
		look->n++;
	else
		gpc_recording_close(place->recording);
	*place = report;
}

static void look_at_folder(struct look *look, const struct gpc_options *options)
{
	struct gpc_directory directory;

	gpc_directory_open(&directory, options->target);
	for (size_t i = 0; i < directory.n_entries; i++)
		if (directory.entries[i].status == GPC_OK)
			look_at(look, options, directory.entries[i].path, false);
	gpc_directory_close(&directory);
}

/* Writes the metrics into a temporary file next to `path`, and replaces `path` by it. */
static bool write_look(const struct look *look, const char *path, bool is_open)
{
	bool is_written = false;
	FILE *out;

	left.beside = gpc_print("%s.%ld", path, (long)getpid());
	out = fopen(left.beside, "we");
	if (out) {
		gpc_export_metrics(look->reports, look->n, look->n_left_out, out, is_open);
		is_written = fflush(out) == 0 && !ferror(out);
		is_written = fclose(out) == 0 && is_written && rename(left.beside, path) == 0;
	}
	if (!is_written) {
		gpc_complain("%s: %s", path, strerror(errno));
		if (out)
			unlink(left.beside);
	}
	free(left.beside);
	left.beside = NULL;
	if (is_written)
		left.path = path;
	return is_written;
}

static bool look_once(struct look *look, const struct gpc_options *options, bool *ret_is_over)
{
	const bool is_open = strncmp(options->format, "open", 4) == 0;
	const bool is_one = options->target && !gpc_target_is_folder(options->target);
	bool is_written = true;

	look->n = 0;
	look->n_left_out = 0;
	if (is_one)
		look_at(look, options, options->target, true);
	else
		look_at_folder(look, options);
	if (!options->output)
		gpc_export_metrics(look->reports, look->n, look->n_left_out, stdout, is_open);
	else
		is_written = write_look(look, options->output, is_open);
	if (fflush(stdout) != 0)
		is_written = false;
	*ret_is_over =
		is_one && (!look->n || look->reports[0].recording->run_state != GPC_RUN_ALIVE);
	while (look->n)
		gpc_recording_close(look->reports[--look->n].recording);
	return is_written;
}

/*
 * Blocks the signals that end the watch and returns them: is_told_to_end() waits for them, so none interrupts a write.
 * A signal that was ignored, as by nohup, stays ignored.
 */
static sigset_t block_ends(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction before;
	sigset_t ends;

	sigemptyset(&ends);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaddset(&ends, signals[i]);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return ends;
}

/* Waits for the interval, or for a signal to end. */
static bool is_told_to_end(const sigset_t *ends, uint64_t ns)
{
	struct timespec wait = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	return sigtimedwait(ends, NULL, &wait) > 0;
}

/* Replaces a pid by the file of its recording: a later process may get the same pid. */
static enum gpc_exit find_one(struct gpc_options *options, char **ret_path)
{
	struct gpc_report found = { .options = options };
	enum gpc_exit code;

	*ret_path = NULL;
	if (!options->target || gpc_target_is_folder(options->target))
		return GPC_EXIT_MADE;
	code = gpc_target_open(&found, GPC_NEEDS_RECORDING);
	if (code != GPC_EXIT_MADE)
		return code;
	options->target = *ret_path = gpc_copy(found.recording->path);
	gpc_recording_close(found.recording);
	return GPC_EXIT_MADE;
}

/* Runs at exit, also if the tool runs out of memory in the middle of a write. */
static void remove_left(void)
{
	if (left.beside)
		unlink(left.beside);
	if (left.path)
		unlink(left.path);
}

enum gpc_exit gpc_cmd_watch(struct gpc_report *report)
{
	struct gpc_options options = *report->options;
	struct look look = { .reports = gpc_new(MAX_PROCESSES + 1, sizeof *look.reports) };
	enum gpc_exit code;
	bool is_over = false;
	const sigset_t ends = block_ends();
	char *path = NULL;

	(void)atexit(remove_left);
	code = find_one(&options, &path);
	while (code == GPC_EXIT_MADE) {
		if (!look_once(&look, &options, &is_over))
			code = GPC_EXIT_IO;
		if (is_over || code != GPC_EXIT_MADE || is_told_to_end(&ends, options.watch_ns))
			break;
	}
	if (is_over)
		left.path = NULL; /* the process has ended: keep its last metrics */
	free(look.reports);
	free(path);
	return code;
}
