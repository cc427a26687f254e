/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the steps of a program.  A step whose operands do not exist does nothing. */
#include <string.h>

#include "oom/ladder.h"
#include "tests/prove/prove.h"

#define N_FAULTS 8

/* ---- memory ---- */

static enum gpc_status attempt(void *arg)
{
	struct prove_thread *thread = arg;

	return gpc_pool_retry(thread->pool, &thread->request, &thread->address);
}

/* Allocates as the library does: from the pool, then by the ladder over all pools of the device. */
static enum gpc_status alloc(struct prove_machine *machine, struct prove_thread *thread)
{
	struct gpc_pool *pools[PROVE_CONTEXTS];
	struct gpc_ladder ladder = { .pool = thread->pool,
		.pools = pools,
		.n_pools = PROVE_CONTEXTS,
		.wanted = thread->request.size,
		.attempt = attempt,
		.arg = thread };
	enum gpc_status st = gpc_pool_alloc(thread->pool, &thread->request, &thread->address);

	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++)
		pools[c] = &machine->contexts[c].pool;
	return gpc_ladder_helps(st) ? gpc_ladder_climb(&ladder, st) : st;
}

static void do_alloc(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];
	struct prove_block *block = &thread->blocks[step->a];
	struct prove_context *context = &machine->contexts[step->context];
	const struct gpc_sim_race_stack who = { .n = 1,
		.frames[0] = (uint64_t)(step - machine->program->steps) };

	if (block->address)
		return;
	thread->pool = &context->pool;
	thread->request = (struct gpc_request){ .size = step->n,
		.is_exact = prove_is_exact(step),
		.now_ns = gpc_sim_clock_now(&machine->sim->clock) };
	/* No room is an answer like any other. */
	if (alloc(machine, thread)) {
		thread->n_refused++;
		return;
	}
	*block = (struct prove_block){ .address = thread->address,
		.size = step->n,
		.life = ++thread->n_lives,
		.context = step->context };
	if (!gpc_sim_race_own(
		    machine->sim, context->drv.sim.context, block->address, block->size, &who))
		prove_complain(thread, "no memory for the race detector");
}

/* Waits on the host before a free if the device does not keep the order.  False: the wait is not possible. */
static bool keep_order(struct prove_machine *machine, const struct prove_block *block)
{
	struct gpc_pool *pool = &machine->contexts[block->context].pool;
	bool must_wait =
		machine->program->order == PROVE_DEVICE ? !gpc_pool_keeps_order(pool) : true;
	struct gpc_pool_sync sync;

	if (machine->program->order == PROVE_FENCE || machine->variant == PROVE_NO_HOST_WAIT ||
		!must_wait)
		return !gpc_captures_is_near(&machine->heap.captures);
	sync = gpc_pool_begin_sync(pool);
	if (!prove_sync_context(machine, block->context))
		return false;
	gpc_pool_end_sync(pool, sync, gpc_sim_clock_now(&machine->sim->clock));
	return true;
}

static void do_free(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];
	struct prove_block *block = &thread->blocks[step->a];
	const struct gpc_request request = { .now_ns = gpc_sim_clock_now(&machine->sim->clock) };
	struct gpc_sim_race_clock *before;
	struct gpc_sim_context *context;

	if (!block->address)
		return;
	context = machine->contexts[block->context].drv.sim.context;
	before = gpc_sim_race_of_context(context);
	gpc_sim_race_freed(context, before, keep_order(machine, block));
	gpc_sim_race_disown(machine->sim, block->address);
	if (gpc_pool_free(&machine->contexts[block->context].pool, block->address, &request))
		prove_complain(thread, "a block is not taken back");
	block->address = 0;
}

/* ---- work ---- */

/* Returns the thread's block if work of this context may access it, else NULL. */
static const struct prove_block *reachable(
	struct prove_machine *machine, const struct prove_step *step, uint8_t which)
{
	const struct prove_block *block;

	if (which >= PROVE_BLOCKS)
		return NULL;
	block = &machine->threads[step->thread].blocks[which];
	if (!block->address ||
		(block->context != step->context &&
			!atomic_load(
				&machine->contexts[block->context].is_reached_by[step->context])))
		return NULL;
	return block;
}

static void note_touched(struct prove_thread *thread, uint8_t which)
{
	thread->touched[thread->n_touched].block = which;
	thread->touched[thread->n_touched].life = thread->blocks[which].life;
	thread->n_touched++;
}

static void do_launch(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];
	struct gpc_sim_stream *stream = prove_stream_find(machine, step);
	const uint8_t which[2] = { step->a, step->b };
	struct gpc_sim_effect *effect;

	if (!stream || !reachable(machine, step, step->a) ||
		(stream == thread->capturing && thread->n_touched + 2 > PROVE_TOUCHED))
		return;
	effect = gpc_sim_effect_create(GPC_SIM_EFFECT_KERNEL, step->n);
	if (!effect)
		abort();
	effect->ranges = calloc(2, sizeof *effect->ranges);
	if (!effect->ranges)
		abort();
	for (unsigned i = 0; i < 2; i++) {
		const struct prove_block *block = reachable(machine, step, which[i]);

		if (!block)
			continue;
		effect->ranges[effect->n_ranges++] = (struct gpc_sim_range){
			.ptr = block->address, .size = block->size, .fill = -1
		};
		if (stream == thread->capturing)
			note_touched(thread, which[i]);
	}
	effect->is_early = step->op == PROVE_LAUNCH_EARLY;
	prove_submits(machine, step->context);
	if (gpc_sim_stream_submit(stream, effect) != CUDA_SUCCESS)
		prove_complain(thread, "work is refused");
}

static void do_launch_early(struct prove_machine *machine, const struct prove_step *step)
{
	if (atomic_load(&machine->is_overlap_seen))
		do_launch(machine, step);
}

static void do_time(struct prove_machine *machine, const struct prove_step *step)
{
	struct gpc_sim_clock *clock = &machine->sim->clock;

	gpc_sim_clock_wait_until(clock, gpc_sim_clock_now(clock) + step->n);
	gpc_sim_settle(machine->sim);
}

static void do_stream_destroy(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_context *context = &machine->contexts[step->context];
	struct prove_thread *thread = &machine->threads[step->thread];
	struct gpc_sim_stream *stream = prove_stream_find(machine, step);
	struct prove_stream *place;

	if (!stream || step->stream < 1 || step->stream > PROVE_OWN || stream == thread->capturing)
		return;
	place = step->stream == PROVE_OWN ? &thread->own[step->context]
					  : &context->shared[step->stream - 1];
	gpc_sim_stream_destroy(stream);
	atomic_store(&place->state, PROVE_STREAM_NONE);
}

/* ---- events, and what the host waits for ---- */

static void do_event_record(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];
	struct gpc_sim_event **event = &thread->events[step->context][step->a % PROVE_EVENTS];
	struct gpc_sim_stream *stream = prove_stream_find(machine, step);

	if (!stream || stream == thread->capturing)
		return;
	if (!*event && gpc_sim_event_create(machine->contexts[step->context].drv.sim.context, 0,
			       event) != CUDA_SUCCESS)
		abort();
	if (gpc_sim_stream_record(stream, *event) != CUDA_SUCCESS)
		prove_complain(thread, "an event is not recorded");
}

static struct gpc_sim_event *find_event(
	struct prove_machine *machine, const struct prove_step *step)
{
	return machine->threads[step->thread]
		.events[step->b % PROVE_CONTEXTS][step->a % PROVE_EVENTS];
}

static void do_event_wait(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];
	struct gpc_sim_stream *stream = prove_stream_find(machine, step);
	struct gpc_sim_event *event = find_event(machine, step);

	if (!stream || !event || stream == thread->capturing)
		return;
	if (gpc_sim_stream_wait(stream, event) != CUDA_SUCCESS)
		prove_complain(thread, "an event is not waited for");
}

/* A correct program does not wait on the host while it captures. */
static void do_host_wait(struct prove_machine *machine, const struct prove_step *step)
{
	struct gpc_sim_stream *stream = prove_stream_find(machine, step);
	struct gpc_sim_event *event = find_event(machine, step);
	CUresult result = CUDA_SUCCESS;

	if (!gpc_captures_try_hold(&machine->heap.captures))
		return;
	if (step->op == PROVE_EVENT_SYNC && event)
		result = gpc_sim_event_sync(event);
	else if (step->op == PROVE_STREAM_SYNC && stream)
		result = gpc_sim_stream_sync(stream);
	gpc_captures_release(&machine->heap.captures);
	if (result != CUDA_SUCCESS)
		prove_complain(&machine->threads[step->thread], "a wait of the host fails");
}

/*
 * The host reads what a context's work writes, after a free: with free_order:host at once, on the device after a
 * look, which is one of the legacy stream where that was all there was.  Fences promise nothing.
 */
static void do_read(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_context *context = &machine->contexts[step->context];
	const struct gpc_sim_race_stack who = { .n = 1,
		.frames[0] = (uint64_t)(step - machine->program->steps) };

	if (machine->program->order == PROVE_FENCE || gpc_captures_is_near(&machine->heap.captures))
		return;
	if (machine->program->order == PROVE_DEVICE &&
		atomic_load(&machine->heap.duties->n_unsettled) > 0 &&
		gpc_pool_settle(&context->pool))
		return;
	if (machine->program->order == PROVE_DEVICE && machine->program->is_one_stream)
		(void)gpc_sim_stream_sync(&context->drv.sim.context->legacy);
	gpc_sim_race_host_reads(context->drv.sim.context, &who);
}

/* ---- captures ---- */

static void do_capture_begin(struct prove_machine *machine, const struct prove_step *step)
{
	static const CUstreamCaptureMode modes[] = { CU_STREAM_CAPTURE_MODE_GLOBAL,
		CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED };
	struct prove_thread *thread = &machine->threads[step->thread];
	const struct prove_stream *own = &thread->own[step->context];

	if (thread->capturing || atomic_load(&own->state) != PROVE_STREAM_THERE)
		return;
	gpc_sim_graph_destroy(thread->graph);
	thread->graph = NULL;
	thread->n_touched = 0;
	gpc_captures_announce(&machine->heap.captures);
	for (uint8_t c = 0; c < PROVE_CONTEXTS && machine->variant != PROVE_LOOSE_CAPTURE; c++) {
		gpc_pool_raise_barrier(&machine->contexts[c].pool);
		gpc_pool_settle_one_stream(&machine->contexts[c].pool);
	}
	gpc_captures_begin_announced(&machine->heap.captures);
	if (gpc_sim_capture_begin(own->stream, modes[step->b % 3]) != CUDA_SUCCESS) {
		gpc_captures_end(&machine->heap.captures);
		prove_complain(thread, "a capture does not begin");
		return;
	}
	thread->capturing = own->stream;
	thread->capture_context = step->context;
}

static void do_capture_end(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];

	if (!thread->capturing)
		return;
	if (gpc_sim_capture_end(thread->capturing, &thread->graph) != CUDA_SUCCESS)
		prove_complain(thread, "a capture was broken");
	thread->capturing = NULL;
	gpc_captures_end(&machine->heap.captures);
}

/* Launches only if all blocks of the graph are still live. */
static void do_graph_launch(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_thread *thread = &machine->threads[step->thread];
	struct gpc_sim_stream *stream = prove_stream_find(machine, step);

	if (!thread->graph || !stream || stream == thread->capturing ||
		thread->capture_context != step->context)
		return;
	for (uint32_t i = 0; i < thread->n_touched; i++) {
		uint8_t which = thread->touched[i].block;

		if (thread->blocks[which].life != thread->touched[i].life ||
			!reachable(machine, step, which))
			return;
	}
	prove_submits(machine, step->context);
	if (gpc_sim_graph_launch(thread->graph, stream) != CUDA_SUCCESS)
		prove_complain(thread, "a graph is refused");
}

/* ---- the world ---- */

/* Another process allocates or frees device memory. */
static void do_hog(struct prove_machine *machine, const struct prove_step *step)
{
	struct gpc_sim_device *device = &machine->sim->devices[0];
	uint64_t held = atomic_exchange(&machine->hogged, 0);

	if (!held && gpc_sim_device_charge(device, step->n) == CUDA_SUCCESS)
		held = atomic_exchange(&machine->hogged, step->n);
	if (held)
		gpc_sim_device_uncharge(device, held);
}

static void do_fault(struct prove_machine *machine, const struct prove_step *step)
{
	static const char *const entries[N_FAULTS] = { "cuCtxRecordEvent", "cuCtxRecordEvent",
		"cuCtxRecordEvent", "cuCtxRecordEvent", "cuEventCreate", "cuStreamWaitEvent",
		"cuEventRecord", "cuMemAlloc_v2" };
	struct gpc_sim_faults *faults = &machine->sim->faults;

	gpc_sim_fault_clear(faults);
	(void)gpc_sim_fault_add(faults, entries[step->b % N_FAULTS], 1 + step->n % 2,
		1 + step->n / 2 % 2, CUDA_ERROR_OUT_OF_MEMORY);
}

static void do_pool(struct prove_machine *machine, const struct prove_step *step)
{
	struct gpc_pool *pool = &machine->contexts[step->context].pool;

	if (step->op == PROVE_REAP)
		(void)gpc_pool_reap(pool);
	else if (step->op == PROVE_WAIT)
		(void)gpc_pool_wait(pool, step->n);
	else
		(void)gpc_pool_trim(pool, step->n, step->b % 2);
}

/* A correct program ends the work of peers on the context's memory first. */
static void do_reset(struct prove_machine *machine, const struct prove_step *step)
{
	struct prove_context *context = &machine->contexts[step->context];

	if (gpc_captures_is_any_open(&machine->heap.captures))
		return;
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++) {
		if (atomic_load(&context->is_reached_by[c]) &&
			gpc_sim_context_sync(machine->contexts[c].drv.sim.context) != CUDA_SUCCESS)
			prove_complain(&machine->threads[step->thread], "a context is broken");
	}
	prove_machine_reset(machine, step->context);
}

static void do_nothing(struct prove_machine *machine, const struct prove_step *step)
{
	(void)machine;
	(void)step;
}

static void (*const actions[PROVE_OPS])(struct prove_machine *, const struct prove_step *) = {
	[PROVE_ALLOC] = do_alloc,
	[PROVE_FREE] = do_free,
	[PROVE_LAUNCH] = do_launch,
	[PROVE_TIME] = do_time,
	[PROVE_CONTINUE] = do_nothing,
	[PROVE_STREAM_CREATE] = prove_call_begin,
	[PROVE_STREAM_DESTROY] = do_stream_destroy,
	[PROVE_STREAM_SYNC] = do_host_wait,
	[PROVE_EVENT_RECORD] = do_event_record,
	[PROVE_EVENT_WAIT] = do_event_wait,
	[PROVE_EVENT_SYNC] = do_host_wait,
	[PROVE_SYNC] = prove_call_begin,
	[PROVE_PER_THREAD_USE] = prove_call_begin,
	[PROVE_PEER] = prove_call_begin,
	[PROVE_EXPORT] = prove_call_begin,
	[PROVE_OVERLAP_USE] = prove_call_begin,
	[PROVE_LAUNCH_EARLY] = do_launch_early,
	[PROVE_READ] = do_read,
	[PROVE_CAPTURE_BEGIN] = do_capture_begin,
	[PROVE_CAPTURE_END] = do_capture_end,
	[PROVE_GRAPH_LAUNCH] = do_graph_launch,
	[PROVE_RESET] = do_reset,
	[PROVE_HOG] = do_hog,
	[PROVE_FAULT] = do_fault,
	[PROVE_REAP] = do_pool,
	[PROVE_WAIT] = do_pool,
	[PROVE_TRIM] = do_pool,
};

void prove_step_do(struct prove_machine *machine, uint32_t number)
{
	const struct prove_step *step = &machine->program->steps[number];
	struct prove_thread *thread = &machine->threads[step->thread];
	bool is_alone = step->op == PROVE_RESET || step->op == PROVE_STREAM_DESTROY ||
			step->op == PROVE_READ; /* nothing is freed or captured meanwhile */

	if (is_alone)
		pthread_rwlock_wrlock(&machine->life);
	else
		pthread_rwlock_rdlock(&machine->life);
	/* A thread that is in a call does nothing else until it is out of it. */
	if (step->op == PROVE_CONTINUE)
		prove_call_continue(machine, thread, step->b % 2);
	else if (thread->call.op == PROVE_CONTINUE)
		actions[step->op](machine, step);
	pthread_rwlock_unlock(&machine->life);
}
