/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/address_map.h"
#include "base/metamem.h"
#include "unit.h"

static int values[4096];

TEST(an_empty_map_finds_nothing)
{
	struct gpc_address_map map = { 0 };

	assert_null(gpc_address_map_find(&map, 512));
	assert_null(gpc_address_map_find(&map, 0));
	assert_null(gpc_address_map_take(&map, 512));
	gpc_address_map_fini(&map);
}

TEST(an_entry_is_found_at_exactly_its_address)
{
	struct gpc_address_map map = { 0 };

	assert_int_equal(gpc_address_map_reserve(&map, 1), GPC_OK);
	gpc_address_map_insert(&map, 0x7f0000000200, &values[3]);
	assert_ptr_equal(gpc_address_map_find(&map, 0x7f0000000200), &values[3]);
	assert_null(gpc_address_map_find(&map, 0x7f0000000201));
	assert_null(gpc_address_map_find(&map, 0x7f0000000000));
	assert_null(gpc_address_map_find(&map, 0));
	assert_ptr_equal(gpc_address_map_take(&map, 0x7f0000000200), &values[3]);
	assert_null(gpc_address_map_find(&map, 0x7f0000000200));
	assert_int_equal(map.n_entries, 0);
	gpc_address_map_fini(&map);
}

/* Scattered and all different; neighbours in a row would never want the same slot. */
static uint64_t address_of(size_t i)
{
	uint64_t x = i + 1;

	x = (x ^ (x >> 15)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 31)) * UINT64_C(0x94d049bb133111eb);
	return (x >> 24) * 512;
}

TEST(a_map_that_grows_keeps_everything)
{
	struct gpc_address_map map = { 0 };

	for (size_t i = 0; i < N_OF(values); i++) {
		assert_int_equal(gpc_address_map_reserve(&map, 1), GPC_OK);
		gpc_address_map_insert(&map, address_of(i), &values[i]);
		assert_true(map.n_entries * 2 <= map.n_slots);
	}
	for (size_t i = 0; i < N_OF(values); i++)
		assert_ptr_equal(gpc_address_map_find(&map, address_of(i)), &values[i]);
	gpc_address_map_fini(&map);
}

/* Every order of removal must leave all others findable: this is where a hole in a run of slots would show. */
TEST(removal_in_any_order_leaves_the_others_findable)
{
	struct gpc_address_map map = { 0 };

	assert_int_equal(gpc_address_map_reserve(&map, N_OF(values)), GPC_OK);
	for (size_t i = 0; i < N_OF(values); i++)
		gpc_address_map_insert(&map, address_of(i), &values[i]);
	for (size_t i = 0; i < N_OF(values); i++) {
		size_t at = i * 1237 % N_OF(values);

		assert_ptr_equal(gpc_address_map_take(&map, address_of(at)), &values[at]);
		for (size_t j = i + 1; j < N_OF(values) && (i % 97 == 0 || j < i + 3); j++) {
			size_t other = j * 1237 % N_OF(values);

			assert_ptr_equal(
				gpc_address_map_find(&map, address_of(other)), &values[other]);
		}
		assert_null(gpc_address_map_find(&map, address_of(at)));
	}
	assert_int_equal(map.n_entries, 0);
	for (uint64_t i = 0; i < map.n_slots; i++)
		assert_int_equal(map.slots[i].address, 0);
	gpc_address_map_fini(&map);
}

TEST(without_metadata_the_map_stays_as_it_was)
{
	struct gpc_address_map map = { 0 };
	size_t before = gpc_metamem_total();

	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_address_map_reserve(&map, 1), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	assert_int_equal(map.n_slots, 0);
	assert_int_equal(gpc_address_map_reserve(&map, 100), GPC_OK);
	gpc_address_map_insert(&map, 512, &values[0]);
	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_address_map_reserve(&map, 100000), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	assert_ptr_equal(gpc_address_map_find(&map, 512), &values[0]);
	gpc_address_map_fini(&map);
	assert_int_equal(gpc_metamem_total(), before);
}
