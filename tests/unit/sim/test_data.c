/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "sim/gpu/sim.h"

#define KEEP (4 * GPC_MIB)
#define SIZE (8 * GPC_MIB)
#define PAGE 4096

static struct gpc_sim *sim;
static char *source;

static struct gpc_sim *make(bool is_full)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.memory = 64 * GPC_MIB;
	config.keep = KEEP;
	config.is_data_full = is_full;
	return gpc_sim_create(&config);
}

static int set_up(void **state)
{
	sim = make(false);
	source = malloc(SIZE);
	if (!sim || !source)
		return -1;
	memset(source, 7, SIZE);
	return 0;
}

static int tear_down(void **state)
{
	gpc_sim_destroy(sim);
	free(source);
	return 0;
}

FIXTURE(set_up, tear_down);

/* The number of resident host pages behind the first `size` bytes of the device. */
static size_t n_pages(uint64_t size)
{
	static unsigned char pages[SIZE / PAGE];
	size_t n = 0;

	assert_int_equal(mincore(sim->devices[0].shadow, size, pages), 0);
	for (size_t i = 0; i < size / PAGE; i++)
		n += pages[i] & 1;
	return n;
}

TEST(zeros_give_pages_back)
{
	char *bytes = sim->devices[0].shadow;

	gpc_sim_data_copy(sim, bytes, source, KEEP);
	assert_int_equal(n_pages(KEEP), KEEP / PAGE);
	assert_int_equal(sim->data.kept, KEEP);
	gpc_sim_data_zero(sim, bytes, KEEP);
	assert_int_equal(n_pages(KEEP), 0);
	assert_int_equal(sim->data.kept, 0);
	assert_int_equal(bytes[KEEP - 1], 0);
}

TEST(zeros_between_data_are_zeros_at_every_byte)
{
	char *bytes = sim->devices[0].shadow;

	gpc_sim_data_copy(sim, bytes, source, KEEP);
	gpc_sim_data_zero(sim, bytes + 100001, 3 * GPC_MIB);
	for (size_t i = 0; i < KEEP; i++)
		assert_int_equal(bytes[i], i - 100001 < 3 * GPC_MIB ? 0 : 7);
}

TEST(a_copy_of_zeros_takes_no_pages)
{
	char *bytes = sim->devices[0].shadow;

	memset(source, 0, SIZE);
	gpc_sim_data_copy(sim, bytes, source, SIZE);
	assert_int_equal(n_pages(SIZE), 0);
	assert_int_equal(sim->data.kept, 0);
}

TEST(what_is_kept_is_the_data_to_the_byte)
{
	char *bytes = sim->devices[0].shadow;

	for (size_t i = 0; i < KEEP; i++)
		source[i] = (char)(i * 31 >> 4);
	gpc_sim_data_copy(sim, bytes + 12345, source, KEEP - 12345);
	assert_memory_equal(bytes + 12345, source, KEEP - 12345);
	assert_int_equal(sim->data.dropped, 0);
}

TEST(what_goes_beyond_is_dropped_and_counted_and_a_read_is_known)
{
	char *bytes = sim->devices[0].shadow;

	gpc_sim_data_copy(sim, bytes, source, SIZE);
	assert_int_equal(sim->data.kept, KEEP);
	assert_int_equal(sim->data.dropped, SIZE - KEEP);
	assert_int_equal(n_pages(SIZE), KEEP / PAGE);
	gpc_sim_data_copy(sim, source, bytes, KEEP);
	assert_false(sim->data.dropped_was_read);
	gpc_sim_data_copy(sim, source, bytes + KEEP, GPC_MIB);
	assert_true(sim->data.dropped_was_read);
}

TEST(a_read_that_ends_in_what_was_dropped_is_known_wherever_it_begins)
{
	char *bytes = sim->devices[0].shadow;

	gpc_sim_data_copy(sim, bytes, source, SIZE);
	gpc_sim_data_copy(sim, source, bytes + KEEP - GPC_MIB, GPC_MIB + 1);
	assert_true(sim->data.dropped_was_read);
}

TEST(small_copies_are_always_written)
{
	char *bytes = sim->devices[0].shadow;

	gpc_sim_data_copy(sim, bytes, source, SIZE);
	memset(source, 9, 1000);
	gpc_sim_data_copy(sim, bytes + 6 * GPC_MIB, source, 1000);
	assert_memory_equal(bytes + 6 * GPC_MIB, source, 1000);
}

TEST(full_keeps_every_byte)
{
	struct gpc_sim *full = make(true);

	gpc_sim_data_copy(full, full->devices[0].shadow, source, SIZE);
	assert_memory_equal(full->devices[0].shadow, source, SIZE);
	assert_int_equal(full->data.dropped, 0);
	gpc_sim_destroy(full);
}

/* Mapped memory of two handles, half of SIZE each; its bytes in the host. */
static char *map_two(struct gpc_sim *machine, uint64_t *ret_ptr)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	uint64_t handle;

	assert_int_equal(gpc_sim_vmm_reserve(&machine->vmm, SIZE, 0, ret_ptr), CUDA_SUCCESS);
	for (uint64_t at = 0; at < SIZE; at += SIZE / 2) {
		assert_int_equal(
			gpc_sim_vmm_create(machine, SIZE / 2, &prop, &handle), CUDA_SUCCESS);
		assert_int_equal(
			gpc_sim_vmm_map(machine, *ret_ptr + at, SIZE / 2, handle), CUDA_SUCCESS);
	}
	return gpc_sim_vmm_bytes(&machine->vmm, *ret_ptr);
}

static uint64_t n_file_bytes(void)
{
	struct stat st;

	assert_int_equal(fstat(sim->vmm.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static long n_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* As with PyTorch's expandable segments: copies of GiBs that were never written. */
TEST(a_copy_of_mapped_memory_that_nobody_wrote_looks_at_no_page)
{
	uint64_t ptr[2];
	char *from = map_two(sim, &ptr[0]);
	char *to = map_two(sim, &ptr[1]);
	long before;

	gpc_sim_data_copy(sim, to, from, SIZE); /* what runs for the first time is paged in */
	before = n_faults();
	gpc_sim_data_copy(sim, to, from, SIZE);
	assert_in_range(n_faults() - before, 0, 16);
	assert_int_equal(n_file_bytes(), 0);
}

TEST(a_byte_of_mapped_memory_is_copied_wherever_it_is)
{
	static const size_t places[] = { 0, 1, 65535, 65536, 100001, SIZE / 2 - 1, SIZE / 2,
		SIZE / 2 + 65536 * 3 + 17, SIZE - 65537, SIZE - 1 };
	static const size_t shifts[] = { 0, 4096, 70000 };
	uint64_t ptr[2];
	char *from = map_two(sim, &ptr[0]);
	char *to = map_two(sim, &ptr[1]);

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		for (size_t k = 0; k < sizeof shifts / sizeof shifts[0]; k++) {
			size_t size = SIZE - shifts[k];

			memset(to, 5, i % 2 ? SIZE : 1); /* zeros come to data, and to none */
			from[places[i]] = 9;
			gpc_sim_data_copy(sim, to + shifts[k], from, size);
			gpc_sim_data_copy(sim, source, to + shifts[k], size);
			assert_memory_equal(source, from, size);
			gpc_sim_data_zero(sim, from, SIZE);
			gpc_sim_data_zero(sim, to, SIZE);
		}
	}
}

TEST(the_host_s_own_memory_is_written_as_ever)
{
	char *other = calloc(1, SIZE);

	gpc_sim_data_copy(sim, other, source, SIZE);
	assert_memory_equal(other, source, SIZE);
	gpc_sim_data_zero(sim, other, SIZE);
	assert_int_equal(other[SIZE - 1], 0);
	assert_int_equal(sim->data.kept, 0);
	free(other);
}
