/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/segment_map.h"
#include "base/metamem.h"
#include "unit.h"

static struct gpc_segment segment_at(gpc_devptr address, uint64_t size)
{
	return (struct gpc_segment){ .address = address, .size = size };
}

TEST(every_address_inside_a_segment_finds_it_and_no_other_does)
{
	struct gpc_segment segment = segment_at(0x7f0000000000, 6 * GPC_MIB);
	struct gpc_segment_map map;

	assert_int_equal(gpc_segment_map_init(&map), GPC_OK);
	assert_null(gpc_segment_map_find(&map, segment.address));
	assert_int_equal(gpc_segment_map_insert(&map, &segment), GPC_OK);
	assert_ptr_equal(gpc_segment_map_find(&map, segment.address), &segment);
	assert_ptr_equal(gpc_segment_map_find(&map, segment.address + 6 * GPC_MIB - 1), &segment);
	assert_null(gpc_segment_map_find(&map, segment.address - 1));
	assert_null(gpc_segment_map_find(&map, segment.address + 6 * GPC_MIB));
	gpc_segment_map_remove(&map, &segment);
	assert_null(gpc_segment_map_find(&map, segment.address));
	assert_null(gpc_segment_map_find(&map, segment.address + 6 * GPC_MIB - 1));
	gpc_segment_map_fini(&map);
}

TEST(a_segment_may_reach_over_two_leaves)
{
	gpc_devptr edge = UINT64_C(1) << (GPC_SEGMENT_MAP_PAGE_BITS + GPC_SEGMENT_MAP_LEAF_BITS);
	struct gpc_segment segment = segment_at(3 * edge - 2 * GPC_MIB, 4 * GPC_MIB);
	struct gpc_segment_map map;

	assert_int_equal(gpc_segment_map_init(&map), GPC_OK);
	assert_int_equal(gpc_segment_map_insert(&map, &segment), GPC_OK);
	assert_ptr_equal(gpc_segment_map_find(&map, 3 * edge - 1), &segment);
	assert_ptr_equal(gpc_segment_map_find(&map, 3 * edge), &segment);
	assert_null(gpc_segment_map_find(&map, 3 * edge + 2 * GPC_MIB));
	gpc_segment_map_fini(&map);
}

TEST(addresses_and_sizes_off_the_grid_are_refused)
{
	static const struct {
		gpc_devptr address;
		uint64_t size;
	} rows[] = {
		{ 0, 2 * GPC_MIB },
		{ GPC_GIB + 512, 2 * GPC_MIB },
		{ GPC_GIB, GPC_MIB },
		{ GPC_GIB, 2 * GPC_MIB + 512 },
		{ UINT64_C(1) << 48, 2 * GPC_MIB },
		{ (UINT64_C(1) << 48) - 2 * GPC_MIB, 4 * GPC_MIB },
	};
	struct gpc_segment_map map;

	assert_int_equal(gpc_segment_map_init(&map), GPC_OK);
	for (size_t i = 0; i < N_OF(rows); i++) {
		struct gpc_segment segment = segment_at(rows[i].address, rows[i].size);

		assert_int_equal(gpc_segment_map_insert(&map, &segment), GPC_UNSUPPORTED);
		assert_null(gpc_segment_map_find(&map, rows[i].address));
	}
	assert_null(gpc_segment_map_find(&map, UINT64_MAX));
	gpc_segment_map_fini(&map);
}

TEST(a_segment_over_a_page_of_its_pool_changes_nothing)
{
	struct gpc_segment old = segment_at(GPC_GIB + 4 * GPC_MIB, 2 * GPC_MIB);
	struct gpc_segment new = segment_at(GPC_GIB, 8 * GPC_MIB);
	struct gpc_segment_map map;

	assert_int_equal(gpc_segment_map_init(&map), GPC_OK);
	assert_int_equal(gpc_segment_map_insert(&map, &old), GPC_OK);
	assert_int_equal(gpc_segment_map_insert(&map, &new), GPC_EXISTS);
	assert_null(gpc_segment_map_find(&map, GPC_GIB));
	assert_ptr_equal(gpc_segment_map_find(&map, old.address), &old);
	gpc_segment_map_fini(&map);
}

TEST(another_pool_takes_the_pages_that_the_driver_gave_it)
{
	/* Never looked into: a pool is only named here. */
	struct gpc_pool *pool = (struct gpc_pool *)(uintptr_t)0x1000;
	struct gpc_segment old = segment_at(GPC_GIB, 8 * GPC_MIB);
	struct gpc_segment new = segment_at(GPC_GIB + 2 * GPC_MIB, 2 * GPC_MIB);
	struct gpc_segment_map map;

	new.pool = pool;
	assert_int_equal(gpc_segment_map_init(&map), GPC_OK);
	assert_int_equal(gpc_segment_map_insert(&map, &old), GPC_OK);
	assert_int_equal(gpc_segment_map_insert(&map, &new), GPC_OK);
	assert_ptr_equal(gpc_segment_map_find(&map, GPC_GIB), &old);
	assert_ptr_equal(gpc_segment_map_find(&map, new.address), &new);
	gpc_segment_map_evict(&map, GPC_GIB + 6 * GPC_MIB + 512, 1000);
	assert_null(gpc_segment_map_find(&map, GPC_GIB + 6 * GPC_MIB));
	assert_ptr_equal(gpc_segment_map_find(&map, GPC_GIB + 4 * GPC_MIB), &old);
	gpc_segment_map_remove(&map, &old);
	assert_null(gpc_segment_map_find(&map, GPC_GIB));
	assert_null(gpc_segment_map_find(&map, GPC_GIB + 4 * GPC_MIB));
	assert_ptr_equal(gpc_segment_map_find(&map, new.address), &new);
	gpc_segment_map_evict(&map, 512, 3 * GPC_GIB);
	assert_null(gpc_segment_map_find(&map, new.address));
	gpc_segment_map_fini(&map);
}

TEST(without_metadata_nothing_is_inserted)
{
	struct gpc_segment segment = segment_at(GPC_GIB, 2 * GPC_MIB);
	size_t before = gpc_metamem_total();
	struct gpc_segment_map map;

	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_segment_map_init(&map), GPC_NO_METADATA);
	gpc_segment_map_fini(&map);
	gpc_metamem_fail_at(2);
	assert_int_equal(gpc_segment_map_init(&map), GPC_OK);
	assert_int_equal(gpc_segment_map_insert(&map, &segment), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	assert_null(gpc_segment_map_find(&map, GPC_GIB));
	assert_int_equal(gpc_segment_map_insert(&map, &segment), GPC_OK);
	gpc_segment_map_fini(&map);
	assert_int_equal(gpc_metamem_total(), before);
}
