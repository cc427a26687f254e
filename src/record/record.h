/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of the recording: the file of include/gpucache_format.h, mapped shared and updated in place.
 *
 *      allocator ----+-- store.h, inline: blocks, events, sites ------> [ mapped file ] --> gpumem-report
 *      stacks, oom --+-- under rec->lock: everything else --------------^
 *
 * A struct gpc_record always works.  If there is no file (no room, no directory, record:off), it uses private memory.
 * If there is no such memory, after close, and in a fork child, every call is a no-op.
 *
 * To change a slot, a writer makes seq odd, stores each word, and makes seq even.  All stores but the first have
 * release order, which is a plain store on x86.  Fences would do, too, but the thread sanitizer does not understand
 * them.
 *
 * Invariants  1 A slot of BLOCKS has one writer at a time: the holder of the pool's lock, or, for uncached memory, the
 *               thread that owns the ledger's entry.
 *             2 All pages of the file are allocated before the file is mapped, so no store raises SIGBUS.
 *             3 A process writes only to its own file: see gpc_record_detach.
 * Threads     Any; but open, close and detach only while no other thread uses the recording.  Functions that change
 *             tables take rec->lock (rank RECORD), except gpc_record_end_stream and gpc_record_oom_commit, which take
 *             no lock.  The inline functions have locks of their own (store.h).  Reads and state bits take none.
 * Failure     gpc_record_open reports its failure.  All other functions count what they drop.
 * Limits      The file's lock belongs to the open file, which a child shares.  So a killed parent looks alive until
 *             its fork child detaches, or its child of a raw clone ends.  If a program closes our descriptor, the file
 *             stays locked, because the mapping keeps it open.
 */
#ifndef GPC_RECORD_RECORD_H
#define GPC_RECORD_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/status.h"
#include "gpucache_format.h"
#include "record/growth.h"

#define GPC_RECORD_DEFAULT_SIZE (8 * GPC_MIB)
#define GPC_RECORD_MIN_SIZE     (1 * GPC_MIB)
#define GPC_RECORD_MAX_SIZE     GPC_GIB
#define GPC_RECORD_MAX_PATH     1024u
#define GPC_RECORD_NO_COUNTERS  UINT32_MAX
#define GPC_RECORD_PAGE_EVENTS  (GPUCACHE_PAGE / sizeof(struct gpucache_event))

struct gpc_record {
	/* Fixed while open; all zero while closed. */
	unsigned char *base;
	size_t size;
	int fd; /* -1: on private memory */
	struct gpucache_header *header;
	struct gpucache_block *blocks;
	struct gpucache_event *events;
	struct gpucache_site *sites;
	unsigned char *pages;
	uint32_t *site_of; /* [device][stack]: the number of the record in SITES; 0: none yet */
	struct gpc_windows *windows; /* of each record in SITES; its site's lock guards it */
	struct gpucache_segment *segments;
	struct gpucache_counters *counters;
	struct gpucache_torch *torch; /* by device */
	struct gpucache_stream *streams;
	uint32_t n_blocks;
	uint32_t n_events; /* a power of two */
	uint32_t n_sites;
	uint32_t n_segments;
	uint32_t n_counters;
	uint32_t n_devices;
	const struct gpucache_region *regions[GPUCACHE_REGION_COUNT]; /* by kind */

	/* Changed often, by all threads. */
	_Alignas(64) struct gpc_lock event_lock; /* guards EVENTS */
	_Atomic uint64_t next_event;             /* Lock: event_lock; read without it */
	/* By device: the fewest live bytes that gpc_record_peak records as a new peak. */
	_Alignas(64) _Atomic uint64_t peak_next[GPUCACHE_MAX_DEVICES];
	_Atomic uint64_t peak_last[GPUCACHE_MAX_DEVICES]; /* and those of the last peak */
	_Atomic uint32_t block_end;  /* 1 + the last slot of BLOCKS that was ever in use */
	_Atomic uint32_t site_end;   /* 1 + the last record of SITES in use */
	_Atomic uint32_t stream_end; /* the same for STREAMS */
	/* By device: the lock guards the sums in SITES, their windows and the clock, on whose cache line it lies. */
	struct {
		_Alignas(64) struct gpc_lock lock;
		struct gpc_window_clock clock;
	} site_locks[GPUCACHE_MAX_DEVICES];

	/* Lock: lock. */
	_Alignas(64) struct gpc_lock lock;
	uint64_t peak_number;
	uint64_t oom_number;
	uint64_t touched_ns;     /* when the file's mtime was last set */
	struct gpc_io_file file; /* the identity of fd */
	uint64_t retired;        /* bit i: the context of record i of COUNTERS has ended */

	char path[GPC_RECORD_MAX_PATH]; /* absolute, if the cwd is known; empty without a file */
	/* As in struct gpc_place. */
	int pattern_errno;
	char pattern_error;
	bool is_name_taken;
	int default_errno;
};

struct gpc_record_params {
	size_t size;            /* of the whole file; 0: GPC_RECORD_DEFAULT_SIZE */
	const char *pattern;    /* GPUCACHE_OUTPUT; NULL or "": the default place */
	const char *version;    /* of the library */
	uint32_t n_devices;     /* 0: 8 */
	int64_t rank;           /* -1: from the launcher's variables */
	int32_t driver_version; /* 0: unknown */
	uint64_t sample_bytes;  /* header.sample_bytes */
	bool is_private;        /* private memory instead of a file: the option record:off */
};

/*
 * Opens the recording of this process.  In a default directory it first removes old recordings of this user (stale.h).
 * GPC_OK: the recording is the file rec->path, or private memory if is_private.  GPC_IO: no file could be created
 * (errno), so the recording is private memory.  GPC_NO_METADATA: there is no private memory either; `rec` is closed.
 */
GPC_MUST_CHECK enum gpc_status gpc_record_open(
	struct gpc_record *rec, const struct gpc_record_params *params);

/* Sets CLEAN_EXIT and the time, when the process returns from main or calls exit.  Later calls still record. */
void gpc_record_end(struct gpc_record *rec, uint64_t now_ns);

/* Sets EXITED and the time of the end, at _exit and quick_exit, unless CLEAN_EXIT is set.  Async-signal-safe. */
void gpc_record_end_without_handlers(struct gpc_record *rec, uint64_t now_ns);

/* Unmaps and closes the file.  The file stays. */
void gpc_record_close(struct gpc_record *rec);

/*
 * In a fork child, replaces the mapping of the parent's file by zeroed private memory at the same addresses, so that
 * pointers into the mapping stay valid, and closes the recording.  Not after vfork.  gpc_record_open may follow.
 */
void gpc_record_detach(struct gpc_record *rec);

/*
 * Removes the file if the process never had a context, for example because it only counted devices.  Returns true if it
 * removed the file.
 */
bool gpc_record_discard_unused(struct gpc_record *rec);

/*
 * For a recording in private memory, which no reader can open: stops the recording of blocks and events.  Counters,
 * sites and OOMs continue, because the process itself reads them to explain an OOM.
 */
void gpc_record_mute(struct gpc_record *rec);

/* --- Everything below is a no-op on a closed recording. --------------------------------------- */

/*
 * Maintain PAGES.  Call mark after storing into the pages, and unmark before they may become all zeros.  mark reads the
 * pages, and skips those of zeros; gpc_record_mark_page, for one page, requires that the caller stored a nonzero word.
 */
void gpc_record_mark(struct gpc_record *rec, const void *ptr, size_t size);
void gpc_record_unmark(struct gpc_record *rec, const void *ptr, size_t size);

static inline void gpc_record_mark_page(struct gpc_record *rec, const void *ptr)
{
	size_t page = (size_t)((const unsigned char *)ptr - rec->base) / GPUCACHE_PAGE;

	__atomic_store_n(&rec->pages[page], 1, __ATOMIC_RELEASE);
}

/* Sets GPUCACHE_STATE_* bits. */
void gpc_record_state_add(struct gpc_record *rec, uint32_t bits);

/*
 * Appends one record to STACKS, CODES, MODULES or TAGS, padded with zeros to a multiple of 8 bytes, or to TEXT,
 * followed by a newline.  Returns false, and counts the record as dropped, if it does not fit.
 */
bool gpc_record_append(
	struct gpc_record *rec, enum gpucache_region_kind kind, const void *data, size_t size);

/* Appends a line, which has no newline of its own, to TEXT. */
bool gpc_record_append_line(struct gpc_record *rec, const char *line);

/* Stores slot `number` of SEGMENTS; `segment->seq` is ignored.  state 0: returned to the driver. */
void gpc_record_segment(
	struct gpc_record *rec, uint32_t number, const struct gpucache_segment *segment);

/*
 * Gives a context a record of COUNTERS, and returns its index in *ret_index.  A record never used is zeroed.  If
 * there is none, the context gets that of an ended context, of the same device if there is one.  Such a record keeps
 * its calls and peaks, so that totals stay right.  NULL, and GPC_RECORD_NO_COUNTERS, if GPUCACHE_MAX_CONTEXTS are in
 * use.
 */
struct gpucache_counters *gpc_record_counters_take(struct gpc_record *rec, uint64_t context,
	uint32_t generation, uint32_t device, uint32_t *ret_index);

/*
 * Returns the number in STREAMS of the stream with this handle (the driver's, or GPUCACHE_STREAM_*), and adds a new
 * stream.  GPUCACHE_STREAM_OTHER: STREAMS is full.  0: no recording.  Call gpc_record_end_stream when the stream is
 * destroyed, because the driver may give the handle to another stream.
 */
uint32_t gpc_record_stream(struct gpc_record *rec, uint64_t handle);
void gpc_record_end_stream(struct gpc_record *rec, uint64_t handle);

/* Frees the record of an ended context for another one: current bytes become 0, calls and peaks stay. */
void gpc_record_counters_retire(struct gpc_record *rec, uint32_t index);

/* Stores the record of device `ordinal`; `device->seq` and `->ordinal` are ignored. */
void gpc_record_device(
	struct gpc_record *rec, uint32_t ordinal, const struct gpucache_device *device);

/* Adds a point to a device's history.  Call at each driver allocation, and periodically. */
void gpc_record_history(struct gpc_record *rec, uint32_t device, uint64_t now_ns,
	uint64_t requested, uint64_t live, uint64_t pending, uint64_t reserved);

/*
 * Finds the stacks that hold most memory of a device now, largest first, and returns their number, at most `max`.
 * *ret_n_sites: the number of all stacks that hold memory.  *ret_rest_bytes: live bytes that are not in holders[].
 * Contexts and modules are in neither.
 */
uint32_t gpc_record_top_holders(struct gpc_record *rec, uint32_t device,
	struct gpucache_holder *holders, uint32_t max, uint32_t *ret_n_sites,
	uint64_t *ret_rest_bytes);

/* Finds the site that grows most steadily on the device, `request` included.  Takes each site's lock for a moment. */
struct gpc_growth gpc_record_growth(
	struct gpc_record *rec, uint32_t device, struct gpc_growth_request request);

/*
 * The most that was live on the device in a usual window of the run, and of it what stayed from window to window;
 * GPUCACHE_UNKNOWN if there is none.  Takes each site's lock for a moment.
 */
uint64_t gpc_record_usual(struct gpc_record *rec, uint32_t device, uint64_t *ret_base);

/* The bytes by which one site grew in the later part of the run. */
uint64_t gpc_record_growth_of(struct gpc_record *rec, uint32_t device, uint32_t stack);

/*
 * Finds the tags that hold most memory of a device now, largest first, and returns their number, at most `max` and at
 * most GPUCACHE_MAX_OOM_TAGS.  `end` is 1 + the highest tag.  *ret_rest_bytes: live bytes of tags that are not in
 * holders[].  Returns 0 if there is no memory for a table of all tags.
 */
uint32_t gpc_record_top_tags(const struct gpc_record *rec, uint32_t device, uint32_t end,
	struct gpucache_tag_holder *holders, uint32_t max, uint64_t *ret_rest_bytes);

/*
 * Returns the next slot of OOMS for the caller to fill, zeroed except for its number; NULL: another thread is still
 * filling this slot.  For readers the slot is torn until gpc_record_oom_commit.
 */
struct gpucache_oom *gpc_record_oom_begin(struct gpc_record *rec);
void gpc_record_oom_commit(struct gpc_record *rec, struct gpucache_oom *oom);

/* Copies the record of an earlier failure; false: a later one has taken its place, or it is being written. */
bool gpc_record_oom_read(struct gpc_record *rec, uint64_t number, struct gpucache_oom *ret_oom);

/*
 * Sets `recovered` of OOM `number`, while the OOM is in the ring, and of those before it that the same thread's success
 * of `size` bytes settles, too: on the same device, in the same memory (host or device), of at most that size.
 */
void gpc_record_oom_recover(struct gpc_record *rec, uint64_t number, uint64_t size);

/* Sets `reported` of OOM `number`, and takes `recovered` back.  Async-signal-safe, without a lock. */
void gpc_record_oom_say(struct gpc_record *rec, uint64_t number);

/* Replaces the verdict of OOM `number`, judged before call sites had names, if it is still in the ring. */
void gpc_record_oom_set_cause(struct gpc_record *rec, uint64_t number, enum gpucache_verdict cause,
	enum gpucache_strength strength, uint32_t also);

/* Copies torch and the verdict from `told` to OOM told->number, if that is still in the ring. */
void gpc_record_oom_set_torch(struct gpc_record *rec, const struct gpucache_oom *told);

#endif
