/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread: its id, its tag, its reentrancy guard, its stays; and whether this process is a fork child.
 *
 * From gpc_thread_enter to gpc_thread_leave the thread is inside: what it finds without a lock is not reused (grace.h).
 *
 * The guard keeps hooks from handling our own driver calls, and calls that the driver makes in turn.
 * Thread-local data use the initial-exec model: a general-dynamic access may allocate at first use,
 * perhaps inside the program's malloc.  The loader's reserve of static TLS is small, so use little.
 */
#ifndef GPC_BASE_THREAD_H
#define GPC_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/grace.h"

/* The ranges (tags) that a thread has open; stack/tags.h pushes and pops them. */
struct gpc_tag_place {
	uint32_t tag;        /* of the innermost range that has a tag; 0: none */
	uint32_t n_untagged; /* ranges inside that one, which got no tag of their own */
};

/* Which interface opened a range: the C API, or NVTX without a domain.  Each NVTX domain has a higher id. */
#define GPC_TAG_OF_API  0u
#define GPC_TAG_OF_NVTX 1u

/* The state of the calling thread.  stack/tags.h moves `place`; the functions below read and set all else. */
struct gpc_thread {
	uint32_t id; /* 0: not queried yet */
	bool is_inside;
	uint8_t stream; /* number in STREAMS of the stream that the current call names; 0: none */
	struct gpc_tag_place place;
	struct gpc_stay *stay; /* NULL: the thread never entered */
	uint64_t
		refused_size; /* of the last request for device memory, if it was refused (runtime/rescue/spill.c) */
};

extern _Thread_local struct gpc_thread gpc_thread __attribute__((visibility("hidden")));

uint32_t gpc_thread_ask_id(void);

/* The kernel's id of this thread, queried once. */
static inline uint32_t gpc_thread_id(void)
{
	return gpc_thread.id ? gpc_thread.id : gpc_thread_ask_id();
}

/* The tag that the allocations of this thread get; 0: none. */
static inline uint32_t gpc_thread_tag(void)
{
	return gpc_thread.place.tag;
}

/* Notes the stream that this thread's current call names, until gpc_thread_leave. */
static inline void gpc_thread_name_stream(uint32_t number)
{
	gpc_thread.stream = (uint8_t)number;
}

static inline uint32_t gpc_thread_stream(void)
{
	return gpc_thread.stream;
}

/* Slow path of gpc_thread_enter: the thread enters for the first time. */
bool gpc_thread_enter_first(void);

/* Enters our own code.  Returns false if this thread is inside already; then do not leave. */
static inline bool gpc_thread_enter(void)
{
	if (gpc_thread.is_inside)
		return false;
	if (__builtin_expect(!gpc_thread.stay, 0))
		return gpc_thread_enter_first();
	gpc_thread.is_inside = true;
	gpc_stay_begin(gpc_thread.stay);
	return true;
}

static inline void gpc_thread_leave(void)
{
	gpc_stay_end(gpc_thread.stay);
	gpc_thread.is_inside = false;
	gpc_thread.stream = 0;
}

/*
 * Around a call of the program's own code from inside: the hooks handle the calls that it makes.  The stay goes on, and
 * covers those calls, too.  Pass what _step_out returns to _step_in.
 */
static inline struct gpc_stay *gpc_thread_step_out(void)
{
	struct gpc_stay *stay = gpc_thread.stay;

	gpc_thread.stay = &gpc_stay_of_none;
	gpc_thread.is_inside = false;
	gpc_thread.stream = 0;
	return stay;
}

static inline void gpc_thread_step_in(struct gpc_stay *stay)
{
	gpc_thread.stay = stay;
	gpc_thread.is_inside = true;
}

/*
 * Marks this process as the one that loaded the library.  Returns false if the kernel has no page for the mark, or
 * cannot wipe it in children.
 */
bool gpc_process_adopt(void);

/* In a page that the kernel wipes in children: the pid, and 0 in a child.  Before gpc_process_adopt it is elsewhere, and 0. */
extern _Atomic(uint32_t *) gpc_process_page __attribute__((visibility("hidden")));
extern uint32_t gpc_process_none __attribute__((visibility("hidden")));

/*
 * True in the process that called gpc_process_adopt, false in a child with its own memory, by fork or
 * raw clone: the kernel wipes the page in such a child (MADV_WIPEONFORK), so the check costs one load
 * and needs no atfork handler.  Only gpc_process_is_exactly_ours detects a child that shares our memory.
 */
static inline bool gpc_process_is_ours(void)
{
	return *atomic_load_explicit(&gpc_process_page, memory_order_acquire) != 0;
}

/* True in a child with its own memory. */
static inline bool gpc_process_is_child(void)
{
	const uint32_t *page = atomic_load_explicit(&gpc_process_page, memory_order_acquire);

	return page != &gpc_process_none && *page == 0;
}

/*
 * As gpc_process_is_ours, and false also in a child that shares our memory (vfork, clone with
 * CLONE_VM).  Costs a system call.
 */
bool gpc_process_is_exactly_ours(void);

#endif
