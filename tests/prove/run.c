/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program, in one thread or in several. */
#include "tests/prove/prove.h"

#define CHECK_EVERY 64 /* steps */

struct worker {
	struct prove_machine *machine;
	uint8_t thread;
	pthread_t handle;
};

static void end_capture(struct prove_machine *machine, uint8_t thread)
{
	struct prove_thread *self = &machine->threads[thread];

	if (!self->capturing)
		return;
	if (gpc_sim_capture_end(self->capturing, &self->graph) != CUDA_SUCCESS)
		prove_complain(self, "a capture was broken");
	self->capturing = NULL;
	gpc_captures_end(&machine->heap.captures);
}

struct prove_result prove_run(const struct prove_program *program, enum prove_variant variant)
{
	static struct prove_machine machine;

	if (!prove_machine_open(&machine, program, variant, false))
		abort();
	for (uint32_t i = 0; i < program->n_steps; i++) {
		prove_step_do(&machine, i);
		if (i % CHECK_EVERY == 0)
			prove_complain(&machine.threads[0], prove_machine_check(&machine));
	}
	for (uint8_t t = 0; t < PROVE_THREADS; t++)
		end_capture(&machine, t);
	return prove_machine_close(&machine);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct prove_machine *machine = worker->machine;

	for (uint32_t i = 0; i < machine->program->n_steps; i++) {
		if (machine->program->steps[i].thread == worker->thread)
			prove_step_do(machine, i);
	}
	end_capture(machine, worker->thread);
	return NULL;
}

struct prove_result prove_run_threads(
	const struct prove_program *program, enum prove_variant variant)
{
	static struct prove_machine machine;
	struct worker workers[PROVE_THREADS];

	if (!prove_machine_open(&machine, program, variant, true))
		abort();
	for (uint8_t t = 0; t < PROVE_THREADS; t++) {
		workers[t].machine = &machine;
		workers[t].thread = t;
		if (pthread_create(&workers[t].handle, NULL, work, &workers[t]))
			abort();
	}
	for (uint8_t t = 0; t < PROVE_THREADS; t++)
		pthread_join(workers[t].handle, NULL);
	return prove_machine_close(&machine);
}
