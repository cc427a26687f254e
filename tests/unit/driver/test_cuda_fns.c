/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cuda_fns.h"
#include "unit.h"

struct driver {
	const char *missing;
	unsigned n_asked;
};

/* Every function there is, at an address made of its name; never called. */
static void *lookup(void *arg, const char *name)
{
	struct driver *driver = arg;
	uintptr_t sum = 4096;

	driver->n_asked++;
	if (driver->missing && !strcmp(driver->missing, name))
		return NULL;
	for (const char *at = name; *at; at++)
		sum = sum * 31 + (unsigned char)*at;
	return (void *)sum;
}

TEST(every_function_is_asked_for_by_its_own_name)
{
	struct driver driver = { 0 };
	struct gpc_cuda_fns fns;

	memset(&fns, 0, sizeof fns);
	assert_int_equal(gpc_cuda_fns_fill(&fns, lookup, &driver), GPC_OK);
	assert_int_equal(driver.n_asked, sizeof fns / sizeof(void *));
#define CUDA_FN(name, result, params) \
	assert_int_equal((uintptr_t)fns.name, (uintptr_t)lookup(&driver, #name));
#define OPTIONAL CUDA_FN
#include "driver/cuda_fns.def"
}

TEST(a_missing_function_is_noticed_and_the_others_are_filled)
{
	struct driver driver = { .missing = "cuMemFree_v2" };
	struct gpc_cuda_fns fns;

	assert_int_equal(gpc_cuda_fns_fill(&fns, lookup, &driver), GPC_NOT_FOUND);
	assert_true(fns.cuMemFree_v2 == NULL);
	assert_true(fns.cuMemAlloc_v2 != NULL);
	assert_true(fns.cuEventQuery != NULL);
}

TEST(an_older_driver_may_lack_what_is_optional)
{
	struct driver driver = { .missing = "cuCtxRecordEvent" };
	struct gpc_cuda_fns fns;

	assert_int_equal(gpc_cuda_fns_fill(&fns, lookup, &driver), GPC_OK);
	assert_true(fns.cuCtxRecordEvent == NULL);
}
