/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the simulated driver: the memory they take, access, and failures. */
#include "base/bytes.h"
#include "driver/driver_pages.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/sim.h"
#include "unit.h"

static struct gpc_sim *sim;
static struct gpc_sim_driver driver;
static struct gpc_driver *const drv = &driver.base;
static uint64_t whole;

static uint64_t available(void)
{
	return gpc_sim_device_free_bytes(&sim->devices[0]);
}

static int start(void **state)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.n_devices = 2;
	config.virtual_clock = true;
	sim = gpc_sim_create(&config);
	assert_non_null(sim);
	assert_int_equal(gpc_sim_driver_init(&driver, sim, 0, NULL), GPC_OK);
	whole = available();
	return 0;
}

static int stop(void **state)
{
	assert_int_equal(available(), whole);
	gpc_sim_driver_fini(&driver);
	gpc_sim_destroy(sim);
	return 0;
}

FIXTURE(start, stop);

TEST(a_page_is_used_by_those_who_were_let_at_it)
{
	gpc_devptr ptr = 0;

	assert_int_equal(drv->pages->reserve(drv, 4 * GPC_MIB, &ptr), GPC_OK);
	assert_int_equal(drv->pages->map(drv, ptr, 4 * GPC_MIB), GPC_OK);
	assert_int_equal(available(), whole - 4 * GPC_MIB);
	assert_false(gpc_sim_may_touch(sim, 0, ptr, 512, true));
	assert_int_equal(drv->pages->open(drv, ptr, 4 * GPC_MIB, 0), GPC_OK);
	assert_true(gpc_sim_may_touch(sim, 0, ptr, 512, true));
	assert_false(gpc_sim_may_touch(sim, 1, ptr, 512, true));
	assert_int_equal(drv->pages->open(drv, ptr, 4 * GPC_MIB, 2), GPC_OK);
	assert_true(gpc_sim_may_touch(sim, 1, ptr, 512, true));
	assert_int_equal(drv->pages->unmap(drv, ptr, 4 * GPC_MIB), GPC_OK);
	drv->pages->release(drv, ptr, 4 * GPC_MIB);
}

TEST(a_page_that_cannot_be_mapped_takes_nothing)
{
	gpc_devptr ptr = 0;

	assert_int_equal(drv->pages->reserve(drv, 2 * GPC_MIB, &ptr), GPC_OK);
	assert_true(gpc_sim_fault_add(&sim->faults, "cuMemMap", 1, 1, 2));
	assert_int_equal(drv->pages->map(drv, ptr, 2 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(available(), whole);
	drv->pages->release(drv, ptr, 2 * GPC_MIB);
}
