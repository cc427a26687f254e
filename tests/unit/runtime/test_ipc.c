/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/context/endings.h"
#include "runtime/export/ipc.h"
#include "runtime/export/ipc_registry.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

#define CONF "stacks:off,record:off"
#define KIB  ((size_t)1024)

/* What the hooks do. */
static CUresult export_it(CUipcMemHandle *ret_handle, CUdeviceptr ptr)
{
	CUresult result;

	CHECK(world_enter());
	result = gpc_runtime_ipc_export(ret_handle, ptr, world.cuIpcGetMemHandle);
	gpc_runtime_leave();
	return result;
}

static CUresult open_it(CUdeviceptr *ret_ptr, CUipcMemHandle handle)
{
	CUresult result;

	CHECK(world_enter());
	result = gpc_runtime_ipc_open(ret_ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS,
		world.cuIpcOpenMemHandle_v2, world.cuIpcCloseMemHandle);
	gpc_runtime_leave();
	return result;
}

static CUresult close_it(CUdeviceptr ptr)
{
	CUresult result;

	CHECK(world_enter());
	result = gpc_runtime_ipc_close(ptr, world.cuIpcCloseMemHandle);
	gpc_runtime_leave();
	return result;
}

static bool range_of(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_size)
{
	CUdeviceptr base;
	bool is_told;

	CHECK(world_enter());
	is_told =
		gpc_runtime_ipc_range(ptr, ret_base != NULL, ret_base ? ret_base : &base, ret_size);
	gpc_runtime_leave();
	return is_told;
}

/* What block n is full of, in the exporter. */
static void fill(CUdeviceptr ptr, unsigned n, size_t size)
{
	CHECK(!world.cuMemsetD8_v2(ptr, (unsigned char)(n + 1), size));
}

static int first_byte(CUdeviceptr ptr)
{
	unsigned char byte = 0;

	CHECK(!world.cuMemcpyDtoH_v2(&byte, ptr, 1));
	return byte;
}

/* --- One process ------------------------------------------------------------------------------ */

static void exports(void)
{
	CUipcMemHandle handles[3];
	CUipcMemHandle again;
	CUdeviceptr blocks[3];
	CUdeviceptr other;

	world_start();
	CHECK(export_it(&handles[0], 12345) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!gpc_runtime.heap.watches_frees);
	for (int i = 0; i < 3; i++)
		CHECK(!world_malloc(&blocks[i], 4096));
	for (int i = 0; i < 3; i++)
		CHECK(!export_it(&handles[i], blocks[i]));
	CHECK(gpc_runtime.heap.watches_frees);
	CHECK(!gpc_ipc_is_tag(&handles[0]) && gpc_ipc_is_tag(&handles[1]));
	CHECK(memcmp(&handles[1], &handles[2], sizeof handles[1]) != 0);
	/* The same block has the same handle, wherever in it one points. */
	CHECK(!export_it(&again, blocks[1] + 77) && !memcmp(&again, &handles[1], sizeof again));
	CHECK(!export_it(&again, blocks[0] + 77) && !memcmp(&again, &handles[0], sizeof again));
	CHECK(export_it(&again, blocks[2] + 4096) == CUDA_ERROR_INVALID_VALUE); /* in no block */
	/* Our own process is not its importer. */
	CHECK(open_it(&other, handles[1]) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(world_context()->pool.counters->kind_bytes[GPUCACHE_KIND_IPC] == 0);
	/* What was freed is not given to anybody, and its tag leads nowhere. */
	CHECK(!world_free(blocks[1]));
	CHECK(!world_malloc(&other, 4096) && other != blocks[1]);
	CHECK(open_it(&other, handles[1]) == CUDA_ERROR_INVALID_VALUE);
	CHECK(COUNTER(reserved_bytes) == 4 * MIB);
	CHECK(!world_free(blocks[0]) && !world_free(blocks[2]));
	CHECK(COUNTER(reserved_bytes) == 4 * MIB && !world_sync()); /* behind its fence */
	CHECK(COUNTER(reserved_bytes) == 2 * MIB && COUNTER(n_driver_free) == 1);
}

TEST(a_block_inside_a_segment_gets_a_handle_of_its_own)
{
	world_run(NULL, CONF, exports);
	world_assert_says("needs libgpucache, too");
	world_assert_says("that block is gone or not visible here");
}

static void is_exported_in_flight(void)
{
	CUipcMemHandle handle;
	CUdeviceptr block;
	CUdeviceptr again;

	world_start();
	for (int i = 0; i < 2; i++) {
		CHECK(!world_malloc(&block, 4 * MIB));
		CHECK(!world.gpusim_launch(NULL, 50 * 1000 * 1000, 0, NULL));
		CHECK(!world_free(block));
		CHECK(!world_malloc(&again, 4 * MIB));
		CHECK((again == block) == (i == 0)); /* the rule holds until the first export */
		CHECK(world.cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
		CHECK(!export_it(&handle, again));
		CHECK(i > 0 || !world.cuStreamQuery(NULL));
		CHECK(!world_free(again) && !world_sync());
	}
}

TEST(an_export_comes_after_the_work_of_the_old_owner)
{
	world_run("clock:virtual", CONF ",free_order:fence", is_exported_in_flight);
}

static void is_told_first(void)
{
	CUipcMemHandle handle;
	CUipcMemHandle again;
	CUdeviceptr first;
	CUdeviceptr second;
	CUdeviceptr base;
	size_t size;

	world_start();
	CHECK(!world_malloc(&first, 4096) && !world_malloc(&second, 4096));
	CHECK(!range_of(second + 5, &base, &size)); /* the driver's answer */
	CHECK(!export_it(&handle, second) && !gpc_ipc_is_tag(&handle));
	CHECK(!export_it(&again, first) && !memcmp(&again, &handle, sizeof again));
	/* The base that the program was told is exported even where it has no block there. */
	CHECK(!world_free(first));
	CHECK(!export_it(&handle, first) && !gpc_ipc_is_tag(&handle));
	CHECK(export_it(&handle, first + 5) == CUDA_ERROR_INVALID_VALUE);
}

TEST(a_block_whose_segment_the_program_knows_gets_no_tag)
{
	world_run(NULL, CONF, is_told_first);
	world_assert_is_silent();
}

static void is_told_a_size(void)
{
	CUipcMemHandle handle;
	CUdeviceptr blocks[2];
	size_t size;

	world_start();
	CHECK(!world_malloc(&blocks[0], 4096) && !world_malloc(&blocks[1], 4096));
	CHECK(!range_of(blocks[1], NULL, &size));
	CHECK(!export_it(&handle, blocks[1]) && gpc_ipc_is_tag(&handle));
}

TEST(a_program_that_was_told_no_base_adds_no_offset)
{
	world_run(NULL, CONF, is_told_a_size);
}

static void is_told_after(void)
{
	CUipcMemHandle handle;
	CUdeviceptr first;
	CUdeviceptr second;
	CUdeviceptr base;
	size_t size;

	world_start();
	CHECK(!world_malloc(&first, 4096) && !world_malloc(&second, 8192));
	CHECK(!export_it(&handle, second));
	CHECK(range_of(second + 5, &base, &size));
	CHECK(base == second && size == 8192);
	CHECK(!range_of(first, &base, &size) && !range_of(12345, &base, &size));
}

TEST(the_range_of_an_exported_block_is_the_block)
{
	world_run(NULL, CONF, is_told_after);
}

static void exports_too_many(void)
{
	const uint32_t n = GPC_IPC_MAX_ENTRIES;
	CUdeviceptr *blocks = calloc(n + 10, sizeof *blocks);
	CUipcMemHandle handle;
	uint32_t n_tags = 0;
	uint32_t i = 0;

	world_start();
	for (uint32_t k = 0; k < n + 10; k++)
		CHECK(!world_malloc(&blocks[k], 512));
	while (n_tags < n) {
		CHECK(!export_it(&handle, blocks[i++]));
		n_tags += gpc_ipc_is_tag(&handle);
	}
	CHECK(export_it(&handle, blocks[i]) == CUDA_ERROR_NOT_SUPPORTED);
	CHECK(!world_free(blocks[i - 1])); /* makes room for one */
	CHECK(!export_it(&handle, blocks[i]));
	free(blocks);
}

TEST(a_full_table_is_an_error_and_a_line)
{
	world_run(NULL, CONF, exports_too_many);
	world_assert_says("too many such blocks");
}

static void resets(void)
{
	CUipcMemHandle old;
	CUipcMemHandle new;
	CUdeviceptr blocks[4];
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&blocks[0], 4096) && !world_malloc(&blocks[1], 4096));
	CHECK(!export_it(&old, blocks[1]) && gpc_ipc_is_tag(&old));
	world_reset();
	CHECK(open_it(&ptr, old) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!world_malloc(&blocks[2], 4096) && !world_malloc(&blocks[3], 4096));
	CHECK(blocks[3] == blocks[1]); /* the same address, and not the same memory */
	CHECK(!export_it(&new, blocks[3]) && memcmp(&new, &old, sizeof new) != 0);
}

TEST(a_reset_withdraws_what_was_exported)
{
	world_run(NULL, CONF, resets);
}

/* The driver has destroyed the context of an exported block, and we have not heard of it yet. */
static void exports_again(void)
{
	struct gpc_ending ending;
	CUipcMemHandle old;
	CUipcMemHandle new;
	CUipcMemHandle again;
	CUdeviceptr blocks[4];
	CUcontext handle;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	CHECK(!world_malloc(&blocks[0], 4096) && !world_malloc(&blocks[1], 4096));
	CHECK(!export_it(&old, blocks[1]) && gpc_ipc_is_tag(&old));
	CHECK(world_enter());
	ending = gpc_runtime_begin_destroy(handle);
	gpc_runtime_leave();
	CHECK(!world.cuCtxDestroy_v2(handle) && !world.cuCtxSetCurrent(world.context));
	CHECK(!world_malloc(&blocks[2], 4096) && !world_malloc(&blocks[3], 4096));
	CHECK(blocks[3] == blocks[1]);
	CHECK(!export_it(&new, blocks[3]) && memcmp(&new, &old, sizeof new) != 0);
	CHECK(world_enter());
	gpc_runtime_end_destroy(ending, CUDA_SUCCESS);
	gpc_runtime_leave();
	CHECK(!export_it(&again, blocks[3]) && memcmp(&again, &new, sizeof new) == 0);
}

TEST(a_block_at_the_address_of_a_dead_one_has_its_own_handle)
{
	world_run("context:0", CONF, exports_again);
}

static CUresult fails(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void is_refused(void)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 4096));
	CHECK(world_enter());
	CHECK(gpc_runtime_ipc_export(&handle, ptr, fails) == CUDA_ERROR_NOT_SUPPORTED);
	gpc_runtime_leave();
	/* Nothing left, so nothing is kept from reuse. */
	CHECK(!world_free(ptr) && COUNTER(reserved_bytes) == 2 * MIB);
	CHECK(!gpc_runtime.heap.watches_frees);
}

TEST(where_the_driver_exports_nothing_nothing_changes)
{
	world_run(NULL, CONF, is_refused);
	world_assert_is_silent();
}

static void *export_and_free(void *arg)
{
	CUipcMemHandle handle;
	CUdeviceptr blocks[3];
	CUdeviceptr base;
	size_t size;

	CHECK(!world.cuCtxSetCurrent(world.context));
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 3; i++)
			CHECK(!world_malloc(&blocks[i], 4096));
		for (int i = 0; i < 3; i++) {
			CHECK(!export_it(&handle, blocks[i]));
			CHECK(range_of(blocks[i], &base, &size) == gpc_ipc_is_tag(&handle));
		}
		for (int i = 0; i < 3; i++)
			CHECK(!world_free(blocks[i]));
	}
	return NULL;
}

static void exports_in_threads(void)
{
	pthread_t threads[4];

	world_start();
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, export_and_free, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!world_sync()); /* what was exported goes back behind its fence */
	CHECK(COUNTER(live_bytes) == 0 && COUNTER(reserved_bytes) <= 2 * MIB);
}

TEST(threads_export_and_free_at_once)
{
	world_run(NULL, CONF, exports_in_threads);
}

/* --- Two processes ---------------------------------------------------------------------------- */

#define N_BLOCKS 4

static struct {
	pid_t pid;
	int wakes;
} exporter;

/* Another process that holds blocks of 100 KiB of one segment, and their handles. */
static void start_exporter(CUipcMemHandle *handles)
{
	int up[2];
	int down[2];
	char byte;

	CHECK(!pipe(up) && !pipe(down));
	exporter.pid = fork();
	if (exporter.pid == 0) {
		CUdeviceptr blocks[N_BLOCKS];

		close(down[1]);
		world_start();
		for (unsigned i = 0; i < N_BLOCKS; i++) {
			CHECK(!world_malloc(&blocks[i], 100 * KIB));
			fill(blocks[i], i, 100 * KIB);
		}
		for (unsigned i = 0; i < N_BLOCKS; i++)
			CHECK(!export_it(&handles[i], blocks[i]));
		CHECK(write(up[1], handles, N_BLOCKS * sizeof *handles) > 0);
		CHECK(read(down[0], &byte, 1) == 0);
		exit(0);
	}
	close(up[1]);
	close(down[0]);
	exporter.wakes = down[1];
	CHECK(read(up[0], handles, N_BLOCKS * sizeof *handles) ==
		(ssize_t)(N_BLOCKS * sizeof *handles));
}

static void end_exporter(void)
{
	int status;

	close(exporter.wakes);
	CHECK(waitpid(exporter.pid, &status, 0) == exporter.pid && status == 0);
}

static uint64_t ipc_bytes(void)
{
	return world_context()->pool.counters->kind_bytes[GPUCACHE_KIND_IPC];
}

static void imports(void)
{
	CUipcMemHandle handles[N_BLOCKS];
	CUdeviceptr ptrs[N_BLOCKS];
	CUdeviceptr again;
	CUdeviceptr base;
	size_t size;

	start_exporter(handles);
	world_start();
	for (int i = N_BLOCKS - 1; i >= 0; i--) {
		CHECK(!open_it(&ptrs[i], handles[i]));
		CHECK(first_byte(ptrs[i]) == i + 1 && first_byte(ptrs[i] + 100 * KIB - 1) == i + 1);
	}
	/* The first is the driver's handle, and opens the segment. */
	CHECK(ipc_bytes() == 2 * MIB + 3 * 100 * KIB);
	CHECK(COUNTER(direct_bytes) == 0);
	CHECK(range_of(ptrs[2] + 5, &base, &size) && base == ptrs[2] && size == 100 * KIB);
	CHECK(!range_of(ptrs[0], &base, &size));
	CHECK(!open_it(&again, handles[2]) && again == ptrs[2]);
	CHECK(!close_it(ptrs[2]) && first_byte(ptrs[2]) == 3);
	CHECK(ipc_bytes() == 2 * MIB + 3 * 100 * KIB);
	CHECK(close_it(ptrs[2] + 1) == CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < N_BLOCKS; i++)
		CHECK(!close_it(ptrs[i]));
	CHECK(close_it(ptrs[2]) == CUDA_ERROR_INVALID_VALUE);
	CHECK(ipc_bytes() == 0);
	end_exporter();
	CHECK(open_it(&again, handles[2]) == CUDA_ERROR_INVALID_VALUE);
}

TEST(every_block_opens_where_it_is)
{
	world_run(NULL, CONF, imports);
}

static CUresult close_fails(CUdeviceptr ptr)
{
	return CUDA_ERROR_UNKNOWN;
}

static void closes_in_vain(void)
{
	CUipcMemHandle handles[N_BLOCKS];
	CUdeviceptr ptr;

	start_exporter(handles);
	world_start();
	CHECK(!open_it(&ptr, handles[1]));
	CHECK(world_enter());
	CHECK(gpc_runtime_ipc_close(ptr, close_fails) == CUDA_ERROR_UNKNOWN);
	gpc_runtime_leave();
	CHECK(ipc_bytes() == 100 * KIB);
	CHECK(!close_it(ptr) && ipc_bytes() == 0);
	end_exporter();
}

TEST(a_close_that_the_driver_refuses_changes_nothing)
{
	world_run(NULL, CONF, closes_in_vain);
}

static void is_reset_while_open(void)
{
	CUipcMemHandle handles[N_BLOCKS];
	CUdeviceptr ptr;
	CUdeviceptr again;

	start_exporter(handles);
	world_start();
	CHECK(!open_it(&ptr, handles[1]) && !open_it(&again, handles[1]) && ptr == again);
	world_reset();
	CHECK(close_it(ptr) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!open_it(&ptr, handles[1]) && first_byte(ptr) == 2);
	CHECK(!close_it(ptr) && ipc_bytes() == 0); /* opened once since */
	CHECK(close_it(ptr) == CUDA_ERROR_INVALID_VALUE);
	end_exporter();
}

TEST(a_reset_forgets_what_was_open)
{
	world_run(NULL, CONF, is_reset_while_open);
}

/* Another thread resets the device before we hear of the success. */
static CUresult open_before_reset(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags)
{
	CUresult result = world.cuIpcOpenMemHandle_v2(ret_ptr, handle, flags);

	gpc_runtime_primary_begin(0);
	gpc_runtime_begin_reset(0);
	CHECK(gpc_runtime_end_reset(0, world.cuDevicePrimaryCtxReset_v2(0)));
	gpc_runtime_primary_forget(0);
	gpc_runtime_primary_end(0);
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	return result;
}

static void is_reset_before_it_is_noted(void)
{
	CUipcMemHandle handles[N_BLOCKS];
	CUdeviceptr ptr;

	start_exporter(handles);
	world_start();
	CHECK(world_enter());
	CHECK(!gpc_runtime_ipc_open(&ptr, handles[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS,
		open_before_reset, world.cuIpcCloseMemHandle));
	gpc_runtime_leave();
	CHECK(close_it(ptr) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!open_it(&ptr, handles[1]) && first_byte(ptr) == 2);
	CHECK(!close_it(ptr) && ipc_bytes() == 0); /* opened once since */
	CHECK(close_it(ptr) == CUDA_ERROR_INVALID_VALUE);
	end_exporter();
}

TEST(what_was_opened_before_a_reset_is_not_noted_after_it)
{
	world_run(NULL, CONF, is_reset_before_it_is_noted);
}

static void has_no_metadata(void)
{
	CUipcMemHandle handles[N_BLOCKS];
	CUdeviceptr ptr;

	start_exporter(handles);
	world_start();
	CHECK(world_context());
	gpc_metamem_fail_at(1);
	CHECK(open_it(&ptr, handles[1]) == CUDA_ERROR_OUT_OF_MEMORY);
	/* The start of a segment can be closed without our help. */
	CHECK(!open_it(&ptr, handles[0]) && first_byte(ptr) == 1);
	CHECK(!close_it(ptr));
	gpc_metamem_fail_at(0);
	CHECK(!open_it(&ptr, handles[1]) && first_byte(ptr) == 2 && !close_it(ptr));
	end_exporter();
}

TEST(without_metadata_nothing_is_opened_that_could_not_be_closed)
{
	world_run(NULL, CONF, has_no_metadata);
}
