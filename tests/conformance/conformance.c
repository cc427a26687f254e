/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/bytes.h"
#include "driver/driver_pages.h"

#define INVALID_VALUE ((enum gpc_status)(GPC_DEVICE_FIRST + 1))

/* Remembers the line of the first condition that failed. */
#define EXPECT(condition)                       \
	do {                                    \
		if (!(condition) && !*ret_line) \
			*ret_line = __LINE__;   \
	} while (0)

static bool memory_is_aligned_and_does_not_overlap(struct gpc_driver *drv, int *ret_line)
{
	static const uint64_t sizes[] = { 1, 511, 512, 4097, GPC_MIB, 2 * GPC_MIB, 2 * GPC_MIB + 1,
		20 * GPC_MIB };
	enum {
		N = sizeof sizes / sizeof sizes[0]
	};
	gpc_devptr ptr[N] = { 0 };

	for (unsigned i = 0; i < N; i++) {
		EXPECT(drv->ops->mem_alloc(drv, sizes[i], &ptr[i]) == GPC_OK);
		EXPECT(ptr[i] != 0 && ptr[i] % 256 == 0);
		for (unsigned k = 0; k < i; k++)
			EXPECT(ptr[i] + sizes[i] <= ptr[k] || ptr[k] + sizes[k] <= ptr[i]);
	}
	for (unsigned i = 0; i < N; i++)
		EXPECT(drv->ops->mem_free(drv, ptr[i]) == GPC_OK);
	return true;
}

static bool freeing_twice_is_an_invalid_value(struct gpc_driver *drv, int *ret_line)
{
	gpc_devptr ptr = 0;

	EXPECT(drv->ops->mem_alloc(drv, 4 * GPC_MIB, &ptr) == GPC_OK);
	EXPECT(drv->ops->mem_free(drv, ptr) == GPC_OK);
	EXPECT(drv->ops->mem_free(drv, ptr) == INVALID_VALUE);
	return true;
}

static bool freeing_the_middle_is_an_invalid_value_and_harmless(
	struct gpc_driver *drv, int *ret_line)
{
	gpc_devptr ptr = 0;

	EXPECT(drv->ops->mem_alloc(drv, 4 * GPC_MIB, &ptr) == GPC_OK);
	EXPECT(drv->ops->mem_free(drv, ptr + 2 * GPC_MIB) == INVALID_VALUE);
	EXPECT(drv->ops->mem_free(drv, ptr + 512) == INVALID_VALUE);
	EXPECT(drv->ops->mem_free(drv, ptr) == GPC_OK);
	return true;
}

static bool freeing_an_unknown_address_is_an_invalid_value(struct gpc_driver *drv, int *ret_line)
{
	int on_the_host;

	EXPECT(drv->ops->mem_free(drv, (uintptr_t)&on_the_host) == INVALID_VALUE);
	return true;
}

static bool memory_that_cannot_be_is_refused_and_writes_nothing(
	struct gpc_driver *drv, int *ret_line)
{
	gpc_devptr ptr = 42;
	uint64_t has = 0;
	uint64_t total = 0;

	EXPECT(drv->ops->mem_info(drv, &has, &total) == GPC_OK);
	EXPECT(drv->ops->mem_alloc(drv, total + GPC_MIB, &ptr) == GPC_DEVICE_NO_MEMORY);
	EXPECT(drv->ops->mem_alloc(drv, UINT64_C(1) << 50, &ptr) == GPC_DEVICE_NO_MEMORY);
	EXPECT(ptr == 42);
	return true;
}

static bool an_error_of_memory_does_not_stay(struct gpc_driver *drv, int *ret_line)
{
	gpc_devptr ptr = 0;

	EXPECT(drv->ops->mem_alloc(drv, UINT64_C(1) << 50, &ptr) == GPC_DEVICE_NO_MEMORY);
	EXPECT(drv->ops->mem_alloc(drv, 2 * GPC_MIB, &ptr) == GPC_OK);
	EXPECT(drv->ops->mem_free(drv, ptr) == GPC_OK);
	return true;
}

static bool memory_taken_is_missing_until_it_is_freed(struct gpc_driver *drv, int *ret_line)
{
	uint64_t before = 0, during = 0, after = 0, total = 0;
	gpc_devptr ptr = 0;

	EXPECT(drv->ops->mem_info(drv, &before, &total) == GPC_OK);
	EXPECT(before <= total);
	EXPECT(drv->ops->mem_alloc(drv, 32 * GPC_MIB, &ptr) == GPC_OK);
	EXPECT(drv->ops->mem_info(drv, &during, &total) == GPC_OK);
	EXPECT(drv->ops->mem_free(drv, ptr) == GPC_OK);
	EXPECT(drv->ops->mem_info(drv, &after, &total) == GPC_OK);
	EXPECT(during + 32 * GPC_MIB <= before);
	EXPECT(after >= during + 32 * GPC_MIB);
	return true;
}

static bool memory_freed_beside_work_is_back_at_once(struct gpc_driver *drv, int *ret_line)
{
	uint64_t before = 0, after = 0, total = 0;
	gpc_devptr ptr = 0;

	if (drv->ops->prepare_beside(drv))
		return false;
	EXPECT(drv->ops->mem_info(drv, &before, &total) == GPC_OK);
	EXPECT(drv->ops->mem_alloc(drv, 32 * GPC_MIB, &ptr) == GPC_OK);
	EXPECT(drv->ops->mem_free_beside(drv, ptr) == GPC_OK);
	EXPECT(drv->ops->mem_info(drv, &after, &total) == GPC_OK);
	EXPECT(after == before);
	EXPECT(drv->ops->mem_free_beside(drv, ptr) == INVALID_VALUE);
	return true;
}

static bool the_clock_does_not_go_back(struct gpc_driver *drv, int *ret_line)
{
	uint64_t last = drv->ops->now_ns(drv);

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now = drv->ops->now_ns(drv);
		EXPECT(now >= last);
		last = now;
	}
	return true;
}

static bool a_fence_passes_once_the_context_is_done(struct gpc_driver *drv, int *ret_line)
{
	gpc_event event = 0;

	EXPECT(drv->ops->event_create(drv, &event) == GPC_OK);
	EXPECT(event != 0);
	enum gpc_status st = drv->ops->fence_record(drv, event);
	if (st == GPC_UNSUPPORTED) {
		drv->ops->event_destroy(drv, event);
		return false;
	}
	EXPECT(st == GPC_OK);
	st = drv->ops->event_query(drv, event);
	EXPECT(st == GPC_OK || st == GPC_DEVICE_NOT_READY);
	EXPECT(drv->ops->context_sync(drv) == GPC_OK);
	EXPECT(drv->ops->event_query(drv, event) == GPC_OK);
	drv->ops->event_destroy(drv, event);
	return true;
}

static bool an_event_may_be_recorded_again(struct gpc_driver *drv, int *ret_line)
{
	gpc_event event = 0;

	EXPECT(drv->ops->event_create(drv, &event) == GPC_OK);
	for (unsigned i = 0; i < 100; i++) {
		enum gpc_status st = drv->ops->fence_record(drv, event);
		EXPECT(st == GPC_OK || st == GPC_UNSUPPORTED);
		if (st == GPC_OK)
			EXPECT(drv->ops->event_wait(drv, event) == GPC_OK);
	}
	drv->ops->event_destroy(drv, event);
	return true;
}

static bool a_context_can_wait_for_all_that_came_before(struct gpc_driver *drv, int *ret_line)
{
	gpc_event event = 0;

	EXPECT(drv->ops->event_create(drv, &event) == GPC_OK);
	for (unsigned i = 0; i < 10; i++) {
		enum gpc_status st = drv->ops->fence_record(drv, event);

		EXPECT(st == GPC_OK || st == GPC_UNSUPPORTED);
		EXPECT(st == drv->ops->fence_wait(drv, event));
	}
	EXPECT(drv->ops->context_sync(drv) == GPC_OK);
	drv->ops->event_destroy(drv, event);
	return true;
}

static bool the_legacy_stream_can_be_recorded_and_waited_for(struct gpc_driver *drv, int *ret_line)
{
	gpc_event event = 0;

	EXPECT(drv->ops->event_create(drv, &event) == GPC_OK);
	EXPECT(drv->ops->legacy_record(drv, event) == GPC_OK);
	EXPECT(drv->ops->stream_wait(drv, 0, event) == GPC_OK);
	EXPECT(drv->ops->stream_wait(drv, 2, event) == GPC_OK);
	EXPECT(drv->ops->event_wait(drv, event) == GPC_OK);
	EXPECT(drv->ops->event_query(drv, event) == GPC_OK);
	drv->ops->event_destroy(drv, event);
	return true;
}

struct worker {
	struct gpc_driver *drv;
	int line;
};

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct gpc_driver *drv = worker->drv;
	int *ret_line = &worker->line;

	for (unsigned i = 0; i < 50; i++) {
		gpc_devptr ptr = 0;
		gpc_event event = 0;
		EXPECT(drv->ops->mem_alloc(drv, (i % 5 + 1) * GPC_MIB, &ptr) == GPC_OK);
		EXPECT(drv->ops->event_create(drv, &event) == GPC_OK);
		if (drv->ops->fence_record(drv, event) == GPC_OK)
			EXPECT(drv->ops->event_wait(drv, event) == GPC_OK);
		drv->ops->event_destroy(drv, event);
		EXPECT(drv->ops->mem_free(drv, ptr) == GPC_OK);
	}
	return NULL;
}

static bool every_op_works_in_threads_that_never_used_the_driver(
	struct gpc_driver *drv, int *ret_line)
{
	enum {
		N = 4
	};
	pthread_t thread[N];
	struct worker worker[N];

	for (unsigned i = 0; i < N; i++) {
		worker[i] = (struct worker){ .drv = drv };
		if (pthread_create(&thread[i], NULL, work, &worker[i])) {
			*ret_line = __LINE__;
			return true;
		}
	}
	for (unsigned i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		if (worker[i].line)
			*ret_line = worker[i].line;
	}
	return true;
}

#define N_PAGES 4

static bool map_pages(struct gpc_driver *drv, gpc_devptr ptr)
{
	bool is_good = true;

	for (uint64_t i = 0; i < N_PAGES; i++)
		is_good &= !drv->pages->map(drv, ptr + i * GPC_PAGE_ALIGN, GPC_PAGE_ALIGN);
	return is_good && !drv->pages->open(drv, ptr, N_PAGES * GPC_PAGE_ALIGN, 0);
}

static uint64_t available_on(struct gpc_driver *drv)
{
	uint64_t available = 0;
	uint64_t total = 0;

	return drv->ops->mem_info(drv, &available, &total) ? 0 : available;
}

/* Unmaps pages in the middle of a range; the others stay mapped, and the hole can be mapped again. */
static bool pages_come_and_go_one_by_one(struct gpc_driver *drv, int *ret_line)
{
	const uint64_t size = N_PAGES * GPC_PAGE_ALIGN;
	gpc_devptr ptr = 0;
	uint64_t before;

	if (!drv->pages)
		return false;
	before = available_on(drv);
	EXPECT(drv->pages->reserve(drv, size, &ptr) == GPC_OK);
	EXPECT(ptr % GPC_PAGE_ALIGN == 0);
	EXPECT(map_pages(drv, ptr));
	EXPECT(drv->pages->map(drv, ptr, GPC_PAGE_ALIGN) != GPC_OK); /* already mapped */
	EXPECT(drv->pages->unmap(drv, ptr + GPC_PAGE_ALIGN, 2 * GPC_PAGE_ALIGN) == GPC_OK);
	EXPECT(available_on(drv) == before - 2 * GPC_PAGE_ALIGN);
	EXPECT(drv->pages->map(drv, ptr + GPC_PAGE_ALIGN, 2 * GPC_PAGE_ALIGN) == GPC_OK);
	EXPECT(drv->pages->open(drv, ptr, size, 0) == GPC_OK);
	EXPECT(drv->pages->unmap(drv, ptr + GPC_PAGE_ALIGN, GPC_PAGE_ALIGN) !=
		GPC_OK); /* half a page */
	EXPECT(drv->pages->unmap(drv, ptr, size) == GPC_OK);
	drv->pages->release(drv, ptr, size);
	EXPECT(available_on(drv) == before);
	return true;
}

/* A question answers false if the driver has no such thing. */
struct question {
	const char *text;
	bool (*ask)(struct gpc_driver *drv, int *ret_line);
};

#define QUESTION(function)                         \
	{                                          \
		.text = #function, .ask = function \
	}

int gpc_conformance_run(struct gpc_driver *drv, const char *name)
{
	static const struct question questions[] = {
		QUESTION(memory_is_aligned_and_does_not_overlap),
		QUESTION(freeing_twice_is_an_invalid_value),
		QUESTION(freeing_the_middle_is_an_invalid_value_and_harmless),
		QUESTION(freeing_an_unknown_address_is_an_invalid_value),
		QUESTION(memory_that_cannot_be_is_refused_and_writes_nothing),
		QUESTION(an_error_of_memory_does_not_stay),
		QUESTION(memory_taken_is_missing_until_it_is_freed),
		QUESTION(memory_freed_beside_work_is_back_at_once),
		QUESTION(the_clock_does_not_go_back),
		QUESTION(a_fence_passes_once_the_context_is_done),
		QUESTION(an_event_may_be_recorded_again),
		QUESTION(a_context_can_wait_for_all_that_came_before),
		QUESTION(the_legacy_stream_can_be_recorded_and_waited_for),
		QUESTION(every_op_works_in_threads_that_never_used_the_driver),
		QUESTION(pages_come_and_go_one_by_one),
	};
	const unsigned n = sizeof questions / sizeof questions[0];
	int n_wrong = 0;

	printf("1..%u\n", n);
	for (unsigned i = 0; i < n; i++) {
		int line = 0;
		bool has = questions[i].ask(drv, &line);
		if (line) {
			printf("not ok %u - %s: %s (conformance.c:%d)\n", i + 1, name,
				questions[i].text, line);
			n_wrong++;
		} else {
			printf("ok %u - %s: %s%s\n", i + 1, name, questions[i].text,
				has ? "" : " # SKIP not supported");
		}
	}
	return n_wrong;
}
