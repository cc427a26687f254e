/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: one file per process, mapped shared by its only writer, and readable while the process runs, after it
 * has exited, and after SIGKILL.  This header is the specification: gpumem-report knows nothing else of the library.
 *
 *      0 +----------------------------------+
 *        | header            4096 bytes     |  identity, times, state, region table
 *        +----------------------------------+
 *        | regions, each at a multiple      |  found by `kind` in header.regions, never at a fixed offset
 *        | of 4096, in any order            |
 *        +----------------------------------+ file_size
 *
 *   kind        holds                                                   how it is written
 *   DEVICES     one record per GPU: identity, readings of its memory     seq word
 *   COUNTERS    one record per context: bytes and calls                  plain 8-byte stores
 *   TORCH       one record per device: totals of PyTorch's allocator     plain 8-byte stores
 *   SITES       one record per stack and device: totals                  plain 8-byte stores
 *   STACKS      variable records: return addresses, Python frames        append only
 *   CODES       variable records: Python code objects                    append only
 *   MODULES     variable records: mapped objects with build ids          append only
 *   TEXT        lines: `key value source`, `env A=b`, `warning: ...`, `own cache: NAME`   append only
 *   TAGS        variable records: the program's named ranges             append only
 *   SEGMENTS    slot i: segment i of the process                         seq word
 *   BLOCKS      slot i: block i of the process, free ones too            seq word
 *   EVENTS      ring of 64-byte records                                  `seq` stored last
 *   HISTORY     two buffers per device of points over the whole run      live_buffer stored last
 *   PEAKS       two slots per device: the holders at the peak            seq word, alternating slots
 *   STREAMS     one record per stream named by an allocation or free     plain stores, `handle` last
 *   OOMS        slot (n - 1) mod count: failed request n, its balance    seq word
 *   PAGES       byte i: 1 if page i of the file is not all zeros         set after the page, cleared before
 *
 * Conventions.  Numbers are little-endian integers; a reader on a machine of the other byte order refuses the file by
 * `endian`.  There are no pointers and no unnamed padding.  Sizes are in bytes.  Times are in nanoseconds of
 * CLOCK_MONOTONIC; the header has the start in real time, too.  Strings are UTF-8, truncated to fit, NUL-terminated.
 *
 * What a reader may rely on, at any moment and after a crash:
 *   1 Header and region table are complete once `state` is not 0.
 *   2 seq word: odd while the slot is being written.  If the process runs, a reader copies the slot, and accepts the
 *     copy if seq was the same even number before and after; if not, it tries again, a few hundred times.  If the
 *     process is dead and seq is odd, the slot is torn: the process died while it wrote the slot.
 *   3 Append only: `used`, the first 8 bytes of the region, is stored after the record that it covers.
 *   4 Ring: event n lies in slot n mod count.  It is complete if and only if its seq is n + 1.  Readers skip other
 *     slots.  A slot with seq 0 was being rewritten, and counts as a hole.
 *   5 Peaks: of a device's two slots, the complete one with the higher `number` is current.
 *   6 Counters: each is stored atomically.  An operation in progress may have updated only some of them.
 *   7 Pages: if byte i is 1 and page i has only zeros, the page was lost, as in a crash of the machine.
 *     Page 0 is the header.  PAGES lies before all other regions.
 *
 * Versions.  A reader refuses another `major`.  `minor` grows when fields or regions are added at the end.  So a reader
 * finds records by record_size from the region table, never by sizeof, and takes the fields that a shorter record lacks
 * as zeros.  A `minor` below GPUCACHE_FORMAT_OLDEST, of the time before the first release, is refused.
 *
 * Liveness.  The writer holds flock(LOCK_EX) on the file until it ends; unlike a pid, a lock works across namespaces.
 * If the file is not locked, and neither CLEAN_EXIT nor EXITED is set, the process was killed or called exec.
 */
#ifndef GPUCACHE_FORMAT_H
#define GPUCACHE_FORMAT_H

#include <stdint.h>

#include "gpucache_kinds.h"

#define GPUCACHE_FORMAT_MAGIC  "GPUCACHE-RECORD" /* 15 characters and a NUL */
#define GPUCACHE_FORMAT_MAJOR  1
#define GPUCACHE_FORMAT_MINOR  8
#define GPUCACHE_FORMAT_OLDEST 6 /* the oldest minor version that a reader accepts */
#define GPUCACHE_ENDIAN        0x01020304u

#define GPUCACHE_PAGE        4096u
#define GPUCACHE_MAX_REGIONS 24u

/* Bits of header.state. */
#define GPUCACHE_STATE_OPENED     0x1u  /* header and region table are complete */
#define GPUCACHE_STATE_CLEAN_EXIT 0x2u  /* the process ended by returning or exit() */
#define GPUCACHE_STATE_OOM_SEEN   0x4u  /* at least one record in OOMS */
#define GPUCACHE_STATE_PASS       0x8u  /* the library passes all calls on, and records no more */
#define GPUCACHE_STATE_EXITED     0x10u /* the process ended by _exit or quick_exit */
#define GPUCACHE_STATE_SUCCESS    0x20u /* it returned, or called exit(), with status 0 */

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
	GPUCACHE_REGION_TAGS,
	GPUCACHE_REGION_PAGES, /* a record is 8 bytes */
	GPUCACHE_REGION_TORCH,
	GPUCACHE_REGION_STREAMS,
	GPUCACHE_REGION_COUNT,
};

struct gpucache_region {
	uint32_t kind;
	uint32_t record_size; /* stride of fixed records; 1 in append-only regions */
	uint64_t offset;      /* from the start of the file, a multiple of GPUCACHE_PAGE */
	uint64_t size;
	/* of fixed records; in append-only regions, of bytes behind the append head */
	uint64_t count;
};

struct gpucache_header {
	char magic[16];
	uint32_t endian;
	uint16_t major;
	uint16_t minor;
	uint32_t header_size; /* GPUCACHE_PAGE */
	uint32_t n_regions;
	uint64_t file_size;
	/* GPUCACHE_STATE_*; written while running, as are end_ns and dropped_* */
	uint32_t state;
	uint32_t pid;
	/* field 22 of /proc/self/stat: differs between processes with the same pid */
	uint64_t start_ticks;
	uint64_t pid_namespace;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	uint64_t start_boottime_ns;
	uint64_t end_ns; /* CLOCK_MONOTONIC at CLEAN_EXIT or EXITED, else 0 */
	uint32_t uid;
	int32_t rank; /* -1: unknown */
	int32_t local_rank;
	int32_t world_size;
	int32_t restart_count;
	uint32_t driver_version; /* as cuDriverGetVersion: 1000 * major + 10 * minor; 0 unknown */
	uint64_t dropped_blocks; /* live allocations that found no slot in BLOCKS */
	uint64_t dropped_stacks;
	uint64_t dropped_python; /* stacks whose Python frames could not be read safely */
	uint64_t dropped_segments;
	uint64_t dropped_tags; /* ranges that got the tag of the enclosing range */
	/* of requests below this size only a sample has stacks; 0: all have */
	uint64_t sample_bytes;
	uint64_t dropped_sites; /* pairs of stack and device without a record in SITES */
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

/* DEVICES.  A GPU: its identity, and the last readings of its memory. */
struct gpucache_device {
	uint32_t seq;
	int32_t ordinal; /* as this process numbers it; the slot is unused while seq is 0 */
	char name[64];
	char uuid[48]; /* "GPU-..." or empty */
	uint64_t total_bytes;
	/* The last reading of the whole device.  ours_bytes: reserved_bytes + direct_bytes of COUNTERS then. */
	uint64_t look_ns;
	uint64_t free_bytes;
	uint64_t ours_bytes;
	/* From NVML, at look_ns or earlier. */
	uint32_t nvml;          /* 1: the fields below are known */
	uint32_t n_other;       /* other processes on the device */
	uint64_t process_bytes; /* all memory of this process */
	uint64_t others_bytes;  /* all other processes */
	uint64_t driver_bytes;  /* reserved by the driver */
	uint64_t physical;      /* 1 + the index in nvidia-smi; 0: unknown */
	char pci_bus_id[24];    /* "0000:17:00.0" or empty */
};

/* Counters of memory that belongs to a device but to no context (cuMemCreate). */
#define GPUCACHE_NO_CONTEXT UINT64_MAX

/* COUNTERS.  One record per context, changed by plain stores of the thread that holds the context's lock. */
struct gpucache_counters {
	uint64_t context;    /* the driver's handle, or GPUCACHE_NO_CONTEXT; 0: slot unused */
	uint32_t generation; /* grows when the context is reset, which frees all its memory */
	int32_t device;
	/* Bytes now.  requested <= live; live + pending + cached = reserved. */
	uint64_t requested_bytes; /* live in segments of the cache, as requested */
	uint64_t live_bytes;      /* the same, rounded */
	uint64_t pending_bytes;   /* freed by the program, but device work may still use it */
	uint64_t cached_bytes;    /* free in our segments */
	uint64_t reserved_bytes;  /* sum of our segments */
	/* recorded device memory that is not in the cache: pitched, managed, ... */
	uint64_t direct_bytes;
	uint64_t host_bytes; /* pinned host memory */
	/* The peaks of the bytes above. */
	uint64_t peak_requested_bytes;
	uint64_t peak_live_bytes;
	uint64_t peak_pending_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t peak_direct_bytes;
	uint64_t peak_host_bytes;
	/* Calls since the start. */
	uint64_t n_malloc; /* successful allocations of the program, all kinds on the device */
	uint64_t n_free;   /* successful frees of the program, all kinds on the device */
	uint64_t n_hit;    /* allocations served from the cache */
	uint64_t n_driver_malloc; /* driver allocations that succeeded */
	uint64_t n_driver_free;
	uint64_t n_driver_failed; /* driver allocations that failed, retries included */
	uint64_t n_fence;         /* fences closed by an event */
	uint64_t n_sync;          /* our own host waits for the device */
	uint64_t n_oom;           /* failures returned to the program */
	uint64_t n_rescued;       /* requests that succeeded only after the ladder */
	uint64_t n_gc_segments;   /* segments returned by garbage collection, decay or trim */
	uint64_t last_driver_malloc_ns;
	uint64_t n_blocks;                        /* live blocks of our segments now */
	uint64_t n_segments;                      /* now */
	uint64_t one_stream_end;                  /* enum gpucache_one_stream_end */
	uint64_t peak_spilled_bytes, reserved[1]; /* the peak of kind_bytes[SPILLED] */
	/* direct_bytes and host_bytes by kind; n_rescued by rung. */
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS];
	uint64_t n_rescued_by[GPUCACHE_MAX_RUNGS];
};

/*
 * TORCH.  One record per device: the statistics of PyTorch's own allocator, which reports them at each call.  It cuts
 * blocks marked GPUCACHE_BLOCK_ARENA into tensors, which are blocks of kind TENSOR.  Only the tensors count for a
 * site, so that no byte counts twice.
 */
struct gpucache_torch {
	uint64_t n_malloc; /* 0: slot unused */
	uint64_t n_free;
	uint64_t allocated_bytes; /* in tensors, as torch.cuda.memory_allocated() */
	uint64_t reserved_bytes;  /* as torch.cuda.memory_reserved() */
	uint64_t peak_allocated_bytes, peak_reserved_bytes;
	uint64_t n_failed;     /* requests that ended in OutOfMemoryError */
	uint64_t failed_bytes; /* of the last of them */
	uint64_t framework;    /* enum gpucache_framework; since 1.7 */
	uint64_t reserved[7];
};

/* It made tensors while a CUDA graph was captured; memory that PyTorch cuts into tensors, which count for their own sites. */
#define GPUCACHE_SITE_CAPTURED 0x1u
#define GPUCACHE_SITE_ARENA    0x2u

/* SITES.  The bytes that one stack holds, and has ever requested, on one device.  Records begin at 1. */
struct gpucache_site {
	uint64_t live_bytes; /* as requested */
	uint64_t live_blocks;
	uint64_t total_bytes;
	uint64_t total_blocks;
	uint64_t peak_bytes;
	uint64_t first_ns; /* of the first allocation by this stack */
	uint64_t last_ns;
	/* 0: unused record.  `stack` and `device` are stored before the totals */
	uint32_t stack;
	uint16_t device;
	uint16_t flags; /* GPUCACHE_SITE_*; since 1.8 */
};

/* Head of the append-only regions.  `used` counts the bytes behind this head. */
struct gpucache_append_head {
	uint64_t used;
	uint64_t n_records;
	uint64_t n_dropped;
	uint64_t reserved[5];
};

/*
 * Limits that every writer keeps.  A reader may treat a larger number as damage.  STACKS takes at most a quarter of the
 * file, and CODES, MODULES and TAGS at most an eighth each.
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
#define GPUCACHE_MAX_STREAMS    255u /* records of STREAMS; record 0 is unused */

/*
 * STACKS.  A record ends with n_native + n_python frames of 8 bytes.  Native frames, innermost first: bits 0..47 are a
 * return address; bits 48..62, since 1.6, which of the objects that were there one after another, as in MODULES.  Python
 * frames, innermost first:
 *   bit 63 set; bit 62: the frame was entered from C, so its caller is a native frame;
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

#define GPUCACHE_STACK_CUT       0x1u /* truncated: deeper than the limit */
#define GPUCACHE_STACK_NO_PYTHON 0x2u /* a Python thread whose frames could not be read safely */

#define GPUCACHE_FRAME_ADDRESS(f) ((f) & ((UINT64_C(1) << 48) - 1))
#define GPUCACHE_FRAME_PYTHON     (UINT64_C(1) << 63)
#define GPUCACHE_FRAME_FROM_C     (UINT64_C(1) << 62)
#define GPUCACHE_FRAME_CODE(f)    ((uint32_t)(((f) >> 32) & 0x3fffffff))
#define GPUCACHE_FRAME_OFFSET(f)  ((uint32_t)(f))

/*
 * CODES.  A record ends with name, file name and line table, each without NUL, and padding to a multiple of 8 bytes.
 * The line table is CPython's own: co_lnotab (up to 3.9), co_linetable (3.10), locations (from 3.11 on).
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

/* MODULES.  An executable mapping of an object file.  A record ends with the path, a NUL, and padding as in CODES. */
struct gpucache_module {
	uint32_t size;
	uint32_t build_id_size;
	uint64_t start; /* mapped addresses [start, end) */
	uint64_t end;
	uint64_t bias; /* address in the process minus address in the object's file */
	uint8_t build_id[32];
	/* when it was first seen; where two records overlap, as they may before 1.6, the later one counts */
	uint64_t time_ns;
};

/*
 * TAGS.  A range that the program names, by gpucache_tag_push or NVTX.  A record ends with the name, without NUL, and
 * padding as in CODES.  The label of a tag has all names from the outermost range inwards: "train/step/forward".
 */
struct gpucache_tag {
	uint32_t size;
	uint32_t id;     /* > 0 */
	uint32_t parent; /* the enclosing range, < id; 0: none */
	uint32_t name_size;
};

/*
 * STREAMS.  Record i, from 1 on, is stream number i, in the order in which allocations and frees first named them.
 * Number 0 means that a call names no stream, like cudaMalloc.  GPUCACHE_STREAM_OTHER is each stream that found no
 * record.
 */
struct gpucache_stream {
	uint64_t handle; /* the driver's, or GPUCACHE_STREAM_*; 0: unused */
	uint64_t first_ns;
	uint64_t end_ns; /* when it was destroyed, else 0; the driver may then reuse the handle */
	uint64_t reserved;
};

#define GPUCACHE_STREAM_LEGACY     1u   /* a handle: CU_STREAM_LEGACY, or the default stream NULL */
#define GPUCACHE_STREAM_PER_THREAD 2u   /* a handle: the default stream of the calling thread */
#define GPUCACHE_STREAM_OTHER      255u /* a number */

/* SEGMENTS.  One allocation of the driver, which the library cuts into blocks. */
struct gpucache_segment {
	uint32_t seq;
	uint8_t state; /* 0 unused, or returned to the driver; 1 in use */
	uint8_t pool;  /* of small blocks: 0, of large ones: 1 */
	uint16_t device;
	uint64_t address;
	uint64_t size;
	uint64_t time_ns;
	uint32_t context; /* index into COUNTERS */
	uint32_t stack;   /* of the request that needed this segment */
	uint64_t reserved[3];
};

enum gpucache_block_state {
	GPUCACHE_BLOCK_UNUSED,
	GPUCACHE_BLOCK_FREE,    /* cached */
	GPUCACHE_BLOCK_LIVE,    /* the program has it */
	GPUCACHE_BLOCK_PENDING, /* freed, but submitted work may still use it */
};

#define GPUCACHE_NO_SEGMENT UINT32_MAX

/*
 * BLOCKS.  Every block, free ones too, so that a reader can draw the heap.  Neighbours that were freed lately may both be
 * free, until the library needs them as one.
 */
struct gpucache_block {
	uint32_t seq;
	uint8_t state; /* enum gpucache_block_state */
	uint8_t kind;  /* enum gpucache_kind */
	uint16_t device;
	uint64_t address;
	uint64_t size;
	uint64_t requested; /* 0 unless LIVE or PENDING */
	uint64_t time_ns;   /* of the last change of state */
	uint32_t stack;     /* 0: not captured */
	uint32_t thread;
	/* index into SEGMENTS; GPUCACHE_NO_SEGMENT: the block is an allocation of the driver by itself */
	uint32_t segment;
	uint32_t context; /* index into COUNTERS */
	uint32_t tag;     /* of a LIVE block; 0: none */
	uint32_t flags;   /* GPUCACHE_BLOCK_* */
};

/* PyTorch's allocator cuts the block into tensors: see TORCH. */
#define GPUCACHE_BLOCK_ARENA 0x1u
/* Bits 8..15: the number of the stream that the block was allocated for. */
#define GPUCACHE_BLOCK_STREAM_SHIFT  8
#define GPUCACHE_BLOCK_STREAM(flags) ((flags) >> GPUCACHE_BLOCK_STREAM_SHIFT & 0xffu)

/* True if a block counts for its stack and tag.  An arena does not, because its tensors do. */
static inline int gpucache_is_held(unsigned int state, unsigned int kind, unsigned int flags)
{
	enum gpucache_place place = gpucache_kind_place(kind);

	return state == GPUCACHE_BLOCK_LIVE &&
	       (place == GPUCACHE_WITHIN ||
		       (gpucache_kind_is_of_device(kind) && !(flags & GPUCACHE_BLOCK_ARENA)));
}

struct gpucache_event {
	uint64_t seq; /* 1 + number of the event, stored last; 0: never written */
	uint64_t time_ns;
	uint64_t address;
	uint64_t size; /* rounded; in OOM and RESCUED as requested */
	uint64_t requested;
	uint32_t stack;
	uint32_t thread;
	uint8_t kind;       /* enum gpucache_event_kind */
	uint8_t alloc_kind; /* enum gpucache_kind */
	uint16_t device;
	uint32_t context; /* index into COUNTERS */
	uint32_t detail;  /* MALLOC, FREE: number of the stream */
	uint32_t tag;     /* the innermost range of the calling thread; 0: none */
};

/*
 * HISTORY.  A record of a device: this head, then two buffers of max_points points, of which live_buffer is valid.
 * Two buffers of max_points uint64_t follow: pending_bytes of the same points.  Their pages are not marked in PAGES, because they may be all zeros.
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

/* The maxima of one interval. */
struct gpucache_point {
	uint64_t time_ns;
	uint64_t requested_bytes;
	uint64_t live_bytes;     /* live in segments of the cache, plus direct_bytes */
	uint64_t reserved_bytes; /* segments, plus direct_bytes */
};

struct gpucache_holder {
	uint32_t stack;
	uint32_t n_blocks;
	uint64_t bytes; /* as requested */
};

#define GPUCACHE_MAX_HOLDERS 64

/* PEAKS.  Two slots per device: device d owns slots 2d and 2d + 1. */
struct gpucache_peak {
	uint32_t seq;
	int32_t device;
	uint64_t number; /* grows with each peak */
	uint64_t time_ns;
	uint64_t requested_bytes, live_bytes, reserved_bytes;
	uint32_t n_holders; /* in holders[], biggest first */
	uint32_t n_sites;   /* stacks with live blocks */
	/* of stacks that are not in holders[], and of allocations without a stack; without contexts and modules */
	uint64_t rest_bytes;
	struct gpucache_holder holders[GPUCACHE_MAX_HOLDERS];
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS];
};

/*
 * The balance sheet: where every byte of a device is.  All lines except cached_largest add up to device_total.  An
 * unknown line is GPUCACHE_UNKNOWN, and its bytes are in `unattributed`.
 */
#define GPUCACHE_UNKNOWN UINT64_MAX

struct gpucache_balance {
	uint64_t requested; /* live in segments of the cache, as requested */
	uint64_t rounding;  /* live bytes beyond what was requested */
	uint64_t pending;
	uint64_t cached;
	uint64_t cached_largest; /* the largest free block, whose bytes are in `cached`, too */
	uint64_t direct;         /* recorded, but not in the cache */
	/* memory of this process that is not recorded: context, modules, libraries */
	uint64_t process_outside;
	uint64_t other_processes;
	uint64_t driver_reserve;
	uint64_t unattributed; /* in use, by an unknown owner */
	uint64_t device_free;
	uint64_t device_total;
};

struct gpucache_neighbour {
	uint32_t pid;
	/* a process of this user: its run time, at least 1; others: 0 */
	uint32_t own_age_s;
	uint64_t bytes; /* GPUCACHE_UNKNOWN if NVML does not report it */
	char name[32];  /* of the process, if this user may see it */
};

struct gpucache_tag_holder {
	uint32_t tag; /* 0: allocated outside any range */
	uint32_t n_blocks;
	uint64_t bytes; /* as requested */
};

#define GPUCACHE_MAX_OOM_HOLDERS 32
#define GPUCACHE_MAX_OOM_TAGS    16
#define GPUCACHE_MAX_NEIGHBOURS  16

/* The numbers in PyTorch's report of its own failure; if `requested` is 0, those at its last tensor. */
struct gpucache_oom_torch {
	uint64_t requested; /* for the tensor, as PyTorch rounded it */
	uint64_t allocated;
	uint64_t reserved;
};

/* OOMS.  One failed request, with all that was known at the time. */
struct gpucache_oom {
	uint32_t seq;
	int32_t device;
	uint64_t number; /* 1, 2, ... of the process */
	uint64_t time_ns;
	uint64_t requested;
	uint64_t rounded;  /* the size of the segment or block that it needed */
	uint64_t short_by; /* bytes that were missing */
	uint64_t limit;    /* configured; 0: none */
	uint32_t stack;
	uint32_t thread;
	uint32_t context;   /* index into COUNTERS */
	uint32_t recovered; /* 1: a later success of this size, or of any tensor of PyTorch */
	uint8_t kind;       /* enum gpucache_kind */
	uint8_t verdict;    /* enum gpucache_verdict: the strongest */
	uint8_t strength;   /* enum gpucache_strength */
	uint8_t reported;   /* 1: the short form was printed */
	uint32_t also;      /* bit v: verdict v applies in addition */
	struct gpucache_balance balance;
	uint64_t peak_requested; /* of the run so far */
	uint64_t growth_bytes;   /* of the fastest-growing holder, in the later part of the run */
	uint32_t growth_stack;
	uint32_t n_rungs;
	uint64_t rung_freed[GPUCACHE_MAX_RUNGS]; /* bytes that each rung made available */
	uint32_t n_holders;
	uint32_t n_sites;
	uint64_t rest_bytes;
	struct gpucache_holder holders[GPUCACHE_MAX_OOM_HOLDERS]; /* biggest first */
	uint32_t n_neighbours;
	uint32_t tag; /* of the request; 0: none */
	struct gpucache_neighbour neighbours[GPUCACHE_MAX_NEIGHBOURS];
	/* Holders by tag, biggest first; none if the program named no ranges. */
	uint32_t n_tags;
	uint32_t grows_how;      /* enum gpucache_growing */
	uint64_t tag_rest_bytes; /* live bytes of tags that are not in tags[] */
	struct gpucache_tag_holder tags[GPUCACHE_MAX_OOM_TAGS];
	/* counters.kind_bytes, summed over all contexts of the device. */
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS];
	struct gpucache_oom_torch torch;
	/* What the verdict was judged by, beyond the balance; GPUCACHE_UNKNOWN: not measured. */
	uint64_t free_before, free_after; /* in the driver, around its last refusal */
	uint64_t piece;                   /* the largest cached piece for this request */
	uint64_t other_piece;             /* the largest free piece in pools that it may not use */
	uint64_t largest_pending;
	uint64_t plain_live; /* what the driver would take for our live blocks, and beyond others */
	uint64_t page_waste, page_blocks; /* free in steps of 2 MiB that so many small blocks pin */
	uint64_t usual_live;              /* the most that was live in a usual step of the run */
	uint64_t growth_others;           /* by which other holders grew as steadily */
	uint64_t growth_held, growth_blocks; /* what the growing holder has */
	uint64_t growth_total;               /* what it asked for since the start */
	uint64_t n_free;                     /* frees on the device since it began to grow */
	uint64_t n_dropped, host_bytes;      /* stacks and sites without a record; pinned memory */
	uint32_t n_contexts;                 /* on the device; 0: unknown */
	uint32_t setup;                      /* GPUCACHE_OOM_* */
	uint32_t is_varied;                  /* 1: the growing site's blocks are of many sizes */
	uint32_t idle_gpu;                   /* 1 + a GPU that no other process uses; 0: none */
	uint64_t idle_free;                  /* there */
	uint64_t usual_base, host_room;      /* what stayed of usual_live; what could be spilled */
	uint64_t framework;                  /* of `torch`: enum gpucache_framework; since 1.7 */
	struct gpucache_oom_program program;
	uint64_t taken_bytes, taken_stack; /* live, sized by what was read to be free; since 1.7 */
	uint64_t idle_bytes, idle_stack;   /* of segments without a tensor; since 1.8 */
	uint64_t returnable_bytes;         /* cached in segments without a live block; since 1.8 */
	uint64_t refused_frees, refused_free_stack, row_padding; /* of cudaMallocPitch; since 1.8 */
	uint64_t pool_max, pool_used; /* its driver's pool: maxSize, 0: none; live; since 1.8 */
};

#endif
