/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of the recording: the file of include/gpucache_format.h, mapped shared, stored into as
 * things happen.
 *
 *      allocator ----+-- store.h, inline: blocks, events, sites ------> [ mapped file ] --> gpumem-report
 *      stacks, oom --+-- under rec->lock: everything else --------------^
 *
 * A struct gpc_record always works.  Without a file (no room, no directory, not wanted) it lies on
 * private memory; without that too, or closed, or in a fork child, every call does nothing.
 *
 * How a slot changes: seq odd, then each word, then seq even, all but the first with release
 * order, which is a plain store on x86.  No fences, so that the thread sanitizer sees the order
 * too.
 *
 * Invariants  1 A slot of BLOCKS has one writer at a time: the holder of that block's pool lock.
 *             2 The file has all its pages before it is mapped, so no store can raise SIGBUS.
 *             3 This process writes to its own file only: see gpc_record_detach.
 * Threads     Inline calls: any thread.  The others take rec->lock (rank RECORD) themselves.
 * Failure     gpc_record_open says how far it came.  The others count what they had to drop.
 * Limits      A thread that stops inside gpc_record_event while others fill half the ring may leave
 *             one event mixed of two.  A fork child
 *             shares the file's lock, and so looks like its parent's life, until it detaches; a child
 *             of raw clone until it ends.  That the program closes our descriptor changes nothing: the
 *             mapping holds the lock as well.
 */
#ifndef GPC_RECORD_RECORD_H
#define GPC_RECORD_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/status.h"
#include "gpucache_format.h"

#define GPC_RECORD_DEFAULT_SIZE (8 * GPC_MIB)
#define GPC_RECORD_MIN_SIZE     (1 * GPC_MIB)
#define GPC_RECORD_MAX_SIZE     GPC_GIB
#define GPC_RECORD_MAX_DEVICES  GPUCACHE_MAX_DEVICES
#define GPC_RECORD_MAX_CONTEXTS GPUCACHE_MAX_CONTEXTS
#define GPC_RECORD_MAX_OOMS     GPUCACHE_MAX_OOMS
#define GPC_RECORD_MAX_PATH     1024u
#define GPC_RECORD_NO_COUNTERS  UINT32_MAX
#define GPC_RECORD_PAGE_EVENTS  (GPUCACHE_PAGE / sizeof(struct gpucache_event))

struct gpc_record {
	/* Fixed while open.  All zero, and NULL, where closed. */
	unsigned char *base;
	size_t size;
	int fd; /* -1: on private memory */
	struct gpucache_header *header;
	struct gpucache_block *blocks;
	struct gpucache_event *events;
	struct gpucache_site *sites;
	unsigned char *pages; /* PAGES */
	uint32_t *site_of;    /* the record in SITES of [device][stack]: see gpc_record_find_site */
	struct gpucache_segment *segments;
	struct gpucache_counters *counters;
	struct gpucache_torch *torch; /* of each device */
	struct gpucache_stream *streams;
	uint32_t n_blocks;
	uint32_t n_events; /* a power of two */
	uint32_t n_sites;
	uint32_t n_segments;
	uint32_t n_counters;
	uint32_t n_devices;
	uint32_t n_ooms;
	const struct gpucache_region *regions[GPUCACHE_REGION_COUNT]; /* by kind */

	/* Hot, and shared by all threads. */
	_Alignas(64) _Atomic uint64_t next_event;
	/* Live bytes of a device that are worth a record of the peak. */
	_Alignas(64) _Atomic uint64_t peak_next[GPC_RECORD_MAX_DEVICES];
	_Atomic uint32_t site_end;   /* behind the last record of SITES in use */
	_Atomic uint32_t stream_end; /* the same of STREAMS */
	/* Of the sums of each device in SITES. */
	struct {
		_Alignas(64) struct gpc_lock lock;
	} site_locks[GPC_RECORD_MAX_DEVICES];

	/* Lock: lock. */
	_Alignas(64) struct gpc_lock lock;
	uint64_t peak_number;
	uint64_t oom_number;
	uint64_t touched_ns;     /* the file's time of change was last set */
	struct gpc_io_file file; /* that of fd */
	uint64_t retired;        /* bit i: the context of COUNTERS slot i is gone */

	char path[GPC_RECORD_MAX_PATH]; /* absolute where the pattern was; empty without a file */
	/* For one warning of the caller. */
	int pattern_errno; /* why the place that `pattern` names could not be used, 0 where it could */
	char pattern_error; /* the letter of the first unknown %x in `pattern`, 0 where there is none */
	bool is_name_taken; /* the file that `pattern` names was there before: `path` is another one */
	int default_errno; /* why the first default place could not be used, where it was tried */
};

struct gpc_record_params {
	size_t size;            /* wanted, of the whole file; 0: GPC_RECORD_DEFAULT_SIZE */
	const char *pattern;    /* of GPUCACHE_OUTPUT; NULL or "": the default place */
	const char *version;    /* of the library */
	uint32_t n_devices;     /* 0: 8 */
	int64_t rank;           /* -1: as the launcher's variables say */
	int32_t driver_version; /* 0 unknown */
	uint64_t sample_bytes;  /* header.sample_bytes */
	bool is_private;        /* no file, memory only: the option record:off */
};

/*
 * Opens the recording of this process.  GPC_OK: a file, see rec->path.  GPC_IO: no file, on private
 * memory, errno says why (also GPC_OK where is_private asked for that).  GPC_NO_METADATA: not even
 * that; `rec` is closed.  Stale recordings of this user in the default directory are removed.
 */
GPC_MUST_CHECK enum gpc_status gpc_record_open(
	struct gpc_record *rec, const struct gpc_record_params *params);

/* The process ends by its own will: CLEAN_EXIT and the time.  Later calls still record. */
void gpc_record_end(struct gpc_record *rec, uint64_t now_ns);

/* The same without handlers: EXITED, unless it had ended before.  In any thread, also in a signal handler. */
void gpc_record_end_without_handlers(struct gpc_record *rec, uint64_t now_ns);

/* Unmaps and closes.  No other thread may be inside a call. */
void gpc_record_close(struct gpc_record *rec);

/*
 * In a child after fork: forgets the parent's file, which stays as it is.  Pointers into the
 * mapping that others hold now lead to zeroed private memory.  Not after vfork.  gpc_record_open
 * may follow.
 */
void gpc_record_detach(struct gpc_record *rec);

/*
 * Where the process never had a context, as one that only counted devices: the file goes, for nobody would
 * look for it; true where it did.
 */
bool gpc_record_discard_unused(struct gpc_record *rec);

/*
 * Of a private recording: no blocks and no events any more, which nobody will read.  Counters,
 * sites and OOMs go on: the process itself needs them to say why memory ran out.
 */
void gpc_record_mute(struct gpc_record *rec);

/* --- Everything below does nothing on a closed recording. ------------------------------------- */

/*
 * PAGES, for who stores into the file.  What was stored counts when it is marked; what may become zero
 * is unmarked before.  gpc_record_mark_page: of one word that is not zero.
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
 * Appends one record to STACKS, CODES, MODULES, TAGS or TEXT, padded with zeros to 8 bytes except
 * in TEXT. False, and counted there, where it does not fit.
 */
bool gpc_record_append(
	struct gpc_record *rec, enum gpucache_region_kind kind, const void *data, size_t size);

/* The same, of a record in pieces. */
bool gpc_record_append_parts(struct gpc_record *rec, enum gpucache_region_kind kind,
	const struct iovec *parts, unsigned n_parts);

/* Appends a line to TEXT; the newline is added. */
bool gpc_record_append_line(struct gpc_record *rec, const char *line);

/* Stores slot `number` of SEGMENTS; `segment->seq` is ignored.  state 0: it is gone. */
void gpc_record_segment(
	struct gpc_record *rec, uint32_t number, const struct gpucache_segment *segment);

/*
 * The counters of a context: they live in the recording.  Zeroed, or, where all slots were used
 * before, those of a retired context (of the same device where there is one), which keep its calls
 * and peaks so that totals stay right.  NULL, and GPC_RECORD_NO_COUNTERS, where as many as
 * GPC_RECORD_MAX_CONTEXTS are in use.
 */
struct gpucache_counters *gpc_record_counters_take(struct gpc_record *rec, uint64_t context,
	uint32_t generation, uint32_t device, uint32_t *ret_index);

/*
 * The number in STREAMS of a stream, by the driver's handle or GPUCACHE_STREAM_*; GPUCACHE_STREAM_OTHER where there is
 * no room for it.  _end_stream: it is destroyed, and another may have its handle.
 */
uint32_t gpc_record_stream(struct gpc_record *rec, uint64_t handle);
void gpc_record_end_stream(struct gpc_record *rec, uint64_t handle);

/* That context is gone: its bytes now are 0, its calls and peaks stay. */
void gpc_record_counters_retire(struct gpc_record *rec, uint32_t index);

/* What the driver says of device `ordinal`; `device->seq` and `->ordinal` are ignored. */
void gpc_record_device(
	struct gpc_record *rec, uint32_t ordinal, const struct gpucache_device *device);

/* A point of a device's history.  Meant for each driver allocation and every so often. */
void gpc_record_history(struct gpc_record *rec, uint32_t device, uint64_t now_ns,
	uint64_t requested, uint64_t live, uint64_t pending, uint64_t reserved);

/* The stacks that hold most of a device now, biggest first, at most `max`; returns how many. */
uint32_t gpc_record_top_holders(struct gpc_record *rec, uint32_t device,
	struct gpucache_holder *holders, uint32_t max, uint32_t *ret_n_sites,
	uint64_t *ret_rest_bytes);

/*
 * The tags that hold most of a device at this moment, biggest first, at most `max`; returns how
 * many.  `end` is behind the highest tag.  None without memory for a table of them.
 */
uint32_t gpc_record_top_tags(const struct gpc_record *rec, uint32_t device, uint32_t end,
	struct gpucache_tag_holder *holders, uint32_t max, uint64_t *ret_rest_bytes);

/*
 * A zeroed slot of OOMS with its number set, for the caller to fill: NULL where none is to be had.
 *  A reader takes it as torn until gpc_record_oom_commit.
 */
struct gpucache_oom *gpc_record_oom_begin(struct gpc_record *rec);
void gpc_record_oom_commit(struct gpc_record *rec, struct gpucache_oom *oom);

/* Marks the OOM `number`, where it is still in the ring; what is false here stays as it was. */
void gpc_record_oom_mark(
	struct gpc_record *rec, uint64_t number, bool is_recovered, bool is_reported);

/* What PyTorch said behind the OOM of that number, and the verdict then, where it is still in the ring. */
void gpc_record_oom_set_torch(struct gpc_record *rec, const struct gpucache_oom *told);

#endif
