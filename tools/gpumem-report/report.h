/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every command of gpumem-report gets and returns.
 *
 *      main: arguments --> target: which recording --> cmd_*: one view of it --> text or JSON on stdout
 *
 * Invariants  1 Standard output is the report and nothing else; messages go to standard error.
 *             2 A command prints what it can of a damaged recording; main then ends with
 *               GPC_EXIT_DAMAGED.
 * Threads     One.
 * Failure     Commands return an exit code.
 * Limits      Of several recordings, JSON can show only one; as text they are shown one after the other.
 */
#ifndef GPC_REPORT_REPORT_H
#define GPC_REPORT_REPORT_H

#include <stdio.h>

#include "document/document.h"
#include "format/directory.h"
#include "format/sheet.h"
#include "tools/gpumem-report/output/show.h"
#include "tools/gpumem-report/symbols/frames.h"
#include "tools/lib/command_line.h"
#include "tools/lib/map.h"

#define GPC_REPORT_SCHEMA "gpumem.report/2"

enum gpc_colour_mode {
	GPC_COLOUR_AUTO,
	GPC_COLOUR_ALWAYS,
	GPC_COLOUR_NEVER,
};

enum gpc_exit {
	GPC_EXIT_MADE = 0,
	GPC_EXIT_CONDITION = 1, /* the recording has what --fail-on names, or `fit` does not fit */
	GPC_EXIT_USAGE = 2,
	GPC_EXIT_NOT_FOUND = 3,
	GPC_EXIT_DAMAGED = 4,
	GPC_EXIT_IO = 5,
};

/* The moment at which to show holders. */
enum gpc_at {
	GPC_AT_USUAL, /* no --at: see moment.h */
	GPC_AT_END,   /* of a running process: now */
	GPC_AT_PEAK,
	GPC_AT_OOM, /* the last failed request */
};

/* The texts of the filters (filter.h); NULL: not set. */
struct gpc_filters {
#define FILTER(name, value, is_of, help) const char *name;
#include "tools/gpumem-report/holders/filters.def"
};

/* Ordinals of GPUs are below this. */
#define GPC_MAX_ORDINAL 1024

struct gpc_options {
	struct gpc_filters filters;
	int32_t device;  /* -1: all */
	unsigned limit;  /* rows of tables; 0: the command's default */
	uint64_t number; /* of a failure, for `oom`; 0: the newest */
	const char *output;
	bool force;
	bool json;
	bool html; /* of `fit`, `sweep` and `cure` */
	bool fail_on_oom;
	bool fail_on_leak;
	const char *format; /* of `export`: NAME[,WORD]...; NULL: not given */
	const char *query;  /* the columns of csv, COLUMN[,COLUMN]...; NULL: the usual ones */
	enum gpc_at moment;
	bool is_bottom_up;  /* of `tree` */
	bool once;          /* of `live`: one look, without a screen */
	uint64_t watch_ns;  /* interval of --watch; 0: not given */
	const char *on;     /* of `fit`: a key of sim/gpu/model.h, or a size; NULL: not given */
	bool progress;      /* of `fit`: the steps so far, and no more */
	bool next;          /* of `sweep` and `cure`: the runs that are missing, and no more */
	const char *trials; /* of `cure`: the folder of the runs with settings; NULL: not given */
	const char *run;    /* of `oom`: the GPUCACHE_RUN of what is shown; NULL: not given */
	const char *
		ended; /* of `fit`, how the program ended: stopped, interrupted, late, grown, or its exit status; NULL: not given */
	enum gpc_colour_mode colour;
	struct gpc_places places; /* where files with symbols are searched */
	const char **targets;     /* FILEs, DIRs, PIDs, or for `symbols` one NAME; malloc'ed */
	unsigned n_targets;
	const char *target; /* the current one; NULL: none given */
};

struct gpc_report {
	const struct gpc_options *options;
	FILE *out;
	struct gpc_document *doc; /* that the view says (output/page.h) */
	/* NULL if the command needs none, and in the last call of GPC_NEEDS_RECORDINGS. */
	struct gpc_recording *recording;
	struct gpc_frames *frames;
	/* Whether the filters take each stack, by 1 + its id, as filter.c stores it; NULL: it is not cached. */
	struct gpc_map *taken_stacks;
	/* GPC_NEEDS_DIRECTORY; else the folder from which `recording` was chosen */
	struct gpc_directory directory;
	unsigned n_processes; /* of GPC_NEEDS_LARGEST: those of the folder that used a GPU */
	bool is_newest_by_default; /* no recording was named: a command that we suggest need not name it either */
};

enum gpc_needs {
	GPC_NEEDS_RECORDING,
	GPC_NEEDS_LARGEST,        /* the same; of a folder, that with the highest peak */
	GPC_NEEDS_RECORDINGS,     /* called once per recording, then once with recording NULL */
	GPC_NEEDS_TWO_RECORDINGS, /* the first is opened, the second is options->targets[1] */
	GPC_NEEDS_DIRECTORY,
	GPC_NEEDS_FOLDERS, /* called once: opens options->targets itself */
	GPC_NEEDS_NOTHING,
};

struct gpc_command {
	const char *name;
	const char *help;
	enum gpc_needs needs;
	enum gpc_exit (*run)(struct gpc_report *report);
};

#define COMMAND(name, needs, help) enum gpc_exit gpc_cmd_##name(struct gpc_report *report);
#include "tools/gpumem-report/commands.def"

enum gpc_exit gpc_cmd_watch(struct gpc_report *report); /* `export --watch` */

enum gpc_command_number {
#define COMMAND(name, needs, help) GPC_COMMAND_##name,
#include "tools/gpumem-report/commands.def"
	GPC_N_COMMANDS,
};

extern const struct gpc_command gpc_commands[GPC_N_COMMANDS];

/* Appends the user name, or "uid 2001". */
void gpc_owner_add(uint32_t owner, struct gpc_text *ret_text);

/* "alive", "ended", "killed", "exited" */
const char *gpc_state_word(enum gpc_run_state state);

/* The rungs that this version knows (model/rungs.def). */
enum gpc_rung {
#define RUNG(function, text) GPC_RUNG_##function,
#include "model/rungs.def"
	GPC_RUNG_COUNT,
};

/* A word for JSON, and a short description for text. */
struct gpc_words {
	const char *word;
	const char *text;
};

/* The words for a rung of the ladder; any number is valid. */
struct gpc_words gpc_rung_words(unsigned rung);

/*
 * The words for what ended the one-stream rule; `text` continues a sentence after "until".  Any number is valid.  Both
 * are NULL if the rule still holds.
 */
struct gpc_words gpc_one_stream_end_words(uint64_t end);

/* Converts a time of the recording's monotonic clock to real time, both in ns. */
uint64_t gpc_report_realtime(const struct gpc_recording *recording, uint64_t monotonic_ns);

/* Appends the argument with which a suggested command reads this recording: " FILE", or nothing. */
void gpc_report_target(const struct gpc_report *report, struct gpc_text *ret_text);

/* How many rows a table has: the number of -n, else `usual`. */
static inline unsigned gpc_report_limit(const struct gpc_report *report, unsigned usual)
{
	return report->options->limit ? report->options->limit : usual;
}

/* True if -d selects the device. */
bool gpc_report_wants(const struct gpc_report *report, int32_t ordinal);

/* Iterates over the devices that -d selects; *i starts at 0.  Returns false at the end. */
bool gpc_report_next_device(
	const struct gpc_report *report, uint64_t *i, struct gpucache_device *ret_device);

/*
 * Iterates over the live blocks of device `ordinal`, or of every selected device if it is -1.  Set *i to 0 first.
 * Returns false at the end.
 */
bool gpc_report_next_live(const struct gpc_report *report, int32_t ordinal, uint64_t *i,
	struct gpucache_block *ret_block);

/* Counts the live blocks that the program could have freed, all but contexts and modules, and adds up their bytes. */
uint64_t gpc_report_count_live(
	const struct gpc_report *report, int32_t ordinal, uint64_t *ret_bytes);

/* Appends "physical 2, GPU-1111-..., 0000:17:00.0": the GPU's other names, as far as known. */
void gpc_report_add_names(const struct gpucache_device *device, struct gpc_text *ret_text);

/*
 * Finds the newest failure of the device, or with ordinal -1 of all selected devices.  is_fatal: only among those that
 * the program did not recover from.  Returns false if there is none.
 */
bool gpc_report_find_oom(const struct gpc_report *report, int32_t ordinal, bool is_fatal,
	struct gpucache_oom *ret_oom);

/* Counts the failed requests of the selected devices that the program recovered from, or those that it did not. */
unsigned gpc_report_count_ooms(const struct gpc_report *report, bool is_recovered);

/* What a line of the region TEXT is. */
enum gpc_text_kind {
	GPC_TEXT_CHANGED, /* "key value source", "env NAME=VALUE": set by the user */
	GPC_TEXT_DEFAULT,
	GPC_TEXT_WARNING,
	GPC_TEXT_CALLER, /* the name of a caller that has a cache of its own, and whole allocations of the driver */
};

/* What a view says of a caller. */
#define GPC_CALLER_WORDS "%s has a cache of its own: whole segments"

/* Appends line i of TEXT, without control characters and the prefix of its kind; false: there are fewer lines. */
bool gpc_report_read_line(const struct gpc_recording *recording, size_t i,
	enum gpc_text_kind *ret_kind, struct gpc_text *ret_text);

/* Copies the value of a variable of the environment that the library recorded; false: it was not set. */
bool gpc_report_read_env(
	const struct gpc_recording *recording, const char *name, char *value, size_t size);

/* Copies the value that the user set for an option of gpucache; false: the option has its default. */
bool gpc_report_read_option(
	const struct gpc_recording *recording, const char *option, char *value, size_t size);

#endif
