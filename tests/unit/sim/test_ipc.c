/* SPDX-License-Identifier: Apache-2.0 */
/* The other process is a child with a machine of its own. */
#include "sim/gpu/memory/ipc.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"

FIXTURE(set_up, tear_down);

#define SIZE (3 * GPC_MIB)
#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

/* The child ends with the number of its first check that fails, or 0. */
#define CHECK(condition) ((condition) ? (void)0 : _exit(__LINE__ % 255 + 1))

static struct {
	pid_t pid;
	int to; /* a byte wakes the child */
	int from;
} child;

static void fork_child(void (*body)(int from_parent, int to_parent))
{
	int down[2];
	int up[2];

	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	child.pid = fork();
	if (child.pid == 0) {
		close(down[1]);
		CHECK(set_up(NULL) == 0);
		body(down[0], up[1]);
		tear_down(NULL);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	child.to = down[1];
	child.from = up[0];
}

static void end_child(void)
{
	int status;

	close(child.to);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	close(child.from);
	assert_int_equal(status, 0);
}

static void wait_for_parent(int from_parent)
{
	char byte;

	(void)!read(from_parent, &byte, 1);
}

static CUipcMemHandle read_handle(void)
{
	CUipcMemHandle handle;

	assert_int_equal(read(child.from, &handle, sizeof handle), sizeof handle);
	return handle;
}

static void write_handle(int to, uint64_t ptr)
{
	CUipcMemHandle handle;

	CHECK(gpc_sim_ipc_export(sim, ptr, &handle) == CUDA_SUCCESS);
	CHECK(write(to, &handle, sizeof handle) == sizeof handle);
}

static void fill(uint64_t ptr, int byte, uint64_t size)
{
	memset(gpc_sim_bytes(sim, ptr), byte, size);
}

static int byte_at(uint64_t ptr)
{
	return *(unsigned char *)gpc_sim_bytes(sim, ptr);
}

/* Holds a large and two small allocations, sends their handles, then that of the middle of the last. */
static void export_three(int from_parent, int to_parent)
{
	uint64_t ptrs[3];

	CHECK(gpc_sim_mem_alloc(context, SIZE, &ptrs[0]) == CUDA_SUCCESS);
	CHECK(gpc_sim_mem_alloc(context, 1000, &ptrs[1]) == CUDA_SUCCESS);
	CHECK(gpc_sim_mem_alloc(context, 5000, &ptrs[2]) == CUDA_SUCCESS);
	for (int i = 0; i < 3; i++) {
		fill(ptrs[i], i + 1, 1000);
		write_handle(to_parent, ptrs[i]);
	}
	CHECK(byte_at(ptrs[0]) == 1 && byte_at(ptrs[0] + 999) == 1);
	write_handle(to_parent, ptrs[2] + 600); /* the parent goes on */
	wait_for_parent(from_parent);
	CHECK(byte_at(ptrs[0]) == 77);
}

TEST(bytes_written_by_one_process_are_read_by_the_other)
{
	uint64_t before = gpc_sim_device_used_bytes(context->device);
	CUipcMemHandle handles[4];
	uint64_t ptrs[3];
	uint64_t again;
	uint64_t base;
	uint64_t size;

	fork_child(export_three);
	for (int i = 0; i < 4; i++)
		handles[i] = read_handle();
	assert_memory_equal(&handles[2], &handles[3], sizeof handles[2]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			gpc_sim_ipc_open(context, &handles[i], LAZY, &ptrs[i]), CUDA_SUCCESS);
		assert_int_equal(byte_at(ptrs[i]), i + 1);
		assert_int_equal(byte_at(ptrs[i] + 999), i + 1);
	}
	assert_true(gpc_sim_ipc_find(sim, ptrs[2] + 4999, &base, &size));
	assert_int_equal(base, ptrs[2]);
	assert_int_equal(size, 5000);
	assert_false(gpc_sim_ipc_find(sim, ptrs[2] + 5000, NULL, NULL));
	/* Opened again it is the same, and counts. */
	assert_int_equal(gpc_sim_ipc_open(context, &handles[1], LAZY, &again), CUDA_SUCCESS);
	assert_int_equal(again, ptrs[1]);
	assert_int_equal(gpc_sim_ipc_close(sim, again), CUDA_SUCCESS);
	assert_int_equal(byte_at(ptrs[1]), 2);
	assert_int_equal(gpc_sim_device_used_bytes(context->device), before);
	/* It is neither freed nor exported here. */
	assert_int_equal(gpc_sim_mem_free(sim, ptrs[0]), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_ipc_export(sim, ptrs[0], &handles[3]), CUDA_ERROR_INVALID_VALUE);
	fill(ptrs[0], 77, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gpc_sim_ipc_close(sim, ptrs[i]), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_ipc_close(sim, ptrs[0]), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_used_bytes(context->device), before);
	end_child();
}

/* Frees what it exported when the parent says so, and exports what comes to lie there. */
static void free_and_export(int from_parent, int to_parent)
{
	uint64_t ptr;
	uint64_t next;
	uint64_t before;

	CHECK(gpc_sim_mem_alloc(context, SIZE, &ptr) == CUDA_SUCCESS);
	before = gpc_sim_device_used_bytes(context->device);
	fill(ptr, 5, SIZE);
	write_handle(to_parent, ptr);
	CHECK(gpc_sim_device_used_bytes(context->device) == before);
	wait_for_parent(from_parent);
	CHECK(gpc_sim_mem_free(sim, ptr) == CUDA_SUCCESS);
	CHECK(gpc_sim_mem_alloc(context, SIZE, &next) == CUDA_SUCCESS && next == ptr);
	fill(next, 6, SIZE);
	write_handle(to_parent, next);
	wait_for_parent(from_parent);
}

TEST(freed_memory_stays_with_whoever_has_it_open)
{
	CUipcMemHandle old;
	CUipcMemHandle new;
	uint64_t ptr;
	uint64_t next;

	fork_child(free_and_export);
	old = read_handle();
	assert_int_equal(gpc_sim_ipc_open(context, &old, LAZY, &ptr), CUDA_SUCCESS);
	assert_int_equal(write(child.to, "", 1), 1);
	new = read_handle();
	assert_memory_not_equal(&old, &new, sizeof old);
	assert_int_equal(gpc_sim_ipc_open(context, &new, LAZY, &next), CUDA_SUCCESS);
	assert_int_equal(byte_at(ptr), 5);
	assert_int_equal(byte_at(next), 6);
	end_child();
	/* The process is gone, the memory is not; closed, it is. */
	assert_int_equal(byte_at(next + SIZE - 1), 6);
	assert_int_equal(gpc_sim_ipc_close(sim, ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_ipc_open(context, &old, LAZY, &ptr), CUDA_ERROR_MAP_FAILED);
	/* A context that ends closes what it opened. */
	gpc_sim_context_reset(context);
	assert_false(gpc_sim_ipc_find(sim, next, NULL, NULL));
}

TEST(misuse_is_answered_with_the_drivers_errors)
{
	CUipcMemHandle handle;
	CUipcMemHandle garbage = { .reserved = "no handle" };
	uint64_t ptr;
	uint64_t opened;

	assert_int_equal(gpc_sim_ipc_export(sim, 12345, &handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mem_alloc(context, SIZE, &ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_ipc_export(sim, ptr, &handle), CUDA_SUCCESS);
	assert_int_equal(
		gpc_sim_ipc_open(context, &handle, LAZY, &opened), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_sim_ipc_open(context, &handle, 0, &opened), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_sim_ipc_open(context, &garbage, LAZY, &opened), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_ipc_close(sim, ptr), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_ipc_export(sim, ptr, &handle), CUDA_ERROR_INVALID_VALUE);
}

TEST(two_contexts_do_not_open_the_same_memory)
{
	struct gpc_sim_context *other;
	CUipcMemHandle handle;
	uint64_t ptr;
	uint64_t again;

	fork_child(free_and_export);
	handle = read_handle();
	assert_int_equal(gpc_sim_context_create(sim, 0, 0, &other), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_ipc_open(context, &handle, LAZY, &ptr), CUDA_SUCCESS);
	assert_int_equal(
		gpc_sim_ipc_open(other, &handle, LAZY, &again), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_sim_ipc_close(sim, ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_ipc_open(other, &handle, LAZY, &again), CUDA_SUCCESS);
	assert_int_equal(byte_at(again), 5);
	gpc_sim_context_destroy(other);
	assert_int_equal(write(child.to, "", 1), 1);
	(void)read_handle();
	end_child();
}

TEST(where_no_file_can_be_made_nothing_is_exported)
{
	struct rlimit old;
	struct rlimit tight;
	CUipcMemHandle handle;
	uint64_t ptr;

	assert_int_equal(gpc_sim_mem_alloc(context, SIZE, &ptr), CUDA_SUCCESS);
	fill(ptr, 9, SIZE);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(gpc_sim_ipc_export(sim, ptr, &handle), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(gpc_sim_ipc_export(sim, ptr, &handle), CUDA_SUCCESS);
	assert_int_equal(byte_at(ptr + SIZE - 1), 9);
}
