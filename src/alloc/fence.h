/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: when a freed block may be given to a new owner.
 *
 * A plain cudaFree names no stream.  Work that was submitted before it, on any stream of the
 * context, may still touch the block, and the next owner may use any other stream at once.  The
 * real cudaFree waits for the device.  Where the device itself can be made to keep that order there is
 * nothing to wait for (barrier.h); fences are for the rest: with free_order:fence, with peers, while a
 * capture is open, and for frees that name a stream.  They remember.
 *
 *                    oldest                                  newest
 *      frees:   [ a b c ] passed? | [ d e ] closed, event | [ f g h ] open
 *                 |                  |                         '-- free() appends here: no driver call
 *                 |                  '-- closed by ONE event that captures all work of the context
 *                 '-- event completed: a, b, c are FREE
 *
 * A later event covers all that an earlier one does, so fences pass in order and only the oldest
 * event is asked.  A fence that was closed without an event (a capture is open, the driver is
 * older than 12.5, the record failed) passes when a later one does, or by a host wait for the
 * whole context, and never otherwise: an event that was never recorded would be reported as
 * completed.
 *
 * The program's own full synchronisation passes every fence that was filled before it began, for
 * nothing.
 *
 * One stream.  As long as a context has no stream but the legacy default one, all later work is
 * ordered behind all earlier work, and a freed block is FREE at once.  When that ends, blocks that
 * were reused without a fence may have both owners' work on the legacy stream; so an event is
 * recorded there, and every new stream waits for it, on the device, before the program gets its
 * handle.  A per-thread default stream is behind the legacy one by itself.
 *
 * Peers.  Work of another context that may reach this memory counts too: each such context, be it
 * that peer access was enabled or that a copy went there by unified addressing, is a member and
 * records an event of its own; a fence passes when all its members' events have.
 *
 * Invariants
 *   F1  A block leaves a fence only when all work submitted to every member before its free has
 *       completed.
 *   F2  Fences are numbered without gaps; the ring holds oldest .. open; only the open one takes
 *       blocks.
 *   F3  has_event is true only after every member's record succeeded.
 *   F4  No event is recorded or asked, and no context synchronised by us, while a capture of the
 *       program is open.
 * Threads     The pool's lock for everything here, except captures.  The waits are made by the
 *             caller without the lock, between gpc_fences_begin_sync and gpc_fences_pass.
 * Ordering    Submissions of the program that happen before its call of free happen before our
 *             record, which is made later under the pool's lock that free held; the driver
 *             captures what was submitted before the record.
 * Progress    Nothing here blocks.  An endless kernel keeps its fence open; frees behind it stay
 *             pending, and the pool takes fresh memory instead.  Above pending_limit a free waits, for the
 *             work before older frees only, and for no peer.
 * Failure     A driver error of a query is returned: the context is broken.
 * Limits      Work that was submitted through a driver this library does not see (another process
 *             over IPC).  Copies between contexts in a graph that was built node by node: they name
 *             no stream.
 */
#ifndef GPC_ALLOC_FENCE_H
#define GPC_ALLOC_FENCE_H

#include "alloc/block.h"
#include "alloc/captures.h"

#define GPC_MAX_FENCES 64 /* in flight; when all are, the open one grows instead of closing */
#define GPC_MAX_MEMBERS \
	16 /* contexts whose work a fence covers: the largest machines have 16 GPUs */

struct gpc_fence {
	struct gpc_list blocks;
	uint64_t bytes;
	uint64_t largest; /* no block is larger */
	uint32_t n_blocks;
	bool has_event;
	gpc_event events[GPC_MAX_MEMBERS];
};

struct gpc_fences {
	/* Fixed after init. */
	struct gpc_captures *captures;

	/* Lock: the pool's. */
	struct gpc_driver *members[GPC_MAX_MEMBERS]; /* [0]: the context of the memory */
	uint32_t n_members;
	uint64_t oldest; /* numbers; the ring index is number mod GPC_MAX_FENCES */
	uint64_t open;
	struct gpc_fence ring[GPC_MAX_FENCES];
	uint64_t pending_bytes;
	bool can_record; /* false once the driver said that it cannot */
	bool has_strangers; /* more contexts reach this memory than there are members: nothing passes */
	bool is_peer_near;  /* a member came, or is about to */
	bool is_one_stream; /* only the legacy default stream was ever used */
	uint32_t n_streams;
	/* recorded on the legacy stream when a second one appeared; 0: none */
	gpc_event one_stream_end;
	bool is_end_due;   /* that record failed: the next stream tries again */
	uint64_t n_closed; /* by an event, since init */
};

/*
 * `is_one_stream`: the caller has seen every stream of this context being made, and there is
 * none yet.
 */
void gpc_fences_init(struct gpc_fences *fences, struct gpc_driver *drv,
	struct gpc_captures *captures, bool is_one_stream);

/* Forgets all blocks, and destroys the events where the context still lives. */
void gpc_fences_fini(struct gpc_fences *fences, bool context_lives);

/* True where a block may be FREE at once instead of being added. */
bool gpc_fences_is_free_safe(const struct gpc_fences *fences);

/* Adds a block that the program just freed to the open fence. */
void gpc_fences_add(struct gpc_fences *fences, struct gpc_block *block);

/*
 * Takes a pending block out of its fence.  The fence's largest block is from then on a bound, until
 * the fence is empty.
 */
void gpc_fences_drop(struct gpc_fences *fences, struct gpc_block *block);

/* The open fence, for those who decide when to close it. */
const struct gpc_fence *gpc_fences_get_open(const struct gpc_fences *fences);

/* Closes the open fence by an event where that is possible now.  False: it stays open. */
bool gpc_fences_close(struct gpc_fences *fences);

/*
 * Moves the blocks of all fences that have passed to the end of `ret_blocks`, still PENDING.
 * GPC_OK also where none has.  Asks the driver about the oldest event, and on as long as they pass.
 */
GPC_MUST_CHECK enum gpc_status gpc_fences_take_passed(
	struct gpc_fences *fences, struct gpc_list *ret_blocks);

/*
 * A full synchronisation of every member begins: returns the number to give to gpc_fences_pass
 * after it succeeded. Closes the open fence without an event.
 */
uint64_t gpc_fences_begin_sync(struct gpc_fences *fences);

/* Moves the blocks of all fences up to `number` to the end of `ret_blocks`, still PENDING. */
void gpc_fences_pass(struct gpc_fences *fences, uint64_t number, struct gpc_list *ret_blocks);

/*
 * The oldest fence with an event whose passing frees a block of at least `size` bytes; 0 and no
 * event where none is.
 */
uint64_t gpc_fences_find_useful(
	const struct gpc_fences *fences, uint64_t size, gpc_event *ret_event);

/*
 * The same of the newest fence with an event, where it covers all that is closed; 0 and no event where it does not,
 * or where there are peers.
 */
uint64_t gpc_fences_find_newest(const struct gpc_fences *fences, gpc_event *ret_event);

/* The event in the context of the memory of the oldest fence that has one; 0: none has. */
gpc_event gpc_fences_oldest_event(const struct gpc_fences *fences);

/* The largest pending block. */
uint64_t gpc_fences_largest(const struct gpc_fences *fences);

/*
 * A stream was created (by whomever) and nobody has its handle yet: makes it wait for what the
 * legacy stream still does for blocks that were reused without a fence.
 */
GPC_MUST_CHECK enum gpc_status gpc_fences_stream_created(
	struct gpc_fences *fences, gpc_stream stream);
void gpc_fences_stream_destroyed(struct gpc_fences *fences);

/*
 * A per-thread default stream is used for the first time.  It is behind the legacy stream by itself; streams that
 * are made later wait for that one on the device.
 */
void gpc_fences_per_thread_stream_used(struct gpc_fences *fences);

/*
 * Another context is about to reach this memory.  Its work is behind none of ours.  True: the
 * caller must synchronise the context of the memory before that work can begin.
 */
bool gpc_fences_peer_comes(struct gpc_fences *fences);

/* Another context is about to become a member: from here on no block is FREE at once for a barrier's sake. */
void gpc_fences_expect_peer(struct gpc_fences *fences);

/* True for the context of the memory, and for those that were added. */
bool gpc_fences_has_member(const struct gpc_fences *fences, const struct gpc_driver *drv);

/*
 * The context of `drv` may reach this memory from now on, and gpc_fences_peer_comes was asked.
 * GPC_FULL: then no fence passes any more.
 */
GPC_MUST_CHECK enum gpc_status gpc_fences_add_member(
	struct gpc_fences *fences, struct gpc_driver *drv);

/*
 * The context of `drv` is about to die, and its events with it: no fence asks it any more.
 * Nothing where it is no member.
 */
void gpc_fences_remove_member(struct gpc_fences *fences, struct gpc_driver *drv);

#endif
