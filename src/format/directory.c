/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the header of each file in the usual directories, and sorts the entries by start time.  A choice reads a whole
 * recording only if its content may change the choice.
 */
#include "format/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/array.h"

const char *gpc_directory_shared = "/dev/shm";

static bool is_recording_name(const char *name)
{
	size_t len = strlen(name);
	size_t suffix = strlen(GPC_DIRECTORY_SUFFIX);

	return len > suffix && strcmp(name + len - suffix, GPC_DIRECTORY_SUFFIX) == 0;
}

static void note_other(struct gpc_directory *directory, uint32_t owner)
{
	directory->n_of_others++;
	for (unsigned i = 0; i < directory->n_others; i++)
		if (directory->others[i] == owner)
			return;
	if (directory->n_others < GPC_DIRECTORY_MAX_OTHERS)
		directory->others[directory->n_others++] = owner;
}

/* True if this user or root owns the file, or link.  Root may open all files, and links that root owns. */
static bool is_ours_to_read(
	struct gpc_directory *directory, int dir, const char *name, uint32_t *ret_owner)
{
	struct stat st;
	bool is;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	*ret_owner = (uint32_t)st.st_uid;
	is = geteuid() == 0 ? st.st_uid == 0 || !S_ISLNK(st.st_mode)
			    : !gpc_recording_is_of_others(*ret_owner);
	if (!is)
		note_other(directory, *ret_owner);
	return is;
}

static void add_entry(
	struct gpc_directory *directory, int dir_fd, const char *dir, const char *name)
{
	struct gpc_directory_entry *entry;
	struct gpc_text why;
	uint32_t owner;

	if (!is_ours_to_read(directory, dir_fd, name, &owner))
		return;
	if (directory->n_entries >= GPC_DIRECTORY_MAX_FILES) {
		directory->n_left_out++;
		return;
	}
	directory->entries =
		gpc_resize(directory->entries, directory->n_entries + 1, sizeof *entry);
	entry = &directory->entries[directory->n_entries];
	memset(entry, 0, sizeof *entry);
	entry->path = gpc_print("%s/%s", dir, name);
	why = gpc_text_init(entry->why, sizeof entry->why);
	entry->owner = owner;
	entry->status = gpc_recording_peek(
		entry->path, &entry->header, &entry->state, &entry->size, &entry->owner, &why);
	/* A link of this user may lead to another user's file. */
	if (entry->owner != owner && gpc_recording_is_of_others(entry->owner)) {
		note_other(directory, entry->owner);
		free(entry->path);
		return;
	}
	directory->n_entries++;
}

/* Adds the recordings of one directory, which must be trusted or belong to this user.  Takes ownership of `path`. */
static void scan(struct gpc_directory *directory, char *path, bool trusted)
{
	unsigned number = directory->n_dirs;
	bool is_known = false;
	struct dirent *item;
	struct stat st;
	DIR *dir;
	int fd;

	for (unsigned i = 0; i < number; i++)
		is_known |= strcmp(directory->dirs[i], path) == 0;
	if (is_known || number == GPC_DIRECTORY_MAX_DIRS) {
		free(path);
		return;
	}
	directory->dirs[directory->n_dirs++] = path;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (trusted ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return;
	dir = gpc_checked(fdopendir(fd));
	if (!trusted && (fstat(fd, &st) != 0 || st.st_uid != geteuid())) {
		closedir(dir);
		return;
	}
	directory->is_there[number] = true;
	while ((item = readdir(dir)) != NULL)
		if (is_recording_name(item->d_name))
			add_entry(directory, dirfd(dir), path, item->d_name);
	closedir(dir);
}

/* The directory of a pattern, up to the first component with a %. */
static char *directory_of_pattern(const char *pattern)
{
	size_t end = strcspn(pattern, "%");

	while (end > 0 && pattern[end - 1] != '/')
		end--;
	while (end > 1 && pattern[end - 1] == '/')
		end--;
	return end == 0 ? gpc_copy(".") : gpc_print("%.*s", (int)end, pattern);
}

/* The directory of a pattern as one of glob: %x may stand for anything.  NULL: it has none. */
static char *glob_of_pattern(const char *pattern)
{
	const char *end = strrchr(pattern, '/');
	char *text = gpc_new(2 * strlen(pattern) + 1, 1);
	char *to = text;
	bool has_any = false;

	for (const char *at = pattern; end && at < end; at++) {
		if (*at == '%' && at[1] != '%' && at + 1 < end) {
			const char *brace = at[1] == 'q' && at[2] == '{' ? strchr(at, '}') : NULL;

			at = brace && brace < end ? brace : at + 1;
			*to++ = '*';
			has_any = true;
			continue;
		}
		at += *at == '%' && at[1] == '%';
		if (strchr("*?[\\", *at))
			*to++ = '\\';
		*to++ = *at;
	}
	if (has_any)
		return text;
	free(text);
	return NULL;
}

static int compare_changes(const void *left, const void *right)
{
	struct stat a = { 0 };
	struct stat b = { 0 };

	(void)stat(*(char *const *)left, &a);
	(void)stat(*(char *const *)right, &b);
	return GPC_ORDER(b.st_mtim.tv_sec, a.st_mtim.tv_sec)
		       ?: GPC_ORDER(b.st_mtim.tv_nsec, a.st_mtim.tv_nsec);
}

/* Scans the directories that the pattern may stand for, the last changed first. */
static void scan_matches(struct gpc_directory *directory, const char *pattern)
{
	char *wanted = glob_of_pattern(pattern);
	glob_t found;

	if (wanted && glob(wanted, GLOB_ONLYDIR | GLOB_NOSORT, NULL, &found) == 0) {
		qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], compare_changes);
		for (size_t i = 0; i < found.gl_pathc && i < GPC_DIRECTORY_MAX_MATCHES; i++)
			scan(directory, gpc_copy(found.gl_pathv[i]), true);
		globfree(&found);
	}
	free(wanted);
}

/* Scans PARENT/gpucache-UID, and each PARENT/gpucache-UID-SUFFIX with a random suffix (base/own_folder.h). */
static void scan_own(struct gpc_directory *directory, const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *item;
	size_t len;

	scan(directory, gpc_print("%s/gpucache-%u", parent, (unsigned)geteuid()), false);
	while (dir && (item = readdir(dir)) != NULL && directory->n_dirs < GPC_DIRECTORY_MAX_DIRS) {
		char name[32];
		struct stat st;

		len = (size_t)snprintf(name, sizeof name, "gpucache-%u-", (unsigned)geteuid());
		if (strncmp(item->d_name, name, len) != 0 ||
			fstatat(dirfd(dir), item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
			continue;
		scan(directory, gpc_print("%s/%s", parent, item->d_name), false);
	}
	if (dir)
		closedir(dir);
}

static void scan_usual(struct gpc_directory *directory)
{
	const char *pattern = getenv("GPUCACHE_OUTPUT");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *tmp = getenv("TMPDIR");

	if (pattern && *pattern) {
		scan(directory, directory_of_pattern(pattern), true);
		scan_matches(directory, pattern);
	}
	scan_own(directory, gpc_directory_shared);
	if (runtime && *runtime)
		scan(directory, gpc_print("%s/gpucache", runtime), false);
	scan_own(directory, tmp && *tmp ? tmp : "/tmp");
}

static int compare_entries(const void *left, const void *right)
{
	const struct gpc_directory_entry *a = left;
	const struct gpc_directory_entry *b = right;

	return GPC_ORDER(b->status == GPC_OK, a->status == GPC_OK)
		       ?: GPC_ORDER(b->header.start_realtime_ns, a->header.start_realtime_ns)
		       ?: strcmp(a->path, b->path);
}

void gpc_directory_open(struct gpc_directory *directory, const char *path)
{
	memset(directory, 0, sizeof *directory);
	if (path)
		scan(directory, gpc_copy(path), true);
	else
		scan_usual(directory);
	if (directory->n_entries)
		qsort(directory->entries, directory->n_entries, sizeof *directory->entries,
			compare_entries);
}

uint64_t gpc_directory_failed_ns(const struct gpc_recording *recording)
{
	const struct gpucache_header *header = &recording->header;
	struct gpucache_oom oom;
	uint64_t first = 0;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_OOMS].count; i++) {
		uint64_t time_ns;

		/* A worker may have passed its failure on, and ended with status 0. */
		if (!gpc_recording_read_oom(recording, i, &oom) ||
			(oom.recovered && oom.recovered != GPC_RECOVERED_BY_END))
			continue;
		time_ns = header->start_realtime_ns +
			  gpc_bytes_less(oom.time_ns, header->start_monotonic_ns);
		if (!first || time_ns < first)
			first = time_ns;
	}
	return first;
}

static bool has_used_gpu(const struct gpc_recording *recording)
{
	struct gpucache_counters counters;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_COUNTERS].count; i++)
		if (gpc_recording_read_counters(recording, i, &counters))
			return true;
	return false;
}

static enum gpc_worth worth_of(const struct gpc_directory_entry *entry, uint64_t *ret_failed_ns)
{
	enum gpc_worth worth = GPC_WORTH_NOTHING;
	struct gpc_recording *recording;
	struct gpc_text why = gpc_text_init((char[96]){ 0 }, 96);

	*ret_failed_ns = 0;
	if (gpc_recording_open(entry->path, &recording, &why) != GPC_OK)
		return worth;
	*ret_failed_ns = gpc_directory_failed_ns(recording);
	if (*ret_failed_ns)
		worth = GPC_WORTH_OOM;
	else if (has_used_gpu(recording))
		worth = GPC_WORTH_USED;
	gpc_recording_close(recording);
	return worth;
}

/* True if `entry`, which failed at failed_ns, belongs to the job of `newest`, or failed after `newest` had started. */
static bool is_related(const struct gpc_directory_entry *entry, uint64_t failed_ns,
	const struct gpc_directory_entry *newest, bool is_usual)
{
	/* Who names a folder has the ranks of one job in it, whose hosts' clocks may differ. */
	if (!is_usual && entry->header.rank >= 0 && newest->header.rank >= 0)
		return true;
	if (entry->header.job[0] || newest->header.job[0])
		return strcmp(entry->header.job, newest->header.job) == 0;
	return failed_ns >= newest->header.start_realtime_ns;
}

struct gpc_directory_choice gpc_directory_choose(
	const struct gpc_directory *directory, bool is_usual)
{
	struct gpc_directory_choice choice = { 0 };
	const struct gpc_directory_entry *newest = NULL;
	uint64_t first_ns = 0;

	for (size_t i = 0; i < directory->n_entries; i++) {
		const struct gpc_directory_entry *entry = &directory->entries[i];
		unsigned number = choice.n_recordings;
		enum gpc_worth worth = choice.worth;
		uint64_t failed_ns = 0;

		if (entry->status != GPC_OK)
			continue;
		choice.n_recordings++;
		/* Only a failure, or the first use of a GPU, can change the choice: read the whole file for these. */
		if (entry->header.state & GPUCACHE_STATE_OOM_SEEN || choice.worth < GPC_WORTH_USED)
			worth = worth_of(entry, &failed_ns);
		choice.n_failed += failed_ns != 0;
		if (failed_ns && newest && !is_related(entry, failed_ns, newest, is_usual))
			continue;
		choice.n_rivals += failed_ns != 0;
		if (failed_ns && newest && failed_ns >= first_ns)
			continue;
		if (choice.entry && worth <= choice.worth && !failed_ns)
			continue;
		choice.entry = entry;
		choice.worth = worth;
		choice.n_newer = number;
		if (failed_ns) {
			newest = newest ? newest : entry;
			first_ns = failed_ns;
		}
	}
	return choice;
}

void gpc_directory_close(struct gpc_directory *directory)
{
	for (size_t i = 0; i < directory->n_entries; i++)
		free(directory->entries[i].path);
	for (unsigned i = 0; i < directory->n_dirs; i++)
		free(directory->dirs[i]);
	free(directory->entries);
	memset(directory, 0, sizeof *directory);
}

const struct gpc_directory_entry *gpc_directory_find(
	const struct gpc_directory *directory, uint32_t pid)
{
	for (size_t i = 0; i < directory->n_entries; i++) {
		const struct gpc_directory_entry *entry = &directory->entries[i];

		if (entry->status == GPC_OK && (pid == 0 || entry->header.pid == pid))
			return entry;
	}
	return NULL;
}
