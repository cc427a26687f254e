/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's stack, taken as configured: never, for a sample by bytes, or always.  A stack that was seen before costs
 * its walk and one lookup (stack/depot.h).
 */
#include "runtime/process/stacks.h"

#include "base/clock.h"
#include "base/thread.h"
#include "record/store.h"
#include "runtime/process/state.h"

/* Inlined into its callers, so that the one skipped frame is that of a function of stacks.h. */
static inline __attribute__((always_inline)) uint32_t take_stack(void)
{
	uint32_t id;

	gpc_record_expect_event(&gpc_runtime.record);
	id = gpc_stack_capture(&gpc_runtime.stacks, 1);

	/* The count of dropped stacks is recorded at once, because the process may be killed at any time. */
	if (!id || gpc_stacks_dropped_python(&gpc_runtime.stacks))
		gpc_record_stacks_dropped(&gpc_runtime.record,
			gpc_stacks_dropped(&gpc_runtime.stacks),
			gpc_stacks_dropped_python(&gpc_runtime.stacks));
	return id;
}

struct gpc_request gpc_runtime_request(uint64_t size)
{
	return (struct gpc_request){
		.size = size,
		.now_ns = gpc_clock_monotonic_ns(),
		.mark = gpc_runtime.has_stacks ? take_stack() : 0,
		.thread = gpc_thread_id(),
	};
}

/* True if the request is to have a stack. */
static inline __attribute__((always_inline)) bool takes(size_t size)
{
	static _Thread_local struct gpc_sampler sampler;

	if (!gpc_runtime.has_stacks)
		return false;
	if (gpc_runtime.config.stacks != GPC_STACKS_SAMPLED)
		return true;
	/* With one seed for all, each thread and each run would sample the same requests. */
	if (!sampler.state)
		sampler.state = gpc_clock_monotonic_ns() ^ (uint64_t)gpc_thread_id() << 48;
	return gpc_sampler_takes(&sampler, size);
}

uint32_t gpc_runtime_stack_of(size_t size)
{
	return takes(size) ? take_stack() : 0;
}

uint32_t gpc_runtime_stack_of_one(size_t size, uint32_t *shared)
{
	if (!takes(size))
		return 0;
	if (!*shared)
		*shared = take_stack();
	return *shared;
}

int gpc_runtime_unload(int (*close)(void *handle), void *handle)
{
	return gpc_modules_unload(close, handle);
}
