/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first pass over the directory ranks the recordings of ended processes: those with a failed request come first, and
 * newer ones before older ones.  If they exceed the budget, a second pass frees pages that were never written, and the
 * ranking is repeated.  The last pass unlinks all files that were not chosen.  A pass locks each file while it visits
 * the file.  The ranking has GPC_STALE_MAX_KEPT places, however many files there are.
 */
#include "record/stale.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/saturating.h"
#include "gpucache_format.h"
#include "record/name.h"

struct dead_file {
	uint64_t changed_ns;
	uint64_t inode;
	uint64_t bytes; /* on disk */
	bool is_whole;  /* the header is complete, so the owner has locked the file before */
	bool is_crashed;
	bool has_oom;
	bool is_kept;
};

/* The result of the first pass. */
struct survey {
	uint64_t now_ns;
	struct dead_file files[GPC_STALE_MAX_KEPT]; /* the most valuable, in order */
	unsigned n_files;
	struct dead_file crashed; /* the newest of a killed process; inode 0: none */
	uint64_t ended_bytes;     /* of all recordings of dead processes */
	uint64_t budget;
	uint64_t kept_bytes;
};

typedef void (*visit_fn)(
	int dir_fd, const char *name, int fd, const struct dead_file *file, void *arg);

static bool is_our_name(const char *name)
{
	size_t len = strlen(name);
	size_t suffix = strlen(GPC_NAME_SUFFIX);

	return len > strlen(GPC_NAME_PREFIX) + suffix &&
	       strncmp(name, GPC_NAME_PREFIX, strlen(GPC_NAME_PREFIX)) == 0 &&
	       strcmp(name + len - suffix, GPC_NAME_SUFFIX) == 0;
}

/* Reads the state from the header, if there is one. */
static void read_state(int fd, struct dead_file *file)
{
	struct gpucache_header header;

	if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
		memcmp(header.magic, GPUCACHE_FORMAT_MAGIC, sizeof header.magic) != 0)
		return;
	file->is_whole = header.state != 0;
	file->is_crashed = header.state != 0 &&
			   !(header.state & (GPUCACHE_STATE_CLEAN_EXIT | GPUCACHE_STATE_EXITED));
	file->has_oom = header.state & GPUCACHE_STATE_OOM_SEEN;
}

/* Locks `name` and calls visit, if `name` is a recording of this user whose writer has ended. */
static void look_at(int dir_fd, const char *name, visit_fn visit, void *arg)
{
	int fd = gpc_io_open_at(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
	struct dead_file file = { 0 };
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		flock(fd, LOCK_EX | LOCK_NB) == 0) {
		file.changed_ns = (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) +
				  (uint64_t)st.st_mtim.tv_nsec;
		file.inode = (uint64_t)st.st_ino;
		file.bytes = (uint64_t)st.st_blocks * 512;
		read_state(fd, &file);
		visit(dir_fd, name, fd, &file, arg);
	}
	gpc_io_drop(fd);
}

static void each_dead_file(int dir_fd, visit_fn visit, void *arg)
{
	struct gpc_io_listing listing = { .fd = dir_fd, .n_left = GPC_STALE_MAX_FILES };
	const char *name;

	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return;
	while ((name = gpc_io_next_entry(&listing)))
		if (is_our_name(name))
			look_at(dir_fd, name, visit, arg);
}

/* --- What there is ---------------------------------------------------------------------------- */

static uint64_t age_of(const struct dead_file *file, uint64_t now_ns)
{
	return gpc_bytes_less(now_ns, file->changed_ns);
}

static bool is_untouchable(const struct dead_file *file, uint64_t now_ns)
{
	return !file->is_whole && age_of(file, now_ns) < GPC_STALE_YOUNG_NS;
}

static bool is_worth_more(const struct dead_file *a, const struct dead_file *b)
{
	return a->has_oom != b->has_oom ? a->has_oom : a->changed_ns > b->changed_ns;
}

static void survey_file(
	int dir_fd, const char *name, int fd, const struct dead_file *file, void *arg)
{
	struct survey *survey = arg;
	unsigned at = survey->n_files;

	(void)dir_fd;
	(void)name;
	(void)fd;
	if (is_untouchable(file, survey->now_ns))
		return;
	survey->ended_bytes += file->bytes;
	if (file->is_crashed && file->changed_ns >= survey->crashed.changed_ns)
		survey->crashed = *file;
	while (at > 0 && is_worth_more(file, &survey->files[at - 1]))
		at--;
	if (at == GPC_STALE_MAX_KEPT)
		return;
	if (survey->n_files < GPC_STALE_MAX_KEPT)
		survey->n_files++;
	memmove(&survey->files[at + 1], &survey->files[at],
		(survey->n_files - 1 - at) * sizeof survey->files[0]);
	survey->files[at] = *file;
}

/* --- Pages that were never written ------------------------------------------------------------ */

static bool is_zero(const uint64_t *words, size_t n)
{
	uint64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= words[i];
	return any == 0;
}

/* 1 if the page at `offset` holds data, 0 if it does not, -1 if it cannot be read. */
static int look_at_page(int fd, off_t offset)
{
	uint64_t words[GPUCACHE_PAGE / 2 / sizeof(uint64_t)];

	for (int half = 0; half < 2; half++) {
		if (pread(fd, words, sizeof words, offset + half * (off_t)sizeof words) !=
			(ssize_t)sizeof words)
			return -1;
		if (!is_zero(words, sizeof words / sizeof words[0]))
			return 1;
	}
	return 0;
}

/* Replaces pages of zeros by holes.  Skips a file that takes less than its size: it has been trimmed before. */
static void trim_file(int dir_fd, const char *name, int fd, const struct dead_file *file, void *arg)
{
	off_t start = 0;
	struct stat st;
	int found = 1;

	(void)dir_fd;
	(void)name;
	(void)arg;
	if (!file->is_whole || fstat(fd, &st) != 0 || file->bytes < (uint64_t)st.st_size)
		return;
	for (off_t at = 0; at <= st.st_size && found >= 0; at += GPUCACHE_PAGE) {
		found = at < st.st_size ? look_at_page(fd, at) : 1;
		if (found == 0)
			continue;
		if (at > start && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start,
					  at - start) != 0)
			break;
		start = at + GPUCACHE_PAGE;
	}
	(void)futimens(fd, (const struct timespec[]){ st.st_atim, st.st_mtim });
}

/* --- What stays ------------------------------------------------------------------------------- */

uint64_t gpc_stale_budget(const struct gpc_stale_space *space, uint64_t ended_bytes)
{
	uint64_t total = space->total_bytes;
	uint64_t most = space->free_bytes + ended_bytes;
	uint64_t beyond_half = gpc_bytes_less(most, total / 2);

	if (total == 0)
		return UINT64_MAX;
	return gpc_larger(total / 32, gpc_smaller(beyond_half, total / 8));
}

static void keep(struct survey *survey, struct dead_file *file)
{
	if (file->is_kept || file->bytes > survey->budget - survey->kept_bytes)
		return;
	file->is_kept = true;
	survey->kept_bytes += file->bytes;
}

static void keep_unless_old(struct survey *survey, struct dead_file *file)
{
	if (age_of(file, survey->now_ns) <= GPC_STALE_AGE_NS)
		keep(survey, file);
}

static struct dead_file *find(struct survey *survey, uint64_t inode)
{
	for (unsigned i = 0; i < survey->n_files; i++) {
		if (survey->files[i].inode == inode)
			return &survey->files[i];
	}
	return survey->crashed.inode == inode ? &survey->crashed : NULL;
}

static void choose(struct survey *survey)
{
	struct dead_file *files = survey->files;
	struct dead_file *newest = files;
	unsigned n_of[2] = { 0, 0 };

	if (survey->n_files == 0)
		return;
	for (unsigned i = 1; i < survey->n_files; i++) {
		if (files[i].changed_ns > newest->changed_ns)
			newest = &files[i];
	}
	if (files[0].has_oom)
		keep_unless_old(survey, &files[0]);
	if (survey->crashed.inode)
		keep(survey, find(survey, survey->crashed.inode));
	keep_unless_old(survey, newest);
	for (unsigned i = 0; i < survey->n_files; i++) {
		bool is_surplus = ++n_of[files[i].has_oom] > GPC_STALE_KEEP;

		if (!is_surplus || age_of(&files[i], survey->now_ns) < GPC_STALE_YOUNG_NS)
			keep_unless_old(survey, &files[i]);
	}
}

/* A recording that ended after the survey stays if the ranking has a place for it. */
static bool stays(struct survey *survey, const struct dead_file *file)
{
	const struct dead_file *known = find(survey, file->inode);

	if (is_untouchable(file, survey->now_ns))
		return true;
	if (known)
		return known->is_kept;
	return survey->n_files < GPC_STALE_MAX_KEPT ||
	       is_worth_more(file, &survey->files[GPC_STALE_MAX_KEPT - 1]);
}

static void remove_file(
	int dir_fd, const char *name, int fd, const struct dead_file *file, void *arg)
{
	(void)fd;
	if (!stays(arg, file))
		unlinkat(dir_fd, name, 0);
}

void gpc_stale_clean(int dir_fd, uint64_t now_ns, const struct gpc_stale_space *space)
{
	struct survey survey = { .now_ns = now_ns };

	each_dead_file(dir_fd, survey_file, &survey);
	/* Computed once: the budget depends on free_bytes + ended_bytes, and trimming does not change the sum. */
	survey.budget = gpc_stale_budget(space, survey.ended_bytes);
	if (survey.ended_bytes > survey.budget) {
		each_dead_file(dir_fd, trim_file, NULL);
		survey = (struct survey){ .now_ns = now_ns, .budget = survey.budget };
		each_dead_file(dir_fd, survey_file, &survey);
	}
	choose(&survey);
	each_dead_file(dir_fd, remove_file, &survey);
}
