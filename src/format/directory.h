/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where recordings are: the usual directories of this user, newest recording first.
 *
 *      1 the directory of $GPUCACHE_OUTPUT, up to its first component with a %      explicit: whoever owns it
 *      2 /dev/shm/gpucache-UID     3 $XDG_RUNTIME_DIR/gpucache     4 ${TMPDIR:-/tmp}/gpucache-UID
 *
 * Invariants  1 Only files that end in ".gpucache" are opened.  2 Directories 2 to 4 are read only
 *               where they belong to this user: anybody may put a directory of that name into /tmp.
 *             3 Files of others are left out and counted; root reads those of users, and follows no
 *               link of theirs.  A link counts as its owner's, and leads to a file of the same owner.
 * Threads     An object belongs to one thread.
 * Failure     Files that are no recordings are listed with their status; GPC_NO_METADATA.
 * Limits      At most GPC_DIRECTORY_MAX_FILES files are looked at.
 */
#ifndef GPC_FORMAT_DIRECTORY_H
#define GPC_FORMAT_DIRECTORY_H

#include "format/recording.h"

#define GPC_DIRECTORY_MAX_FILES  4096
#define GPC_DIRECTORY_MAX_DIRS   12
#define GPC_DIRECTORY_MAX_OTHERS 4
#define GPC_DIRECTORY_SUFFIX     ".gpucache"

struct gpc_directory_entry {
	char *path;
	enum gpc_status status; /* of peeking; header and state are valid for GPC_OK only */
	struct gpucache_header header;
	enum gpc_run_state state;
	uint64_t size;
	uint32_t owner;
	char why[96];
};

struct gpc_directory {
	struct gpc_directory_entry *entries; /* newest start first; unreadable ones last */
	size_t n_entries;
	char *dirs[GPC_DIRECTORY_MAX_DIRS]; /* where we looked */
	bool is_there[GPC_DIRECTORY_MAX_DIRS];
	unsigned n_dirs;
	unsigned n_left_out; /* files beyond GPC_DIRECTORY_MAX_FILES */
	unsigned n_of_others;
	uint32_t others
		[GPC_DIRECTORY_MAX_OTHERS]; /* uids of their owners, as many as there is room for */
	unsigned n_others;
};

/* Lists one directory, or the usual ones where `path` is NULL. */
GPC_MUST_CHECK enum gpc_status gpc_directory_open(
	struct gpc_directory *directory, const char *path);
void gpc_directory_close(struct gpc_directory *directory);

/* What makes one recording more worth a look than a newer one. */
enum gpc_worth {
	GPC_WORTH_NOTHING, /* its process used no GPU */
	GPC_WORTH_USED,
	GPC_WORTH_OOM, /* a request failed, and the program did not recover */
};

struct gpc_directory_choice {
	const struct gpc_directory_entry *entry; /* NULL: there is no readable recording */
	enum gpc_worth worth;
	unsigned n_recordings; /* readable ones, this one included */
	unsigned n_newer;      /* than this one */
	unsigned n_failed;     /* that ran out of memory, this one included */
};

/*
 * The one that ran out of memory first, for what failed after it may have failed because of it; else the
 * newest that used a GPU, else the newest.  Of the usual directories, which hold the runs of weeks, the
 * first of those that belong to the newest failure: by their job, or because they ran at the same time.
 */
struct gpc_directory_choice gpc_directory_choose(
	const struct gpc_directory *directory, bool is_usual);

/* The newest readable recording, of process `pid` if that is not 0; NULL where there is none. */
const struct gpc_directory_entry *gpc_directory_find(
	const struct gpc_directory *directory, uint32_t pid);

#endif
