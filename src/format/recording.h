/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a recording.  The file is untrusted: it is copied into memory with pread, and checked once.
 *
 * A region outside the file, a record longer than its region, or an impossible count is noted as a problem; all else
 * stays readable.
 *
 *      file --pread--> copy --check regions--> slots, append-only records, ring
 *                        ^
 *                        '-- the seq words of a live file are read a second time: a slot whose seq has changed
 *                            is read again, at most GPC_RECORDING_TRIES times, and is torn if it never settles
 *
 * Invariants  1 After a successful open no function fails, reads outside the copy, or takes more than linear time.
 *             2 The copy never changes.
 *             3 A slot is returned whole or not at all.
 *             4 If a record of the file is shorter than this version's, the missing fields read as zeros.
 * Threads     An object belongs to one thread.
 * Failure     GPC_IO (errno), GPC_NO_METADATA, GPC_LIMIT (too big), GPC_INVALID (not a recording),
 *             GPC_VERSION, GPC_DAMAGED (nothing readable); `why` has a message.
 * Limits      Files of at most GPC_RECORDING_MAX_BYTES.  Little-endian machines.
 */
#ifndef GPC_FORMAT_RECORDING_H
#define GPC_FORMAT_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "base/text.h"
#include "gpucache_format.h"
#include "model/balance.h"
#include "model/share.h"

/* The usual recording has 8 MiB; the option recording_size allows no more than this. */
#define GPC_RECORDING_MAX_BYTES (UINT64_C(1) << 30)

/* A writer changes a slot in well under a microsecond: a slot that is odd in this many readings stays odd. */
#define GPC_RECORDING_TRIES 300

/* The most problems with a text: one per region, and some more. */
#define GPC_RECORDING_MAX_PROBLEMS 32

enum gpc_run_state {
	GPC_RUN_ALIVE,  /* the writer holds its lock */
	GPC_RUN_ENDED,  /* main returned, or exit() was called */
	GPC_RUN_KILLED, /* the recording has no end */
	GPC_RUN_EXITED, /* by _exit() or quick_exit(): no handler ran */
};

enum gpc_slot {
	GPC_SLOT_NONE, /* there is no such record, or the region is not readable */
	GPC_SLOT_OK,
	GPC_SLOT_TORN, /* the writer died while it wrote the slot, or was writing it at every try */
};

/* The readable part of a region: record i is at offset + i * record_size. */
struct gpc_region {
	bool present;
	uint32_t record_size;
	uint64_t offset;
	uint64_t size;
	uint64_t count;
	uint64_t n_torn;
};

struct gpc_problem {
	enum gpucache_region_kind kind; /* GPUCACHE_REGION_NONE: the file as a whole */
	char text[120];
};

/* An entry in the index of an append-only region.  The index is sorted by id. */
struct gpc_record_index {
	uint32_t id;
	uint64_t offset;
};

/* Addresses [start, end) belong to module `number`. */
struct gpc_module_range {
	uint64_t start;
	uint64_t end;
	uint32_t number;
};

/* A line of TEXT, from which the search for the next one starts. */
struct gpc_text_mark {
	size_t line;
	uint64_t at; /* in the region's body */
};

struct gpc_recording {
	/* Fixed after open. */
	char *path;
	uint32_t owner; /* uid of the file's owner */
	struct gpucache_header header;
	enum gpc_run_state run_state;
	struct gpc_region regions[GPUCACHE_REGION_COUNT];
	struct gpc_problem problems[GPC_RECORDING_MAX_PROBLEMS];
	unsigned n_problems; /* those beyond GPC_RECORDING_MAX_PROBLEMS are only counted */

	/* Private. */
	unsigned char *data;
	uint64_t size;
	struct gpc_record_index *stacks;
	size_t n_stacks;
	struct gpc_record_index *codes;
	size_t n_codes;
	struct gpc_record_index *tags;
	size_t n_tags;
	struct gpc_record_index *modules; /* in the order of the file, not by id */
	size_t n_modules;
	struct gpc_module_range *ranges; /* sorted; none overlaps another */
	size_t n_ranges;
	struct gpc_text_mark *text_mark; /* the only state that reading changes */
	uint64_t first_event;
	uint64_t end_event; /* 1 + the number of the newest event */
};

struct gpc_stack_view {
	uint32_t id;
	uint32_t flags;
	unsigned n_native;
	unsigned n_python;
	const uint64_t *native; /* innermost first */
	const uint64_t *python;
};

struct gpc_code_view {
	const char *name; /* not terminated */
	size_t name_size;
	const char *file;
	size_t file_size;
	const unsigned char *lines;
	size_t lines_size;
	uint32_t first_line;
	uint16_t python_version;
};

struct gpc_module_view {
	struct gpucache_module module;
	const char *path; /* terminated */
};

struct gpc_history_view {
	int32_t device;
	uint64_t interval_ns;
	const struct gpucache_point *points;
	const uint64_t *pending_bytes; /* of the point of that index */
	size_t n_points;
};

struct gpc_event_cursor {
	uint64_t next;
	uint64_t n_holes;
};

/* Opens the file `path`.  On failure *why has a message, and *ret_recording is unchanged. */
GPC_MUST_CHECK enum gpc_status gpc_recording_open(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why);
void gpc_recording_close(struct gpc_recording *recording);

/* Reads only the header and whether the process runs, for lists of files.  Outputs are valid for GPC_OK only. */
GPC_MUST_CHECK enum gpc_status gpc_recording_peek(const char *path,
	struct gpucache_header *ret_header, enum gpc_run_state *ret_state, uint64_t *ret_file_size,
	uint32_t *ret_owner, struct gpc_text *why);

/* Returns true if `owner` is neither this user nor root. */
bool gpc_recording_is_of_others(uint32_t owner);

/* The name of a region in gpucache_format.h: "BLOCKS". */
const char *gpc_region_name(enum gpucache_region_kind kind);

/* True if a problem of this region was noted; GPUCACHE_REGION_NONE: of the file as a whole. */
bool gpc_recording_has_problem(
	const struct gpc_recording *recording, enum gpucache_region_kind kind);

/* Copies record i of a region of fixed records, and fills the rest of *ret_record with zeros. */
enum gpc_slot gpc_recording_read(const struct gpc_recording *recording,
	enum gpucache_region_kind kind, uint64_t i, void *ret_record, size_t size);

/* As gpc_recording_read, but true only if the slot is in use and not torn. */
bool gpc_recording_read_device(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_device *ret_device);
/* The statistics of PyTorch's allocator on a device; false: it never allocated there. */
bool gpc_recording_find_torch(
	const struct gpc_recording *recording, int32_t ordinal, struct gpucache_torch *ret_torch);
bool gpc_recording_read_counters(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_counters *ret_counters);
bool gpc_recording_read_block(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_block *ret_block);

/* True if the program holds this block, and asked for it as device memory. */
static inline bool gpc_recording_holds_device_memory(const struct gpucache_block *block)
{
	return gpucache_is_held(block->state, block->kind, block->flags);
}

/* The same without memory that the driver took for itself (contexts, modules): the program cannot free that memory. */
static inline bool gpc_recording_can_leak(const struct gpucache_block *block)
{
	return gpc_recording_holds_device_memory(block) && !gpc_kind_is_implicit(block->kind);
}

/*
 * What a live block adds to the sums of its stack.  If stacks are sampled, a sampled block also stands for blocks that
 * were not sampled, and so adds more than its own bytes.  *surplus accumulates the difference, which the caller
 * subtracts from the sum of blocks without a stack (gpc_bytes_less).
 */
static inline struct gpc_share gpc_recording_share(const struct gpc_recording *recording,
	const struct gpucache_block *block, struct gpc_share *surplus)
{
	uint64_t sample =
		block->segment == GPUCACHE_NO_SEGMENT ? 0 : recording->header.sample_bytes;
	struct gpc_share own = { block->requested, 1 };
	struct gpc_share share =
		gpc_share_of(sample, block->stack, block->address, block->requested);

	if (share.blocks == 0)
		return own;
	surplus->bytes = gpc_bytes_add(surplus->bytes, share.bytes - own.bytes);
	surplus->blocks = gpc_bytes_add(surplus->blocks, share.blocks - own.blocks);
	return share;
}

bool gpc_recording_read_segment(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_segment *ret_segment);
/* `recovered` is GPC_RECOVERED_BY_END if the program ended with status 0 without another such request. */
#define GPC_RECOVERED_BY_END 2u
bool gpc_recording_read_oom(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_oom *ret_oom);

/* Reads the newest peak of device `ordinal`; false: none. */
bool gpc_recording_find_peak(
	const struct gpc_recording *recording, int32_t ordinal, struct gpucache_peak *ret_peak);

/* Reads failed request `number` of OOMS, or the newest one if number is 0. */
bool gpc_recording_find_oom(
	const struct gpc_recording *recording, uint64_t number, struct gpucache_oom *ret_oom);

/* The totals of a stack on a device. */
bool gpc_recording_read_site(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_site *ret_site);

/* The position of an id in an index of n entries: recording->stacks, codes or tags.  n: not found. */
size_t gpc_record_number(const struct gpc_record_index *index, size_t n, uint32_t id);

bool gpc_recording_find_stack(
	const struct gpc_recording *recording, uint32_t id, struct gpc_stack_view *ret_stack);
bool gpc_recording_find_code(
	const struct gpc_recording *recording, uint32_t id, struct gpc_code_view *ret_code);

/* Room for the label of a tag: 32 names of 76 bytes.  A longer label is cut. */
#define GPC_LABEL_SIZE 2560

/* Appends the label of a tag, "outer/inner", clean for a terminal; "tag 7" if tag 7 has no record; nothing for 0. */
void gpc_recording_add_tag(
	const struct gpc_recording *recording, uint32_t id, struct gpc_text *text);

/* Reads module i < n_modules, in the order of their records. */
bool gpc_recording_read_module(
	const struct gpc_recording *recording, size_t i, struct gpc_module_view *ret_module);

/* Finds the module of an address, and its number.  If several cover the address, the last record counts. */
bool gpc_recording_find_module(const struct gpc_recording *recording, uint64_t address,
	size_t *ret_number, struct gpc_module_view *ret_module);

/* Reads line i of TEXT, without its newline; false beyond the last.  Fast if called with ascending i. */
bool gpc_recording_read_text(
	const struct gpc_recording *recording, size_t i, const char **ret_text, size_t *ret_size);

/* Reads the next event, the oldest first, for a cursor that begins as all zeros and counts holes. */
bool gpc_recording_next_event(const struct gpc_recording *recording,
	struct gpc_event_cursor *cursor, struct gpucache_event *ret_event);

bool gpc_recording_read_history(
	const struct gpc_recording *recording, uint64_t i, struct gpc_history_view *ret_history);

/* The device of that ordinal; false, with *ret_device unchanged, if there is none. */
bool gpc_recording_find_device(
	const struct gpc_recording *recording, int32_t ordinal, struct gpucache_device *ret_device);

/* The history of a device.  False, with a history without points, if there is none. */
bool gpc_recording_find_history(const struct gpc_recording *recording, int32_t ordinal,
	struct gpc_history_view *ret_history);

/* The time of the process's end if it is recorded, else of the last event or reading. */
uint64_t gpc_recording_last_ns(const struct gpc_recording *recording);

/* The number of records of append-only region `kind` that found no room. */
uint64_t gpc_recording_dropped(
	const struct gpc_recording *recording, enum gpucache_region_kind kind);

#endif
