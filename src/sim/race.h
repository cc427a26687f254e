/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race detector: whether memory got a new owner while work of the old one could still touch it.
 *
 * The timeline of stream.h says when work runs, and by luck that may be late enough.  The detector
 * asks for more: that the new owner's work is ordered behind the old one's, however long either
 * takes.  So each tail of the timeline has a clock beside it: how many pieces of work of every
 * stream come before what is submitted next.
 *
 *      tail_ns of a stream             its track's clock
 *      all, blocking, barrier          those of the context's
 *      done_ns of an event             the event's clock, copied when it is recorded
 *      early_ns of a stream            its track's clock before that kernel
 *      what the host waited for        `host`: work known to have ended
 *      a free                          all that its context had, kept as `freed`
 *
 *      old owner's work: number 5 of track 1            is behind it, if
 *      new owner's work, on track 2                     clock of track 2 at [1] >= 5, or host at [1] >= 5
 *
 * Four ways to break that, the first three counted once for a life of memory:
 *      handed out   when it is given out, some stream of its context that the program uses is not ordered behind
 *                   the old work: the new owner may use that stream at once
 *                   (not looked at with `is_late`: whoever gets memory puts all streams behind that work
 *                   before it uses one)
 *      overtaken    work of the new owner is submitted that is not ordered behind the old work
 *      exposed      somebody outside all streams gets it, another process or a network card, and the host does
 *                   not know that the old work has ended
 *      read         the host reads what the device writes behind a cudaFree, which in a plain process has ended all
 *                   before it, and some of that may still run
 *
 * Invariants  1 A clock only grows.  2 The number of a track goes on where the last stream that
 *               had it stopped, and a track gets a new stream only when the host knows that all
 *               its work has ended.
 * Threads     Any; one lock, the innermost of the model.  An owner is named after it got memory
 *             and its end before it gives that back.  An event that one thread waits for and
 *             another records again counts as it was before.
 * Failure     Where there is no memory or no track, a stream or context is not made; a touch is
 *             lost, and counted.
 * Limits      What the host writes itself is not looked at, nor memory that has no owner; nor, when memory is handed
 *             out, that the new owner may use it by an early kernel.  What
 *             one thread has seen end counts as ended for all: it has.
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

/* Who: addresses of code, or what else the caller can read again, as the steps of a program. */
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
	uint64_t ptr; /* the bytes that both have; READ: 0 */
	uint64_t size;
	uint64_t old_stream; /* number of the stream that the old owner's work is on */
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
	uint64_t number; /* never given again */
	const struct gpc_sim_context *context;
	const struct gpc_sim_stream *stream; /* the only one it was asked for; NULL: any */
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
	bool is_early; /* the last of them is an early kernel, which comes behind `early` only */
	struct gpc_sim_race_clock clock;
	struct gpc_sim_race_clock early; /* of the kernel that early ones behind it overlap */
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
	struct gpc_sim_race_touch *touches; /* of work that the host does not know to have ended */
	size_t n_touches, room_touches;
	uint64_t n_lost;
	_Atomic uint64_t n_violations; /* read without the lock */
	struct gpc_sim_race_violation violations[GPC_SIM_RACE_KEPT];

	pthread_mutex_t lock;
};

/*
 * Watches this machine from now on; before its first context.  The machine destroys it.  False:
 * no memory.
 */
bool gpc_sim_race_attach(struct gpc_sim *sim);

/* The program was given this memory of the context.  False: no memory; the owner is not known. */
bool gpc_sim_race_own(struct gpc_sim *sim, const struct gpc_sim_context *context, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack);

/*
 * The same for memory that was asked for in the order of one stream: when it is handed out only
 * that stream counts, and work on others must be ordered behind it by the program.
 */
bool gpc_sim_race_own_on(struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack);

/* The owner of what starts at ptr gives it to somebody outside, who may use it at once until its end. */
void gpc_sim_race_expose(struct gpc_sim *sim, uint64_t ptr);

/*
 * cudaFree returned in this context: all of `before`, gpc_sim_race_of_context from when it was called, is over
 * for who looks behind it, if that was promised.  Takes the clock.  And: the host reads, without a call, what
 * work of the context writes.
 */
void gpc_sim_race_freed(
	struct gpc_sim_context *context, struct gpc_sim_race_clock *before, bool is_promised);
void gpc_sim_race_host_reads(
	struct gpc_sim_context *context, const struct gpc_sim_race_stack *stack);

/* The program is about to give back what starts at ptr. */
void gpc_sim_race_disown(struct gpc_sim *sim, uint64_t ptr);

uint64_t gpc_sim_race_n_violations(struct gpc_sim *sim);

/* ---- for the model: every one of these does nothing where no detector is attached ---- */

void gpc_sim_race_destroy(struct gpc_sim *sim);

/* Counts a violation, and keeps one of the first.  Lock: race->lock. */
void gpc_sim_race_note_locked(
	struct gpc_sim_race *race, const struct gpc_sim_race_violation *violation);

/* False: no memory, or no track. */
bool gpc_sim_race_open_context(struct gpc_sim_context *context);
void gpc_sim_race_close_context(struct gpc_sim_context *context);
bool gpc_sim_race_open_stream(struct gpc_sim_stream *stream);
void gpc_sim_race_close_stream(struct gpc_sim_stream *stream);

/* Nobody owns memory of this context any more. */
void gpc_sim_race_disown_all(struct gpc_sim_context *context);

/*
 * Beside the timeline's own step for the same: a place at the end of the stream is taken, by work, or by
 * what has no length (NULL).
 */
void gpc_sim_race_advance(
	struct gpc_sim_stream *stream, const struct gpc_sim_effect *work, bool is_early);

/* The work that was given that place is this. */
void gpc_sim_race_submit(struct gpc_sim_stream *stream, const struct gpc_sim_effect *effect);

void gpc_sim_race_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
void gpc_sim_race_record_context(struct gpc_sim_context *context, struct gpc_sim_event *event);
void gpc_sim_race_wait(struct gpc_sim_stream *stream, const struct gpc_sim_event *event);
void gpc_sim_race_wait_context(struct gpc_sim_context *context, const struct gpc_sim_event *event);
void gpc_sim_race_close_event(struct gpc_sim_event *event);

/* Before the host waits: a copy of the clock of what it waits for, for gpc_sim_race_learn. */
struct gpc_sim_race_clock *gpc_sim_race_of_event(const struct gpc_sim_event *event);
struct gpc_sim_race_clock *gpc_sim_race_of_stream(const struct gpc_sim_stream *stream);
struct gpc_sim_race_clock *gpc_sim_race_of_context(const struct gpc_sim_context *context);
struct gpc_sim_race_clock *gpc_sim_race_of_device(struct gpc_sim *sim, unsigned device);

/* After it: the host knows that all that is in `clock` has ended, if it has.  Takes the clock. */
void gpc_sim_race_learn(struct gpc_sim *sim, struct gpc_sim_race_clock *clock, bool has_ended);

#endif
