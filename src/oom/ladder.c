/* SPDX-License-Identifier: Apache-2.0 */
#include "oom/ladder.h"

#include <poll.h>
#include <stddef.h>

/* How often other processes are looked at while waiting for them. */
#define WAIT_STEP_MS 10

/*
 * Each rung makes room and returns how many bytes; 0 tells the climb that an attempt would be in
 * vain, unless the rung cannot know (ASK_ANYWAY).
 */
#define ASK_ANYWAY UINT64_MAX

/*
 * Frees whose work is done may have merged into what is wanted; the fence of the latest ones is
 * closed here.
 */
static uint64_t reap_passed_fences(struct gpc_ladder *ladder)
{
	return ladder->pool ? gpc_pool_reap(ladder->pool) : 0;
}

/* As few as needed: what stays cached stays fast. */
static uint64_t return_enough_segments(struct gpc_ladder *ladder)
{
	return ladder->pool ? gpc_pool_trim(ladder->pool, ladder->wanted) : 0;
}

/*
 * The wait that a plain cudaFree would have made, for the oldest fence that makes enough room,
 * not for all.
 */
static uint64_t wait_for_enough_fences(struct gpc_ladder *ladder)
{
	uint64_t bytes;

	if (!ladder->pool)
		return 0;
	bytes = gpc_pool_wait(ladder->pool, ladder->wanted);
	/* What passed may be many small pieces: whole segments of them help the driver. */
	return bytes + (bytes ? gpc_pool_trim(ladder->pool, ladder->wanted) : 0);
}

/* All pending work of the device's contexts, and every idle segment of theirs. */
static uint64_t return_everything(struct gpc_ladder *ladder)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ladder->n_pools; i++) {
		(void)gpc_pool_wait(ladder->pools[i], 0);
		bytes += gpc_pool_trim(ladder->pools[i], UINT64_MAX);
	}
	if (ladder->trim_driver) {
		ladder->trim_driver(ladder->arg);
		return ASK_ANYWAY;
	}
	return bytes;
}

static uint64_t ask_handlers(struct gpc_ladder *ladder)
{
	if (!ladder->call_handlers || !ladder->call_handlers(ladder->arg, ladder->wanted))
		return 0;
	for (uint32_t i = 0; i < ladder->n_pools; i++) {
		(void)gpc_pool_wait(ladder->pools[i], 0);
		(void)gpc_pool_trim(ladder->pools[i], ladder->wanted);
	}
	return ASK_ANYWAY;
}

/*
 * poll() on nothing is a wait that no signal handler of the host can be confused by; only on
 * request.
 */
static uint64_t wait_for_others(struct gpc_ladder *ladder)
{
	if (ladder->wait_ms == 0)
		return 0;
	(void)poll(NULL, 0, WAIT_STEP_MS);
	return ASK_ANYWAY;
}

/* The table is base/rungs.def: the order is the policy. */
static const struct {
	const char *name;
	uint64_t (*make_room)(struct gpc_ladder *ladder);
} rungs[] = {
#define RUNG(function, text) { text, function },
#include "base/rungs.def"
#undef RUNG
};

#define N_RUNGS   (sizeof rungs / sizeof rungs[0])
#define LAST_RUNG (N_RUNGS - 1)

_Static_assert(N_RUNGS <= GPUCACHE_MAX_RUNGS, "a recording has room for every rung");

const char *gpc_ladder_rung_name(uint32_t i)
{
	return i < N_RUNGS ? rungs[i].name : NULL;
}

static void note(struct gpc_ladder *ladder, uint32_t rung, uint64_t bytes)
{
	if (bytes != ASK_ANYWAY)
		ladder->freed[rung] += bytes;
	ladder->n_tried = rung + 1;
}

enum gpc_status gpc_ladder_climb(struct gpc_ladder *ladder, enum gpc_status st)
{
	uint64_t steps_left = (ladder->wait_ms + WAIT_STEP_MS - 1) / WAIT_STEP_MS;

	for (uint32_t i = 0; i < N_RUNGS && gpc_ladder_helps(st);) {
		uint64_t bytes = rungs[i].make_room(ladder);

		note(ladder, i, bytes);
		if (bytes > 0)
			st = ladder->attempt(ladder->arg);
		if (!st)
			ladder->helped = i + 1;
		if (i == LAST_RUNG && bytes > 0 && --steps_left > 0)
			continue;
		i++;
	}
	return st;
}
