/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread: its number, its tag, the reentrancy guard, and whether we are in the process
 * we started in.
 *
 * The guard keeps our own calls of the driver, and what the driver calls back, from being answered
 * by us again.  Thread-local data use the initial-exec model: a general-dynamic access may allocate
 * on first use, in the middle of somebody's malloc.  That takes a few bytes of the static TLS
 * reserve, which is why there is no more than this.
 */
#ifndef GPC_BASE_THREAD_H
#define GPC_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Which range of the program a thread is in; stack/tags.h moves it. */
struct gpc_tag_place {
	uint32_t tag;        /* 0: in none */
	uint32_t n_untagged; /* ranges inside that one which have no tag of their own */
};

/* Whose range: of the C API, of NVTX without a domain, or of an NVTX domain, by its id above. */
#define GPC_TAG_OF_API  0u
#define GPC_TAG_OF_NVTX 1u

/* Of the calling thread; behind the functions below. */
struct gpc_thread {
	uint32_t id; /* 0: not asked yet */
	bool is_inside;
	struct gpc_tag_place place;
};

extern _Thread_local struct gpc_thread gpc_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

uint32_t gpc_thread_ask_id(void);

/* The kernel's number of this thread, asked once a thread. */
static inline uint32_t gpc_thread_id(void)
{
	return gpc_thread.id ? gpc_thread.id : gpc_thread_ask_id();
}

/* The tag that allocations of this thread get. */
static inline uint32_t gpc_thread_tag(void)
{
	return gpc_thread.place.tag;
}

/* Enters our own code.  False where this thread is in it already; then do not leave. */
static inline bool gpc_thread_enter(void)
{
	if (gpc_thread.is_inside)
		return false;
	gpc_thread.is_inside = true;
	return true;
}

static inline void gpc_thread_leave(void)
{
	gpc_thread.is_inside = false;
}

/* Remembers this process as ours.  False where the kernel offers no memory for it. */
bool gpc_process_adopt(void);

/* Behind the function below: *page is the pid, 0 in a child; NULL before gpc_process_adopt. */
extern _Atomic(uint32_t *) gpc_process_page __attribute__((visibility("hidden")));

/*
 * True in the process that called gpc_process_adopt, false in a child made by fork, vfork or raw
 * clone: the answer lies in a page that the kernel wipes in every child (MADV_WIPEONFORK), so it
 * costs a load and needs no atfork handler.
 */
static inline bool gpc_process_is_ours(void)
{
	const uint32_t *page = atomic_load_explicit(&gpc_process_page, memory_order_acquire);

	return page && *page != 0;
}

/* True in a child of it made by fork or raw clone, with a copy of its memory. */
static inline bool gpc_process_is_child(void)
{
	const uint32_t *page = atomic_load_explicit(&gpc_process_page, memory_order_acquire);

	return page && *page == 0;
}

/*
 * As gpc_process_is_ours, and false also in a child of vfork or clone that shares our memory.  A
 * system call.
 */
bool gpc_process_is_exactly_ours(void);

#endif
