/* SPDX-License-Identifier: Apache-2.0 */
#include "model/balance.h"
#include "runtime/process/state.h"
#include "runtime/rescue/look.h"
#include "world.h"

static struct gpc_look look_at_the_device(void)
{
	struct gpc_look look = { 0 };

	gpc_look_take(gpc_runtime.devices[0].contexts[0], &look);
	return look;
}

static void with_live_and_cached(void)
{
	CUdeviceptr live;
	CUdeviceptr cached;

	world_start();
	CHECK(!world_malloc(&live, 300 * MIB) && !world_malloc(&cached, 200 * MIB));
	CHECK(!world_free(cached));

	struct gpc_look look = look_at_the_device();

	CHECK(look.device.device_total == GPC_GIB);
	CHECK(look.device.cached_largest == 200 * MIB);
	CHECK(look.balance.requested == 300 * MIB && look.balance.cached == 200 * MIB);
	CHECK(gpc_balance_difference(&look.balance) == 0);
	CHECK(gpc_balance_sum(&look.balance) == GPC_GIB);
	CHECK(look.piece == 200 * MIB && look.other_piece == 0);
	CHECK(look.setup & GPUCACHE_OOM_CACHING);
}

TEST(a_sheet_of_a_quiet_device_adds_up)
{
	world_run("memory:1GiB,context:0", "record:off,stacks:off", with_live_and_cached);
	world_assert_is_silent();
}

static const struct gpc_driver_ops *real_ops;
static unsigned n_looks;

static enum gpc_status count_looks(struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	n_looks++;
	return real_ops->mem_info(drv, ret_free, ret_total);
}

/* A move that never ends, as if the driver blocked its thread. */
static void beside_an_endless_move(void)
{
	struct gpc_context *context;
	struct gpc_driver_ops ops;
	CUdeviceptr live;

	world_start();
	CHECK(!world_malloc(&live, 300 * MIB));
	context = gpc_runtime.devices[0].contexts[0];
	real_ops = context->drv.base.ops;
	ops = *real_ops;
	ops.mem_info = count_looks;
	context->drv.base.ops = &ops;
	(void)atomic_fetch_add(&gpc_runtime.devices[0].budget.moving_bytes, 20 * MIB);

	struct gpc_look look = look_at_the_device();

	CHECK(look.balance.requested == 300 * MIB);
	CHECK(n_looks == 1); /* another would say the same */
	context->drv.base.ops = real_ops;
	(void)atomic_fetch_sub(&gpc_runtime.devices[0].budget.moving_bytes, 20 * MIB);
}

TEST(a_look_is_taken_once_while_a_move_never_ends)
{
	world_run("memory:1GiB,context:0", "record:off,stacks:off", beside_an_endless_move);
	world_assert_is_silent();
}
