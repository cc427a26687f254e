/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context/contexts.h"
#include "runtime/context/pages.h"
#include "runtime/process/state.h"
#include "world.h"

static uint64_t available(void)
{
	struct gpc_driver *drv = &world_context()->drv.base;
	uint64_t bytes = 0;
	uint64_t total = 0;

	CHECK(!drv->ops->mem_info(drv, &bytes, &total));
	return bytes;
}

static uint32_t n_ranges(void)
{
	return gpc_runtime.heap.ranges.n_live;
}

static void without(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 30 * MIB) && !world_free(ptr));
	CHECK(!world_context()->drv.base.pages && n_ranges() == 0);
}

TEST(pages_are_offered_where_the_option_asks_for_them)
{
	world_run("memory:1GiB", "record:off", without);
}

static void ends_auto(void)
{
	CUdeviceptr ptr;
	uint64_t before;

	world_start();
	before = available();
	CHECK(!world_malloc(&ptr, 400 * MIB) && !world_free(ptr) && n_ranges() == 0);
	CHECK(!world_malloc(&ptr, 800 * MIB) && n_ranges() == 1); /* the first was in the way */
	gpc_pages_look_around();
	CHECK(!gpc_runtime.heap.is_paging_over);
	CHECK(!world_free(ptr) && !world_sync() && available() < before);
	gpc_pages_end();
	CHECK(gpc_runtime.heap.is_paging_over && n_ranges() == 0 && available() == before);
	CHECK(!world_malloc(&ptr, 300 * MIB) && n_ranges() == 0);
}

TEST(with_auto_the_end_of_pages_gives_them_back)
{
	world_run("memory:1GiB,context:0", "record:off,vmm:auto", ends_auto);
}

static void ends_on(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 30 * MIB) && n_ranges() == 1);
	gpc_pages_end();
	CHECK(!world_malloc(&ptr, 40 * MIB) && n_ranges() == 2);
}

TEST(with_on_they_never_end)
{
	world_run("memory:1GiB", "record:off,vmm:on", ends_on);
}

static void dies(void)
{
	CUcontext context;
	CUdeviceptr ptr;
	uint64_t before;

	world_start();
	before = available();
	CHECK(!world.cuCtxCreate_v2(&context, 0, 0));
	CHECK(!world_malloc(&ptr, 100 * MIB) && n_ranges() == 1);
	CHECK(!world_destroy(context));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(n_ranges() == 0 && available() == before);
}

TEST(a_context_that_dies_takes_its_pages_along)
{
	world_run("memory:1GiB,context:0", "record:off,vmm:on", dies);
}

static void reached(void)
{
	struct gpc_context *owner;

	world_start();
	owner = world_context();
	(void)world_peer(1);
	CHECK(owner->pool.page_devices == 2);
}

TEST(another_device_that_is_a_peer_is_let_at_them)
{
	world_run("devices:2", "record:off,vmm:on", reached);
}
