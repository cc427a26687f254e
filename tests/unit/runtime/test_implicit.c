/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/ledger/implicit.h"
#include "runtime/ledger/track.h"
#include "runtime/memory.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

/* The test `name` runs `body` in a child under that GPUSIM. */
#define IN_A_CHILD(name, gpusim, body)         \
	TEST(name)                             \
	{                                      \
		world_run(gpusim, NULL, body); \
	}

#define CONTEXT_COST (300 * MIB)
#define MODULE_COST  (2 * MIB)
#define HEAP_DEFAULT (8 * MIB)

static CUmodule module;
static CUcontext context;
static size_t limit;
static void (*meanwhile)(void); /* called during the driver's call */
static unsigned n_made;

static CUresult make_module(struct gpc_implicit_call *call)
{
	CUresult result = world.cuModuleLoadData(&module, "");

	n_made++;
	call->ret_handle = (uintptr_t)module;
	if (meanwhile)
		meanwhile();
	return result;
}

static CUresult make_context(struct gpc_implicit_call *call)
{
	CUresult result = world.cuCtxCreate_v2(&context, 0, call->device);

	call->ret_handle = (uintptr_t)context;
	return result;
}

static CUresult make_limit(struct gpc_implicit_call *call)
{
	call->ret_handle = CU_LIMIT_MALLOC_HEAP_SIZE;
	return world.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, limit);
}

static CUresult call(CUresult (*make)(struct gpc_implicit_call *), enum gpucache_kind kind)
{
	struct gpc_implicit_call implicit = {
		.make = make,
		.kind = kind,
		.device = make == make_context ? 0 : -1,
		.is_limit = make == make_limit,
	};
	CUresult result;

	CHECK(world_enter());
	result = gpc_runtime_implicit(&implicit);
	gpc_runtime_leave();
	return result;
}

static CUresult load(void)
{
	return call(make_module, GPUCACHE_KIND_MODULE);
}

static CUmodule inner;

/* Another thread's load begins and ends while this one is under way. */
static CUresult make_two(struct gpc_implicit_call *outer)
{
	struct gpc_implicit_call other = {
		.make = make_module, .kind = GPUCACHE_KIND_MODULE, .device = -1
	};
	CUresult result = make_module(outer);

	if (!result)
		result = gpc_runtime_implicit(&other);
	inner = (CUmodule)(uintptr_t)other.ret_handle;
	module = (CUmodule)(uintptr_t)outer->ret_handle;
	return result;
}

static CUresult load_two(CUmodule *ret_first, CUmodule *ret_second)
{
	CUresult result = call(make_two, GPUCACHE_KIND_MODULE);

	*ret_first = module;
	*ret_second = inner;
	return result;
}

static uint64_t of_kind(enum gpucache_kind kind)
{
	return COUNTER(kind_bytes[kind]);
}

/* What the driver takes for itself is no call site's, and no rest of what call sites hold. */
static bool is_held_by_a_site(void)
{
	struct gpucache_holder holders[1];
	uint32_t n_sites;
	uint64_t rest;

	return gpc_record_top_holders(&gpc_runtime.record, 0, holders, 1, &n_sites, &rest) > 0 ||
	       n_sites > 0 || rest > 0;
}

/* The two halves of the hook. */
static struct gpc_tracked *unload_begins(CUmodule one)
{
	CHECK(gpc_runtime_begin_unmeasured(NULL) == 0);
	return gpc_runtime_forget((uintptr_t)one);
}

static void unload_ends(struct gpc_tracked *tracked, CUresult result)
{
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_end_unmeasured(0);
}

static void unload(CUmodule one, CUresult wanted)
{
	struct gpc_tracked *tracked;
	CUresult result;

	CHECK(world_enter());
	tracked = unload_begins(one);
	result = world.cuModuleUnload(one);
	unload_ends(tracked, result);
	gpc_runtime_leave();
	CHECK(result == wanted);
}

static void a_module(void)
{
	world_start();
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == MODULE_COST && COUNTER(direct_bytes) == MODULE_COST);
	CHECK(COUNTER(n_malloc) == 0 && gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(!is_held_by_a_site());
	unload(module, CUDA_SUCCESS);
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 0 && COUNTER(direct_bytes) == 0);
	unload(module, CUDA_ERROR_INVALID_HANDLE);
	CHECK(COUNTER(n_free) == 0);
}

IN_A_CHILD(a_module_is_in_the_books_until_it_is_unloaded, "memory:1GiB", a_module)

static void contexts(void)
{
	world_start();
	CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == 0);
	CHECK(!call(make_context, GPUCACHE_KIND_CONTEXT));
	CHECK(world_context()->handle == context);
	CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == CONTEXT_COST);
	CHECK(!is_held_by_a_site());
	CHECK(!world_destroy(context));
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes) == 0);
}

IN_A_CHILD(a_second_context_is_measured_by_asking_the_first, "memory:1GiB", contexts)

static void limits(void)
{
	world_start();
	for (size_t mib = 8; mib <= 108; mib += 50) {
		limit = mib * MIB;
		CHECK(!call(make_limit, GPUCACHE_KIND_CONTEXT));
		CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == limit - HEAP_DEFAULT);
	}
	limit = 20 * MIB;
	CHECK(!call(make_limit, GPUCACHE_KIND_CONTEXT));
	CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == 12 * MIB);
	limit = 0;
	CHECK(!call(make_limit, GPUCACHE_KIND_CONTEXT));
	CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == 0);
}

IN_A_CHILD(a_limit_that_is_raised_and_lowered_is_one_entry, "memory:1GiB", limits)

static void allocate_cached(void)
{
	CUdeviceptr ptr;

	CHECK(!gpc_runtime_malloc(&ptr, 5 * MIB));
}

static CUdeviceptr of_others;

static void free_of_others(void)
{
	CHECK(!world.fns.cuMemFree_v2(of_others));
}

static void charge(void)
{
	atomic_fetch_add(&gpc_runtime.devices[0].budget.used_bytes, 20 * MIB);
}

static void others_change_the_device(void)
{
	world_start();
	meanwhile = allocate_cached;
	CHECK(!load());
	CHECK(COUNTER(reserved_bytes) >= 5 * MIB);
	meanwhile = charge; /* a segment is asked for */
	CHECK(!load());
	CHECK(!world.fns.cuMemAlloc_v2(&of_others, 50 * MIB));
	meanwhile = free_of_others;
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 0);
	meanwhile = NULL;
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == MODULE_COST);
}

IN_A_CHILD(a_call_during_which_our_books_or_the_device_change_is_not_booked, "memory:1GiB",
	others_change_the_device)

static void another_thread_unloads(void)
{
	CHECK(!unload_begins(NULL));
}

static void unload_begins_meanwhile(void)
{
	world_start();
	meanwhile = another_thread_unloads;
	CHECK(!load()); /* the reading after the call is unreliable */
	meanwhile = NULL;
	CHECK(!load()); /* the reading before the call is */
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 0);
	unload_ends(NULL, CUDA_SUCCESS);
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == MODULE_COST);
}

IN_A_CHILD(while_another_thread_unloads_nothing_is_booked, "memory:1GiB", unload_begins_meanwhile)

static void unload_begins_without_a_context(void)
{
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(gpc_runtime_begin_unmeasured(NULL) == -1);
	CHECK(!world.cuCtxSetCurrent(world.context));
}

static void another_thread_unloads_nothing(void)
{
	world_start();
	meanwhile = unload_begins_without_a_context;
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == MODULE_COST);
	gpc_runtime_end_unmeasured(-1);
}

IN_A_CHILD(an_unloading_without_a_context_is_in_nobodys_way, "memory:1GiB",
	another_thread_unloads_nothing)

static CUresult make_limit_while_another_loads(struct gpc_implicit_call *implicit)
{
	struct gpc_implicit_call other = {
		.make = make_module, .kind = GPUCACHE_KIND_MODULE, .device = -1
	};

	CHECK(!gpc_runtime_implicit(&other));
	return make_limit(implicit);
}

/* What the limit takes now is unknown, and the old figure is no longer true. */
static void a_limit_in_doubt(void)
{
	struct gpc_implicit_call implicit = {
		.make = make_limit_while_another_loads,
		.kind = GPUCACHE_KIND_CONTEXT,
		.device = -1,
		.is_limit = true,
	};

	world_start();
	limit = 108 * MIB;
	CHECK(!call(make_limit, GPUCACHE_KIND_CONTEXT));
	CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == 100 * MIB);
	limit = 20 * MIB;
	CHECK(world_enter());
	CHECK(!gpc_runtime_implicit(&implicit));
	gpc_runtime_leave();
	CHECK(of_kind(GPUCACHE_KIND_CONTEXT) == 0);
}

IN_A_CHILD(
	a_limit_that_is_set_unmeasured_is_in_the_books_no_longer, "memory:1GiB", a_limit_in_doubt)

static CUresult make_second(struct gpc_implicit_call *retain)
{
	CUresult result = CUDA_SUCCESS;
	CUcontext popped;

	if (!context) {
		result = world.cuCtxCreate_v2(&context, 0, 0);
		CHECK(!world.fns.cuCtxPopCurrent_v2(&popped));
	} else {
		CHECK(!world.fns.cuMemAlloc_v2(&of_others, MIB)); /* somebody takes a little */
	}
	retain->ret_handle = (uintptr_t)context;
	return result;
}

static void retain_second(void)
{
	struct gpc_implicit_call retain = {
		.make = make_second, .kind = GPUCACHE_KIND_CONTEXT, .device = 0
	};

	CHECK(world_enter());
	CHECK(!gpc_runtime_implicit(&retain));
	gpc_runtime_leave();
}

/* Two threads retain a context first at the same time, of which one makes it. */
static void two_retain(void)
{
	world_start();
	CHECK(world_context());
	retain_second();
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes) == CONTEXT_COST);
	retain_second();
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes) == CONTEXT_COST);
}

IN_A_CHILD(a_context_that_is_retained_again_stays_in_the_books, "memory:1GiB", two_retain)

static struct gpc_ending ending;

static CUresult make_while_another_goes(struct gpc_implicit_call *implicit)
{
	CUresult result = make_module(implicit);
	int device = gpc_runtime_begin_unmeasured(context);

	CHECK(device == 0);
	ending = gpc_runtime_begin_destroy(context);
	CHECK(!world.cuCtxDestroy_v2(context));
	return result;
}

/* The context's memory is off the device, but still in our accounting. */
static void a_context_goes(void)
{
	world_start();
	CHECK(world_context());
	retain_second();
	CHECK(!call(make_while_another_goes, GPUCACHE_KIND_MODULE));
	CHECK(world_enter());
	gpc_runtime_end_destroy(ending, CUDA_SUCCESS);
	gpc_runtime_leave();
	gpc_runtime_end_unmeasured(0);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes) == 0); /* it was not measured */
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == MODULE_COST);
	gpc_runtime_begin_unmeasured_on(-1);
	gpc_runtime_begin_unmeasured_on((int)gpc_runtime.n_devices);
	gpc_runtime_end_unmeasured(-1);
}

IN_A_CHILD(a_context_that_goes_meanwhile_is_no_module, "memory:1GiB", a_context_goes)

/* The context ends between the two halves of an unloading. */
static void unload_over_a_reset(void)
{
	struct gpc_tracked *tracked;

	world_start();
	CHECK(!load());
	tracked = unload_begins(module);
	CHECK(tracked);
	world_reset();
	unload_ends(tracked, CUDA_SUCCESS);
	for (uint32_t i = 0; i < gpc_runtime.record.n_counters; i++)
		CHECK(gpc_runtime.record.counters[i].direct_bytes == 0);
}

IN_A_CHILD(what_ends_with_its_context_is_taken_out_once, "memory:1GiB", unload_over_a_reset)

/* Two overlapping calls: neither can be measured. */
static void two_at_once(void)
{
	CUmodule first;
	CUmodule second;

	world_start();
	CHECK(!load_two(&first, &second));
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 0);
	CHECK(!load());
	unload(second, CUDA_SUCCESS);
	unload(first, CUDA_SUCCESS);
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == MODULE_COST);
	unload(module, CUDA_SUCCESS);
	CHECK(COUNTER(direct_bytes) == 0);
}

IN_A_CHILD(of_two_that_are_loaded_at_once_none_is_booked, "memory:1GiB", two_at_once)

#define N_THREADS 4
#define N_LOADS   50

static CUresult make_one_of_many(struct gpc_implicit_call *implicit)
{
	CUmodule mine = NULL;
	CUresult result = world.cuModuleLoadData(&mine, "");

	implicit->ret_handle = (uintptr_t)mine;
	return result;
}

static void *load_many(void *arg)
{
	CHECK(!world.cuCtxSetCurrent(world.context));
	for (int i = 0; i < N_LOADS; i++)
		CHECK(!call(make_one_of_many, GPUCACHE_KIND_MODULE));
	return NULL;
}

static void threads(void)
{
	const uint64_t taken = N_THREADS * N_LOADS * MODULE_COST;
	pthread_t all[N_THREADS];
	uint64_t booked;

	world_start();
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&all[i], NULL, load_many, NULL));
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(all[i], NULL));
	booked = of_kind(GPUCACHE_KIND_MODULE);
	CHECK(booked <= taken && booked % MODULE_COST == 0);
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == booked + MODULE_COST);
}

IN_A_CHILD(of_what_threads_load_at_once_each_is_booked_whole_or_not_at_all, "memory:4GiB", threads)

static CUresult info_fails(size_t *available, size_t *total)
{
	return CUDA_ERROR_UNKNOWN;
}

static void nobody_can_be_asked(void)
{
	world_start();
	CHECK(world_context() != NULL);
	world.fns.cuMemGetInfo_v2 = info_fails;
	CHECK(!load());
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 0);
}

IN_A_CHILD(where_nobody_can_be_asked_nothing_is_booked, "memory:1GiB", nobody_can_be_asked)

static void the_cache_is_full(void)
{
	CUdeviceptr ptrs[5];

	world_start();
	for (int i = 0; i < 5; i++)
		CHECK(!world_malloc(&ptrs[i], 100 * MIB));
	for (int i = 0; i < 5; i++)
		CHECK(!world_free(ptrs[i]));
	CHECK(COUNTER(cached_bytes) + COUNTER(pending_bytes) >= 500 * MIB);
	CHECK(!load());
	CHECK(n_made > 1 && COUNTER(n_rescued) == 1);
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 600 * MIB);
}

IN_A_CHILD(a_module_gets_what_the_cache_held, "memory:1GiB,module:600MiB", the_cache_is_full)

static void never_room(void)
{
	world_start();
	CHECK(load() == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(COUNTER(n_oom) == 1 && of_kind(GPUCACHE_KIND_MODULE) == 0);
	CHECK(call(make_context, GPUCACHE_KIND_CONTEXT) == CUDA_SUCCESS);
}

TEST(a_module_without_room_gets_the_drivers_error_and_is_reported)
{
	world_run("memory:1GiB,module:2GiB", "oom_report:always", never_room);
	world_assert_says("OUT OF MEMORY");
}

static void no_context(void)
{
	world_start();
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(load() == CUDA_ERROR_INVALID_CONTEXT);
}

IN_A_CHILD(without_a_context_the_driver_answers, "memory:1GiB", no_context)

static void ends_with_its_context(void)
{
	const struct gpc_record *record = &gpc_runtime.record;

	world_start();
	CHECK(!load());
	world_reset();
	CHECK(of_kind(GPUCACHE_KIND_MODULE) == 0);
	/* Nor is it found any more, or recorded as there. */
	CHECK(!gpc_runtime_forget((uintptr_t)module));
	for (uint32_t i = 0; i < record->n_blocks; i++)
		CHECK(record->blocks[i].state == GPUCACHE_BLOCK_UNUSED);
}

IN_A_CHILD(a_reset_takes_the_modules_out_of_the_books, "memory:1GiB", ends_with_its_context)
