/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number that is no file is a pid.  Of a folder, format/directory.h chooses the most useful recording.  A compressed
 * file, or standard input, is unpacked by zlib into a memfd of bounded size, in which runs of zeros are holes; the
 * memfd is then read as a file.
 */
#include "tools/gpumem-report/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "format/memory.h"
#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/lib/clean_stream.h"

#define CHUNK      (1 << 16)
#define LEAST_MOST (UINT64_C(32) << 20)
#define PACKS_TO   8

static bool is_compressed(int fd)
{
	unsigned char magic[2] = { 0 };

	return fd >= 0 && pread(fd, magic, sizeof magic, 0) == sizeof magic && magic[0] == 0x1f &&
	       magic[1] == 0x8b;
}

/* The most bytes that are not zeros in an unpacked file: recordings compress to about 1/8, a zip bomb to 1/1000. */
static uint64_t most_data(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size ? LEAST_MOST + PACKS_TO * (uint64_t)st->st_size
						   : GPC_RECORDING_MAX_BYTES;
}

/* True if the whole chunk is zeros, as most of a recording is: unpack() makes it a hole. */
static bool is_zero(const char *chunk, size_t size)
{
	return chunk[0] == 0 && memcmp(chunk, chunk + 1, size - 1) == 0;
}

/* Copies `in` to `to`; zlib inflates it if it is compressed.  `most`: the most bytes that are not zeros. */
static enum gpc_status unpack(gzFile in, uint64_t most, int to, struct gpc_text *why)
{
	char *chunk = gpc_new(CHUNK, 1);
	enum gpc_status status = GPC_OK;
	uint64_t total = 0;
	uint64_t data = 0;

	while (status == GPC_OK) {
		int n = gzread(in, chunk, CHUNK);
		int code = Z_OK;

		(void)gzerror(in, &code);
		if (n == 0 && gzeof(in) && code != Z_BUF_ERROR)
			break;
		if (n <= 0) {
			gpc_text_add(why, "cannot be decompressed: %s",
				code == Z_BUF_ERROR ? "truncated" : gzerror(in, &code));
			status = GPC_DAMAGED;
			break;
		}
		total += (uint64_t)n;
		if (is_zero(chunk, (size_t)n) && total <= GPC_RECORDING_MAX_BYTES) {
			(void)lseek(to, n, SEEK_CUR);
			continue;
		}
		data += (uint64_t)n;
		if (total > GPC_RECORDING_MAX_BYTES || data > most) {
			gpc_text_add(why, "too large when decompressed: more than %llu bytes",
				(unsigned long long)(data > most ? most : GPC_RECORDING_MAX_BYTES));
			status = GPC_LIMIT;
		} else if (!gpc_write_all(to, chunk, (size_t)n)) {
			gpc_text_add(why, "no space to decompress it: %s", strerror(errno));
			status = GPC_NO_METADATA;
		}
	}
	if (status == GPC_OK && ftruncate(to, (off_t)total) != 0)
		status = GPC_NO_METADATA;
	free(chunk);
	return status;
}

/* Opens the recording in the memfd, as if it were the file `path` of `owner`. */
static enum gpc_status open_memory(int memory, const char *path, uint32_t owner,
	struct gpc_recording **ret_recording, struct gpc_text *why)
{
	char name[40];
	enum gpc_status status;

	snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
	status = gpc_recording_open(name, ret_recording, why);
	if (status != GPC_OK)
		return status;
	free((*ret_recording)->path);
	(*ret_recording)->path = gpc_copy(path);
	(*ret_recording)->owner = owner;
	return GPC_OK;
}

/* Does what gpc_recording_open does, also with a compressed file and with "-", standard input. */
static enum gpc_status open_source(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why)
{
	const bool is_input = strcmp(path, "-") == 0;
	int fd = is_input ? dup(STDIN_FILENO)
			  : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { 0 };
	enum gpc_status status;
	gzFile in;
	int memory;

	if (!is_input && !is_compressed(fd)) {
		if (fd >= 0)
			close(fd);
		return gpc_recording_open(path, ret_recording, why);
	}
	if (fd >= 0)
		(void)fstat(fd, &st);
	in = gzdopen(fd, "rb");
	memory = memfd_create("gpumem-report", MFD_CLOEXEC);
	if (!in || memory < 0) {
		gpc_text_add(why, "%s", strerror(errno));
		status = GPC_IO;
	} else {
		status = unpack(in, most_data(&st), memory, why);
	}
	if (in)
		gzclose(in);
	if (status == GPC_OK)
		status = open_memory(memory, path, st.st_uid, ret_recording, why);
	if (memory >= 0)
		close(memory);
	return status;
}

enum gpc_exit gpc_target_open_file(struct gpc_report *report, const char *path)
{
	GPC_TEXT(text, 200);
	enum gpc_status status = open_source(path, &report->recording, &text);

	if (status == GPC_OK)
		return GPC_EXIT_MADE;
	if (status == GPC_IO && errno == ENOENT) {
		gpc_complain("%s: there is no such file; `gpumem-report list` shows what there is",
			path);
		return GPC_EXIT_NOT_FOUND;
	}
	gpc_complain("%s: %s", path, text.buf);
	return status == GPC_IO || status == GPC_NO_METADATA ? GPC_EXIT_IO : GPC_EXIT_DAMAGED;
}

static enum gpc_exit complain_nothing(const struct gpc_directory *directory, const char *what)
{
	gpc_complain("no recording%s%s found; looked in", what ? " of pid " : "", what ? what : "");
	for (unsigned i = 0; i < directory->n_dirs; i++)
		fprintf(stderr, "  %s%s\n", directory->dirs[i],
			directory->is_there[i] ? "" : " (not there, or not yours)");
	fprintf(stderr,
		"Record a run with `gpucache-run PROGRAM`, or name the file: gpumem-report FILE\n");
	return GPC_EXIT_NOT_FOUND;
}

static void say_others(const struct gpc_directory *directory)
{
	GPC_TEXT(text, 200);

	for (unsigned i = 0; i < directory->n_others; i++) {
		gpc_text_add(&text, i ? ", " : "");
		gpc_owner_add(directory->others[i], &text);
	}
	if (directory->n_of_others)
		gpc_complain(
			"skipped %u recording%s of other users (%s); to read one, name its file",
			directory->n_of_others, directory->n_of_others == 1 ? "" : "s", text.buf);
	if (directory->n_left_out)
		gpc_complain("read %u recordings, the most of one call, and skipped %u",
			GPC_DIRECTORY_MAX_FILES, directory->n_left_out);
}

/* Tells on standard error why this recording was chosen, and of how many. */
static void say_choice(const struct gpc_report *report, const struct gpc_directory_choice *choice)
{
	static const char *const reasons[] = {
		[GPC_WORTH_NOTHING] = "the newest; none used a GPU",
		[GPC_WORTH_USED] = "the newest that used a GPU",
		[GPC_WORTH_OOM] = "the one that ran out of memory",
	};
	const char *target = report->options->target;
	char failed[64];
	GPC_TEXT(age, 32);

	gpc_text_add_age(&age, gpc_bytes_less(gpc_clock_realtime_ns(),
				       report->recording->header.start_realtime_ns));
	if (choice->n_recordings < 2 && target)
		return;
	if (choice->n_recordings < 2) {
		gpc_complain(
			"%s: the only recording, started %s ago", choice->entry->path, age.buf);
		return;
	}
	if (choice->n_rivals > 1)
		snprintf(failed, sizeof failed, "the first of %u that ran out of memory",
			choice->n_rivals);
	else
		snprintf(failed, sizeof failed, "the latest of %u that ran out of memory",
			choice->n_failed);
	gpc_complain("%s, started %s ago: %s; of %u recordings, %u newer (gpumem-report list%s%s)",
		choice->entry->path, age.buf,
		choice->n_failed > 1 ? failed : reasons[choice->worth], choice->n_recordings,
		choice->n_newer, target ? " " : "", target ? target : "");
}

/* Who comes for a run that went well is shown the failure of one before: says so, unless both may be ranks of one job. */
static void say_newest(const struct gpc_report *report, const struct gpc_directory_choice *choice)
{
	const struct gpc_directory_entry *newest = gpc_directory_find(&report->directory, 0);
	const struct gpucache_header *failed = &report->recording->header;
	uint64_t end_ns =
		failed->start_realtime_ns + gpc_bytes_less(gpc_recording_last_ns(report->recording),
						    failed->start_monotonic_ns);
	GPC_TEXT(age, 32);

	if (choice->worth != GPC_WORTH_OOM || !newest ||
		newest->header.state & GPUCACHE_STATE_OOM_SEEN || newest->header.rank >= 0 ||
		newest->header.start_realtime_ns <= end_ns)
		return;
	gpc_text_add_age(
		&age, gpc_bytes_less(gpc_clock_realtime_ns(), newest->header.start_realtime_ns));
	gpc_complain("the newest run, started %s ago, did not fail: gpumem-report %s", age.buf,
		newest->path);
}

/* Opens the most useful recording of a directory; directory_path NULL: of the usual directories. */
static enum gpc_exit open_worthiest(struct gpc_report *report, const char *directory_path)
{
	struct gpc_directory_choice choice;
	enum gpc_exit code;

	gpc_directory_open(&report->directory, directory_path);
	say_others(&report->directory);
	choice = gpc_directory_choose(&report->directory, directory_path == NULL);
	if (!choice.entry)
		return complain_nothing(&report->directory, NULL);
	code = gpc_target_open_file(report, choice.entry->path);
	if (code == GPC_EXIT_MADE) {
		say_choice(report, &choice);
		say_newest(report, &choice);
	}
	return code;
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

/* Opens the recording of a directory with the highest peak, and counts those that used a GPU. */
static enum gpc_exit open_largest(struct gpc_report *report, const char *directory_path)
{
	gpc_directory_open(&report->directory, directory_path);
	for (size_t i = 0; i < report->directory.n_entries; i++) {
		struct gpc_recording *one;
		GPC_TEXT(text, 200);

		if (gpc_recording_open(report->directory.entries[i].path, &one, &text) != GPC_OK)
			continue;
		report->n_processes += peak_of(one) > 0;
		if (peak_of(one) > (report->recording ? peak_of(report->recording) : 0)) {
			gpc_recording_close(report->recording);
			report->recording = one;
		} else {
			gpc_recording_close(one);
		}
	}
	if (report->recording)
		return GPC_EXIT_MADE;
	gpc_fit_complain_unused(report);
	return GPC_EXIT_NOT_FOUND;
}

static enum gpc_exit open_newest_of_pid(struct gpc_report *report, const char *pid)
{
	const struct gpc_directory_entry *entry;
	enum gpc_exit code;

	gpc_directory_open(&report->directory, NULL);
	entry = gpc_directory_find(&report->directory, (uint32_t)strtoul(pid, NULL, 10));
	code = entry ? gpc_target_open_file(report, entry->path)
		     : complain_nothing(&report->directory, pid);
	gpc_directory_close(&report->directory);
	return code;
}

static bool is_pid(const char *target)
{
	return target && gpc_is_number(target) && access(target, F_OK) != 0;
}

void gpc_target_sort_out_number(struct gpc_options *options, const struct gpc_command *command)
{
	struct gpc_directory directory;

	if (command->run != gpc_cmd_oom || options->n_targets != 1 || !is_pid(options->targets[0]))
		return;
	gpc_directory_open(&directory, NULL);
	if (!gpc_directory_find(&directory, (uint32_t)strtoul(options->targets[0], NULL, 10))) {
		options->number = strtoull(options->targets[0], NULL, 10);
		options->n_targets = 0;
	}
	gpc_directory_close(&directory);
}

/* The time of the failure in that recording of the run; 0: it is of another run, or nothing failed. */
static uint64_t failed_ns_in_run(const struct gpc_directory_entry *entry, const char *run)
{
	struct gpc_recording *recording;
	GPC_TEXT(why, 96);
	char of[64] = "";
	uint64_t time_ns = 0;

	if (entry->status != GPC_OK || !(entry->header.state & GPUCACHE_STATE_OOM_SEEN) ||
		gpc_recording_open(entry->path, &recording, &why) != GPC_OK)
		return 0;
	if (gpc_report_read_env(recording, "GPUCACHE_RUN", of, sizeof of) && strcmp(of, run) == 0)
		time_ns = gpc_directory_failed_ns(recording);
	gpc_recording_close(recording);
	return time_ns;
}

unsigned gpc_target_find_failures(const struct gpc_directory *directory, const char *run,
	struct gpc_target_failure *ret_failures, unsigned most)
{
	unsigned n = 0;

	for (size_t i = 0; i < directory->n_entries; i++) {
		const uint64_t time_ns = failed_ns_in_run(&directory->entries[i], run);
		unsigned at = n < most ? n : most;

		if (!time_ns)
			continue;
		n++;
		for (; at > 0 && ret_failures[at - 1].time_ns > time_ns; at--)
			if (at < most)
				ret_failures[at] = ret_failures[at - 1];
		if (at < most)
			ret_failures[at] =
				(struct gpc_target_failure){ directory->entries[i].path, time_ns };
	}
	return n;
}

bool gpc_target_is_folder(const char *target)
{
	struct stat st;

	return target && stat(target, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum gpc_exit find_recording(struct gpc_report *report, enum gpc_needs needs)
{
	const char *target = report->options->target;

	if (!target) {
		report->is_newest_by_default = true;
		return open_worthiest(report, NULL);
	}
	if (is_pid(target))
		return open_newest_of_pid(report, target);
	if (gpc_target_is_folder(target))
		return needs == GPC_NEEDS_LARGEST ? open_largest(report, target)
						  : open_worthiest(report, target);
	return gpc_target_open_file(report, target);
}

static enum gpc_exit find_list(struct gpc_report *report)
{
	gpc_directory_open(&report->directory, report->options->target);
	say_others(&report->directory);
	if (report->directory.n_entries == 0)
		return complain_nothing(&report->directory, NULL);
	return GPC_EXIT_MADE;
}

enum gpc_exit gpc_target_open(struct gpc_report *report, enum gpc_needs needs)
{
	if (needs == GPC_NEEDS_NOTHING || needs == GPC_NEEDS_FOLDERS)
		return GPC_EXIT_MADE;
	return needs == GPC_NEEDS_DIRECTORY ? find_list(report) : find_recording(report, needs);
}
