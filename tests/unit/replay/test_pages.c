/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "tools/replay/pages.h"
#include "unit.h"

#define START  UINT64_C(0x600000000000)
#define DEVICE (64 * GPC_MIB)

static struct gpc_machine machine;
static struct gpc_pages pages;

static int start(void **state)
{
	const struct gpc_machine_config config = { .device_bytes = DEVICE, .n_streams = 1 };

	(void)state;
	assert_int_equal(gpc_machine_open(&machine, &config), GPC_OK);
	assert_int_equal(gpc_pages_init(&pages, &machine, START, 4 * DEVICE), GPC_OK);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	assert_null(gpc_pages_check(&pages));
	gpc_pages_fini(&pages);
	gpc_machine_close(&machine);
	return 0;
}

static uint64_t give(uint64_t size)
{
	uint64_t address = 0;

	assert_int_equal(gpc_pages_alloc(&pages, size, &address), GPC_OK);
	assert_null(gpc_pages_check(&pages));
	return address;
}

static void take_back(uint64_t address)
{
	assert_int_equal(gpc_pages_free(&pages, address), GPC_OK);
	assert_null(gpc_pages_check(&pages));
}

static void a_page_at_a_border_is_shared(void **state)
{
	(void)state;
	assert_int_equal(give(3 * GPC_MIB), START);
	assert_int_equal(give(3 * GPC_MIB), START + 3 * GPC_MIB);
	assert_int_equal(pages.n_mapped, 3);
	assert_int_equal(gpc_machine_reserved_bytes(&machine), 6 * GPC_MIB);
}

static void a_shared_page_stays_until_its_last_block_goes(void **state)
{
	uint64_t a = give(3 * GPC_MIB);
	uint64_t b = give(3 * GPC_MIB);

	(void)state;
	take_back(a);
	assert_int_equal(pages.n_idle, 1);
	assert_int_equal(gpc_pages_trim(&pages, UINT64_MAX), 2 * GPC_MIB);
	take_back(b);
	assert_int_equal(pages.n_idle, 2);
	assert_int_equal(gpc_pages_trim(&pages, UINT64_MAX), 4 * GPC_MIB);
	assert_int_equal(gpc_machine_reserved_bytes(&machine), 0);
}

static void a_full_device_serves_what_its_idle_pages_hold_together(void **state)
{
	uint64_t blocks[16];
	uint64_t address;

	(void)state;
	for (int i = 0; i < 16; i++)
		blocks[i] = give(4 * GPC_MIB);
	for (int i = 0; i < 16; i += 2)
		take_back(blocks[i]);
	address = give(32 * GPC_MIB); /* no gap is larger than 4 MiB */
	assert_int_equal(gpc_machine_reserved_bytes(&machine), DEVICE);
	assert_true(pages.n_moves > 0 && pages.n_idle == 0);
	assert_int_equal(gpc_pages_alloc(&pages, GPC_MIB, &address), GPC_DEVICE_NO_MEMORY);
}

static void a_refusal_leaves_the_blocks_as_they_were(void **state)
{
	uint64_t a = give(DEVICE - 4 * GPC_MIB);
	uint64_t b = 0;

	(void)state;
	assert_int_equal(gpc_pages_alloc(&pages, 6 * GPC_MIB, &b), GPC_DEVICE_NO_MEMORY);
	assert_null(gpc_pages_check(&pages));
	assert_int_equal(pages.n_blocks, 1);
	b = give(4 * GPC_MIB);
	take_back(a);
	take_back(b);
}

static void only_the_start_of_a_block_frees_it(void **state)
{
	uint64_t a = give(3 * GPC_MIB);

	(void)state;
	assert_int_equal(gpc_pages_free(&pages, a + 512), GPC_NOT_FOUND);
	take_back(a);
	assert_int_equal(gpc_pages_free(&pages, a), GPC_NOT_FOUND);
}

/* Blocks come and go at random: never more pages than the blocks and what was idle need. */
static void random_blocks_never_map_more_than_they_need(void **state)
{
	uint64_t held[40] = { 0 };
	uint64_t dice = 1;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint64_t *slot;
		uint64_t size;

		dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		slot = &held[(dice >> 33) % N_OF(held)];
		size = ((dice >> 40) % 2048 + 1) * 2048;
		if (*slot) {
			take_back(*slot);
			*slot = 0;
		} else if (gpc_pages_alloc(&pages, size, slot)) {
			/* All places need more pages than are idle. */
			assert_true(pages.n_idle * GPC_PAGE_BYTES < size + 2 * GPC_PAGE_BYTES);
			*slot = 0;
		}
		assert_null(gpc_pages_check(&pages));
		assert_int_equal(
			gpc_machine_reserved_bytes(&machine), pages.n_mapped * GPC_PAGE_BYTES);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(a_page_at_a_border_is_shared),
		TEST(a_shared_page_stays_until_its_last_block_goes),
		TEST(a_full_device_serves_what_its_idle_pages_hold_together),
		TEST(a_refusal_leaves_the_blocks_as_they_were),
		TEST(only_the_start_of_a_block_frees_it),
		TEST(random_blocks_never_map_more_than_they_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
