/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of the allocator alone: a pool over the simulated device, without hooks or recording.
 *
 *   pool_hit_pair           free and malloc of 512 B, 10 others live; baseline: malloc and free of 64 B
 *   pool_hit_pair_1m        the same with 1,000,000 others live
 *   pool_free_random_1m     a free of 1,000,000 live blocks in random order; baseline: in order of allocation
 *   own_bytes_per_block     metadata and recording for each of 1,000,000 live blocks; baseline: the 256 B aimed for
 *   hit_pair_streams_calls  driver calls a pair with 4 other streams, the device idle; baseline: the 1/16 aimed for
 */

#include "alloc/pool.h"
#include "base/metamem.h"
#include "record/record.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/sim.h"
#include "tests/bench/bench.h"

#define BLOCK_SIZE 512
#define N_MANY     1000000
#define N_FEW      10
#define N_ROUNDS   421
#define N_PAIRS    1000 /* shorter than a time slice, so that most rounds are not interrupted */
#define N_STEADY   20000
#define N_FREES    3
#define AIM_BYTES  256
#define AIM_CALLS  (1.0 / 16)
#define N_STREAMS  4
#define PENDING    (64 * GPC_MIB)

struct machine {
	struct gpc_sim *sim;
	struct gpc_sim_driver driver;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool pool;
};

static void open_machine(struct machine *machine)
{
	static const struct gpc_pool_params params = {
		.pending_limit = PENDING,
		.is_one_stream = true,
	};
	struct gpc_sim_config config = gpc_sim_config_default();

	config.context_cost = 0;
	machine->sim = gpc_sim_create(&config);
	bench_check("gpc_sim_create", machine->sim != NULL);
	bench_check("gpc_sim_driver_init",
		!gpc_sim_driver_init(&machine->driver, machine->sim, 0, NULL));
	bench_check("gpc_heap_init", !gpc_heap_init(&machine->heap, NULL));
	machine->budget = (struct gpc_budget){ .device_bytes = config.memory };
	gpc_pool_init(&machine->pool, &machine->heap, &machine->driver.base, &machine->budget,
		&params, 0, 0, NULL);
}

static void close_machine(struct machine *machine)
{
	gpc_pool_fini(&machine->pool);
	gpc_heap_fini(&machine->heap);
	gpc_sim_driver_fini(&machine->driver);
	gpc_sim_destroy(machine->sim);
}

static gpc_devptr give(struct machine *machine)
{
	const struct gpc_request request = { .size = BLOCK_SIZE };
	gpc_devptr ptr = 0;

	bench_check("gpc_pool_alloc", !gpc_pool_alloc(&machine->pool, &request, &ptr));
	return ptr;
}

static double time_pairs(struct machine *machine, gpc_devptr *ptr, unsigned n_pairs)
{
	const struct gpc_request request = { 0 };
	uint64_t start = bench_cpu_ns();

	for (unsigned i = 0; i < n_pairs; i++) {
		bench_check("gpc_pool_free", !gpc_pool_free(&machine->pool, *ptr, &request));
		*ptr = give(machine);
	}
	return (double)(bench_cpu_ns() - start) / n_pairs;
}

static void measure_pairs(struct machine *machine, const char *name)
{
	gpc_devptr ptr = give(machine);
	double mallocs[N_ROUNDS];
	double pairs[N_ROUNDS];

	(void)time_pairs(machine, &ptr, N_STEADY);
	for (int i = 0; i < N_ROUNDS; i++) {
		mallocs[i] = bench_malloc_pair_ns(N_PAIRS);
		pairs[i] = time_pairs(machine, &ptr, N_PAIRS);
	}
	bench_row(name, bench_median(pairs, N_ROUNDS), "ns", bench_median(mallocs, N_ROUNDS));
}

static void measure_bytes(uint64_t before)
{
	double own = (double)(gpc_metamem_total() - before + GPC_RECORD_DEFAULT_SIZE);

	bench_row("own_bytes_per_block", own / N_MANY, "B", AIM_BYTES);
}

/* Nanoseconds a free of 1,000,000 blocks, in the order of the numbers in `order`. */
static double time_frees(const uint32_t *order)
{
	const struct gpc_request request = { 0 };
	gpc_devptr *blocks = calloc(N_MANY, sizeof *blocks);
	struct machine machine;
	uint64_t elapsed_ns;
	uint64_t start;

	bench_check("calloc", blocks != NULL);
	open_machine(&machine);
	for (int i = 0; i < N_MANY; i++)
		blocks[i] = give(&machine);
	start = bench_cpu_ns();
	for (int i = 0; i < N_MANY; i++)
		bench_check(
			"gpc_pool_free", !gpc_pool_free(&machine.pool, blocks[order[i]], &request));
	elapsed_ns = bench_cpu_ns() - start;
	close_machine(&machine);
	free(blocks);
	return (double)elapsed_ns / N_MANY;
}

/* Alternates between the orders and takes the minimum of each: another process may have had the processor. */
static void measure_frees(void)
{
	uint32_t *in_order = calloc(N_MANY, sizeof *in_order);
	uint32_t *at_random = calloc(N_MANY, sizeof *at_random);
	uint64_t dice = 1;
	double ordered[N_FREES];
	double random[N_FREES];

	bench_check("calloc", in_order && at_random);
	for (uint32_t i = 0; i < N_MANY; i++) {
		uint32_t j;

		dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		j = (uint32_t)((dice >> 33) % (i + 1));
		in_order[i] = i;
		at_random[i] = at_random[j];
		at_random[j] = i;
	}
	for (int i = 0; i < N_FREES; i++) {
		ordered[i] = time_frees(in_order);
		random[i] = time_frees(at_random);
	}
	bench_row("pool_free_random_1m", bench_quantile(random, N_FREES, 0), "ns",
		bench_quantile(ordered, N_FREES, 0));
	free(at_random);
	free(in_order);
}

static uint64_t count_calls(const struct machine *machine)
{
	const struct gpc_sim_counters *counters = &machine->driver.counters;

	return counters->n_mem_alloc + counters->n_mem_free + counters->n_mem_info +
	       counters->n_event_create + counters->n_event_destroy + counters->n_fence_record +
	       counters->n_event_query + counters->n_sync + counters->n_stream_wait;
}

static void measure_calls(void)
{
	struct machine machine;
	uint64_t before;
	gpc_devptr ptr;

	open_machine(&machine);
	/* Idle streams: a fence has nothing to wait for, but must query. */
	for (int i = 0; i < N_STREAMS; i++) {
		struct gpc_sim_stream *stream = NULL;

		bench_check("gpc_sim_stream_create",
			!gpc_sim_stream_create(machine.driver.context, 0, 0, &stream));
		bench_check("gpc_fences_stream_created",
			!gpc_fences_stream_created(
				&machine.pool.fences, (gpc_stream)(uintptr_t)stream));
	}
	for (int i = 0; i < N_FEW; i++)
		(void)give(&machine);
	ptr = give(&machine);
	(void)time_pairs(&machine, &ptr, N_STEADY);
	before = count_calls(&machine);
	(void)time_pairs(&machine, &ptr, N_STEADY);
	bench_row("hit_pair_streams_calls", (double)(count_calls(&machine) - before) / N_STEADY,
		"calls", AIM_CALLS);
	close_machine(&machine);
}

int main(void)
{
	struct machine machine;
	uint64_t before = gpc_metamem_total();

	open_machine(&machine);
	for (int i = 0; i < N_FEW; i++)
		(void)give(&machine);
	measure_pairs(&machine, "pool_hit_pair");
	for (int i = N_FEW; i < N_MANY; i++)
		(void)give(&machine);
	measure_bytes(before);
	measure_pairs(&machine, "pool_hit_pair_1m");
	close_machine(&machine);
	measure_frees();
	measure_calls();
	return 0;
}
