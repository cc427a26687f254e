/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is never reused while in flight, as far as random programs can prove that: the shipped allocator has no
 * violation under any free_order, and every variant broken on purpose has violations with the same programs.
 *
 * OPS=n sets the number of operations, SEED=n the seed; ONLY=shipped skips the broken variants.  Failing programs are
 * shrunk and printed, as is one program for each broken variant.  Exit status 0 only if all results are as expected.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/prove/prove.h"

#define QUICK_OPS  100000
#define ENOUGH_OPS 5000000

/* One of five programs runs with real threads. */
#define THREADED_EVERY 5

static const struct {
	enum prove_variant variant;
	enum prove_order order;
	const char *name;
	enum gpc_vmm vmm;
} rows[] = {
	{ PROVE_SHIPPED, PROVE_DEVICE, "the allocator as it is, free_order:device", GPC_VMM_OFF },
	{ PROVE_SHIPPED, PROVE_FENCE, "the allocator as it is, free_order:fence", GPC_VMM_OFF },
	{ PROVE_SHIPPED, PROVE_HOST, "the allocator as it is, free_order:host", GPC_VMM_OFF },
	{ PROVE_NO_BARRIER, PROVE_DEVICE, "broken: no event", GPC_VMM_OFF },
	{ PROVE_STALE_BARRIER, PROVE_DEVICE, "broken: the event was recorded too early",
		GPC_VMM_OFF },
	{ PROVE_LEGACY_WAIT, PROVE_DEVICE, "broken: only the legacy stream waits", GPC_VMM_OFF },
	{ PROVE_EARLY_RETURN, PROVE_DEVICE,
		"broken: memory goes back to the driver before the event", GPC_VMM_OFF },
	{ PROVE_LOOSE_CAPTURE, PROVE_DEVICE, "broken: a capture begins while a barrier is due",
		GPC_VMM_OFF },
	{ PROVE_LOOSE_EXPORT, PROVE_DEVICE, "broken: memory is exported without a wait",
		GPC_VMM_OFF },
	{ PROVE_EARLY_LOOK, PROVE_DEVICE, "broken: a look behind a free does not wait",
		GPC_VMM_OFF },
	{ PROVE_NO_HOST_WAIT, PROVE_HOST, "broken: cudaFree does not wait", GPC_VMM_OFF },
	{ PROVE_NO_FENCE, PROVE_FENCE, "broken: no fence", GPC_VMM_OFF },
	{ PROVE_LEGACY_FENCE, PROVE_FENCE,
		"broken: the fence is recorded on the legacy stream only", GPC_VMM_OFF },
	{ PROVE_FAILED_PASSES, PROVE_FENCE, "broken: a failed record is taken as passed",
		GPC_VMM_OFF },
	{ PROVE_BARE_EXPORT, PROVE_FENCE, "broken: memory is exported under the one-stream rule",
		GPC_VMM_OFF },
	{ PROVE_NO_WAIT, PROVE_FENCE,
		"broken: a new stream does not wait when the one-stream rule ends", GPC_VMM_OFF },
	{ PROVE_BARE_OVERLAP, PROVE_FENCE,
		"broken: a kernel overlaps another under the one-stream rule", GPC_VMM_OFF },
	{ PROVE_SHIPPED, PROVE_DEVICE, "vmm:on, free_order:device", GPC_VMM_ON },
	{ PROVE_SHIPPED, PROVE_FENCE, "vmm:on, free_order:fence", GPC_VMM_ON },
	{ PROVE_SHIPPED, PROVE_DEVICE, "vmm:auto, free_order:device", GPC_VMM_AUTO },
	{ PROVE_EARLY_RETURN, PROVE_DEVICE, "broken: a page is unmapped before its event",
		GPC_VMM_ON },
	{ PROVE_EARLY_UNMAP, PROVE_FENCE,
		"broken: under the one-stream rule pages are unmapped at once", GPC_VMM_ON },
};

struct total {
	uint64_t n_ops;
	uint64_t n_programs;
	uint64_t n_violations;
	uint64_t n_problems;
	uint64_t n_alloc;
	uint64_t n_hit;
	uint64_t n_refused;
};

/* Shrinks the failing program and prints it.  False: it fails only with real threads. */
static bool show(struct prove_program *program, enum prove_variant variant)
{
	struct prove_result result = prove_run(program, variant);

	if (!prove_is_bad(&result))
		return false;
	prove_shrink(program, variant);
	result = prove_run(program, variant);
	prove_print(program, &result);
	return true;
}

static struct total run_variant(enum prove_variant variant, enum prove_order order,
	enum gpc_vmm vmm, uint64_t seed, uint64_t n_ops)
{
	static struct prove_program program;
	struct total total = { 0 };
	bool is_shown = false;

	/* A short run may miss a broken variant by chance: continue until its violation shows. */
	while (total.n_ops < n_ops ||
		(variant != PROVE_SHIPPED && total.n_violations + total.n_problems == 0 &&
			total.n_ops < ENOUGH_OPS)) {
		struct prove_result result;

		prove_generate(&program, seed, total.n_programs++);
		program.order = order;
		program.vmm = vmm;
		result = total.n_programs % THREADED_EVERY == 0
				 ? prove_run_threads(&program, variant)
				 : prove_run(&program, variant);
		total.n_ops += program.n_steps;
		total.n_violations += result.n_violations;
		total.n_problems += result.problem != NULL;
		total.n_alloc += result.n_alloc;
		total.n_hit += result.n_hit;
		total.n_refused += result.n_refused;
		if (is_shown || !prove_is_bad(&result))
			continue;
		is_shown = show(&program, variant);
		if (!is_shown && variant == PROVE_SHIPPED)
			printf("  program %llu, with real threads: %llu violations, %s\n",
				(unsigned long long)total.n_programs - 1,
				(unsigned long long)result.n_violations,
				result.problem ? result.problem : "nothing else");
	}
	return total;
}

int main(void)
{
	uint64_t n_ops = number_from_env("OPS", QUICK_OPS);
	uint64_t seed = seed_of_this_run("prove-reuse");
	const char *only = getenv("ONLY");
	bool is_good = true;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct total total;
		bool holds;

		if (only && strcmp(only, "shipped") == 0 && rows[i].variant != PROVE_SHIPPED)
			continue;
		printf("%s\n", rows[i].name);
		total = run_variant(rows[i].variant, rows[i].order, rows[i].vmm, seed, n_ops);
		/* What went back too early is seen by work that touches it, not by a new owner. */
		holds = (rows[i].variant == PROVE_SHIPPED) ==
			(total.n_violations + total.n_problems == 0);
		printf("  %llu operations in %llu programs, %llu allocations, %llu from the cache, "
		       "%llu refused\n",
			(unsigned long long)total.n_ops, (unsigned long long)total.n_programs,
			(unsigned long long)total.n_alloc, (unsigned long long)total.n_hit,
			(unsigned long long)total.n_refused);
		if (total.n_problems)
			printf("  other problems: %llu\n", (unsigned long long)total.n_problems);
		printf("violations: %llu\n", (unsigned long long)total.n_violations);
		printf("%s - %s\n", holds ? "ok" : "not ok", rows[i].name);
		fflush(stdout);
		is_good &= holds;
	}
	return is_good ? 0 : 1;
}
