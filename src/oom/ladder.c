/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of rungs, cheapest first (model/rungs.def).  After each rung that had something to do, the request is tried
 * again.  sync_ms bounds the waits for the device, wait_ms the waits for other processes; only the rung that waits for
 * other processes is repeated.  Each rung that waits for the device also waits for moves: memory that another thread is
 * returning to the driver is not ours any more and not free yet.
 */
#include "oom/ladder.h"

#include <stddef.h>

#include "base/pause.h"

/* The polling interval while waiting for other processes. */
#define WAIT_STEP_MS 10

/*
 * Bounds the waits for moves, and those before unfinished work is waited for, if sync_ms is 0.  The driver may block a
 * thread that returns memory until a kernel ends, and that kernel may never end.
 */
#define MOVES_MS 1000

/*
 * A rung makes room, and reports the bytes if it knows them.  It returns false if it had nothing to do: another attempt
 * would fail as the last one did.
 */

/* Frees the blocks of passed fences, which may coalesce into a block that is large enough; closes the open fence. */
static bool reap_passed_fences(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	if (!ladder->pool)
		return false;
	*ret_bytes = gpc_pool_reap(ladder->pool);
	return true;
}

/* Returns as few segments as needed: the cached memory that stays serves later requests fast. */
static bool return_enough_segments(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	if (!ladder->pool || ladder->is_out_of_reach)
		return false;
	*ret_bytes = gpc_pool_trim(ladder->pool, ladder->wanted, false);
	return true;
}

/* Without a bound, the driver may wait for running work, if it can return no segment otherwise. */
static uint64_t trim(const struct gpc_ladder *ladder, struct gpc_pool *pool, uint64_t wanted)
{
	return gpc_pool_trim(pool, wanted, ladder->sync_ms == 0);
}

static uint64_t wait_for_device(struct gpc_ladder *ladder, struct gpc_pool *pool, uint64_t size)
{
	return ladder->sync_ms ? gpc_pool_wait_within(pool, size, &ladder->sync_left_ms)
			       : gpc_pool_wait(pool, size);
}

static void wait_for_moves(struct gpc_ladder *ladder)
{
	if (ladder->n_pools > 0)
		gpc_pool_wait_for_moves(ladder->pools[0], &ladder->moves_left_ms);
}

/* Polls for memory that the driver did not have at once: it may take it before the work has ended. */
static void wait_for_late(struct gpc_ladder *ladder)
{
	for (uint32_t i = 0; i < ladder->n_pools; i++)
		if (gpc_pool_wait_late(ladder->pools[i], &ladder->moves_left_ms))
			ladder->late_pools |= UINT64_C(1) << i;
}

/* Waits for the work that still may keep memory from the driver.  False: there was none, or the wait has a bound. */
static bool wait_for_unfinished_work(struct gpc_ladder *ladder)
{
	if (ladder->sync_ms || (!ladder->late_pools && !ladder->is_untrimmed))
		return false;
	for (uint32_t i = 0; i < ladder->n_pools; i++)
		if (ladder->late_pools >> i & 1)
			gpc_pool_wait_out(ladder->pools[i]);
	if (ladder->is_untrimmed)
		(void)ladder->trim_driver(ladder->arg, true);
	ladder->late_pools = 0;
	ladder->is_untrimmed = false;
	return true;
}

static enum gpc_status try_again(struct gpc_ladder *ladder)
{
	enum gpc_status st = ladder->attempt(ladder->arg);

	if (gpc_ladder_helps(st) && wait_for_unfinished_work(ladder))
		st = ladder->attempt(ladder->arg);
	return st;
}

/* Waits as a plain cudaFree does, but only until the oldest fences make enough room. */
static bool wait_for_enough_fences(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	if (!ladder->pool || ladder->is_out_of_reach)
		return false;
	*ret_bytes = wait_for_device(ladder, ladder->pool, ladder->wanted);
	/* The freed blocks may be many small pieces, so the segments that they leave idle go back to the driver. */
	*ret_bytes += trim(ladder, ladder->pool, ladder->wanted);
	wait_for_moves(ladder);
	return true;
}

/* Waits for all pending work of the device's contexts, and returns all their idle segments. */
static bool return_everything(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;

	if (ladder->is_out_of_reach)
		return false;
	for (uint32_t i = 0; i < ladder->n_pools; i++) {
		(void)wait_for_device(ladder, ladder->pools[i], 0);
		bytes += trim(ladder, ladder->pools[i], UINT64_MAX);
	}
	wait_for_late(ladder);
	if (ladder->trim_driver)
		ladder->is_untrimmed = !ladder->trim_driver(ladder->arg, false);
	wait_for_moves(ladder);
	*ret_bytes = bytes;
	return true;
}

static bool ask_handlers(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	bool did_free = false;

	if (!ladder->call_handlers ||
		!ladder->call_handlers(ladder->arg, ladder->wanted, &did_free))
		return false;
	for (uint32_t i = 0; i < ladder->n_pools && did_free; i++) {
		(void)wait_for_device(ladder, ladder->pools[i], 0);
		bytes += trim(ladder, ladder->pools[i], ladder->wanted);
	}
	if (did_free) {
		wait_for_late(ladder);
		wait_for_moves(ladder);
	}
	*ret_bytes = bytes;
	return true;
}

/* Waits only if the option oom_wait_ms allows it. */
static bool wait_for_others(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	return gpc_pause(WAIT_STEP_MS, &ladder->wait_left_ms);
}

/* Makes no room: the attempt that follows may use host memory. */
static bool spill_to_host(struct gpc_ladder *ladder, uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	return ladder->spill && ladder->spill(ladder->arg);
}

/* The table is model/rungs.def: the order is the policy. */
static bool (*const rungs[])(struct gpc_ladder *ladder, uint64_t *ret_bytes) = {
#define RUNG(function, text) function,
#include "model/rungs.def"
};

#define N_RUNGS (sizeof rungs / sizeof rungs[0])

_Static_assert(N_RUNGS <= GPUCACHE_MAX_RUNGS, "a recording has room for every rung");

enum gpc_status gpc_ladder_climb(struct gpc_ladder *ladder, enum gpc_status st)
{
	ladder->wait_left_ms = ladder->wait_ms;
	ladder->sync_left_ms = ladder->sync_ms;
	ladder->moves_left_ms = ladder->sync_ms ? ladder->sync_ms : MOVES_MS;
	ladder->late_pools = 0;
	ladder->is_untrimmed = false;
	for (uint32_t i = 0; i < N_RUNGS && gpc_ladder_helps(st);) {
		uint64_t bytes = 0;
		bool has_run = rungs[i](ladder, &bytes);

		ladder->freed[i] += bytes;
		ladder->n_tried = i + 1;
		/* Retry even if the rung freed nothing: another process may have freed memory meanwhile. */
		if (has_run)
			st = try_again(ladder);
		if (!st)
			ladder->helped = i + 1;
		if (rungs[i] == wait_for_others && ladder->wait_left_ms > 0)
			continue;
		i++;
	}
	return st;
}
