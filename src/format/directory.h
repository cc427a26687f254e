/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds recordings in the usual directories of this user, newest first.
 *
 *      1 the directory of $GPUCACHE_OUTPUT, up to its first component with a %, and if the directory has a %, the newest
 *        GPC_DIRECTORY_MAX_MATCHES that it may stand for                            of any owner
 *      2 /dev/shm/gpucache-UID     3 $XDG_RUNTIME_DIR/gpucache     4 ${TMPDIR:-/tmp}/gpucache-UID
 *      2 and 4 also with a random suffix, gpucache-UID-SUFFIX (base/own_folder.h)
 *
 * Invariants  1 Only files whose names end in ".gpucache" are opened.
 *             2 Directories 2 to 4 are read only if they belong to this user: any user may create a directory of that
 *               name in /tmp.
 *             3 Files of users other than this one and root are counted, and not opened.  Root opens them, but follows
 *               none of their links.  A link is followed only to a file of this user or root.
 * Threads     An object belongs to one thread.
 * Failure     None.  A file that is no recording has an entry with its status.
 * Limits      Opens at most GPC_DIRECTORY_MAX_FILES files.
 */
#ifndef GPC_FORMAT_DIRECTORY_H
#define GPC_FORMAT_DIRECTORY_H

#include "format/recording.h"

#define GPC_DIRECTORY_MAX_FILES   16384
#define GPC_DIRECTORY_MAX_DIRS    12
#define GPC_DIRECTORY_MAX_MATCHES 6
#define GPC_DIRECTORY_MAX_OTHERS  4
#define GPC_DIRECTORY_SUFFIX      ".gpucache"

struct gpc_directory_entry {
	char *path;
	/* of gpc_recording_peek; `header` and `state` are valid only for GPC_OK */
	enum gpc_status status;
	struct gpucache_header header;
	enum gpc_run_state state;
	uint64_t size;
	uint32_t owner;
	char why[96];
};

struct gpc_directory {
	struct gpc_directory_entry *entries; /* newest start first; unreadable ones last */
	size_t n_entries;
	char *dirs[GPC_DIRECTORY_MAX_DIRS];    /* searched */
	bool is_there[GPC_DIRECTORY_MAX_DIRS]; /* dirs[i] exists, and may be read */
	unsigned n_dirs;
	unsigned n_left_out;  /* files beyond GPC_DIRECTORY_MAX_FILES */
	unsigned n_of_others; /* files of other users */
	/* The uids of those users, as many as fit. */
	uint32_t others[GPC_DIRECTORY_MAX_OTHERS];
	unsigned n_others;
};

/* "/dev/shm"; a test names another folder. */
extern const char *gpc_directory_shared;

/* Reads the directory `path`, or the usual ones if `path` is NULL. */
void gpc_directory_open(struct gpc_directory *directory, const char *path);
void gpc_directory_close(struct gpc_directory *directory);

/* The real time of the first failed request from which the program did not recover; 0: none. */
uint64_t gpc_directory_failed_ns(const struct gpc_recording *recording);

/* A recording of higher worth is chosen before a newer one. */
enum gpc_worth {
	GPC_WORTH_NOTHING, /* its process used no GPU */
	GPC_WORTH_USED,
	GPC_WORTH_OOM, /* a request failed, and the program did not recover */
};

struct gpc_directory_choice {
	const struct gpc_directory_entry *entry; /* NULL: no readable recording */
	enum gpc_worth worth;
	unsigned n_recordings; /* all that are readable */
	unsigned n_newer;      /* readable ones that started after the chosen one */
	unsigned n_failed; /* all in which a request failed without recovery, and that were read */
	unsigned n_rivals; /* those of them of which the first one was chosen */
};

/*
 * Chooses one recording: that of the first failure, because later failures may be its consequences; if none failed, the
 * newest that used a GPU; if none did, the newest.  A directory holds runs of several days: only failures of the newest
 * failed run's job count, or, without a job, failures after that run started.  Of one that is no usual one, all ranks count.
 */
struct gpc_directory_choice gpc_directory_choose(
	const struct gpc_directory *directory, bool is_usual);

/* The newest readable recording of process `pid`, or of all if pid is 0; NULL: there is none. */
const struct gpc_directory_entry *gpc_directory_find(
	const struct gpc_directory *directory, uint32_t pid);

#endif
