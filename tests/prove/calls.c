/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that another thread can overtake, split into stages as in src/runtime (contexts.c, streams.c).
 */
#include "tests/prove/prove.h"

static struct gpc_captures *captures_of(struct prove_machine *machine)
{
	return &machine->heap.captures;
}

bool prove_sync_context(struct prove_machine *machine, uint8_t c)
{
	struct gpc_driver *drv = &machine->contexts[c].drv.base;
	enum gpc_status st;

	if (!gpc_captures_try_hold(captures_of(machine)))
		return false;
	st = drv->ops->context_sync(drv);
	gpc_captures_release(captures_of(machine));
	return st == GPC_OK;
}

/* ---- streams ---- */

static struct prove_stream *place_of(struct prove_machine *machine, const struct prove_step *step)
{
	if (step->stream >= 1 && step->stream <= PROVE_SHARED)
		return &machine->contexts[step->context].shared[step->stream - 1];
	if (step->stream == PROVE_OWN)
		return &machine->threads[step->thread].own[step->context];
	return NULL;
}

struct gpc_sim_stream *prove_stream_find(
	struct prove_machine *machine, const struct prove_step *step)
{
	struct gpc_sim_context *context = machine->contexts[step->context].drv.sim.context;
	struct gpc_sim_stream **mine = &machine->threads[step->thread].per_thread[step->context];
	const struct prove_stream *place = place_of(machine, step);

	if (step->stream == PROVE_LEGACY)
		return &context->legacy;
	if (place)
		return atomic_load(&place->state) == PROVE_STREAM_THERE ? place->stream : NULL;
	if (!atomic_load(&machine->is_per_thread_seen))
		return NULL;
	/* Nobody tells the pool of a per-thread stream: it is there as soon as it is used. */
	if (!*mine && gpc_sim_stream_create(context, CU_STREAM_DEFAULT, 0, mine) != CUDA_SUCCESS)
		return NULL;
	return *mine;
}

static void begin_stream(
	struct prove_machine *machine, const struct prove_step *step, struct prove_call *call)
{
	struct gpc_sim_context *context = machine->contexts[step->context].drv.sim.context;
	struct prove_stream *place = place_of(machine, step);
	bool is_blocking = step->stream != PROVE_OWN && step->b % 2;
	int none = PROVE_STREAM_NONE;

	if (!place || !atomic_compare_exchange_strong(&place->state, &none, PROVE_STREAM_COMING))
		return;
	if (gpc_sim_stream_create(context, is_blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING,
		    0, &place->stream) != CUDA_SUCCESS) {
		atomic_store(&place->state, PROVE_STREAM_NONE);
		return;
	}
	call->op = PROVE_STREAM_CREATE;
	call->stream = place;
}

static void end_stream(struct prove_machine *machine, struct prove_call *call)
{
	struct gpc_pool *pool = &machine->contexts[call->context].pool;
	struct prove_stream *place = call->stream;
	enum gpc_status st;

	gpc_lock_take(&pool->lock);
	st = gpc_fences_stream_created(&pool->fences, (gpc_stream)(uintptr_t)place->stream);
	gpc_lock_release(&pool->lock);
	call->op = PROVE_CONTINUE;
	if (st && prove_sync_context(machine, call->context)) {
		gpc_lock_take(&pool->lock);
		pool->fences.is_end_due = false;
		gpc_lock_release(&pool->lock);
		st = GPC_OK;
	}
	if (!st) {
		atomic_store(&place->state, PROVE_STREAM_THERE);
		return;
	}
	/* Neither the device nor the host can wait now: this program has no such stream. */
	gpc_sim_stream_destroy(place->stream);
	atomic_store(&place->state, PROVE_STREAM_NONE);
}

/* ---- the first use of a per-thread stream ---- */

/* A single stage: there is no wait in which another thread could run. */
static void use_per_thread(struct prove_machine *machine)
{
	atomic_store(&machine->is_per_thread_used, true);
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++) {
		struct gpc_pool *pool = &machine->contexts[c].pool;

		gpc_lock_take(&pool->lock);
		gpc_fences_per_thread_stream_used(&pool->fences);
		gpc_lock_release(&pool->lock);
	}
	atomic_store(&machine->is_per_thread_seen, true);
}

/* ---- the first kernel that may overlap the one ahead of it ---- */

static void begin_overlap(struct prove_machine *machine, struct prove_call *call)
{
	if (atomic_load(&machine->is_overlap_seen))
		return;
	if (machine->variant == PROVE_BARE_OVERLAP) {
		atomic_store(&machine->is_overlap_seen, true);
		return;
	}
	atomic_store(&machine->is_overlap_used, true);
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++) {
		struct gpc_pool *pool = &machine->contexts[c].pool;

		gpc_lock_take(&pool->lock);
		call->must_wait[c] = gpc_fences_peer_comes(&pool->fences);
		gpc_lock_release(&pool->lock);
	}
	call->op = PROVE_OVERLAP_USE;
}

/* Later work is behind what was reused under the one-stream rule: on the device where that can be had. */
static void order_one_stream(struct prove_machine *machine, struct gpc_pool *pool)
{
	struct gpc_driver *drv = pool->drv;
	enum gpc_status st = GPC_UNSUPPORTED;
	gpc_event event;

	gpc_lock_take(&pool->lock);
	event = pool->fences.is_end_due ? 0 : pool->fences.one_stream_end;
	gpc_lock_release(&pool->lock);
	if (event && gpc_captures_try_hold(captures_of(machine))) {
		st = drv->ops->fence_wait(drv, event);
		gpc_captures_release(captures_of(machine));
	}
	if (st && event)
		(void)!drv->ops->event_wait(drv, event);
	else if (st)
		gpc_pool_wait_for_one_stream(pool);
}

static void end_overlap(struct prove_machine *machine, struct prove_call *call)
{
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++) {
		if (call->must_wait[c])
			order_one_stream(machine, &machine->contexts[c].pool);
	}
	atomic_store(&machine->is_overlap_seen, true);
	call->op = PROVE_CONTINUE;
}

/* ---- peers ---- */

static void begin_peer(
	struct prove_machine *machine, const struct prove_step *step, struct prove_call *call)
{
	struct gpc_pool *pool = &machine->contexts[step->context].pool;

	call->other = (uint8_t)((step->context + 1) % PROVE_CONTEXTS);
	/* By one thread only: what a second one is told while the first is in the call is not a promise. */
	if (step->thread != 0 ||
		atomic_load(&machine->contexts[step->context].is_reached_by[call->other]))
		return;
	gpc_lock_take(&pool->lock);
	gpc_fences_expect_peer(&pool->fences);
	call->must_wait[0] = gpc_fences_peer_comes(&pool->fences);
	if (gpc_fences_add_member(&pool->fences, &machine->contexts[call->other].drv.base) ==
		GPC_OK)
		call->op = PROVE_PEER;
	gpc_lock_release(&pool->lock);
}

static void end_peer(struct prove_machine *machine, struct prove_call *call)
{
	call->op = PROVE_CONTINUE;
	if (call->must_wait[0] && !prove_sync_context(machine, call->context))
		return;
	if (gpc_pool_settle(&machine->contexts[call->context].pool))
		return;
	atomic_store(&machine->contexts[call->context].is_reached_by[call->other], true);
}

/* ---- memory that another process, or a network card, uses from now on until it is freed ---- */

static void begin_export(
	struct prove_machine *machine, const struct prove_step *step, struct prove_call *call)
{
	const struct prove_block *block = &machine->threads[step->thread].blocks[step->a];
	struct gpc_pool *pool;

	if (!block->address)
		return;
	*call = (struct prove_call){
		.op = PROVE_EXPORT, .context = block->context, .address = block->address
	};
	if (machine->variant == PROVE_BARE_EXPORT)
		return;
	pool = &machine->contexts[block->context].pool;
	gpc_lock_take(&pool->lock);
	call->must_wait[0] = gpc_fences_peer_comes(&pool->fences);
	gpc_lock_release(&pool->lock);
}

static void end_export(struct prove_machine *machine, struct prove_call *call)
{
	struct gpc_pool *pool = &machine->contexts[call->context].pool;

	call->op = PROVE_CONTINUE;
	if (call->must_wait[0] && !prove_sync_context(machine, call->context))
		return;
	if (machine->variant == PROVE_BARE_EXPORT || machine->variant == PROVE_LOOSE_EXPORT ||
		!gpc_pool_settle(pool))
		gpc_sim_race_expose(machine->sim, call->address);
}

/* ---- the program synchronises ---- */

static void go_on_with_sync(struct prove_machine *machine, struct prove_call *call)
{
	struct gpc_pool *pool = &machine->contexts[call->context].pool;
	struct gpc_driver *drv = &machine->contexts[call->context].drv.base;

	if (call->stage == 1 && prove_sync_context(machine, call->context))
		return;
	if (call->stage == 2)
		gpc_pool_end_sync(pool, call->sync, drv->ops->now_ns(drv));
	call->op = PROVE_CONTINUE;
}

/* ---- all of them ---- */

void prove_call_begin(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_call *call = &machine->threads[step->thread].call;

	*call = (struct prove_call){ .op = PROVE_CONTINUE, .context = step->context };
	if (step->op == PROVE_STREAM_CREATE) {
		begin_stream(machine, step, call);
	} else if (gpc_captures_is_any_open(captures_of(machine))) {
		return;
	} else if (step->op == PROVE_PER_THREAD_USE) {
		use_per_thread(machine);
	} else if (step->op == PROVE_OVERLAP_USE) {
		begin_overlap(machine, call);
	} else if (step->op == PROVE_PEER) {
		begin_peer(machine, step, call);
	} else if (step->op == PROVE_EXPORT) {
		begin_export(machine, step, call);
	} else {
		call->op = PROVE_SYNC;
		call->sync = gpc_pool_begin_sync(&machine->contexts[step->context].pool);
	}
	if (machine->is_threaded)
		prove_call_continue(machine, &machine->threads[step->thread], true);
}

void prove_call_continue(struct prove_machine *machine, struct prove_thread *thread, bool to_end)
{
	struct prove_call *call = &thread->call;

	while (call->op != PROVE_CONTINUE) {
		call->stage++;
		if (call->op == PROVE_STREAM_CREATE)
			end_stream(machine, call);
		else if (call->op == PROVE_OVERLAP_USE)
			end_overlap(machine, call);
		else if (call->op == PROVE_PEER)
			end_peer(machine, call);
		else if (call->op == PROVE_EXPORT)
			end_export(machine, call);
		else
			go_on_with_sync(machine, call);
		if (!to_end)
			return;
	}
}
