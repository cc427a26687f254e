/* SPDX-License-Identifier: Apache-2.0 */
#include "oom/holder_rows.h"
#include "runtime/process/state.h"
#include "runtime/rescue/holders.h"
#include "world.h"

/* The stack that holds most of the device, with its history. */
static struct gpc_holder_row biggest(void)
{
	struct gpc_device *device = &gpc_runtime.devices[0];
	struct gpc_holder_names names = gpc_holder_names_open(device, NULL);
	const struct gpc_describer describer = gpc_holder_describer(&names);
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS] = { { .bytes = 0 } };
	struct gpucache_holder holders[GPUCACHE_MAX_OOM_HOLDERS];
	uint32_t n_sites;
	uint64_t rest;
	uint32_t n = gpc_record_top_holders(
		&gpc_runtime.record, 0, holders, GPUCACHE_MAX_OOM_HOLDERS, &n_sites, &rest);

	(void)gpc_holder_rows_fill(rows, holders, n, &describer, GPC_HOLDER_SITE_SIZE);
	gpc_holder_names_close(&names);
	return rows[0];
}

static void holds(void)
{
	struct gpc_holder_row row;
	CUdeviceptr first;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&first, 64 * MIB));
	row = biggest();
	CHECK(row.bytes >= 64 * MIB && row.site[0] && row.oldest_ns > 0);
	/* Young ones make it no younger; without it the oldest is another. */
	for (int i = 0; i < 400; i++)
		CHECK(!world_malloc(&ptr, MIB));
	CHECK(biggest().oldest_ns <= row.oldest_ns || biggest().bytes < 400 * MIB);
	CHECK(biggest().growth > 0);
}

TEST(a_holder_is_told_with_its_age_and_growth)
{
	world_run(NULL, NULL, holds);
	world_assert_is_silent();
}

static void holds_nothing(void)
{
	world_start();
	gpc_holders_print(&gpc_runtime.devices[0], MIB);
}

static void leaks(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 3 * MIB));
	gpc_holders_print(&gpc_runtime.devices[0], 4 * MIB);
}

TEST(what_is_printed_adds_up_to_the_total)
{
	world_run(NULL, NULL, holds_nothing);
	world_assert_is_silent();
	world_run(NULL, NULL, leaks);
	world_assert_says("     3.00 MiB         1 ");
	world_assert_says("     1.00 MiB         0 ");
	world_assert_says("  others\n");
}
