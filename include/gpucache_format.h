/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: one file a process, mapped shared by its only writer, readable by anybody who may
 * open it: while the process lives, after it ended, and after SIGKILL.  This header is the
 * specification; gpumem-report knows nothing else of the library.
 *
 *      0 +----------------------------------+
 *        | header            4096 bytes     |  who, when, state, and where everything else is
 *        +----------------------------------+
 *        | regions, each at a multiple      |  found by `kind` in header.regions, never by a fixed place
 *        | of 4096, in any order            |
 *        +----------------------------------+ file_size
 *
 *   kind        holds                                                   how it is written
 *   DEVICES     one record a GPU: identity, what the driver last said    seq word
 *   COUNTERS    one record a context: bytes and calls                    plain 8-byte stores
 *   SITES       one record a stack and device: totals of both            plain 8-byte stores
 *   STACKS      variable records: return addresses, Python frames        append only
 *   CODES       variable records: Python code objects                    append only
 *   MODULES     variable records: mapped objects with build ids          append only
 *   TEXT        lines: `key value source`, `env NAME=value`, `warning: ...`  append only
 *   TAGS        variable records: names that the program gave to ranges  append only
 *   SEGMENTS    slot i: segment i of the process                         seq word
 *   BLOCKS      slot i: block i of the process, whatever its state       seq word
 *   EVENTS      ring of 64-byte records                                  `seq` stored last
 *   HISTORY     two buffers a device of points over the whole run        the live one is named last
 *   PEAKS       two slots a device: who held what at the peak            seq word, alternating slots
 *   OOMS        slot i mod count: a failed request with its balance      seq word
 *   PAGES       byte i: 1 if page i of the file holds more than zeros    set after the page, cleared before
 *
 * Conventions.  Little-endian; a reader on another kind of machine refuses by `endian`.  Integers
 * only; no pointers, no unnamed padding.  Sizes in bytes.  Times in nanoseconds of CLOCK_MONOTONIC;
 * the header pairs it with real time.  Strings are UTF-8, cut to fit, and end with a NUL inside.
 *
 * What a reader may assume after a crash:
 *   1 Header and region table are complete once `state` is not 0.
 *   2 seq word: odd while the slot is being changed.  A live reader copies the slot and takes it
 *     if seq was the same even number before and after (at most a few hundred tries).  In the file
 *     of a dead process an odd slot is the one that its last instruction was changing: it counts
 *     as torn, is shown as such and never guessed at.
 *   3 Append only: `used` (first 8 bytes of the region) is stored after the record it covers.
 *   4 Ring: event n lies in slot n mod count; it is whole if and only if its seq is n + 1.  Readers
 *     skip the others, and count 0, a slot being rewritten: a hole is a writer that died half way.
 *   5 Peaks: two slots; the whole one with the higher `number` counts.
 *   6 Counters: each number is whole; those of an operation in flight may disagree by it.
 *   7 Pages (since 1.3; byte 0 is the header's): one whose byte is 1 and that holds zeros only is
 *     missing, as after a crash of the machine.  PAGES lies before what it speaks of.
 *
 * Versions.  A reader refuses another `major` and says which it needs.  `minor` grows when fields
 * or regions are added at the end: readers use record_size from the region table as the stride,
 * never sizeof, and treat what lies beyond a shorter record as zero.  Only 1.2 had lanes behind its
 * counters and numbers that were set aside among its events: src/format/format_1_2.h.
 *
 * Liveness.  The writer holds flock(LOCK_EX) on the file as long as it lives; pids lie across
 * namespaces, locks do not.  No lock: it is gone; neither CLEAN_EXIT nor EXITED: killed, or exec.
 */
#ifndef GPUCACHE_FORMAT_H
#define GPUCACHE_FORMAT_H

#include <stdint.h>

#include "gpucache_kinds.h"

#define GPUCACHE_FORMAT_MAGIC "GPUCACHE-RECORD" /* 15 characters and a NUL */
#define GPUCACHE_FORMAT_MAJOR 1
#define GPUCACHE_FORMAT_MINOR 4
#define GPUCACHE_ENDIAN       0x01020304u

#define GPUCACHE_PAGE        4096u
#define GPUCACHE_MAX_REGIONS 24u

/* header.state: the bits that are true. */
#define GPUCACHE_STATE_OPENED     0x1u /* header and region table are complete */
#define GPUCACHE_STATE_CLEAN_EXIT 0x2u /* the process ended by returning or exit() */
#define GPUCACHE_STATE_OOM_SEEN   0x4u /* at least one record in OOMS */
#define GPUCACHE_STATE_PASS       0x8u /* the library stood back; from there on nothing was recorded */
#define GPUCACHE_STATE_EXITED     0x10u /* it ended by _exit or quick_exit; older readers say killed */

enum gpucache_region_kind {
	GPUCACHE_REGION_NONE,
	GPUCACHE_REGION_DEVICES,
	GPUCACHE_REGION_COUNTERS,
	GPUCACHE_REGION_SITES,
	GPUCACHE_REGION_STACKS,
	GPUCACHE_REGION_CODES,
	GPUCACHE_REGION_MODULES,
	GPUCACHE_REGION_TEXT,
	GPUCACHE_REGION_SEGMENTS,
	GPUCACHE_REGION_BLOCKS,
	GPUCACHE_REGION_EVENTS,
	GPUCACHE_REGION_HISTORY,
	GPUCACHE_REGION_PEAKS,
	GPUCACHE_REGION_OOMS,
	GPUCACHE_REGION_TAGS,  /* since 1.1 */
	GPUCACHE_REGION_PAGES, /* since 1.3; a record is 8 bytes */
	GPUCACHE_REGION_TORCH, /* since 1.3 */
	GPUCACHE_REGION_COUNT,
};

struct gpucache_region {
	uint32_t kind;
	uint32_t record_size; /* stride of fixed records; 1 for append-only regions */
	uint64_t offset;      /* from the start of the file, a multiple of GPUCACHE_PAGE */
	uint64_t size;
	uint64_t count; /* fixed records; for append-only regions the bytes after the append head */
};

struct gpucache_header {
	char magic[16];
	uint32_t endian;
	uint16_t major;
	uint16_t minor;
	uint32_t header_size; /* GPUCACHE_PAGE */
	uint32_t n_regions;
	uint64_t file_size;
	/* GPUCACHE_STATE_*; changes after opening, as end_ns and the dropped_* do */
	uint32_t state;
	uint32_t pid;
	/* field 22 of /proc/self/stat: tells two processes of one pid apart */
	uint64_t start_ticks;
	uint64_t pid_namespace;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	uint64_t start_boottime_ns;
	uint64_t end_ns; /* CLOCK_MONOTONIC at CLEAN_EXIT or EXITED, else 0 */
	uint32_t uid;
	int32_t rank; /* -1: the environment names none */
	int32_t local_rank;
	int32_t world_size;
	int32_t restart_count;
	uint32_t driver_version; /* as cuDriverGetVersion: 1000 * major + 10 * minor; 0 unknown */
	uint64_t dropped_blocks; /* live allocations that found no slot in BLOCKS */
	uint64_t dropped_stacks;
	uint64_t dropped_python; /* stacks whose Python frames could not be read safely */
	uint64_t dropped_segments;
	uint64_t dropped_tags;  /* ranges that are labelled with the one around them; since 1.1 */
	uint64_t sample_bytes;  /* smaller requests had their stacks sampled; 0: none; since 1.1 */
	uint64_t dropped_sites; /* pairs of stack and device without a record in SITES; since 1.3 */
	uint64_t reserved[5];
	char boot_id[40];
	char version[32]; /* of the library */
	char host[64];
	char exe[256];
	char command[256]; /* argv, separated by spaces */
	char job[64];      /* of torchrun, Slurm, ... */
	char reserved_text[192];
	struct gpucache_region regions[GPUCACHE_MAX_REGIONS];
};

/* DEVICES.  What the driver says of a GPU, and when it said it. */
struct gpucache_device {
	uint32_t seq;
	int32_t ordinal; /* of this process; the slot is unused while seq is 0 */
	char name[64];
	char uuid[48]; /* "GPU-..." or empty */
	uint64_t total_bytes;
	/* The last look at the device as a whole; ours_bytes is what our books held then. */
	uint64_t look_ns;
	uint64_t free_bytes;
	uint64_t ours_bytes;
	/* From NVML, at look_ns or earlier; known only where nvml is 1. */
	uint32_t nvml;          /* 1: the fields below are known */
	uint32_t n_other;       /* other processes that NVML names */
	uint64_t process_bytes; /* this process, all of it */
	uint64_t others_bytes;  /* all other processes */
	uint64_t driver_bytes;  /* reserved by the driver itself */
	uint64_t physical;      /* since 1.4: 1 + nvidia-smi's number of it; 0: not known */
	char pci_bus_id[24];    /* "0000:17:00.0" or empty */
};

/* The counters of what belongs to a device and to no context (cuMemCreate). */
#define GPUCACHE_NO_CONTEXT UINT64_MAX

/*
 * What ended the rule that the legacy stream alone orders every reuse of memory, so that nothing else has to.
 * By a launch that may overlap the one ahead of it, for example, on whichever stream.
 */
enum gpucache_one_stream_end {
	GPUCACHE_ONE_STREAM_HOLDS, /* or nobody said */
	GPUCACHE_ONE_STREAM_END_STREAM,
	GPUCACHE_ONE_STREAM_END_PER_THREAD,
	GPUCACHE_ONE_STREAM_END_OVERLAP,
	GPUCACHE_ONE_STREAM_END_PEER,
	GPUCACHE_ONE_STREAM_END_EXPORT,
	GPUCACHE_ONE_STREAM_END_GREEN,
	GPUCACHE_ONE_STREAM_END_HOST,
	GPUCACHE_ONE_STREAM_END_UNSEEN,
	GPUCACHE_ONE_STREAM_END_COUNT,
};

/* COUNTERS.  One record a context.  Plain stores by the holder of that context's lock. */
struct gpucache_counters {
	uint64_t context;    /* the driver's handle, or GPUCACHE_NO_CONTEXT; 0: slot unused */
	uint32_t generation; /* grows at each reset of the context; memory of older ones is gone */
	int32_t device;
	/* Bytes now.  requested <= live; live + pending + cached = reserved. */
	uint64_t requested_bytes; /* what the program asked for and holds, in cached segments */
	uint64_t live_bytes;      /* the same, rounded */
	uint64_t pending_bytes;   /* freed by the program, work of the device may still use it */
	uint64_t cached_bytes;    /* free, kept by us */
	uint64_t reserved_bytes;  /* sum of our segments */
	/* device memory passed through and tracked: pitched, managed, uncached */
	uint64_t direct_bytes;
	uint64_t host_bytes; /* pinned host memory */
	/* Peaks of the same. */
	uint64_t peak_requested_bytes;
	uint64_t peak_live_bytes;
	uint64_t peak_pending_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t peak_direct_bytes;
	uint64_t peak_host_bytes;
	/* Calls since the start.  */
	uint64_t n_malloc; /* successful allocations of the program, all kinds on the device */
	uint64_t n_free;   /* successful frees of the program, all kinds on the device */
	uint64_t n_hit;    /* answered without a driver allocation */
	uint64_t n_driver_malloc; /* allocations that reached the driver and succeeded */
	uint64_t n_driver_free;
	uint64_t n_driver_failed; /* allocations that the driver refused, retries included */
	uint64_t n_fence;         /* fences closed by an event */
	uint64_t n_sync;          /* host waits of our own for the device */
	uint64_t n_oom;           /* failures given to the program */
	uint64_t n_rescued;       /* requests that only the ladder made succeed */
	uint64_t n_gc_segments;   /* segments returned by garbage collection, decay or trim */
	uint64_t last_driver_malloc_ns;
	uint64_t n_blocks;       /* live blocks of our segments now */
	uint64_t n_segments;     /* now */
	uint64_t one_stream_end; /* enum gpucache_one_stream_end; 0 before 1.4 */
	uint64_t reserved[2];
	/* Since 1.1: outside our segments, adding up to direct_bytes and host_bytes; n_rescued by rung. */
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS];
	uint64_t n_rescued_by[GPUCACHE_MAX_RUNGS];
};

/*
 * TORCH.  One record a device: PyTorch's allocator, as it told of itself at each of its calls.  What it
 * hands out are blocks of kind TENSOR within memory that it got as blocks marked GPUCACHE_BLOCK_ARENA,
 * which belong to no site: their tensors do.
 */
struct gpucache_torch {
	uint64_t n_malloc; /* 0: it did not allocate here */
	uint64_t n_free;
	uint64_t allocated_bytes; /* in tensors, as torch.cuda.memory_allocated() */
	uint64_t reserved_bytes;  /* as torch.cuda.memory_reserved() */
	uint64_t peak_allocated_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t n_failed;     /* requests that ended in OutOfMemoryError */
	uint64_t failed_bytes; /* the last of them */
	uint64_t reserved[8];
};

/*
 * SITES.  What one stack holds on one device, and ever asked for; from record 1 on, plain stores.
 * Before 1.3 record i was of stack i on all devices, as were the holders in PEAKS and OOMS.
 */
struct gpucache_site {
	uint64_t live_bytes; /* as requested */
	uint64_t live_blocks;
	uint64_t total_bytes;
	uint64_t total_blocks;
	uint64_t peak_bytes;
	uint64_t first_ns; /* oldest allocation ever made from here */
	uint64_t last_ns;
	uint32_t stack; /* 0: unused; this and device since 1.3, stored before the totals */
	uint16_t device;
	uint16_t reserved;
};

/* Head of the append-only regions.  `used` counts the bytes behind it. */
struct gpucache_append_head {
	uint64_t used;
	uint64_t n_records;
	uint64_t n_dropped;
	uint64_t reserved[5];
};

/*
 * What no writer passes.  A reader may take more for damage: what it spends on a recording is bounded by
 * the size of the file then.  STACKS is at most a quarter of the file, CODES, MODULES and TAGS are an eighth.
 */
#define GPUCACHE_MAX_DEVICES    16u
#define GPUCACHE_MAX_CONTEXTS   64u
#define GPUCACHE_MAX_OOMS       16u
#define GPUCACHE_MAX_POINTS     1024u /* of a buffer of HISTORY */
#define GPUCACHE_MAX_FRAMES     128u  /* of a stack, native ones and Python's each */
#define GPUCACHE_MAX_CODES      8192u
#define GPUCACHE_MAX_CODE_NAME  255u
#define GPUCACHE_MAX_CODE_FILE  1023u
#define GPUCACHE_MAX_CODE_LINES 32768u
#define GPUCACHE_MAX_MODULES    4096u
#define GPUCACHE_MAX_PATH       1024u /* with its NUL */
#define GPUCACHE_MAX_TAGS       8192u
#define GPUCACHE_MAX_TAG_NAME   255u

/*
 * STACKS.  Followed by n_native + n_python frames of 8 bytes; records are multiples of 8 bytes.
 * Native frames: return addresses, innermost first.  Python frames, innermost first:
 *   bit 63 set; bit 62: this frame was entered from C, so an older native frame lies below it;
 *   bits 32..61: number of the code object; bits 0..31: byte offset of the instruction.
 */
struct gpucache_stack {
	uint32_t size; /* of the record, this head included */
	uint32_t id;   /* > 0 */
	uint64_t hash;
	uint16_t n_native;
	uint16_t n_python;
	uint32_t flags; /* GPUCACHE_STACK_* */
};

#define GPUCACHE_STACK_CUT       0x1u /* deeper than we record */
#define GPUCACHE_STACK_NO_PYTHON 0x2u /* a Python thread whose frames could not be read safely */

#define GPUCACHE_FRAME_PYTHON    (UINT64_C(1) << 63)
#define GPUCACHE_FRAME_FROM_C    (UINT64_C(1) << 62)
#define GPUCACHE_FRAME_CODE(f)   ((uint32_t)(((f) >> 32) & 0x3fffffff))
#define GPUCACHE_FRAME_OFFSET(f) ((uint32_t)(f))

/*
 * CODES.  Followed by name, file name and line table, each without NUL, then padding to 8 bytes.
 * The line table is CPython's own: co_lnotab (<= 3.9), co_linetable (3.10), locations (>= 3.11).
 */
struct gpucache_code {
	uint32_t size;
	uint32_t id; /* > 0 */
	uint32_t first_line;
	uint16_t python_version; /* 0x030b: 3.11 */
	uint16_t name_size;
	uint32_t file_size;
	uint32_t lines_size;
};

/* MODULES.  An executable mapping of an object.  Followed by its path with a NUL, as CODES padded. */
struct gpucache_module {
	uint32_t size;
	uint32_t build_id_size;
	uint64_t start; /* mapped addresses [start, end) */
	uint64_t end;
	uint64_t bias; /* address in the process minus address in the object's file */
	uint8_t build_id[32];
	/* first seen; a later record of overlapping addresses replaces this one from then on */
	uint64_t time_ns;
};

/*
 * TAGS.  A range that the program named, by gpucache_tag_push or NVTX.  Followed by the name without
 * NUL, padding to 8 bytes.  A label is the names from the outermost range on: "train/step/forward".
 */
struct gpucache_tag {
	uint32_t size;
	uint32_t id;     /* > 0 */
	uint32_t parent; /* < id; 0: no range around it */
	uint32_t name_size;
};

/* SEGMENTS.  One driver allocation that we cut into blocks. */
struct gpucache_segment {
	uint32_t seq;
	uint8_t state; /* 0 unused, 1 ours */
	uint8_t pool;  /* 0 small, 1 large */
	uint16_t device;
	uint64_t address;
	uint64_t size;
	uint64_t time_ns;
	uint32_t context; /* index into COUNTERS */
	uint32_t stack;   /* of the request that made it necessary */
	uint64_t reserved[3];
};

enum gpucache_block_state {
	GPUCACHE_BLOCK_UNUSED,
	GPUCACHE_BLOCK_FREE,    /* cached */
	GPUCACHE_BLOCK_LIVE,    /* the program's */
	GPUCACHE_BLOCK_PENDING, /* freed, not yet safe to reuse */
};

#define GPUCACHE_NO_SEGMENT UINT32_MAX

/* BLOCKS.  The live table, and more: every block, free ones too, so that the heap can be drawn. */
struct gpucache_block {
	uint32_t seq;
	uint8_t state; /* enum gpucache_block_state */
	uint8_t kind;  /* enum gpucache_kind */
	uint16_t device;
	uint64_t address;
	uint64_t size;
	uint64_t requested; /* 0 unless LIVE or PENDING */
	uint64_t time_ns;   /* of the last change of state */
	uint32_t stack;     /* 0: none taken */
	uint32_t thread;
	/* index into SEGMENTS, or GPUCACHE_NO_SEGMENT: a driver allocation of its own */
	uint32_t segment;
	uint32_t context; /* index into COUNTERS */
	uint32_t tag;     /* of a LIVE block; 0: none.  Since 1.1 */
	uint32_t flags;   /* GPUCACHE_BLOCK_ARENA or 0; since 1.3 */
};

#define GPUCACHE_BLOCK_ARENA 0x1u /* its holder hands out pieces of it: see TORCH */

/* Whether a block counts for its stack and tag: bytes on a device, once. */
static inline int gpucache_is_held(unsigned int state, unsigned int kind, unsigned int flags)
{
	enum gpucache_place place = gpucache_kind_place(kind);

	return state == GPUCACHE_BLOCK_LIVE &&
	       (place == GPUCACHE_WITHIN ||
		       (place == GPUCACHE_ON_DEVICE && !(flags & GPUCACHE_BLOCK_ARENA)));
}

enum gpucache_event_kind {
	GPUCACHE_EVENT_NONE,
	GPUCACHE_EVENT_MALLOC,
	GPUCACHE_EVENT_FREE,
	GPUCACHE_EVENT_SEGMENT_MALLOC,
	GPUCACHE_EVENT_SEGMENT_FREE,
	GPUCACHE_EVENT_OOM,     /* size: asked for; address: free on the device */
	GPUCACHE_EVENT_RESCUED, /* size: asked for; detail: number of the rung that helped */
	GPUCACHE_EVENT_SYNC,    /* the program waited for the whole context */
	GPUCACHE_EVENT_CONTEXT, /* detail: 1 seen first, 2 reset or destroyed */
	GPUCACHE_EVENT_KIND_COUNT,
};

struct gpucache_event {
	uint64_t seq; /* 1 + number of the event, stored last; 0: never written */
	uint64_t time_ns;
	uint64_t address;
	uint64_t size; /* rounded; as asked for in OOM and RESCUED */
	uint64_t requested;
	uint32_t stack;
	uint32_t thread;
	uint8_t kind;       /* enum gpucache_event_kind */
	uint8_t alloc_kind; /* enum gpucache_kind */
	uint16_t device;
	uint32_t context; /* index into COUNTERS */
	uint32_t detail;
	uint32_t tag; /* the range that the thread is in; 0: none.  Since 1.1 */
};

/*
 * HISTORY.  A device's head, then two buffers of max_points points, of which live_buffer is valid.  Behind both, where
 * record_size has room for it (since 1.4): two buffers of max_points uint64_t, pending_bytes of the point of that index; their
 * pages are not in PAGES, for all of them may be 0.
 */
struct gpucache_history_head {
	int32_t device; /* -1: unused */
	uint32_t max_points;
	uint32_t live_buffer; /* 0 or 1; stored last when a thinned copy is complete */
	uint32_t n_points[2];
	uint32_t reserved_32;
	uint64_t interval_ns; /* of the live buffer: doubles at each thinning */
	uint64_t reserved[4];
};

/* Highest values within one interval. */
struct gpucache_point {
	uint64_t time_ns;
	uint64_t requested_bytes;
	uint64_t live_bytes;     /* cached segments and direct memory */
	uint64_t reserved_bytes; /* the same */
};

struct gpucache_holder {
	uint32_t stack;
	uint32_t n_blocks;
	uint64_t bytes; /* as requested */
};

#define GPUCACHE_MAX_HOLDERS 64

/* PEAKS.  Two slots a device: device d owns slots 2d and 2d + 1. */
struct gpucache_peak {
	uint32_t seq;
	int32_t device;
	uint64_t number; /* grows with each peak */
	uint64_t time_ns;
	uint64_t requested_bytes;
	uint64_t live_bytes;
	uint64_t reserved_bytes;
	uint32_t n_holders;  /* biggest first */
	uint32_t n_sites;    /* stacks that held anything there */
	uint64_t rest_bytes; /* of sites beyond n_holders, and of allocations without a stack */
	struct gpucache_holder holders[GPUCACHE_MAX_HOLDERS];
};

/*
 * The balance sheet: where every byte of a device is.  All lines but device_total add up to it; a
 * line that is not known is GPUCACHE_UNKNOWN and its bytes are in `unattributed`.
 */
#define GPUCACHE_UNKNOWN UINT64_MAX

struct gpucache_balance {
	uint64_t requested; /* live, as asked for, in cached segments */
	uint64_t rounding;  /* live beyond what was asked for */
	uint64_t pending;
	uint64_t cached;
	uint64_t cached_largest;  /* largest piece; not a line of the sum */
	uint64_t direct;          /* tracked, passed through to the driver */
	uint64_t process_outside; /* this process, outside our books: context, modules, libraries */
	uint64_t other_processes;
	uint64_t driver_reserve;
	uint64_t unattributed; /* neither ours nor free, and nobody could say whose */
	uint64_t device_free;
	uint64_t device_total;
};

/* Why a request failed: the words are model/verdict.def's, the tests oom/verdict.c's. */
enum gpucache_verdict {
	GPUCACHE_VERDICT_NONE,
	GPUCACHE_VERDICT_IMPOSSIBLE,
	GPUCACHE_VERDICT_LIMIT,
	GPUCACHE_VERDICT_FRAGMENTED,
	GPUCACHE_VERDICT_PENDING,
	GPUCACHE_VERDICT_ROUNDING,
	GPUCACHE_VERDICT_NEIGHBOUR,
	GPUCACHE_VERDICT_UNTRACKED,
	GPUCACHE_VERDICT_GROWTH,
	GPUCACHE_VERDICT_SPIKE,
	GPUCACHE_VERDICT_EXHAUSTED,
	GPUCACHE_VERDICT_DRIVER,
	GPUCACHE_VERDICT_WRONG_POOL,
	GPUCACHE_VERDICT_CONTEXTS, /* this and those below since 1.4 */
	GPUCACHE_VERDICT_MANAGED,
	GPUCACHE_VERDICT_PREALLOCATED,
	GPUCACHE_VERDICT_PINNED,
	GPUCACHE_VERDICT_COUNT,
};

enum gpucache_strength {
	GPUCACHE_STRENGTH_NONE,
	GPUCACHE_STRENGTH_POSSIBLE,
	GPUCACHE_STRENGTH_LIKELY,
	GPUCACHE_STRENGTH_CERTAIN, /* arithmetic */
};

struct gpucache_neighbour {
	uint32_t pid;
	uint32_t
		own_age_s; /* of this user's: for how long it runs, at least 1; else 0.  Since 1.4 */
	uint64_t bytes;    /* GPUCACHE_UNKNOWN where NVML does not say */
	char name[32];     /* of the process, where this user may see it */
};

struct gpucache_tag_holder {
	uint32_t tag; /* 0: memory that was allocated in no range */
	uint32_t n_blocks;
	uint64_t bytes; /* as requested */
};

#define GPUCACHE_MAX_OOM_HOLDERS 32
#define GPUCACHE_MAX_OOM_TAGS    16
#define GPUCACHE_MAX_NEIGHBOURS  16

/* PyTorch's allocator, as it said when it gave up; else (requested is 0) as of its last tensor, if any. */
struct gpucache_oom_torch {
	uint64_t requested; /* the tensor, rounded by PyTorch */
	uint64_t allocated;
	uint64_t reserved;
};

/* OOMS.  One failed request, with everything known at that moment. */
struct gpucache_oom {
	uint32_t seq;
	int32_t device;
	uint64_t number; /* 1, 2, ... of the process */
	uint64_t time_ns;
	uint64_t requested;
	uint64_t rounded;  /* the segment or block that had to be found */
	uint64_t short_by; /* how much more room would have been enough */
	uint64_t limit;    /* of the configuration; 0 none */
	uint32_t stack;
	uint32_t thread;
	uint32_t context;   /* index into COUNTERS */
	uint32_t recovered; /* 1: a later request of at least this size succeeded */
	uint8_t kind;       /* enum gpucache_kind */
	uint8_t verdict;    /* enum gpucache_verdict: the best one */
	uint8_t strength;   /* enum gpucache_strength */
	uint8_t reported;   /* 1: the short form was printed */
	uint32_t also;      /* bit v: verdict v holds too */
	struct gpucache_balance balance;
	uint64_t peak_requested; /* of the run so far */
	uint64_t growth_bytes;   /* by the fastest growing holder in the later part of the run */
	uint32_t growth_stack;
	uint32_t n_rungs;
	uint64_t rung_freed[GPUCACHE_MAX_RUNGS]; /* bytes that each made available */
	uint32_t n_holders;
	uint32_t n_sites;
	uint64_t rest_bytes;
	struct gpucache_holder holders[GPUCACHE_MAX_OOM_HOLDERS]; /* biggest first */
	uint32_t n_neighbours;
	uint32_t tag; /* that the request was made in; 0: none.  Since 1.1 */
	struct gpucache_neighbour neighbours[GPUCACHE_MAX_NEIGHBOURS];
	/* Since 1.1.  Who holds the device, by tag, biggest first; none where no tag was used. */
	uint32_t n_tags;
	uint32_t reserved;
	uint64_t tag_rest_bytes; /* held in the tags beyond n_tags */
	struct gpucache_tag_holder tags[GPUCACHE_MAX_OOM_TAGS];
	/* Since 1.1.  As in the counters, of all contexts: what balance.direct consists of, and more. */
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS];
	struct gpucache_oom_torch torch; /* since 1.4 */
};

#endif
