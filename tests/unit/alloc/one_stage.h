/* SPDX-License-Identifier: Apache-2.0 */
/* One stage, and the ways to open and close it around a test. */
#ifndef GPC_TESTS_UNIT_ALLOC_ONE_STAGE_H
#define GPC_TESTS_UNIT_ALLOC_ONE_STAGE_H

#include "stage.h"

static struct stage stage;

static inline int open_plain(void **state)
{
	struct gpc_pool_params params = stage_params();

	stage_open(&stage, &params);
	return 0;
}

static inline int open_one_stream(void **state)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = true;
	stage_open(&stage, &params);
	return 0;
}

static inline int close_stage(void **state)
{
	(stage_close)(&stage); /* the line that the test was at last */
	return 0;
}

#define TEST_ONE_STREAM(name) TEST_WITH(name, open_one_stream, close_stage)
/* Opens the stage itself. */
#define TEST_OWN(name) TEST_WITH(name, NULL, close_stage)

#endif
