/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of allocation in a recording, of event and of failure, and where bytes are: part of gpucache_format.h. */
#ifndef GPUCACHE_KINDS_H
#define GPUCACHE_KINDS_H

#include <stdint.h>

/*
 * KIND(name, where its bytes are, words for people, the calls that make it).  New kinds are appended; a reader treats
 * an unknown kind as NONE.
 */
/* clang-format off */
#define GPUCACHE_KINDS(KIND) \
	KIND(NONE, ELSEWHERE, "memory", "") \
	KIND(DEVICE, ON_DEVICE, "device memory", "cuMemAlloc") \
	KIND(PITCHED, ON_DEVICE, "pitched memory", "cuMemAllocPitch") \
	KIND(MANAGED, ON_DEVICE, "managed memory", "cuMemAllocManaged") \
	KIND(HOST, ON_HOST, "pinned host memory", "cuMemHostAlloc") \
	KIND(REGISTERED, ON_HOST, "registered host memory", "cuMemHostRegister") \
	KIND(ARRAY, ON_DEVICE, "arrays", "cuArrayCreate, cuMipmappedArrayCreate") \
	KIND(ASYNC, ON_DEVICE, "stream-ordered memory", "cuMemAllocAsync") \
	KIND(POOL, ON_DEVICE, "idle in driver pools", "reserved by a CUmemoryPool, not in use") \
	KIND(GRAPH, ON_DEVICE, "graph memory", "allocation nodes") \
	KIND(PHYSICAL, ON_DEVICE, "physical memory", "cuMemCreate") \
	KIND(PHYSICAL_HOST, ON_HOST, "physical host memory", "cuMemCreate on the host") \
	KIND(CONTEXT, ON_DEVICE, "contexts", "measured around the call") \
	KIND(MODULE, ON_DEVICE, "modules", "measured around the call") \
	KIND(EXTERNAL, ELSEWHERE, "imported external memory", "cuImportExternalMemory") \
	KIND(IPC, ELSEWHERE, "memory of other processes", "cuIpcOpenMemHandle") \
	KIND(MULTICAST, ELSEWHERE, "multicast objects", "cuMulticastCreate") \
	KIND(TENSOR, WITHIN, "tensors", "PyTorch's allocator, within device memory") \
	KIND(REFUSED, ON_DEVICE, "not taken back by the driver", "cuMemFree of a segment, which failed") \
	KIND(SPILLED, BEYOND, "spilled to host memory", "cuMemAlloc, which the option spill served by managed memory")
/* clang-format on */

enum gpucache_kind {
#define GPUCACHE_KIND_ENUM(name, place, words, maker) GPUCACHE_KIND_##name,
	GPUCACHE_KINDS(GPUCACHE_KIND_ENUM)
#undef GPUCACHE_KIND_ENUM
	GPUCACHE_KIND_COUNT,
};

enum gpucache_place {
	GPUCACHE_ELSEWHERE, /* another process or library owns the bytes, and counts them */
	GPUCACHE_WITHIN,    /* in device memory that has been counted */
	GPUCACHE_ON_DEVICE,
	GPUCACHE_ON_HOST,
	GPUCACHE_BEYOND, /* the device was full; the driver moves the bytes between host and device */
};

#define GPUCACHE_MAX_KINDS 24
#define GPUCACHE_MAX_RUNGS 16 /* of the ladder */

static inline enum gpucache_place gpucache_kind_place(unsigned int kind)
{
#define GPUCACHE_KIND_PLACE(name, place, words, maker) GPUCACHE_##place,
	static const unsigned char places[] = { GPUCACHE_KINDS(GPUCACHE_KIND_PLACE) };
#undef GPUCACHE_KIND_PLACE

	return (enum gpucache_place)places[kind < GPUCACHE_KIND_COUNT ? kind : 0];
}

/* True for memory that was asked for as the device's, wherever it is. */
static inline int gpucache_kind_is_of_device(unsigned int kind)
{
	enum gpucache_place place = gpucache_kind_place(kind);

	return place == GPUCACHE_ON_DEVICE || place == GPUCACHE_BEYOND;
}

/*
 * What ended the one-stream rule of a context.  While a program uses only the legacy stream, all its work is ordered,
 * so a freed block can be reused at once.  A second stream ends the rule, and so does, for example, a launch that may
 * overlap its predecessor.
 */
enum gpucache_one_stream_end {
	GPUCACHE_ONE_STREAM_HOLDS, /* or unknown */
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

/* Whose allocator cuts blocks into tensors. */
enum gpucache_framework {
	GPUCACHE_FRAMEWORK_PYTORCH,
	GPUCACHE_FRAMEWORK_XLA, /* the tensors are arrays of JAX */
	GPUCACHE_FRAMEWORK_COUNT,
};

/* OOMS: what a program of XLA needs that could not be executed, by its compiler. */
struct gpucache_oom_program {
	char name[64]; /* "jit_train_step"; empty: none */
	uint64_t temporaries;
	uint64_t arguments;
	uint64_t outputs; /* but those in the memory of arguments */
	uint64_t code;
	uint64_t pool_in_use; /* of XLA's pool: arrays, and what programs need beside them */
};

/* EVENTS: what happened. */
enum gpucache_event_kind {
	GPUCACHE_EVENT_NONE,
	GPUCACHE_EVENT_MALLOC,
	GPUCACHE_EVENT_FREE,
	GPUCACHE_EVENT_SEGMENT_MALLOC,
	GPUCACHE_EVENT_SEGMENT_FREE,
	GPUCACHE_EVENT_OOM,     /* size: requested; address: free on the device */
	GPUCACHE_EVENT_RESCUED, /* size: requested; detail: the rung that helped */
	GPUCACHE_EVENT_SYNC,    /* the program waited for the whole context */
	GPUCACHE_EVENT_CONTEXT, /* detail: 1 first seen, 2 reset or destroyed */
	GPUCACHE_EVENT_KIND_COUNT,
};

/* Why a request failed: words in src/why/causes.def, conditions in src/why/judge.c. */
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
	GPUCACHE_VERDICT_CONTEXTS,
	GPUCACHE_VERDICT_MANAGED,
	GPUCACHE_VERDICT_PREALLOCATED,
	GPUCACHE_VERDICT_PINNED,
	GPUCACHE_VERDICT_COUNT,
};

/* How a site grows. */
enum gpucache_growing {
	GPUCACHE_GROWS_STEADILY,
	GPUCACHE_GROWS_RENEWED, /* it replaces what it holds by more */
	GPUCACHE_GROWS_AGAIN,   /* by the same, again and again */
	GPUCACHE_GROWS_STEPS,   /* each step needs more, and all is freed between two; since 1.7 */
};

/* Bits of oom.setup. */
#define GPUCACHE_OOM_CACHING       0x1u   /* cache:on */
#define GPUCACHE_OOM_CAPTURING     0x2u   /* a stream capture was open */
#define GPUCACHE_OOM_EAGER         0x4u   /* CUDA_MODULE_LOADING=EAGER */
#define GPUCACHE_OOM_FRACTION      0x8u   /* per_process_memory_fraction has set the limit */
#define GPUCACHE_OOM_ROUNDUP       0x10u  /* roundup_power2_divisions is set */
#define GPUCACHE_OOM_WAIT          0x20u  /* oom_wait_ms is set */
#define GPUCACHE_OOM_IDLE          0x40u  /* idle_bytes is known */
#define GPUCACHE_OOM_TORCH_ROUNDUP 0x80u  /* the same as ROUNDUP, by PyTorch */
#define GPUCACHE_OOM_GRAPHS        0x100u /* PyTorch has captured CUDA graphs */

enum gpucache_strength {
	GPUCACHE_STRENGTH_NONE,
	GPUCACHE_STRENGTH_POSSIBLE,
	GPUCACHE_STRENGTH_LIKELY,
	GPUCACHE_STRENGTH_CERTAIN, /* arithmetic */
};

#endif
