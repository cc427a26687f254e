/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metamem.h"
#include "record/store.h"
#include "runtime/ledger/physical.h"
#include "runtime/ledger/tensors.h"
#include "runtime/ledger/track.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "torch_side.h"
#include "world.h"

#define CONF "stacks:all"

static const struct gpucache_torch *sums(void)
{
	return &gpc_runtime.record.torch[0];
}

/* Live blocks of the recording that hold bytes, of this kind. */
static uint64_t held(unsigned int kind, uint32_t *ret_n)
{
	uint64_t bytes = 0;

	*ret_n = 0;
	for (uint32_t i = 0; i < gpc_runtime.record.n_blocks; i++) {
		const struct gpucache_block *block = &gpc_runtime.record.blocks[i];

		if (block->kind != kind ||
			!gpucache_is_held(block->state, block->kind, block->flags))
			continue;
		bytes += block->size;
		++*ret_n;
	}
	return bytes;
}

/* What all sites of device 0 hold. */
static uint64_t held_by_sites(void)
{
	uint64_t bytes = 0;

	for (uint32_t i = 1; i < gpc_record_site_end(&gpc_runtime.record); i++) {
		if (gpc_runtime.record.sites[i].device == 0)
			bytes += gpc_runtime.record.sites[i].live_bytes;
	}
	return bytes;
}

static CUresult make_pages(struct gpc_passed_call *call)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	CUmemGenericAllocationHandle handle;
	CUresult result = world.cuMemCreate(&handle, call->size, &prop, 0);

	call->ret_address = handle;
	call->ret_size = call->size;
	return result;
}

/* What the hook of cuMemCreate does for PyTorch. */
static void map_pages(size_t size)
{
	struct gpc_passed_call call = {
		.make = make_pages, .kind = GPUCACHE_KIND_PHYSICAL, .size = size
	};

	CHECK(!gpc_runtime_passed_malloc_of_device(&call, 0));
	gpc_runtime_handle_created(call.ret_address);
	gpc_runtime_mark_arena(GPUCACHE_KIND_PHYSICAL, call.ret_address);
	torch.reserved += size;
}

/* The most that one site held at the last peak. */
static uint64_t most_at_peak(void)
{
	const struct gpucache_peak *peaks =
		(const void *)(gpc_runtime.record.base +
			       gpc_runtime.record.regions[GPUCACHE_REGION_PEAKS]->offset);
	const struct gpucache_peak *last = &peaks[peaks[1].number > peaks[0].number];
	uint64_t most = 0;

	for (uint32_t i = 0; i < last->n_holders; i++)
		most = gpc_larger(most, last->holders[i].bytes);
	return most;
}

/* Its pages made the peak, one by one, before PyTorch reported it. */
static void mapped_pages(void)
{
	world_start();
	for (unsigned i = 0; i < 5; i++)
		map_pages(20 * MIB);
	CHECK(most_at_peak() < 100 * MIB);
	tell(0x7000000000, 100 * MIB);
	CHECK(most_at_peak() == 100 * MIB);
}

static void each_byte_once(void)
{
	CUdeviceptr arena;
	CUdeviceptr own;
	uint64_t contexts;
	uint32_t n;

	world_start();
	contexts = held_by_sites();
	arena = segment(20 * MIB);
	tell(arena, 3 * MIB);
	CHECK(held_by_sites() == contexts + 3 * MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 3 * MIB && n == 1);
	tell(arena + 3 * MIB, 5 * MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 8 * MIB && n == 2);
	CHECK(held(GPUCACHE_KIND_DEVICE, &n) == 0);
	/* What the program asks for itself is its own. */
	CHECK(!world_malloc(&own, 2 * MIB));
	CHECK(held(GPUCACHE_KIND_DEVICE, &n) == 2 * MIB);
	CHECK(held_by_sites() == contexts + 10 * MIB);
	CHECK(sums()->n_malloc == 2 && sums()->allocated_bytes == 8 * MIB);
	CHECK(sums()->reserved_bytes == 20 * MIB && sums()->peak_allocated_bytes == 8 * MIB);
	tell(arena, -(int64_t)(3 * MIB));
	tell(arena + 3 * MIB, -(int64_t)(5 * MIB));
	CHECK(sums()->n_free == 2 && sums()->allocated_bytes == 0);
	CHECK(sums()->peak_allocated_bytes == 8 * MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 0);
	CHECK(held_by_sites() == contexts + 2 * MIB);
	/* The arena goes back, and takes nothing out of the books of others. */
	CHECK(!world_free(arena) && !world_free(own));
	CHECK(held_by_sites() == contexts);
}

TEST(each_byte_has_one_holder)
{
	world_run(NULL, CONF, each_byte_once);
	world_run(NULL, CONF ",cache:off", each_byte_once);
}

TEST(a_tensor_in_mapped_pages_is_in_the_list_of_the_peak)
{
	world_run(NULL, CONF, mapped_pages);
}

static uint32_t stream_of(CUdeviceptr ptr, unsigned int kind)
{
	for (uint32_t i = 0; i < gpc_runtime.record.n_blocks; i++) {
		const struct gpucache_block *block = &gpc_runtime.record.blocks[i];

		if (block->state == GPUCACHE_BLOCK_LIVE && block->address == ptr &&
			block->kind == kind)
			return GPUCACHE_BLOCK_STREAM(block->flags);
	}
	return UINT32_MAX;
}

static void works_on_streams(void)
{
	CUdeviceptr arena;

	world_start();
	arena = segment(20 * MIB);
	/* A PyTorch that does not say where it works. */
	tell(arena, MIB);
	CHECK(stream_of(arena, GPUCACHE_KIND_TENSOR) == 0);
	torch.has_streams = true;
	tell(arena + MIB, MIB);
	torch.stream = world_stream();
	tell(arena + 2 * MIB, MIB);
	CHECK(stream_of(arena + MIB, GPUCACHE_KIND_TENSOR) == 1);
	CHECK(stream_of(arena + 2 * MIB, GPUCACHE_KIND_TENSOR) == 2);
	CHECK(gpc_runtime.record.streams[1].handle == GPUCACHE_STREAM_LEGACY);
	CHECK(gpc_runtime.record.streams[2].handle == (uintptr_t)torch.stream);
	/* A segment is of the stream of its first tensor; what asks past PyTorch names none. */
	arena = segment(20 * MIB);
	CHECK(stream_of(arena, GPUCACHE_KIND_DEVICE) == 0);
	tell(arena, MIB);
	CHECK(stream_of(arena, GPUCACHE_KIND_DEVICE) == 2);
	/* Of a free nobody knows. */
	tell(arena, -(int64_t)MIB);
	CHECK(gpc_runtime.record.events[atomic_load(&gpc_runtime.record.next_event) - 1].detail ==
		0);
}

TEST(a_tensor_is_of_the_stream_that_its_thread_works_on)
{
	world_run(NULL, CONF, works_on_streams);
	world_run(NULL, CONF ",cache:off", works_on_streams);
}

static void comes_again(void)
{
	CUdeviceptr arena;
	uint32_t n;

	world_start();
	arena = segment(20 * MIB);
	tell(arena, 4 * MIB);
	/* A tensor whose free was not reported, and a free of an unreported tensor. */
	tell(arena, 6 * MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 6 * MIB && n == 1);
	tell(arena + 10 * MIB, -512);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 6 * MIB && sums()->n_free == 1);
	/* Neither a device that is not there, nor no bytes. */
	CHECK(world_enter());
	gpc_runtime_tensor(7, arena, 512, 512, 512, find_stream);
	gpc_runtime_tensor(-1, arena, 512, 512, 512, find_stream);
	gpc_runtime_tensor(0, arena, 0, 1, 2, find_stream);
	gpc_runtime_leave();
	CHECK(sums()->n_malloc == 2 && sums()->allocated_bytes == torch.allocated);
}

TEST(an_address_that_comes_again_replaces_its_tensor)
{
	world_run(NULL, CONF, comes_again);
}

#define N_MANY 6000

/* The tensor freed last keeps its place for the next one, which may lie anywhere. */
static void comes_and_goes(void)
{
	CUdeviceptr arena;
	uint32_t n;

	world_start();
	arena = segment(20 * MIB);
	tell(arena, MIB);
	tell(arena + MIB, 2 * MIB);
	tell(arena, -(int64_t)MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 2 * MIB && n == 1);
	torch.allocated += MIB; /* told twice */
	tell(arena, -(int64_t)MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 2 * MIB && n == 1);
	tell(arena, MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 3 * MIB && n == 2);
	tell(arena, -(int64_t)MIB);
	tell(arena + MIB, -(int64_t)(2 * MIB));
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 0 && n == 0);
	tell(arena + 4 * MIB, 3 * MIB);
	tell(arena, 4 * MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 7 * MIB && n == 2);
	tell(arena + 4 * MIB, -(int64_t)(3 * MIB));
	tell(arena, -(int64_t)(4 * MIB));
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 0 && n == 0);
}

TEST(a_tensor_is_freed_once_wherever_the_next_one_lies)
{
	world_run(NULL, CONF, comes_and_goes);
}

/* 10,000 tensors of 512 bytes: some five of them are looked at, and all are counted. */
static void are_sampled(void)
{
	CUdeviceptr arena;
	uint32_t n;

	world_start();
	arena = segment(40 * MIB);
	for (CUdeviceptr i = 0; i < 10000; i++)
		tell(arena + i * 512, 512);
	(void)held(GPUCACHE_KIND_TENSOR, &n);
	CHECK(n < 1000);
	tell(arena + 20 * MIB, 2 * MIB);
	(void)held(GPUCACHE_KIND_TENSOR, &n);
	CHECK(n >= 1);
	CHECK(sums()->n_malloc == 10001 && sums()->allocated_bytes == 10000 * 512 + 2 * MIB);
	for (CUdeviceptr i = 0; i < 10000; i++)
		tell(arena + i * 512, -512);
	tell(arena + 20 * MIB, -(int64_t)(2 * MIB));
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 0 && n == 0);
	CHECK(sums()->n_free == 10001 && sums()->allocated_bytes == 0);
}

TEST(sampled_tensors_are_all_counted_and_few_recorded)
{
	world_run(NULL, "tensors:sampled", are_sampled);
}

static void too_many(void)
{
	CUdeviceptr arena;
	uint64_t contexts;
	uint32_t n;

	world_start();
	contexts = held_by_sites();
	arena = segment(N_MANY * 512);
	CHECK(gpc_runtime.record.n_blocks < N_MANY);
	for (int i = 0; i < N_MANY; i++)
		tell(arena + 512 * (unsigned)i, 512);
	CHECK(sums()->allocated_bytes == N_MANY * 512 && sums()->n_malloc == N_MANY);
	CHECK(held_by_sites() == contexts + N_MANY * 512);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) < N_MANY * 512);
	CHECK(gpc_runtime.record.header->dropped_blocks > 0);
	for (int i = 0; i < N_MANY; i++)
		tell(arena + 512 * (unsigned)i, -512);
	CHECK(held_by_sites() == contexts && held(GPUCACHE_KIND_TENSOR, &n) == 0);
}

TEST(more_tensors_than_slots_are_counted_all_the_same)
{
	world_run(NULL, CONF ",recording_size:1MiB", too_many);
}

static void is_off(void)
{
	CUdeviceptr arena;
	uint32_t n;

	world_start();
	arena = segment(20 * MIB);
	tell(arena, MIB);
	CHECK(sums()->n_malloc == 0 && held(GPUCACHE_KIND_TENSOR, &n) == 0);
	CHECK(held(GPUCACHE_KIND_DEVICE, &n) == 20 * MIB);
}

TEST(switched_off_the_segments_are_what_is_held)
{
	world_run(NULL, CONF ",tensors:off", is_off);
}

static void without_recording(void)
{
	world_start();
	tell(segment(20 * MIB), MIB);
	CHECK(gpc_counter_get(&gpc_tensors_sums(&gpc_runtime.devices[0])->n_malloc) == 1);
	CHECK(gpc_tensors_idle_bytes(&gpc_runtime.devices[0]) == 19 * MIB);
}

TEST(without_a_recording_sums_are_kept)
{
	world_run(NULL, CONF ",record:off", without_recording);
}

static void without_owner(void)
{
	CUdeviceptr arena;
	uint32_t n;

	world_start();
	arena = segment(20 * MIB);
	gpc_metamem_fail_at(1);
	tell(arena, MIB);
	gpc_metamem_fail_at(0);
	CHECK(sums()->n_malloc == 1 && sums()->allocated_bytes == MIB);
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 0);
	tell(arena, -(int64_t)MIB);
	CHECK(sums()->n_free == 1 && sums()->allocated_bytes == 0);
	tell(arena, MIB); /* by now there is an owner */
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == MIB);
}

TEST(without_an_owner_of_the_device_sums_are_kept)
{
	world_run(NULL, CONF, without_owner);
}

static void give_up(size_t size)
{
	CHECK(world_enter());
	gpc_runtime_tensor_failed(0, (int64_t)size, torch.allocated, torch.reserved);
	gpc_runtime_leave();
}

static bool is_told(unsigned i, uint64_t requested)
{
	const struct gpucache_oom *oom = world_oom(i);

	return oom && oom->torch.requested == requested &&
	       oom->torch.allocated == torch.allocated && oom->torch.reserved == torch.reserved;
}

static CUdeviceptr last_arena;

static void fails(void)
{
	CUdeviceptr arena;
	CUdeviceptr more;

	world_start();
	arena = last_arena = segment(900 * MIB);
	tell(arena, 900 * MIB);
	CHECK(world_malloc(&more, 200 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(world_malloc(&more, 200 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	give_up(150 * MIB);
	CHECK(is_told(0, 0) && is_told(1, 150 * MIB));
	CHECK(world_oom(1)->requested == 200 * MIB && world_oom(1)->kind == GPUCACHE_KIND_DEVICE);
	CHECK(sums()->n_failed == 1 && sums()->failed_bytes == 150 * MIB);
	CHECK(!world_oom(1)->recovered);
	tell(arena, -(int64_t)(900 * MIB));
	CHECK(!world_oom(1)->recovered);
	tell(arena, 512);
	CHECK(world_oom(1)->recovered && !world_oom(1)->reported);
}

static void looks_and_raises_again(void)
{
	fails();
	exit(3);
}

static void makes_it_after_all(void)
{
	fails();
	tell(last_arena + 512, 150 * MIB);
	CHECK(gpc_runtime.devices[0].failed_size == 0);
	exit(3);
}

TEST(who_makes_small_tensors_after_a_failure_may_still_die_of_it)
{
	world_run("memory:1GiB,context:0", CONF, fails);
	assert_int_equal(world_count("gpucache:"), 1); /* though PyTorch asked twice, and gave up */
	world_run_to("memory:1GiB,context:0", CONF, looks_and_raises_again, 3);
	assert_int_equal(world_count("WHY "), 1);
	world_run_to("memory:1GiB,context:0", CONF, makes_it_after_all, 3);
	assert_int_equal(world_count("WHY "), 0);
}

static void gives_up(void)
{
	CUdeviceptr arena;
	CUdeviceptr more;

	world_start();
	arena = segment(900 * MIB);
	tell(arena, 700 * MIB);
	CHECK(world_malloc(&more, 200 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	/* The exception frees its tensors after the report. */
	give_up(20 * MIB);
	tell(arena, -(int64_t)(700 * MIB));
	CHECK(!gpc_runtime.record.base || world_oom(0)->verdict == GPUCACHE_VERDICT_FRAGMENTED);
	CHECK(!gpc_runtime.record.base || world_oom(0)->torch.allocated == 700 * MIB);
	exit(3);
}

TEST(at_the_end_it_is_told_how_much_of_pytorchs_cache_was_used)
{
	world_run_to("memory:1GiB,context:0", CONF, gives_up, 3);
	world_assert_says("700.00 MiB   68.4 %    in PyTorch's tensors");
	world_assert_says("200.00 MiB   19.5 %    PyTorch's cache, in no tensor");
	world_assert_says("200.00 MiB of PyTorch's cache is in no tensor");
	world_assert_says("expandable_segments:True joins the holes");
	world_run_to("memory:1GiB,context:0", CONF ",record:off", gives_up, 3);
	world_assert_says("200.00 MiB of PyTorch's cache is in no tensor");
}

static void keeps_a_limit(void)
{
	CUdeviceptr arena;
	CUdeviceptr more;

	world_start();
	arena = segment(300 * MIB);
	tell(arena, 300 * MIB);
	/* A refusal that PyTorch survives: it frees, and asks again. */
	CHECK(world_malloc(&more, 800 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	tell(arena + 1, 512);
	CHECK(!world_oom(0)->torch.requested);
	give_up(200 * MIB);
	CHECK(is_told(1, 200 * MIB) && world_oom(1)->kind == GPUCACHE_KIND_TENSOR);
	CHECK(world_oom(1)->requested == 200 * MIB);
	CHECK(world_oom(1)->verdict == GPUCACHE_VERDICT_LIMIT);
	CHECK(world_oom(1)->strength == GPUCACHE_STRENGTH_CERTAIN);
	CHECK(COUNTER(n_oom) == 2);
	/* Of another device, and of none that was ever used. */
	CHECK(world_enter());
	gpc_runtime_tensor_failed(7, 200, 1, 2);
	gpc_runtime_tensor_failed(0, -200, 1, 2);
	gpc_runtime_leave();
	CHECK(COUNTER(n_oom) == 2);
	exit(3);
}

TEST(a_limit_of_pytorchs_own_is_an_out_of_memory_of_its_own)
{
	world_run_to("memory:1GiB,context:0", CONF, keeps_a_limit, 3);
	world_assert_says(
		"limit (certain): PyTorch holds 300.00 MiB and refused 200.00 MiB by a limit");
	world_assert_says("raise or remove the limit: ");
	world_assert_says("torch.cuda.set_per_process_memory_fraction(0.4883)");
}

static void *allocate_and_free(void *arg)
{
	CUdeviceptr base = *(CUdeviceptr *)arg;

	for (int round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 8; i++) {
			CHECK(world_enter());
			gpc_runtime_tensor(0, base + 512 * i, 512, 512, MIB, find_stream);
			gpc_runtime_leave();
		}
		for (unsigned i = 0; i < 8; i++) {
			CHECK(world_enter());
			gpc_runtime_tensor(0, base + 512 * i, -512, 0, MIB, find_stream);
			gpc_runtime_leave();
		}
	}
	return NULL;
}

static void in_threads(void)
{
	CUdeviceptr bases[4];
	pthread_t threads[4];
	uint64_t contexts;
	uint32_t n;

	world_start();
	contexts = held_by_sites();
	bases[0] = segment(20 * MIB);
	tell(bases[0] + 10 * MIB, 512);
	for (unsigned i = 0; i < 4; i++) {
		bases[i] = bases[0] + i * MIB;
		CHECK(!pthread_create(&threads[i], NULL, allocate_and_free, &bases[i]));
	}
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(held(GPUCACHE_KIND_TENSOR, &n) == 512 && n == 1);
	CHECK(held_by_sites() == contexts + 512);
	CHECK(sums()->n_malloc == 1 + 4 * 300 * 8 && sums()->n_free == 4 * 300 * 8);
}

TEST(tensors_of_many_threads_keep_the_books_in_order)
{
	world_run(NULL, CONF, in_threads);
}
