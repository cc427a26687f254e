/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race detector: finds memory that got a new owner while work of the old one could still touch it.
 *
 * In the timeline of stream.h the old work may happen to end early enough.  The detector is stricter: the new owner's
 * work must be ordered after the old owner's, however long either takes.  So each tail of the timeline has a vector
 * clock: for every stream, how much of its work precedes the next submission.
 *
 *      tail_ns of a stream             its track's clock
 *      all, blocking, barrier          the context's clocks of the same names
 *      done_ns of an event             the event's clock, copied when it is recorded
 *      early_ns of a stream            its track's clock before that kernel
 *      waits of the host               `host`: work known to have ended
 *      a free                          everything of its context, kept as `freed`
 *
 *      old owner's work: number 5 of track 1            precedes
 *      new owner's work, on track 2                     if clock of track 2 at [1] >= 5, or host at [1] >= 5
 *
 * There are four violations, of which the first three are counted once per lifetime of memory:
 *      handed out   Memory is given out while a stream of its context that the program uses is not ordered after the
 *                   old work: the new owner may use that stream at once.  Not checked if `is_late`: then the new
 *                   owner orders all streams after that work before it uses one.
 *      overtaken    Work of the new owner is submitted that is not ordered after the old work.
 *      exposed      A user outside all streams (another process, a network card) gets the memory while the host does
 *                   not know that the old work has ended.
 *      read         The host reads data that the device writes, after a cudaFree, while work submitted before the free
 *                   may still run.  In plain CUDA the free would have waited for that work.
 *
 * Invariants  1 A clock only grows.
 *             2 The numbers of a track continue where its last stream stopped, and a track gets a new stream only when
 *               the host knows that all its work has ended.
 * Threads     Any; one lock, the innermost of the model.  An owner is registered after it got memory and removed before
 *             it frees it.  If one thread waits for an event while another records it again, the wait is for the
 *             earlier record.
 * Failure     Without memory or a free track no stream or context is created; a touch that cannot be stored is lost,
 *             and counted.
 * Limits      Not checked: writes of the host itself, memory without an owner, and, on handing out, early kernels of
 *             the new owner.  Work that one thread has seen end has ended for all.
 */
#ifndef GPC_SIM_RACE_H
#define GPC_SIM_RACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/config.h"

#define GPC_SIM_RACE_TRACKS 128 /* streams at a time, of all contexts */
#define GPC_SIM_RACE_FRAMES 8
#define GPC_SIM_RACE_KEPT   16 /* violations kept whole; all are counted */

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
	uint64_t ptr; /* the bytes they share; READ: 0 */
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
	const struct gpc_sim_stream *stream; /* the only one it was requested for; NULL: any */
	struct gpc_sim_race_stack stack;
	bool is_reported;
};

struct gpc_sim_race_touch {
	uint64_t ptr;
	uint64_t size;
	uint64_t owner;
	uint64_t stream;
	uint32_t track;
	uint32_t number; /* on its track */
	struct gpc_sim_race_stack stack;
};

struct gpc_sim_race_track {
	const struct gpc_sim_stream *stream; /* NULL: none */
	bool is_used;                        /* the program submitted work */
	uint32_t n;                          /* pieces of work so far */
	bool is_early; /* the last one is an early kernel, ordered after `early` only */
	struct gpc_sim_race_clock clock;
	struct gpc_sim_race_clock early; /* of the kernel that later early ones overlap */
};

struct gpc_sim_race {
	/* Lock: lock. */
	struct gpc_sim_race_track tracks[GPC_SIM_RACE_TRACKS];
	struct gpc_sim_race_clock host;
	struct gpc_sim_race_clock devices[GPC_SIM_MAX_DEVICES];
	struct gpc_sim_race_owner *owners; /* sorted by ptr */
	size_t n_owners, room_owners;
	uint64_t n_owners_ever;
	bool is_late;                       /* fixed before the first owner */
	struct gpc_sim_race_touch *touches; /* of work not known to the host to have ended */
	size_t n_touches, room_touches;
	uint64_t n_lost;
	_Atomic uint64_t n_violations; /* read without the lock */
	struct gpc_sim_race_violation violations[GPC_SIM_RACE_KEPT];

	pthread_mutex_t lock;
};

/* Starts to watch this machine, before its first context.  The machine destroys the detector.  False: no memory. */
bool gpc_sim_race_attach(struct gpc_sim *sim);

/* Notes that the program was given this memory of the context.  False: no memory; the owner stays unknown. */
bool gpc_sim_race_own(struct gpc_sim *sim, const struct gpc_sim_context *context, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack);

/*
 * The same for memory requested in stream order: on handing out, only this stream counts; the program must order work
 * on others after it.
 */
bool gpc_sim_race_own_on(struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack);

/* The owner of the memory at ptr exports it to an outside user, who may access it until the owner frees it. */
void gpc_sim_race_expose(struct gpc_sim *sim, uint64_t ptr);

/*
 * A cudaFree in this context returned.  `before`: what gpc_sim_race_of_context() returned when the free was called; if
 * is_promised, the free promised that all that work has ended.  Frees `before`.
 */
void gpc_sim_race_freed(
	struct gpc_sim_context *context, struct gpc_sim_race_clock *before, bool is_promised);

/* The host reads, without a call, what work of the context writes. */
void gpc_sim_race_host_reads(
	struct gpc_sim_context *context, const struct gpc_sim_race_stack *stack);

/* The program is about to free the memory at ptr. */
void gpc_sim_race_disown(struct gpc_sim *sim, uint64_t ptr);

uint64_t gpc_sim_race_n_violations(struct gpc_sim *sim);

/* ---- for the model; all of these do nothing without a detector ---- */

void gpc_sim_race_destroy(struct gpc_sim *sim);

/* Counts a violation, and stores it if it is one of the first.  Lock: race->lock. */
void gpc_sim_race_note_locked(
	struct gpc_sim_race *race, const struct gpc_sim_race_violation *violation);

/* Return false without memory or without a free track. */
bool gpc_sim_race_open_context(struct gpc_sim_context *context);
void gpc_sim_race_close_context(struct gpc_sim_context *context);
bool gpc_sim_race_open_stream(struct gpc_sim_stream *stream);
void gpc_sim_race_close_stream(struct gpc_sim_stream *stream);

/* Ends all ownership of this context's memory. */
void gpc_sim_race_disown_all(struct gpc_sim_context *context);

/*
 * Called when the timeline appends to the stream: counts one more piece of work, or something without length (NULL).
 */
void gpc_sim_race_advance(
	struct gpc_sim_stream *stream, const struct gpc_sim_effect *work, bool is_early);

/* Called next for work with an effect: checks the memory that it touches, and stores the touches. */
void gpc_sim_race_submit(struct gpc_sim_stream *stream, const struct gpc_sim_effect *effect);

void gpc_sim_race_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
void gpc_sim_race_record_context(struct gpc_sim_context *context, struct gpc_sim_event *event);
void gpc_sim_race_wait(struct gpc_sim_stream *stream, const struct gpc_sim_event *event);
void gpc_sim_race_wait_context(struct gpc_sim_context *context, const struct gpc_sim_event *event);
void gpc_sim_race_close_event(struct gpc_sim_event *event);

/* Called before the host waits: returns a copy of the clock of what it waits for, for gpc_sim_race_learn. */
struct gpc_sim_race_clock *gpc_sim_race_of_event(const struct gpc_sim_event *event);
struct gpc_sim_race_clock *gpc_sim_race_of_stream(const struct gpc_sim_stream *stream);
struct gpc_sim_race_clock *gpc_sim_race_of_context(const struct gpc_sim_context *context);
struct gpc_sim_race_clock *gpc_sim_race_of_device(struct gpc_sim *sim, unsigned device);

/* Called after the wait: if has_ended, the host knows that all work in `clock` has ended.  Frees `clock`. */
void gpc_sim_race_learn(struct gpc_sim *sim, struct gpc_sim_race_clock *clock, bool has_ended);

#endif
