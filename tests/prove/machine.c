/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a program: a small device, two contexts with a pool each; and its end. */
#include <string.h>

#include "tests/prove/prove.h"

/* So small that programs run out of memory, and the ladder runs. */
#define DEVICE_BYTES (96 * GPC_MIB)

void prove_complain(struct prove_thread *thread, const char *problem)
{
	if (!thread->problem)
		thread->problem = problem;
}

static void count_pool(struct prove_machine *machine, const struct gpc_pool *pool)
{
	machine->n_alloc += pool->counters->n_malloc;
	machine->n_hit += pool->counters->n_hit;
}

static void open_pool(struct prove_machine *machine, struct prove_context *context)
{
	const struct gpc_pool_params params = {
		.pending_limit = machine->program->pending_limit,
		.is_one_stream = machine->program->is_one_stream &&
				 !atomic_load(&machine->is_per_thread_used) &&
				 !atomic_load(&machine->is_overlap_used),
		.has_barriers = machine->program->order == PROVE_DEVICE &&
				machine->program->driver_version >= 12050,
		.is_fence_skipped = machine->variant == PROVE_NO_FENCE,
		.vmm = machine->program->vmm,
	};

	gpc_pool_init(&context->pool, &machine->heap, &context->drv.base, &machine->budget, &params,
		0, (uint32_t)(context - machine->contexts), NULL);
}

bool prove_machine_open(struct prove_machine *machine, const struct prove_program *program,
	enum prove_variant variant, bool is_threaded)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	memset(machine, 0, sizeof *machine);
	machine->program = program;
	machine->variant = variant;
	machine->is_threaded = is_threaded;
	config.virtual_clock = true;
	config.memory = DEVICE_BYTES;
	config.context_cost = 0;
	config.free_waits = program->free_waits;
	config.free_waits_alone = program->free_waits_alone;
	config.queue = program->queue;
	config.is_event_queued = program->is_event_queued;
	config.driver_version = program->driver_version;
	machine->budget.device_bytes = config.memory;
	pthread_rwlock_init(&machine->life, NULL);
	machine->sim = gpc_sim_create(&config);
	if (!machine->sim || !gpc_sim_race_attach(machine->sim) ||
		gpc_heap_init(&machine->heap, NULL))
		return false;
	machine->sim->race->is_late = program->order == PROVE_DEVICE;
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++) {
		if (!prove_driver_open(&machine->contexts[c].drv, machine->sim, variant))
			return false;
		open_pool(machine, &machine->contexts[c]);
	}
	for (uint8_t t = 0; t < PROVE_THREADS; t++)
		machine->threads[t].call.op = PROVE_CONTINUE;
	return true;
}

/* What the program itself has in a context, when it ends. */
static void drop_things(struct prove_machine *machine, uint8_t c)
{
	for (uint8_t t = 0; t < PROVE_THREADS; t++) {
		struct prove_thread *thread = &machine->threads[t];

		thread->per_thread[c] = NULL;
		thread->own[c] = (struct prove_stream){ 0 };
		for (uint8_t e = 0; e < PROVE_EVENTS; e++) {
			if (thread->events[c][e])
				gpc_sim_event_destroy(thread->events[c][e]);
			thread->events[c][e] = NULL;
		}
		if (thread->graph && thread->capture_context == c) {
			gpc_sim_graph_destroy(thread->graph);
			thread->graph = NULL;
		}
	}
	for (uint8_t s = 0; s < PROVE_SHARED; s++)
		machine->contexts[c].shared[s] = (struct prove_stream){ 0 };
}

void prove_machine_reset(struct prove_machine *machine, uint8_t c)
{
	struct prove_context *context = &machine->contexts[c];

	for (uint8_t t = 0; t < PROVE_THREADS; t++) {
		prove_call_continue(machine, &machine->threads[t], true);
		for (uint8_t i = 0; i < PROVE_BLOCKS; i++) {
			if (machine->threads[t].blocks[i].context == c)
				machine->threads[t].blocks[i].address = 0;
		}
	}
	drop_things(machine, c);
	for (uint8_t other = 0; other < PROVE_CONTEXTS; other++) {
		struct gpc_pool *pool = &machine->contexts[other].pool;

		gpc_lock_take(&pool->lock);
		gpc_fences_remove_member(&pool->fences, &context->drv.base);
		gpc_lock_release(&pool->lock);
		atomic_store(&context->is_reached_by[other], false);
		atomic_store(&machine->contexts[other].is_reached_by[c], false);
	}
	count_pool(machine, &context->pool);
	gpc_pool_forget(&context->pool);
	prove_driver_reset(&context->drv);
	open_pool(machine, context);
}

void prove_submits(struct prove_machine *machine, uint8_t context)
{
	if (atomic_load(&machine->heap.duties->n_due) > 0)
		gpc_pool_raise_barrier(&machine->contexts[context].pool);
}

const char *prove_machine_check(struct prove_machine *machine)
{
	const char *broken = NULL;

	for (uint8_t c = 0; c < PROVE_CONTEXTS && !broken; c++)
		broken = gpc_pool_check(&machine->contexts[c].pool);
	return broken;
}

static void end_threads(struct prove_machine *machine)
{
	for (uint8_t t = 0; t < PROVE_THREADS; t++) {
		struct prove_thread *thread = &machine->threads[t];

		prove_call_continue(machine, thread, true);
		for (uint8_t i = 0; i < PROVE_BLOCKS; i++) {
			struct prove_block *block = &thread->blocks[i];
			const struct gpc_request request = { 0 };

			if (!block->address)
				continue;
			gpc_sim_race_disown(machine->sim, block->address);
			if (gpc_pool_free(&machine->contexts[block->context].pool, block->address,
				    &request))
				prove_complain(thread, "a block is not taken back");
		}
	}
}

static void end_contexts(struct prove_machine *machine)
{
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++) {
		struct prove_context *context = &machine->contexts[c];

		if (gpc_sim_context_state(context->drv.sim.context) != CUDA_SUCCESS)
			prove_complain(&machine->threads[0], "work touched memory given back");
		(void)gpc_pool_wait(&context->pool, 0);
		(void)gpc_pool_trim(&context->pool, UINT64_MAX, true);
		drop_things(machine, c);
		count_pool(machine, &context->pool);
	}
	if (atomic_load(&machine->heap.duties->n_unsettled) > 0)
		prove_complain(&machine->threads[0], "a duty is left");
	if (gpc_sim_device_n_allocations(&machine->sim->devices[0]) > 0)
		prove_complain(&machine->threads[0], "the device did not get everything back");
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++)
		gpc_pool_fini(&machine->contexts[c].pool);
	if (machine->heap.ranges.n_live > 0)
		prove_complain(&machine->threads[0], "addresses of pages are left");
	for (uint8_t c = 0; c < PROVE_CONTEXTS; c++)
		prove_driver_close(&machine->contexts[c].drv);
}

struct prove_result prove_machine_close(struct prove_machine *machine)
{
	struct prove_result result = { 0 };
	const struct gpc_sim_race *race = machine->sim->race;

	gpc_sim_fault_clear(&machine->sim->faults);
	end_threads(machine);
	prove_complain(&machine->threads[0], prove_machine_check(machine));
	result.n_violations = race->n_violations;
	result.has_first = race->n_violations > 0;
	result.first = race->violations[0];
	if (race->n_lost)
		prove_complain(&machine->threads[0], "the detector lost touches");
	end_contexts(machine);
	result.n_alloc = machine->n_alloc;
	result.n_hit = machine->n_hit;
	for (uint8_t t = 0; t < PROVE_THREADS; t++) {
		result.n_refused += machine->threads[t].n_refused;
		if (!result.problem)
			result.problem = machine->threads[t].problem;
	}
	gpc_heap_fini(&machine->heap);
	gpc_sim_destroy(machine->sim);
	pthread_rwlock_destroy(&machine->life);
	return result;
}
