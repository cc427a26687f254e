/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the model's tests: a machine with a virtual clock and one context, and short names for its calls. */
#ifndef GPC_TESTS_UNIT_SIM_MACHINE_H
#define GPC_TESTS_UNIT_SIM_MACHINE_H

#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "sim/gpu/execution/capture.h"

#define MS UINT64_C(1000000)

/* Events of one test; tear_down destroys them. */
#define MAX_EVENTS 8

static struct gpc_sim *sim;
static struct gpc_sim_context *context;
static struct gpc_sim_event *events[MAX_EVENTS];
static unsigned n_events;

/* What a context takes of its device. */
#define CONTEXT_COST (4 * GPC_MIB)

/* Two devices of that memory, with a race detector or without. */
static inline int set_up_machine(uint64_t memory, bool has_race)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.virtual_clock = true;
	config.n_devices = 2;
	config.memory = memory;
	config.context_cost = CONTEXT_COST;
	n_events = 0;
	sim = gpc_sim_create(&config);
	if (!sim || (has_race && !gpc_sim_race_attach(sim)))
		return -1;
	return gpc_sim_context_create(sim, 0, 0, &context) == CUDA_SUCCESS ? 0 : -1;
}

static inline int set_up(void **state)
{
	return set_up_machine(64 * GPC_MIB, false);
}

static inline int tear_down(void **state)
{
	while (n_events)
		gpc_sim_event_destroy(events[--n_events]);
	if (sim->race)
		assert_int_equal(sim->race->n_lost, 0);
	gpc_sim_context_destroy(context);
	gpc_sim_destroy(sim);
	return 0;
}

static inline uint64_t now(void)
{
	return gpc_sim_clock_now(&sim->clock);
}

/* Time goes by, and a call looks at the device. */
static inline void pass(uint64_t ns)
{
	gpc_sim_clock_spend(&sim->clock, ns);
	gpc_sim_settle(sim);
}

static inline struct gpc_sim_stream *stream_in(struct gpc_sim_context *in, unsigned flags)
{
	struct gpc_sim_stream *stream = NULL;

	at_int_equal(gpc_sim_stream_create(in, flags, 0, &stream), CUDA_SUCCESS);
	return stream;
}

static inline struct gpc_sim_stream *stream_create(unsigned flags)
{
	return stream_in(context, flags);
}

static inline struct gpc_sim_event *event_in(struct gpc_sim_context *in)
{
	at_true(n_events < MAX_EVENTS);
	at_int_equal(gpc_sim_event_create(in, 0, &events[n_events]), CUDA_SUCCESS);
	return events[n_events++];
}

static inline struct gpc_sim_event *event_create(void)
{
	return event_in(context);
}

static inline struct gpc_sim_context *context_on(unsigned device)
{
	struct gpc_sim_context *made = NULL;

	at_int_equal(gpc_sim_context_create(sim, device, 0, &made), CUDA_SUCCESS);
	return made;
}

static inline uint64_t take(uint64_t size)
{
	uint64_t ptr = 0;

	at_int_equal(gpc_sim_mem_alloc(context, size, &ptr), CUDA_SUCCESS);
	memset(gpc_sim_bytes(sim, ptr), 0, size);
	return ptr;
}

static inline char *bytes_at(uint64_t ptr)
{
	return gpc_sim_bytes(sim, ptr);
}

static inline struct gpc_sim_effect *effect_of(enum gpc_sim_effect_kind kind, uint64_t ns)
{
	struct gpc_sim_effect *effect = gpc_sim_effect_create(kind, ns);

	at_non_null(effect);
	return effect;
}

/* A memset of one row. */
static inline struct gpc_sim_effect *fill_of(uint64_t ns, uint64_t dst, uint64_t size, char value)
{
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_FILL, ns);

	effect->dst = dst;
	effect->width = size;
	effect->value = (unsigned char)value;
	effect->value_size = 1;
	return effect;
}

/* A memcpy of one row. */
static inline struct gpc_sim_effect *copy_of(uint64_t ns, uint64_t dst, uint64_t src, uint64_t size)
{
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_COPY, ns);

	effect->dst = dst;
	effect->src = src;
	effect->width = size;
	return effect;
}

/* A kernel that touches size bytes at ptr, as gpc_sim_range says. */
static inline struct gpc_sim_effect *kernel_of(uint64_t ns, uint64_t ptr, uint64_t size, int value)
{
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_KERNEL, ns);

	effect->ranges = calloc(1, sizeof *effect->ranges);
	at_non_null(effect->ranges);
	effect->n_ranges = 1;
	effect->ranges[0] = (struct gpc_sim_range){ .ptr = ptr, .size = size, .fill = value };
	return effect;
}

static inline void submit(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect)
{
	at_int_equal(gpc_sim_stream_submit(stream, effect), CUDA_SUCCESS);
}

/* Work of that length that touches nothing. */
static inline void busy(struct gpc_sim_stream *stream, uint64_t ns)
{
	submit(stream, effect_of(GPC_SIM_EFFECT_NONE, ns));
}

/* Waits for everything; how long that took. */
static inline uint64_t time_to_sync(void)
{
	uint64_t before = now();

	at_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	return now() - before;
}

/* The event passes in exactly that time. */
static inline void assert_done_after(struct gpc_sim_event *event, uint64_t ns)
{
	at_int_equal(gpc_sim_event_query(event), CUDA_ERROR_NOT_READY);
	pass(ns - 1);
	at_int_equal(gpc_sim_event_query(event), CUDA_ERROR_NOT_READY);
	pass(1);
	at_int_equal(gpc_sim_event_query(event), CUDA_SUCCESS);
}

/* Checks in these helpers report the line of the test: unit.h. */
#define stream_in(...)         AT(stream_in(__VA_ARGS__))
#define stream_create(...)     AT(stream_create(__VA_ARGS__))
#define event_in(...)          AT(event_in(__VA_ARGS__))
#define event_create()         AT(event_create())
#define context_on(...)        AT(context_on(__VA_ARGS__))
#define take(...)              AT(take(__VA_ARGS__))
#define effect_of(...)         AT(effect_of(__VA_ARGS__))
#define fill_of(...)           AT(fill_of(__VA_ARGS__))
#define copy_of(...)           AT(copy_of(__VA_ARGS__))
#define kernel_of(...)         AT(kernel_of(__VA_ARGS__))
#define submit(...)            AT(submit(__VA_ARGS__))
#define busy(...)              AT(busy(__VA_ARGS__))
#define time_to_sync()         AT(time_to_sync())
#define assert_done_after(...) AT(assert_done_after(__VA_ARGS__))

#endif
