/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds recordings in the usual directories of this user, newest first.
 *
 *      1 the directory of $GPUCACHE_OUTPUT, up to its first component with a %      of any owner
 *      2 /dev/shm/gpucache-UID     3 $XDG_RUNTIME_DIR/gpucache     4 ${TMPDIR:-/tmp}/gpucache-UID
 *
 * Invariants  1 Only files that end in ".gpucache" are opened.  2 Directories 2 to 4 are read only
 *               if they belong to this user: anybody may create a directory of that name in /tmp.
 *             3 Files of users other than this one and root are skipped and counted; root reads them, but
 *               follows none of their links.  A link is followed only to a file of this user or root.
 * Threads     An object belongs to one thread.
 * Failure     None.  Files that are not recordings are listed with their status.
 * Limits      Reads at most GPC_DIRECTORY_MAX_FILES files.
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
	enum gpc_status status; /* of the peek; header and state are valid for GPC_OK only */
	struct gpucache_header header;
	enum gpc_run_state state;
	uint64_t size;
	uint32_t owner;
	char why[96];
};

struct gpc_directory {
	struct gpc_directory_entry *entries; /* newest start first; unreadable ones last */
	size_t n_entries;
	char *dirs[GPC_DIRECTORY_MAX_DIRS]; /* searched */
	bool is_there[GPC_DIRECTORY_MAX_DIRS];
	unsigned n_dirs;
	unsigned n_left_out; /* files beyond GPC_DIRECTORY_MAX_FILES */
	unsigned n_of_others;
	uint32_t others
		[GPC_DIRECTORY_MAX_OTHERS]; /* uids of their owners, as many as there is room for */
	unsigned n_others;
};

/* Lists one directory, or the usual ones if `path` is NULL. */
void gpc_directory_open(struct gpc_directory *directory, const char *path);
void gpc_directory_close(struct gpc_directory *directory);

/* Recordings of higher worth are chosen before newer ones. */
enum gpc_worth {
	GPC_WORTH_NOTHING, /* its process used no GPU */
	GPC_WORTH_USED,
	GPC_WORTH_OOM, /* a request failed, and the program did not recover */
};

struct gpc_directory_choice {
	const struct gpc_directory_entry *entry; /* NULL: no readable recording */
	enum gpc_worth worth;
	unsigned n_recordings; /* readable, the chosen one included */
	unsigned n_newer;      /* readable, and newer than the chosen one */
	unsigned n_failed;     /* ran out of memory, the chosen one included */
};

/*
 * Chooses the recording that ran out of memory first, as later failures may be consequences; else the newest
 * that used a GPU, else the newest.  In the usual directories, which hold the runs of weeks, only failures of
 * the same job as the newest one, or concurrent with it, are considered.
 */
struct gpc_directory_choice gpc_directory_choose(
	const struct gpc_directory *directory, bool is_usual);

/* The newest readable recording, of process `pid` unless that is 0; NULL: none. */
const struct gpc_directory_entry *gpc_directory_find(
	const struct gpc_directory *directory, uint32_t pid);

#endif
