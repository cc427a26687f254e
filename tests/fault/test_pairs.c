/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes two calls fail, of the driver or mappings of metadata, so that code that handles one failure meets another.
 *
 * After each run the device must hold only the memory that by our accounting it refused to take back.  PAIRS=all runs
 * every pair; else PAIRS random pairs of each machine (default 150).
 */
#include <stdlib.h>
#include <string.h>

#include "base/metamem.h"
#include "model/counters.h"
#include "tests/fault/scenario.h"

struct machine {
	const char *name;
	int driver_version;
	enum gpc_vmm vmm;
};

/* Call number i fails with out of memory, number j with an unexpected error; 0: none. */
struct pair {
	uint64_t i;
	uint64_t j;
	uint64_t mappings; /* bit n: mapping n + 1 */
};

static struct pair now; /* printed if a run fails */
static bool is_over;

struct met {
	uint64_t n_calls;
	bool first;
	bool second;
};

#define NO_ROOM 2
#define UNKNOWN 999

/* Ends the program in order. */
static void end_pair(uint64_t used_before)
{
	struct gpc_sim_device *device = &run.sim->devices[0];
	uint64_t kept;

	release_all();
	(void)gpc_pool_wait(&run.pool, 0);
	(void)gpc_pool_trim(&run.pool, UINT64_MAX, true);
	kept = gpc_counter_get(&run.pool.counters->kind_bytes[GPUCACHE_KIND_REFUSED]);
	assert_int_equal(gpc_counter_get(&run.pool.counters->reserved_bytes), 0);
	assert_int_equal(gpc_sim_device_used_bytes(device) - used_before, kept);
	assert_int_equal(run.budget.used_bytes, kept);
	gpc_pool_fini(&run.pool);
	assert_int_equal(run.budget.used_bytes, 0);
	gpc_heap_fini(&run.heap);
}

static struct met survive(const struct machine *machine, const struct pair *pair)
{
	size_t mapped_before = gpc_metamem_total();
	struct met met = { 0 };
	uint64_t used_before;

	now = *pair;
	gpc_metamem_fail_each(pair->mappings);
	if (!open_run(machine->driver_version, machine->vmm)) {
		gpc_metamem_fail_each(0);
		assert_int_equal(gpc_metamem_total(), mapped_before);
		close_machine();
		return met;
	}
	used_before = gpc_sim_device_used_bytes(&run.sim->devices[0]);
	run.allowed = gpc_status_from_device(NO_ROOM);
	run.also_allowed = pair->mappings ? GPC_NO_METADATA : gpc_status_from_device(UNKNOWN);
	assert_true(gpc_sim_fault_add(&run.sim->faults, "*", pair->i, pair->i > 0, NO_ROOM));
	assert_true(gpc_sim_fault_add(&run.sim->faults, "*", pair->j, pair->j > 0, UNKNOWN));
	play();
	check_heap();
	met.n_calls = run.sim->faults.n_seen[0];
	met.first = met.n_calls >= pair->i;
	met.second = met.n_calls >= pair->j;
	gpc_sim_fault_clear(&run.sim->faults);
	gpc_metamem_fail_each(0);
	end_pair(used_before);
	close_machine();
	assert_int_equal(gpc_metamem_total(), mapped_before);
	return met;
}

static uint64_t draw(uint64_t *state, uint64_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 33) % n;
}

#define N_MAPPINGS 7

static uint64_t run_all(const struct machine *machine)
{
	struct pair pair = { 0 };
	uint64_t n = 0;

	for (pair.i = 1;; pair.i++) {
		for (pair.j = pair.i + 1; survive(machine, &pair).second; pair.j++)
			n++;
		if (pair.j == pair.i + 1)
			break;
	}
	pair.j = 0;
	for (uint64_t m = 0; m < N_MAPPINGS; m++) {
		pair.mappings = UINT64_C(1) << m;
		for (pair.i = 1; survive(machine, &pair).first && survive(machine, &pair).n_calls;
			pair.i++)
			n++;
	}
	pair.i = 0;
	for (pair.mappings = 1; pair.mappings < 1 << N_MAPPINGS; pair.mappings++, n++)
		(void)survive(machine, &pair);
	return n;
}

static uint64_t run_some(const struct machine *machine, uint64_t n_pairs)
{
	uint64_t n_calls = survive(machine, &(struct pair){ 0 }).n_calls;
	uint64_t state = 1;

	for (uint64_t n = 0; n < n_pairs; n++) {
		struct pair pair = { .i = 1 + draw(&state, n_calls) };

		if (n % 5 == 0)
			pair.mappings = UINT64_C(1) << draw(&state, N_MAPPINGS);
		else if (n % 5 == 1)
			pair.j = pair.i + 1;
		else
			pair.j = pair.i + 1 + draw(&state, n_calls - pair.i + 1);
		(void)survive(machine, &pair);
	}
	return n_pairs;
}

static void survive_every_pair(const struct machine *machine)
{
	const char *wanted = getenv("PAIRS");
	bool is_whole = wanted && strcmp(wanted, "all") == 0;
	uint64_t n = is_whole ? run_all(machine)
			      : run_some(machine, wanted ? strtoull(wanted, NULL, 10) : 150);

	printf("%s: %llu pairs of calls made to fail\n", machine->name, (unsigned long long)n);
	assert_true(n > 0);
	is_over = true;
}

static int show_failure(void **state)
{
	if (!is_over)
		print_error("calls %llu and %llu of the driver, mappings %#llx\n",
			(unsigned long long)now.i, (unsigned long long)now.j,
			(unsigned long long)now.mappings);
	is_over = false;
	return 0;
}

FIXTURE(NULL, show_failure);

#define ON(where, ...)                                                      \
	TEST(pairs_of_failures_on_##where)                                  \
	{                                                                   \
		survive_every_pair(&(const struct machine){ __VA_ARGS__ }); \
	}

ON(new_driver, "a new driver", 13000, GPC_VMM_OFF)
ON(old_driver, "an old driver", 12040, GPC_VMM_OFF)
ON(pages, "a driver with pages", 13000, GPC_VMM_ON)
