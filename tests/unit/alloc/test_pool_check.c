/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks each invariant by hand: the checker must name it.  After the repair the checker must pass. */
#include "stage.h"

static struct stage stage;
static struct gpc_block *live;    /* of 4096 bytes */
static struct gpc_block *pending; /* of 4096 bytes, behind `live` */
static struct gpc_block *rest;    /* FREE, behind `pending` */
static struct gpc_segment *idle;  /* of one FREE block */

static struct gpc_block *block_at(gpc_devptr address)
{
	struct gpc_block *block = gpc_pool_find_block_locked(
		&stage.pool, gpc_segment_map_find(&stage.heap.segment_map, address), address);

	assert_non_null(block);
	return block;
}

static int start(void **state)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr a;
	gpc_devptr b;
	gpc_devptr large;

	stage_open(&stage, &params);
	large = stage_alloc(&stage, 20 * GPC_MIB);
	stage_free(&stage, large);
	(void)gpc_pool_reap(&stage.pool);
	a = stage_alloc(&stage, 4096);
	b = stage_alloc(&stage, 4096);
	stage_free(&stage, b);
	live = block_at(a);
	pending = block_at(b);
	rest = pending->next;
	idle = gpc_segment_map_find(&stage.heap.segment_map, large);
	assert_non_null(rest);
	return 0;
}

static int stop(void **state)
{
	stage_close(&stage);
	return 0;
}

FIXTURE(start, stop);

static void expect(const char *name)
{
	const char *broken = gpc_pool_check(&stage.pool);

	assert_non_null(broken);
	if (strncmp(broken, name, strlen(name)) != 0)
		fail_msg("expected %s, the checker says: %s", name, broken);
}

TEST(a_sound_heap_is_sound)
{
	assert_null(gpc_pool_check(&stage.pool));
	assert_int_equal(live->state, GPC_BLOCK_LIVE);
	assert_int_equal(pending->state, GPC_BLOCK_PENDING);
	assert_int_equal(rest->state, GPC_BLOCK_FREE);
}

TEST(a_gap_between_blocks_is_named)
{
	rest->address += 512;
	expect("I1");
	rest->address -= 512;
}

TEST(a_segment_that_its_blocks_do_not_fill_is_named)
{
	idle->size += 2 * GPC_MIB;
	expect("I1");
	idle->size -= 2 * GPC_MIB;
}

TEST(a_wrong_neighbour_is_named)
{
	rest->prev = live;
	expect("I1");
	rest->prev = pending;
}

TEST(a_block_of_another_segment_is_named)
{
	rest->segment = idle;
	expect("I1");
	rest->segment = live->segment;
}

TEST(free_neighbours_that_did_not_merge_are_named)
{
	pending->state = GPC_BLOCK_FREE;
	expect("I2");
	pending->state = GPC_BLOCK_PENDING;
}

TEST(a_free_block_in_no_bin_is_named)
{
	gpc_bins_remove(&stage.pool.pieces[GPC_POOL_SMALL], rest);
	expect("I3");
	gpc_bins_insert(&stage.pool.pieces[GPC_POOL_SMALL], rest);
}

TEST(a_block_in_a_bin_that_is_not_free_is_named)
{
	gpc_bins_remove(&stage.pool.pieces[GPC_POOL_SMALL], rest);
	gpc_bins_insert(&stage.pool.pieces[GPC_POOL_SMALL], live);
	expect("I3");
	gpc_bins_remove(&stage.pool.pieces[GPC_POOL_SMALL], live);
	gpc_bins_insert(&stage.pool.pieces[GPC_POOL_SMALL], rest);
}

TEST(a_block_in_the_wrong_bin_is_named)
{
	uint32_t right = gpc_size_bin(rest->size);
	struct gpc_bins *bins = &stage.pool.pieces[GPC_POOL_SMALL];

	bins->roots[3] = rest;
	bins->roots[right] = NULL;
	bins->bitmap[right / 64] ^= UINT64_C(1) << (right % 64);
	bins->bitmap[0] ^= UINT64_C(1) << 3;
	expect("I3");
	bins->roots[right] = rest;
	bins->roots[3] = NULL;
	bins->bitmap[right / 64] ^= UINT64_C(1) << (right % 64);
	bins->bitmap[0] ^= UINT64_C(1) << 3;
}

TEST(a_bit_without_a_bin_is_named)
{
	stage.pool.pieces[GPC_POOL_LARGE].bitmap[0] ^= 4;
	expect("I3");
	stage.pool.pieces[GPC_POOL_LARGE].bitmap[0] ^= 4;
}

TEST(a_pending_block_on_no_fence_is_named)
{
	struct gpc_list *list = pending->link.prev;

	gpc_list_remove(&pending->link);
	expect("I4");
	gpc_list_append(list, &pending->link);
}

TEST(a_block_on_a_fence_that_is_not_pending_is_named)
{
	/* The neighbour is free, so that a wrong state of `pending` would be I2: it is called live. */
	pending->state = GPC_BLOCK_LIVE;
	expect("I4");
	pending->state = GPC_BLOCK_PENDING;
}

TEST(a_fence_that_miscounts_is_named)
{
	struct gpc_fences *fences = &stage.pool.fences;

	fences->ring[fences->open % GPC_MAX_FENCES].bytes += 512;
	expect("F2");
	fences->ring[fences->open % GPC_MAX_FENCES].bytes -= 512;
	fences->pending_bytes += 512;
	expect("I4");
	fences->pending_bytes -= 512;
}

TEST(a_request_larger_than_its_block_is_named)
{
	live->requested += 512;
	expect("I5");
	live->requested -= 512;
}

TEST(a_block_off_the_grain_is_named)
{
	live->size += 8;
	expect("I5");
	live->size -= 8;
}

TEST(every_wrong_counter_is_named)
{
	struct gpucache_counters *counters = stage.pool.counters;
	uint64_t *const each[] = { &counters->live_bytes, &counters->requested_bytes,
		&counters->pending_bytes, &counters->cached_bytes, &counters->reserved_bytes,
		&counters->n_blocks, &counters->n_segments };

	for (size_t i = 0; i < N_OF(each); i++) {
		++*each[i];
		expect("I6");
		--*each[i];
	}
}

TEST(a_block_that_its_address_does_not_find_is_named)
{
	uint32_t *number = &live->segment->grains->numbers[0];
	struct gpc_block *whole = idle->first;

	*number = pending->number + 1;
	expect("I7");
	*number = live->number + 1;
	assert_ptr_equal(gpc_address_map_take(&stage.pool.blocks, whole->address), whole);
	expect("I7");
	gpc_address_map_insert(&stage.pool.blocks, whole->address, whole);
}

TEST(an_address_that_finds_more_than_blocks_is_named)
{
	uint32_t *number = &live->segment->grains->numbers[1];

	*number = live->number + 1;
	expect("I7");
	*number = 0;
	gpc_address_map_insert(&stage.pool.blocks, 0x200, live);
	expect("I7");
	assert_ptr_equal(gpc_address_map_take(&stage.pool.blocks, 0x200), live);
}

/* Two small FREE blocks of one size: the lower is in the tree, the other only in the grain map. */
TEST(a_small_free_block_that_its_grain_map_does_not_have_is_named)
{
	gpc_devptr blocks[5];
	struct gpc_grain_set *set;

	for (int i = 0; i < 5; i++)
		blocks[i] = stage_alloc(&stage, 4096);
	for (int i = 1; i < 5; i += 2)
		stage_free(&stage, blocks[i]);
	(void)gpc_pool_reap(&stage.pool);
	set = gpc_pool_set_of(block_at(blocks[1]));
	assert_non_null(set);
	for (int i = 1; i < 5; i += 2) {
		uint32_t grain = gpc_pool_grain_of(live->segment, blocks[i]);

		gpc_grain_set_remove(set, grain);
		expect("I3");
		gpc_grain_set_add(set, grain);
	}
	gpc_grain_set_add(set, 1);
	expect("I3");
	gpc_grain_set_remove(set, 1);
	gpc_grain_set_add(set, GPC_GRAINS - 1);
	expect("I3");
	gpc_grain_set_remove(set, GPC_GRAINS - 1);
	stage_check(&stage);
}

TEST(an_idle_segment_on_no_list_is_named)
{
	gpc_list_remove(&idle->idle);
	expect("I8");
	gpc_list_append(&stage.pool.idle, &idle->idle);
}

TEST(a_segment_in_use_on_the_idle_list_is_named)
{
	gpc_list_append(&stage.pool.idle, &live->segment->idle);
	expect("I8");
	gpc_list_remove(&live->segment->idle);
}

TEST(a_parked_block_that_a_list_lacks_or_counts_wrongly_is_named)
{
	struct gpc_block **slot = gpc_pool_slot_of(&stage.pool, 4096);

	stage.pool.fences.is_one_stream = true;
	stage_free(&stage, live->address);
	assert_int_equal(live->state, GPC_BLOCK_PARKED);
	stage.pool.n_parked++;
	expect("P1");
	stage.pool.n_parked--;
	*slot = NULL;
	expect("P1");
	*slot = live;
	live->state = GPC_BLOCK_FREE;
	expect("P1");
	live->state = GPC_BLOCK_PARKED;
	stage_check(&stage);
	stage.pool.fences.is_one_stream = false;
}

TEST(a_parked_block_that_could_not_serve_its_size_is_named)
{
	stage.pool.fences.is_one_stream = true;
	stage_free(&stage, live->address);
	live->segment->is_exported = true;
	expect("P2");
	live->segment->is_exported = false;
	live->segment->kind = GPC_POOL_LARGE;
	expect("P2");
	live->segment->kind = GPC_POOL_SMALL;
	stage_check(&stage);
	stage.pool.fences.is_one_stream = false;
}

TEST(a_block_without_a_state_is_named)
{
	live->state = GPC_BLOCK_UNUSED;
	expect("a block");
	live->state = GPC_BLOCK_LIVE;
}

TEST(a_whole_segment_among_the_pieces_is_named)
{
	gpc_bins_remove(&stage.pool.wholes, idle->first);
	gpc_bins_insert(&stage.pool.pieces[GPC_POOL_LARGE], idle->first);
	expect("I3");
	gpc_bins_remove(&stage.pool.pieces[GPC_POOL_LARGE], idle->first);
	gpc_bins_insert(&stage.pool.wholes, idle->first);
}

TEST(segments_that_are_miscounted_are_named)
{
	stage.pool.cut_bytes += GPC_GRAIN;
	expect("the segments of large blocks that are cut");
	stage.pool.cut_bytes -= GPC_GRAIN;
	stage.pool.idle_segment_bytes += GPC_GRAIN;
	expect("the live blocks of segments");
	stage.pool.idle_segment_bytes -= GPC_GRAIN;
	live->segment->n_live++;
	expect("the live blocks of segments");
	live->segment->n_live--;
}
