/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/metamem.h"
#include "unit.h"

static bool is_zero(const unsigned char *at, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (at[i])
			return false;
	}
	return true;
}

TEST(pages_are_zeroed_and_counted)
{
	size_t before = gpc_metamem_total();
	unsigned char *pages = gpc_metamem_map(8192);

	assert_non_null(pages);
	assert_true(is_zero(pages, 8192));
	assert_int_equal(gpc_metamem_total(), before + 8192);
	gpc_metamem_unmap(pages, 8192);
	errno = 0;
	assert_int_equal(msync(pages, 8192, MS_ASYNC), -1);
	assert_int_equal(errno, ENOMEM); /* nothing is mapped there */
	gpc_metamem_unmap(NULL, 8192);
	assert_int_equal(gpc_metamem_total(), before);
}

TEST(the_nth_request_fails_and_all_after_it)
{
	void *first;

	gpc_metamem_fail_at(2);
	first = gpc_metamem_map(4096);
	assert_non_null(first);
	assert_null(gpc_metamem_map(4096));
	assert_null(gpc_metamem_map(4096));
	gpc_metamem_fail_at(0);
	gpc_metamem_unmap(first, 4096);
	assert_null(gpc_metamem_map(SIZE_MAX / 2));
}

TEST(chosen_requests_fail_once_each)
{
	gpc_metamem_fail_each(0x5);
	for (int n = 1; n <= 4; n++) {
		void *pages = gpc_metamem_map(4096);

		assert_int_equal(pages == NULL, n == 1 || n == 3);
		gpc_metamem_unmap(pages, 4096);
	}
}

TEST(numbers_rise_and_lead_back_to_their_items)
{
	struct gpc_slab slab;
	void *items[1000];

	slab = (struct gpc_slab)GPC_SLAB_INIT(char[20], 16, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t number;

		items[i] = gpc_slab_take(&slab, &number);
		assert_non_null(items[i]);
		assert_int_equal(number, i);
		assert_true(is_zero(items[i], 24));
		memset(items[i], 0xff, 24);
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_ptr_equal(gpc_slab_get(&slab, i), items[i]);
	assert_int_equal(slab.n_live, 1000);
	gpc_slab_fini(&slab);
}

TEST(a_full_slab_gives_nothing_until_something_comes_back)
{
	struct gpc_slab slab;
	uint32_t number = 77;

	slab = (struct gpc_slab)GPC_SLAB_INIT(char[8], 4, 6);
	for (int i = 0; i < 6; i++)
		assert_non_null(gpc_slab_take(&slab, &number));
	number = 77;
	assert_null(gpc_slab_take(&slab, &number));
	assert_int_equal(number, 77);
	gpc_slab_give_back(&slab, 3);
	gpc_slab_give_back(&slab, 0);
	assert_true(is_zero(gpc_slab_take(&slab, &number), 8));
	assert_int_equal(number, 0);
	assert_true(is_zero(gpc_slab_take(&slab, &number), 8));
	assert_int_equal(number, 3);
	assert_null(gpc_slab_take(&slab, &number));
	gpc_slab_fini(&slab);
}

TEST(a_slab_without_memory_leaves_things_as_before)
{
	size_t before = gpc_metamem_total();
	struct gpc_slab slab;
	uint32_t number;

	slab = (struct gpc_slab)GPC_SLAB_INIT(char[64], 4, 100);
	for (unsigned n = 1; n <= 3; n++) {
		uint32_t n_live = slab.n_live;

		gpc_metamem_fail_at(1);
		assert_null(gpc_slab_take(&slab, &number));
		gpc_metamem_fail_at(0);
		assert_int_equal(slab.n_live, n_live);
		/* Fill the chunk that comes now, so that the next one must be mapped. */
		for (uint32_t i = slab.n_used, end = 4u << (n - 1); i < end; i++)
			assert_non_null(gpc_slab_take(&slab, &number));
	}
	gpc_slab_fini(&slab);
	assert_int_equal(gpc_metamem_total(), before);
}

static void *take_and_give_back(void *arg)
{
	struct gpc_slab *slab = arg;

	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t number;
		uint64_t *item = gpc_slab_take(slab, &number);

		if (!item || item[1] != 0)
			return (void *)1;
		item[1] = number + 1;
		if (gpc_slab_get(slab, number) != item || item[1] != number + 1)
			return (void *)1;
		gpc_slab_give_back(slab, number);
	}
	return NULL;
}

TEST(threads_never_get_the_same_item)
{
	struct gpc_slab slab;
	pthread_t threads[4];

	slab = (struct gpc_slab)GPC_SLAB_INIT(char[16], 1, 4);
	for (size_t i = 0; i < N_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, &slab), 0);
	for (size_t i = 0; i < N_OF(threads); i++) {
		void *result;

		pthread_join(threads[i], &result);
		assert_null(result);
	}
	assert_int_equal(slab.n_live, 0);
	gpc_slab_fini(&slab);
}
