/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: when a freed block may be reused.
 *
 * A plain cudaFree names no stream.  Work submitted before it, on any stream of the context, may still
 * touch the block, and the next owner may use any other stream at once.  The real cudaFree waits for
 * the device.  Barriers make the device keep that order (barrier.h); fences serve the remaining cases:
 * free_order:fence, peers, exported blocks, open captures, and frees that name a stream.
 *
 *                    oldest                                  newest
 *      frees:   [ a b c ] passed? | [ d e ] closed, event | [ f g h ] open
 *                 |                  |                         '-- a free appends here: no driver call
 *                 |                  '-- closed by ONE event that captures all work of the context
 *                 '-- event completed: a, b, c are FREE
 *
 * An event covers all that earlier ones do, so fences pass in order and only the oldest event is
 * queried.  If no event can be recorded (a capture is open, the driver is older than 12.5, the record
 * failed), the open fence stays open.  gpc_fences_begin_sync closes it without an event; that fence then passes with
 * the synchronization or with a later fence.  Its event must not be queried, because the driver reports
 * an event that was never recorded as complete.
 *
 * When the program itself synchronizes a context without peers, all blocks freed before leave their fences, at no cost.
 *
 * One stream.  While a context uses only the legacy default stream, all work is ordered, and a freed
 * block is FREE at once.  When a second stream appears, the legacy stream may still run work of both
 * owners of a reused block.  So an event is recorded on the legacy stream, and every new stream waits for the
 * event, on the device, before the program gets the handle of the stream.  A per-thread default stream waits for
 * the legacy stream by definition.
 *
 * Peers.  Another context whose work may touch this memory, through peer access or a copy by unified
 * addressing, is a member: closing a fence records one event in each member, and the fence passes when all
 * of them have passed.
 *
 * Invariants
 *   F1  A block leaves a fence only when all work submitted to every member before its free has
 *       completed, or when a barrier makes all later submissions wait for that work.
 *   F2  Fences are numbered without gaps; the ring holds oldest .. open; only the open one takes
 *       blocks.
 *   F3  has_event is true only after every member's record succeeded.
 *   F4  While a capture is open, no event of a fence is recorded or queried, and no context is
 *       synchronized to pass one.
 * Threads     The pool's lock for everything except captures.  The caller waits without the lock,
 *             between gpc_fences_begin_sync and gpc_fences_pass.
 * Ordering    Submissions that happen before the program's free happen before our record, which is
 *             made later under the same lock; the driver captures what was submitted before the
 *             record.
 * Progress    Nothing here blocks.  An endless kernel keeps its fence from passing; later frees stay
 *             pending, and the pool grows instead.  Above pending_limit cudaFree waits (pool_wait.c), but never
 *             for a peer.
 * Failure     A driver error of a query is returned: the context is broken.
 * Limits      Not covered: work submitted by another process over IPC, and copies between contexts in
 *             a graph built node by node, which name no stream.
 */
#ifndef GPC_ALLOC_FENCE_H
#define GPC_ALLOC_FENCE_H

#include "alloc/block.h"
#include "alloc/captures.h"

#define GPC_MAX_FENCES  64 /* in the ring; if it is full, the open fence grows instead of closing */
#define GPC_MAX_MEMBERS 16 /* contexts that a fence can cover: the largest machines have 16 GPUs */

struct gpc_fence {
	struct gpc_list blocks;
	uint64_t bytes;
	uint64_t largest; /* upper bound of its blocks' sizes */
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
	uint64_t oldest; /* number of the oldest fence; fence n is ring[n mod GPC_MAX_FENCES] */
	uint64_t open;   /* number of the open one */
	struct gpc_fence ring[GPC_MAX_FENCES];
	uint64_t pending_bytes;
	bool can_record;        /* false once the driver has said that it cannot record a context */
	bool has_more_contexts; /* over GPC_MAX_MEMBERS contexts reach this memory: no fence passes */
	bool is_peer_near;      /* another context is a member, or will be one soon */
	/* Only the legacy stream was ever used.  Once false, never true again: destroyed streams may still run work. */
	bool is_one_stream;
	/* the event that was recorded on the legacy stream when a second stream appeared; 0: none */
	gpc_event one_stream_end;
	/*
	 * The record of one_stream_end failed, and the next stream retries it.  Cleared when the host has waited for
	 * the context of the memory, if that wait began after the one-stream rule ended.
	 */
	bool is_end_due;
};

/*
 * `is_one_stream`: the context has no streams yet, and the caller will see every stream created.
 */
void gpc_fences_init(struct gpc_fences *fences, struct gpc_driver *drv,
	struct gpc_captures *captures, bool is_one_stream);

/* Forgets all blocks, and destroys the events if the context still lives. */
void gpc_fences_fini(struct gpc_fences *fences, bool context_lives);

/* Returns true if a freed block may be FREE at once, without a fence. */
bool gpc_fences_is_free_safe(const struct gpc_fences *fences);

/* Adds a block that the program has just freed to the open fence. */
void gpc_fences_add(struct gpc_fences *fences, struct gpc_block *block);

/* Removes a pending block from its fence. */
void gpc_fences_drop(struct gpc_fences *fences, struct gpc_block *block);

/* The open fence, by whose size the caller decides when to close it. */
const struct gpc_fence *gpc_fences_get_open(const struct gpc_fences *fences);

/* Closes the open fence by an event.  Returns false if that is not possible now: the fence stays open. */
bool gpc_fences_close(struct gpc_fences *fences);

/*
 * Appends the blocks of all passed fences to `ret_blocks`, still PENDING.  Queries events from the
 * oldest on until one has not passed.  GPC_OK even if none has passed.
 */
GPC_MUST_CHECK enum gpc_status gpc_fences_take_passed(
	struct gpc_fences *fences, struct gpc_list *ret_blocks);

/*
 * Begins a synchronization of all members: closes the open fence without an event, and returns the
 * number to give to gpc_fences_pass after it has succeeded.
 */
uint64_t gpc_fences_begin_sync(struct gpc_fences *fences);

/* Appends the blocks of all fences up to `number` to `ret_blocks`, still PENDING. */
void gpc_fences_pass(struct gpc_fences *fences, uint64_t number, struct gpc_list *ret_blocks);

/*
 * The oldest fence with an event whose passing is expected to free a block of at least `size` bytes; 0 and
 * no event if there is none, or if there are peers.
 */
uint64_t gpc_fences_find_useful(
	const struct gpc_fences *fences, uint64_t size, gpc_event *ret_event);

/*
 * The newest fence with an event, if it covers all closed fences; 0 and no event if it does not, or if there are
 * peers.
 */
uint64_t gpc_fences_find_newest(const struct gpc_fences *fences, gpc_event *ret_event);

/* The event, in the context of the memory, of the oldest fence that has one; 0: none has. */
gpc_event gpc_fences_oldest_event(const struct gpc_fences *fences);

/* The size of the largest pending block. */
uint64_t gpc_fences_largest(const struct gpc_fences *fences);

/*
 * Call for a new stream before the program gets its handle: makes the stream wait for the work of the
 * legacy stream on blocks that were reused without a fence.  If it fails, the caller must make the host wait.
 */
GPC_MUST_CHECK enum gpc_status gpc_fences_stream_created(
	struct gpc_fences *fences, gpc_stream stream);

/*
 * Call at the first use of a per-thread default stream.  Such a stream waits for the legacy stream by definition;
 * streams created later are made to wait for the legacy stream on the device.
 */
void gpc_fences_per_thread_stream_used(struct gpc_fences *fences);

/*
 * Call before another context can reach this memory: ends the one-stream rule, because the peer's work is
 * not ordered behind ours.  Returns true if the caller must synchronize the context of the memory first.
 */
bool gpc_fences_peer_comes(struct gpc_fences *fences);

/* Call before a member is added: from now on no barrier makes a block FREE at once. */
void gpc_fences_expect_peer(struct gpc_fences *fences);

/* True for the context of the memory and for every added member. */
bool gpc_fences_has_member(const struct gpc_fences *fences, const struct gpc_driver *drv);

/*
 * Adds the context of `drv`, which may reach this memory from now on; call gpc_fences_peer_comes first.
 * GPC_FULL: no fence passes any more.
 */
GPC_MUST_CHECK enum gpc_status gpc_fences_add_member(
	struct gpc_fences *fences, struct gpc_driver *drv);

/* Removes the context of `drv`, which is about to die, and destroys its events.  No-op if it is no member. */
void gpc_fences_remove_member(struct gpc_fences *fences, struct gpc_driver *drv);

#endif
