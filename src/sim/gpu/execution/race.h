/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race detector: finds memory that got a new owner while work of the old one could still touch it.
 *
 * On the timeline of stream.h the old work may happen to end before the memory is reused.  The detector ignores
 * durations: streams, events or waits must order the new owner's work after the old owner's.  The work of a stream is
 * numbered on a track.  A vector clock says, for each track, how much of its work precedes the next submission.  Each
 * time of the timeline has such a clock:
 *
 *      time in stream.h                clock
 *      tail_ns of a stream             the clock of its track
 *      tail_ns of a context            `all` of the context
 *      blocking_ns, barrier_ns         `blocking` and `barrier` of the context
 *      done_ns of an event             the event's clock, copied when the event is recorded
 *      early_ns of a stream            `early`: the track's clock before the kernel that begins then
 *      (waits of the host)             `host`: the work that the host knows to have ended
 *      (a cudaFree)                    `freed` of the context: the work submitted before the free
 *
 * The old owner's work, number 5 on track 1, precedes the new owner's work on track 2 if [1] >= 5 in the clock of
 * track 2 or in `host`.
 *
 * There are four violations; the first three together are counted once per owner:
 *      handed out   Memory is given out while a stream of its context that the program uses is not ordered after the
 *                   old work: the new owner could use that stream at once.  Not checked if `is_late`, for an allocator
 *                   that orders all streams after the old work only before the next submission.
 *      overtaken    Work of the new owner is submitted that is not ordered after the old work.
 *      exposed      A user outside all streams (another process, a network card) gets the memory while the host does
 *                   not know that the old work has ended.
 *      read         After a cudaFree the host reads data that the device writes, while work submitted before the free
 *                   may still run.  In plain CUDA the free would have waited for that work.
 *
 * Invariants  1 No number in a clock decreases.
 *             2 A track gets a new stream only when the host knows that all work of the track has ended; the new
 *               stream's work continues the track's numbers.
 * Threads     Any; one lock, the innermost of the simulator.  The caller registers an owner after it got memory, and
 *             removes the owner before the memory is freed.  If one thread waits for an event while another records it
 *             again, the wait is for the earlier record.
 * Failure     Without memory or a free track no stream or context is created.  A touch that cannot be stored is counted
 *             in `n_lost`.
 * Limits      Not checked: writes of the host itself, memory without an owner, and, on handing out, early kernels of
 *             the new owner.  Work that one thread knows to have ended counts as ended for all threads.
 */
#ifndef GPC_SIM_RACE_H
#define GPC_SIM_RACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/gpu/config.h"

#define GPC_SIM_RACE_TRACKS 128 /* streams at a time, of all contexts */
#define GPC_SIM_RACE_FRAMES 8
#define GPC_SIM_RACE_KEPT   16 /* violations stored; later ones are only counted */

struct gpc_sim;
struct gpc_sim_context;
struct gpc_sim_effect;
struct gpc_sim_event;
struct gpc_sim_stream;

struct gpc_sim_race_clock {
	uint32_t at[GPC_SIM_RACE_TRACKS];
};

static inline void gpc_sim_race_join(
	struct gpc_sim_race_clock *clock, const struct gpc_sim_race_clock *other)
{
	for (unsigned i = 0; i < GPC_SIM_RACE_TRACKS; i++)
		clock->at[i] = clock->at[i] > other->at[i] ? clock->at[i] : other->at[i];
}

/* Identifies an owner: code addresses, or anything the caller can decode, such as step numbers of a program. */
struct gpc_sim_race_stack {
	uint64_t n;
	uint64_t frames[GPC_SIM_RACE_FRAMES];
};

enum gpc_sim_race_kind {
	GPC_SIM_RACE_HANDED_OUT,
	GPC_SIM_RACE_OVERTAKEN,
	GPC_SIM_RACE_EXPOSED,
	GPC_SIM_RACE_READ
};

struct gpc_sim_race_violation {
	enum gpc_sim_race_kind kind;
	uint64_t ptr; /* ptr[0 .. size): the bytes that both owners use; READ: 0 */
	uint64_t size;
	uint64_t old_stream; /* number of the stream of the old owner's work */
	struct gpc_sim_race_stack old_owner;
	struct gpc_sim_race_stack new_owner;
};

struct gpc_sim_race_context {
	struct gpc_sim_race_clock all;
	struct gpc_sim_race_clock blocking;
	struct gpc_sim_race_clock barrier;
	struct gpc_sim_race_clock freed;
};

struct gpc_sim_race_owner {
	uint64_t ptr;
	uint64_t size;
	uint64_t number; /* never reused */
	const struct gpc_sim_context *context;
	const struct gpc_sim_stream *stream; /* that the memory was requested for; NULL: any */
	struct gpc_sim_race_stack stack;
	bool is_reported;
};

/* An access of submitted work to an owner's bytes. */
struct gpc_sim_race_touch {
	uint64_t ptr;
	uint64_t size;
	uint64_t owner;  /* its number */
	uint64_t stream; /* its number */
	uint32_t track;
	uint32_t number; /* the work's number on the track */
	struct gpc_sim_race_stack stack;
};

struct gpc_sim_race_track {
	const struct gpc_sim_stream *stream; /* NULL: no stream uses it */
	bool is_used;                        /* the program submitted work to `stream` */
	uint32_t n;                          /* pieces of work so far */
	bool is_early; /* the last work is an early kernel, ordered after `early` only */
	struct gpc_sim_race_clock clock;
	struct gpc_sim_race_clock early; /* `clock` before the last kernel that is not early */
};

struct gpc_sim_race {
	/* Lock: lock. */
	struct gpc_sim_race_track tracks[GPC_SIM_RACE_TRACKS];
	struct gpc_sim_race_clock host;
	struct gpc_sim_race_clock devices[GPC_SIM_MAX_DEVICES];
	struct gpc_sim_race_owner *owners; /* sorted by ptr */
	size_t n_owners, room_owners;
	uint64_t n_owners_ever;
	bool is_late; /* do not check "handed out"; fixed before the first owner */
	struct gpc_sim_race_touch *touches; /* by work that the host does not know to be done */
	size_t n_touches, room_touches;
	uint64_t n_lost;               /* touches not stored for lack of memory */
	_Atomic uint64_t n_violations; /* read without the lock */
	struct gpc_sim_race_violation violations[GPC_SIM_RACE_KEPT];

	pthread_mutex_t lock;
};

/* Attaches a detector, which gpc_sim_destroy destroys.  Call before the first context is created.  False: no memory. */
bool gpc_sim_race_attach(struct gpc_sim *sim);

/* Registers the owner of memory that the program was given.  False without memory: the owner is not registered. */
bool gpc_sim_race_own(struct gpc_sim *sim, const struct gpc_sim_context *context, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack);

/*
 * Like gpc_sim_race_own, for memory requested in stream order.  Only this stream must be ordered after the old work
 * when the memory is given out: the program itself must order work on other streams after the request.
 */
bool gpc_sim_race_own_on(struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack);

/* Call when the owner of the memory at `ptr` exports it to an outside user, who may access it until the free. */
void gpc_sim_race_expose(struct gpc_sim *sim, uint64_t ptr);

/*
 * Call when a cudaFree in this context returns.  `before` is the clock that gpc_sim_race_of_context() returned before
 * the free.  If is_promised, the free has promised the program that all work in `before` has ended.  Frees `before`.
 */
void gpc_sim_race_freed(
	struct gpc_sim_context *context, struct gpc_sim_race_clock *before, bool is_promised);

/* Call when the host reads what work of the context writes, without a call that waits for this work. */
void gpc_sim_race_host_reads(
	struct gpc_sim_context *context, const struct gpc_sim_race_stack *stack);

/* Call before the memory at `ptr` is freed: removes its owner. */
void gpc_sim_race_disown(struct gpc_sim *sim, uint64_t ptr);

uint64_t gpc_sim_race_n_violations(struct gpc_sim *sim);

/* ---- for the other parts of the simulator; without a detector all of these do nothing ---- */

void gpc_sim_race_destroy(struct gpc_sim *sim);

/* Counts a violation, and stores it if it is one of the first.  Lock: race->lock. */
void gpc_sim_race_note_locked(
	struct gpc_sim_race *race, const struct gpc_sim_race_violation *violation);

/* Return false without memory or without a free track. */
bool gpc_sim_race_open_context(struct gpc_sim_context *context);
void gpc_sim_race_close_context(struct gpc_sim_context *context);
bool gpc_sim_race_open_stream(struct gpc_sim_stream *stream);
void gpc_sim_race_close_stream(struct gpc_sim_stream *stream);

/* Removes all owners of this context's memory. */
void gpc_sim_race_disown_all(struct gpc_sim_context *context);

/*
 * Call when the timeline appends `work` to the stream; NULL: the record of an event, or a wait, which have no duration.
 * Counts one more piece of work on the stream's track.
 */
void gpc_sim_race_advance(
	struct gpc_sim_stream *stream, const struct gpc_sim_effect *work, bool is_early);

/*
 * Call after gpc_sim_race_advance for work with an effect: checks the memory that it touches, and stores the touches.
 */
void gpc_sim_race_submit(struct gpc_sim_stream *stream, const struct gpc_sim_effect *effect);

void gpc_sim_race_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
void gpc_sim_race_record_context(struct gpc_sim_context *context, struct gpc_sim_event *event);
void gpc_sim_race_wait(struct gpc_sim_stream *stream, const struct gpc_sim_event *event);
void gpc_sim_race_wait_context(struct gpc_sim_context *context, const struct gpc_sim_event *event);
void gpc_sim_race_close_event(struct gpc_sim_event *event);

/*
 * Call before the host waits for the event, stream, context or device, or queries it.  Returns a copy of its clock, to
 * be passed to gpc_sim_race_learn; NULL without memory, or for an event that was never recorded.
 */
struct gpc_sim_race_clock *gpc_sim_race_of_event(const struct gpc_sim_event *event);
struct gpc_sim_race_clock *gpc_sim_race_of_stream(const struct gpc_sim_stream *stream);
struct gpc_sim_race_clock *gpc_sim_race_of_context(const struct gpc_sim_context *context);
struct gpc_sim_race_clock *gpc_sim_race_of_device(struct gpc_sim *sim, unsigned device);

/* Call after the wait or query: if has_ended, the host now knows that all work in `clock` has ended.  Frees `clock`. */
void gpc_sim_race_learn(struct gpc_sim *sim, struct gpc_sim_race_clock *clock, bool has_ended);

#endif
