/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/sim/machine.h"

FIXTURE(set_up, tear_down);

#define CHUNK   GPC_SIM_CHUNK
#define BAD     CUDA_ERROR_INVALID_VALUE
#define SUCCESS CUDA_SUCCESS

static CUmemAllocationProp at(CUmemLocationType type, int id)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { type, id },
	};
}

static uint64_t create_on(CUmemLocationType type, int id, uint64_t size)
{
	const CUmemAllocationProp prop = at(type, id);
	uint64_t handle = 0;

	assert_int_equal(gpc_sim_vmm_create(sim, size, &prop, &handle), SUCCESS);
	return handle;
}

static uint64_t create(uint64_t size)
{
	return create_on(CU_MEM_LOCATION_TYPE_DEVICE, 0, size);
}

static uint64_t reserve(uint64_t size)
{
	uint64_t ptr = 0;

	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, size, 0, &ptr), SUCCESS);
	return ptr;
}

static CUresult map(uint64_t ptr, uint64_t size, uint64_t handle)
{
	return gpc_sim_vmm_map(sim, ptr, size, handle);
}

static CUresult unmap(uint64_t ptr, uint64_t size)
{
	return gpc_sim_vmm_unmap(sim, ptr, size);
}

static CUresult release(uint64_t handle)
{
	return gpc_sim_vmm_release(sim, handle);
}

static CUresult let(uint64_t ptr, uint64_t size, int device, CUmemAccess_flags flags)
{
	const CUmemAccessDesc desc = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
		.flags = flags,
	};

	return gpc_sim_vmm_set_access(sim, ptr, size, &desc);
}

static uint64_t used(unsigned device)
{
	return gpc_sim_device_used_bytes(&sim->devices[device]);
}

TEST(reserved_addresses_are_no_memory_and_never_overlap)
{
	uint64_t before = used(0);
	uint64_t a = reserve(4 * CHUNK);
	uint64_t b = reserve(CHUNK);
	uint64_t c = 0;

	assert_true(a + 4 * CHUNK <= b || b + CHUNK <= a);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, CHUNK, 16 * CHUNK, &c), SUCCESS);
	assert_int_equal(c % (16 * CHUNK), 0);
	assert_int_equal(used(0), before);
	assert_false(gpc_sim_is_valid(sim, a, 1));
	assert_int_equal(gpc_sim_vmm_unreserve(&sim->vmm, a, CHUNK), BAD);
	assert_int_equal(gpc_sim_vmm_unreserve(&sim->vmm, a + CHUNK, 3 * CHUNK), BAD);
	assert_int_equal(gpc_sim_vmm_unreserve(&sim->vmm, a, 4 * CHUNK), SUCCESS);
	assert_int_equal(gpc_sim_vmm_unreserve(&sim->vmm, a, 4 * CHUNK), BAD);
	assert_int_equal(reserve(4 * CHUNK), a);
}

TEST(addresses_that_cannot_be_reserved_are_refused)
{
	uint64_t ptr = 1;

	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, 0, 0, &ptr), BAD);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, CHUNK + 1, 0, &ptr), BAD);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, CHUNK, 3, &ptr), BAD);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, UINT64_MAX - CHUNK + 1, 0, &ptr),
		CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, sim->vmm.span, 0, &ptr), SUCCESS);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, CHUNK, 0, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(physical_memory_is_the_devices_until_released_and_unmapped)
{
	uint64_t before = used(0);
	uint64_t range = reserve(4 * CHUNK);
	uint64_t handle = create(2 * CHUNK);

	assert_int_equal(used(0), before + 2 * CHUNK);
	assert_int_equal(map(range, 2 * CHUNK, handle), SUCCESS);
	assert_int_equal(map(range + 2 * CHUNK, CHUNK, handle), SUCCESS);
	assert_int_equal(release(handle), SUCCESS);
	assert_int_equal(release(handle), BAD);
	assert_int_equal(unmap(range, 2 * CHUNK), SUCCESS);
	assert_int_equal(used(0), before + 2 * CHUNK);
	assert_int_equal(unmap(range + 2 * CHUNK, CHUNK), SUCCESS);
	assert_int_equal(used(0), before);
	handle = create(CHUNK);
	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(unmap(range, CHUNK), SUCCESS);
	assert_int_equal(used(0), before + CHUNK);
	assert_int_equal(release(handle), SUCCESS);
	assert_int_equal(used(0), before);
}

TEST(memory_runs_out_and_comes_back)
{
	const CUmemAllocationProp prop = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	uint64_t handle = create(40 * GPC_MIB);
	uint64_t other = 0;

	assert_int_equal(
		gpc_sim_vmm_create(sim, 40 * GPC_MIB, &prop, &other), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(release(handle), SUCCESS);
	assert_int_equal(gpc_sim_vmm_create(sim, 40 * GPC_MIB, &prop, &other), SUCCESS);
}

TEST(physical_memory_that_cannot_be_made_is_refused)
{
	CUmemAllocationProp prop = at(CU_MEM_LOCATION_TYPE_DEVICE, 2);
	uint64_t handle = 0;

	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK, NULL, &handle), BAD);
	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK, &prop, &handle), CUDA_ERROR_INVALID_DEVICE);
	prop.location.id = 0;
	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK - 1, &prop, &handle), BAD);
	assert_int_equal(gpc_sim_vmm_create(sim, 0, &prop, &handle), BAD);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK, &prop, &handle), BAD);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK, &prop, &handle), BAD);
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK, &prop, &handle), BAD);
	assert_int_equal(release(0), BAD);
	assert_int_equal(release(UINT64_MAX), BAD);
}

TEST(two_mappings_of_one_piece_show_the_same_bytes)
{
	uint64_t range = reserve(4 * CHUNK);
	uint64_t handle = create(CHUNK);
	char *first;
	char *second;

	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(map(range + 2 * CHUNK, CHUNK, handle), SUCCESS);
	first = gpc_sim_bytes(sim, range);
	second = gpc_sim_bytes(sim, range + 2 * CHUNK);
	assert_ptr_not_equal(first, second);
	first[12345] = 'x';
	assert_int_equal(second[12345], 'x');
	assert_int_equal(unmap(range, CHUNK), SUCCESS);
	assert_int_equal(second[12345], 'x');
	assert_int_equal(unmap(range + 2 * CHUNK, CHUNK), SUCCESS);
	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(first[12345], 'x');
}

TEST(a_mapping_must_fit)
{
	uint64_t range = reserve(2 * CHUNK);
	uint64_t next = reserve(2 * CHUNK);
	uint64_t handle = create(4 * CHUNK);

	assert_int_equal(next, range + 2 * CHUNK);
	assert_int_equal(map(range, 3 * CHUNK, handle), BAD); /* over the end of a reservation */
	assert_int_equal(map(range + 100, CHUNK, handle), BAD);
	assert_int_equal(map(range, 100, handle), BAD);
	assert_int_equal(map(next + 2 * CHUNK, CHUNK, handle), BAD);
	assert_int_equal(map(0x1000, CHUNK, handle), BAD);
	assert_int_equal(map(range, CHUNK, handle + 1), BAD);
	assert_int_equal(map(range, 2 * CHUNK, handle), SUCCESS);
	assert_int_equal(map(range + CHUNK, CHUNK, handle), BAD); /* mapped already */
	assert_int_equal(gpc_sim_vmm_unreserve(&sim->vmm, range, 2 * CHUNK), BAD);
	assert_int_equal(unmap(range, CHUNK), BAD);
	assert_int_equal(unmap(range + CHUNK, CHUNK), BAD);
	assert_int_equal(unmap(next, CHUNK), BAD);
	assert_int_equal(map(next, 2 * CHUNK, handle), SUCCESS);
	assert_int_equal(unmap(range, 4 * CHUNK), SUCCESS); /* two at once */
}

TEST(a_range_is_open_to_whom_it_was_opened)
{
	uint64_t range = reserve(2 * CHUNK);
	uint64_t handle = create(2 * CHUNK);
	const CUmemLocation first = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	const CUmemLocation second = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
	unsigned flags = 9;

	assert_int_equal(let(range, CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), BAD);
	assert_int_equal(map(range, 2 * CHUNK, handle), SUCCESS);
	assert_false(gpc_sim_is_valid(sim, range, 1));
	assert_int_equal(let(range, 2 * CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), SUCCESS);
	assert_int_equal(
		let(range, CHUNK, 9, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(let(range, CHUNK, 0, (CUmemAccess_flags)2), BAD);
	assert_true(gpc_sim_is_valid(sim, range + 5, CHUNK));
	assert_false(gpc_sim_is_valid(sim, range + 5, 2 * CHUNK));
	assert_true(gpc_sim_may_touch(sim, 0, range, 2 * CHUNK, false));
	assert_false(gpc_sim_may_touch(sim, 0, range, 1, true));
	assert_false(gpc_sim_may_touch(sim, 1, range, 1, false));
	assert_int_equal(gpc_sim_vmm_get_access(sim, range, &first, &flags), SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	assert_int_equal(gpc_sim_vmm_get_access(sim, range, &second, &flags), SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	assert_int_equal(gpc_sim_vmm_get_access(sim, 4096, &second, &flags), BAD);
	assert_int_equal(let(range, 2 * CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), SUCCESS);
	assert_true(gpc_sim_may_touch(sim, 0, range, 1, true));
	assert_int_equal(let(range, CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE), SUCCESS);
	assert_false(gpc_sim_may_touch(sim, 0, range, 2 * CHUNK, false));
	/* A new mapping has no access rights. */
	assert_int_equal(unmap(range, 2 * CHUNK), SUCCESS);
	assert_int_equal(map(range, 2 * CHUNK, handle), SUCCESS);
	assert_false(gpc_sim_may_touch(sim, 0, range + CHUNK, 1, false));
}

TEST(a_kernel_on_closed_memory_breaks_its_context)
{
	uint64_t range = reserve(CHUNK);
	uint64_t handle = create(CHUNK);

	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(let(range, CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), SUCCESS);
	submit(&context->legacy, kernel_of(MS, range, CHUNK, 7));
	assert_int_equal(gpc_sim_context_sync(context), SUCCESS);
	assert_int_equal(*(char *)gpc_sim_bytes(sim, range + 99), 7);
	assert_int_equal(let(range, CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), SUCCESS);
	submit(&context->legacy, kernel_of(MS, range, CHUNK, 8));
	assert_int_equal(gpc_sim_context_sync(context), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(*(char *)gpc_sim_bytes(sim, range + 99), 7);
}

TEST(unmapping_waits_for_no_work_and_takes_the_memory_from_it)
{
	uint64_t range = reserve(2 * CHUNK);
	uint64_t handle = create(CHUNK);

	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(map(range + CHUNK, CHUNK, handle), SUCCESS);
	assert_int_equal(let(range, CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), SUCCESS);
	submit(&context->legacy, kernel_of(5 * MS, range, CHUNK, 7));
	uint64_t before = now();
	assert_int_equal(unmap(range, CHUNK), SUCCESS);
	assert_true(now() < before + 5 * MS);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(*(char *)gpc_sim_bytes(sim, range + CHUNK), 0);
}

TEST(holes_are_skipped_by_access_and_unmap)
{
	uint64_t range = reserve(4 * CHUNK);
	uint64_t pair = create(2 * CHUNK);
	uint64_t one = create(CHUNK);

	assert_int_equal(map(range + CHUNK, CHUNK, one), SUCCESS);
	assert_int_equal(let(range, 4 * CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), SUCCESS);
	assert_true(gpc_sim_may_touch(sim, 0, range + CHUNK, CHUNK, true));
	assert_int_equal(let(range + 2 * CHUNK, 2 * CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), BAD);
	assert_int_equal(map(range + 2 * CHUNK, 2 * CHUNK, pair), SUCCESS);
	assert_int_equal(unmap(range, 3 * CHUNK), BAD); /* half of the pair */
	assert_int_equal(unmap(range, 4 * CHUNK), SUCCESS);
	assert_int_equal(unmap(range, 4 * CHUNK), BAD);
}

TEST(the_host_reaches_memory_that_was_opened_to_it)
{
	const CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 };
	CUmemAccessDesc desc = { .location = host, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	uint64_t before = used(0);
	uint64_t range = reserve(CHUNK);
	uint64_t handle = create_on(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, CHUNK);
	unsigned flags = 9;

	assert_int_equal(used(0), before);
	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(gpc_sim_vmm_set_access(sim, range, CHUNK, &desc), SUCCESS);
	*(char *)(uintptr_t)range = 'h';
	assert_int_equal(*(char *)gpc_sim_bytes(sim, range), 'h');
	assert_int_equal(gpc_sim_vmm_get_access(sim, range, &host, &flags), SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	assert_int_equal(gpc_sim_vmm_set_access(sim, range, CHUNK, &desc), SUCCESS);
	assert_int_equal(gpc_sim_vmm_get_access(sim, range, &host, &flags), SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	desc.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	assert_int_equal(gpc_sim_vmm_set_access(sim, range, CHUNK, &desc), BAD);
}

TEST(retained_and_imported_handles_hold_the_memory)
{
	CUmemAllocationProp prop = at(CU_MEM_LOCATION_TYPE_DEVICE, 1);
	const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	uint64_t before = used(1);
	uint64_t range = reserve(CHUNK);
	uint64_t handle = 0;
	uint64_t other = 0;
	int fd = -1;

	assert_int_equal(gpc_sim_vmm_retain(&sim->vmm, range, &other), BAD);
	prop.requestedHandleTypes = type;
	assert_int_equal(gpc_sim_vmm_create(sim, CHUNK, &prop, &handle), SUCCESS);
	assert_int_equal(map(range, CHUNK, handle), SUCCESS);
	assert_int_equal(
		gpc_sim_vmm_export(&sim->vmm, handle, CU_MEM_HANDLE_TYPE_FABRIC, &fd), BAD);
	assert_int_equal(gpc_sim_vmm_export(&sim->vmm, handle, type, &fd), SUCCESS);
	assert_int_equal(gpc_sim_vmm_import(&sim->vmm, fd, &other), SUCCESS);
	assert_int_equal(gpc_sim_vmm_retain(&sim->vmm, range + 77, &other), SUCCESS);
	assert_int_equal(other, handle);
	assert_int_equal(unmap(range, CHUNK), SUCCESS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(used(1), before + CHUNK);
		assert_int_equal(release(handle), SUCCESS);
	}
	assert_int_equal(used(1), before);
	assert_int_equal(gpc_sim_vmm_import(&sim->vmm, fd, &other), BAD); /* it is gone */
	close(fd);
	assert_int_equal(gpc_sim_vmm_import(&sim->vmm, fd, &other), BAD);
	handle = create(CHUNK);
	assert_int_equal(gpc_sim_vmm_export(&sim->vmm, handle, type, &fd), BAD);
}

TEST(a_multicast_object_is_a_handle_without_memory)
{
	struct gpc_sim_physical object;
	uint64_t before = used(0) + used(1);
	uint64_t range = reserve(CHUNK);
	uint64_t handle = 0;

	assert_int_equal(gpc_sim_vmm_multicast(sim, 100, &handle), BAD);
	assert_int_equal(gpc_sim_vmm_multicast(sim, CHUNK, &handle), SUCCESS);
	assert_true(gpc_sim_vmm_find(&sim->vmm, handle, &object) && object.is_multicast);
	assert_int_equal(used(0) + used(1), before);
	assert_int_equal(map(range, CHUNK, handle), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(release(handle), SUCCESS);
	assert_false(gpc_sim_vmm_find(&sim->vmm, handle, &object));
}

TEST(a_mapping_is_found_around_an_address)
{
	uint64_t range = reserve(4 * CHUNK);
	uint64_t handle = create(3 * CHUNK);
	uint64_t base = 0;
	uint64_t size = 0;
	uint64_t found = 0;

	assert_int_equal(map(range + CHUNK, 3 * CHUNK, handle), SUCCESS);
	assert_true(gpc_sim_vmm_mapping_at(&sim->vmm, range + 3 * CHUNK + 5, &base, &size, &found));
	assert_int_equal(base, range + CHUNK);
	assert_int_equal(size, 3 * CHUNK);
	assert_int_equal(found, handle);
	assert_false(gpc_sim_vmm_mapping_at(&sim->vmm, range, &base, &size, &found));
}

static size_t n_pages(char *bytes, uint64_t size)
{
	static unsigned char pages[CHUNK / 4096];
	size_t n = 0;

	assert_int_equal(mincore(bytes, size, pages), 0);
	for (size_t i = 0; i < size / 4096; i++)
		n += pages[i] & 1;
	return n;
}

/* They are of a file, whose pages a look makes. */
TEST(a_copy_of_zeros_that_are_mapped_takes_no_pages_of_the_host)
{
	uint64_t ptr = reserve(CHUNK);
	uint64_t handle = create(CHUNK);
	char *bytes = gpc_sim_vmm_bytes(&sim->vmm, ptr);

	assert_int_equal(map(ptr, CHUNK, handle), SUCCESS);
	assert_int_equal(let(ptr, CHUNK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), SUCCESS);
	gpc_sim_data_copy(sim, bytes, bytes + CHUNK / 2, CHUNK / 2);
	assert_int_equal(n_pages(bytes, CHUNK), 0);
	memset(bytes, 7, CHUNK);
	gpc_sim_data_copy(sim, bytes, bytes + CHUNK / 2, CHUNK / 2);
	assert_int_equal(n_pages(bytes, CHUNK), CHUNK / 4096);
	assert_int_equal(bytes[CHUNK - 1], 7);
}
