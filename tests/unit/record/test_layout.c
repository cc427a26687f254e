/* SPDX-License-Identifier: Apache-2.0 */
#include "record/layout.h"
#include "record/record.h"
#include "unit.h"

static const struct gpucache_region *find(const struct gpc_layout *layout, uint32_t kind)
{
	for (uint32_t i = 0; i < layout->n_regions; i++) {
		if (layout->regions[i].kind == kind)
			return &layout->regions[i];
	}
	return NULL;
}

static void check(size_t size, uint32_t n_devices)
{
	struct gpc_layout layout;
	uint64_t end = GPUCACHE_PAGE;

	gpc_layout_make(&layout, size, n_devices);
	assert_int_equal(layout.n_regions, GPUCACHE_REGION_COUNT - 1);
	for (uint32_t i = 0; i < layout.n_regions; i++) {
		const struct gpucache_region *region = &layout.regions[i];

		assert_int_equal(region->offset, end);
		assert_int_equal(region->size % GPUCACHE_PAGE, 0);
		assert_true(region->count > 0);
		assert_true(region->count * region->record_size <= region->size);
		end += region->size;
	}
	assert_int_equal(layout.file_size, end);
	assert_true(end <= size);
	/* Hardly anything is left over. */
	assert_true(size - end < 2 * GPUCACHE_PAGE);
	for (uint32_t kind = 1; kind < GPUCACHE_REGION_COUNT; kind++)
		assert_non_null(find(&layout, kind));
	assert_true(find(&layout, GPUCACHE_REGION_EVENTS)->count >= 1024);
	assert_true(find(&layout, GPUCACHE_REGION_BLOCKS)->count >= 1024);
	assert_int_equal(find(&layout, GPUCACHE_REGION_PEAKS)->count, 2 * n_devices);
}

TEST(every_size_and_number_of_devices_is_divided_without_gaps)
{
	for (size_t size = GPC_RECORD_MIN_SIZE; size <= GPC_RECORD_MAX_SIZE;
		size += size / 7 & ~(size_t)4095) {
		for (uint32_t n = 1; n <= GPUCACHE_MAX_DEVICES; n++)
			check(size, n);
	}
}

TEST(the_default_size_is_divided_as_the_head_says)
{
	struct gpc_layout layout;

	gpc_layout_make(&layout, GPC_RECORD_DEFAULT_SIZE, 1);
	assert_int_equal(find(&layout, GPUCACHE_REGION_EVENTS)->count, 32768);
	assert_true(find(&layout, GPUCACHE_REGION_BLOCKS)->count >= 32768);
	assert_true(find(&layout, GPUCACHE_REGION_SITES)->count >= 8192);
	assert_true(find(&layout, GPUCACHE_REGION_STACKS)->size >= 3 * GPC_MIB / 2);
	assert_int_equal(layout.max_points, 1024);
}
