/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

static const struct gpucache_event *event(unsigned back)
{
	uint64_t n = atomic_load(&gpc_runtime.record.next_event);

	CHECK(n > back);
	return &gpc_runtime.record.events[(n - 1 - back) & (gpc_runtime.record.n_events - 1)];
}

static const struct gpucache_block *block_at(uint64_t address)
{
	for (uint32_t i = 0; i < gpc_runtime.record.n_blocks; i++) {
		const struct gpucache_block *block = &gpc_runtime.record.blocks[i];

		if (block->state != GPUCACHE_BLOCK_UNUSED && block->address == address)
			return block;
	}
	return NULL;
}

static void blocks_and_events(void)
{
	const struct gpucache_block *block;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(event(0)->kind == GPUCACHE_EVENT_MALLOC && event(0)->address == ptr);
	CHECK(event(0)->size == 1024 && event(0)->requested == 1000 && event(0)->stack);
	CHECK(event(1)->kind == GPUCACHE_EVENT_SEGMENT_MALLOC && event(1)->size == 2 * MIB);
	block = block_at(ptr);
	CHECK(block && block->state == GPUCACHE_BLOCK_LIVE && block->requested == 1000);
	CHECK(block->stack == event(0)->stack && block->thread);
	CHECK(gpc_runtime.record.segments[block->segment].size == 2 * MIB);
	CHECK(gpc_runtime.record.sites[block->stack].live_bytes == 1000);
	CHECK(!world_free(ptr));
	CHECK(event(0)->kind == GPUCACHE_EVENT_FREE && event(0)->address == ptr);
	CHECK(block_at(ptr)->state == GPUCACHE_BLOCK_FREE && block_at(ptr)->size == 1024);
	CHECK(gpc_pool_largest_free(&world_context()->pool) == 2 * MIB); /* now it is merged */
	CHECK(block_at(ptr)->state == GPUCACHE_BLOCK_FREE && block_at(ptr)->size == 2 * MIB);
	CHECK(gpc_runtime.record.sites[event(0)->stack].live_bytes == 0);
	CHECK(gpc_runtime.record.sites[event(0)->stack].total_blocks == 1);
	CHECK(gpc_pool_trim(&world_context()->pool, UINT64_MAX) == 2 * MIB);
	CHECK(event(0)->kind == GPUCACHE_EVENT_SEGMENT_FREE);
	CHECK(!block_at(ptr) && gpc_runtime.record.segments[0].state == 0);
}

static void every_block_and_segment_is_recorded(void **state)
{
	(void)state;
	world_run(NULL, NULL, blocks_and_events);
}

static void host_and_contexts(void)
{
	const struct gpc_request request = { .size = 500, .now_ns = 7, .mark = 1 };
	uint64_t n;

	world_start();
	n = atomic_load(&gpc_runtime.record.next_event);
	CHECK(world_context());
	CHECK(event(0)->kind == GPUCACHE_EVENT_CONTEXT && event(0)->detail == 1);
	CHECK(event(0)->address == (uintptr_t)world.context);
	CHECK(world_context() && atomic_load(&gpc_runtime.record.next_event) == n + 1);
	gpc_observe_malloc(world_context(), GPUCACHE_KIND_HOST, 4096, 500, &request,
		(struct gpucache_share){ 500, 1 });
	CHECK(event(0)->alloc_kind == GPUCACHE_KIND_HOST);
	CHECK(gpc_runtime.record.sites[1].live_bytes == 0); /* sites are of the device */
	gpc_observe_free(world_context(), GPUCACHE_KIND_HOST, 4096, 500, 500, 1, 8,
		(struct gpucache_share){ 500, 1 });
	CHECK(gpc_runtime.record.sites[1].live_bytes == 0);
	world_reset();
	CHECK(event(0)->kind == GPUCACHE_EVENT_CONTEXT && event(0)->detail == 2);
}

static void contexts_are_events_and_host_memory_is_in_no_site(void **state)
{
	(void)state;
	world_run(NULL, "stacks:off", host_and_contexts);
}

static void looks(void)
{
	struct gpc_device *device;
	struct gpc_context *context;
	CUdeviceptr ptr;
	uint64_t seen;

	world_start();
	context = world_context();
	device = context->device;
	gpc_observe_device(context, true);
	seen = device->known.free_bytes;
	CHECK(seen && device->known.total_bytes == GPC_GIB && device->known.look_ns);
	CHECK(!world.fns.cuMemAlloc_v2(&ptr, 64 * MIB));
	atomic_store(&device->next_look_ns, UINT64_MAX);
	gpc_observe_device(context, false); /* too early */
	CHECK(device->known.free_bytes == seen);
	atomic_store(&device->next_look_ns, 0);
	gpc_observe_device(context, false);
	CHECK(device->known.free_bytes == seen - 64 * MIB);
	CHECK(atomic_load(&device->next_look_ns) > 0);
	CHECK(!world.cuDevicePrimaryCtxReset_v2(0)); /* the driver fails now: the last look stays */
	gpc_observe_device(context, true);
	CHECK(device->known.free_bytes == seen - 64 * MIB);
}

static void the_device_is_looked_at_now_and_then(void **state)
{
	(void)state;
	world_run("memory:1GiB", "stacks:off,record:off", looks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_block_and_segment_is_recorded),
		cmocka_unit_test(contexts_are_events_and_host_memory_is_in_no_site),
		cmocka_unit_test(the_device_is_looked_at_now_and_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
