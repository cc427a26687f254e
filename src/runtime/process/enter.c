/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of every hook.  While the library runs, an entry costs a few loads: the state, the page that tells a child
 * after fork, whether the library is broken, and whether the thread is inside it already.  The first entry starts the
 * library.  Calls of other threads during the start pass to the driver: if such a thread waited here while
 * it holds the loader's lock, the start, which needs that lock, would never end.
 */
#include "runtime/process/enter.h"

#include "base/check.h"
#include "base/own_stack.h"
#include "base/thread.h"
#include "runtime/process/start.h"
#include "runtime/process/state.h"

struct gpc_runtime gpc_runtime = {
	.lock = GPC_LOCK_INIT(GPC_RANK_RUNTIME),
};

void gpc_runtime_saw_start(void)
{
	if (atomic_load(&gpc_runtime.state) == GPC_STATE_ARMED)
		gpc_runtime.saw_start = true;
}

static bool is_before_init(const struct gpc_cuda_fns *fns)
{
	int n_devices;

	return fns->cuDeviceGetCount(&n_devices) == CUDA_ERROR_NOT_INITIALIZED;
}

struct start {
	const struct gpc_runtime_loader *(*loader)(void);
	int state; /* that follows */
};

static void try_start(void *arg)
{
	struct start *start = arg;

	gpc_runtime.loader = start->loader();
	/* Before cuInit the driver reports no devices, and our exit handler would run after its own. */
	if (!gpc_runtime.loader || is_before_init(gpc_runtime.loader->fns))
		start->state = GPC_STATE_ARMED;
	else
		start->state = gpc_runtime_start() ? GPC_STATE_RUNNING : GPC_STATE_PASS;
}

/* Starts the library at the first call.  False: this call passes to the driver. */
static __attribute__((noinline)) bool start(const struct gpc_runtime_loader *(*loader)(void))
{
	struct start start = { .loader = loader };
	int expected = GPC_STATE_ARMED;

	if (!gpc_thread_enter())
		return false;
	if (!atomic_compare_exchange_strong(&gpc_runtime.state, &expected, GPC_STATE_STARTING)) {
		gpc_thread_leave();
		return false;
	}
	gpc_own_stack_run(try_start, &start);
	atomic_store(&gpc_runtime.state, start.state);
	gpc_thread_leave();
	return start.state == GPC_STATE_RUNNING;
}

/*
 * A call that passes to the driver now may use a new stream, which we then do not know.  So the thread sets has_missed
 * and loads the state again.  If the start is still running, every pool is made later and reads the flag.  If the start
 * is over, the call does not pass.
 */
static int pass_while_starting(void)
{
	if (atomic_load(&gpc_runtime.state) == GPC_STATE_STARTING)
		atomic_store(&gpc_runtime.has_missed, true);
	return atomic_load(&gpc_runtime.state);
}

/* Not running, as far as the caller has seen. */
static __attribute__((noinline)) bool enter_otherwise(
	const struct gpc_runtime_loader *(*loader)(void), int state)
{
	if (state == GPC_STATE_ARMED && start(loader))
		state = GPC_STATE_RUNNING;
	else if (state != GPC_STATE_RUNNING && state != GPC_STATE_PASS)
		state = pass_while_starting();
	/* CUDA does not survive a fork: a forked child has a copy of our state, but no device memory. */
	if (state != GPC_STATE_RUNNING || !gpc_process_is_ours() || gpc_is_broken())
		return false;
	return gpc_thread_enter();
}

bool gpc_runtime_enter(const struct gpc_runtime_loader *(*loader)(void))
{
	int state = atomic_load_explicit(&gpc_runtime.state, memory_order_acquire);

	if (__builtin_expect(
		    state == GPC_STATE_RUNNING && gpc_process_is_ours() && !gpc_is_broken(), 1))
		return gpc_thread_enter();
	return enter_otherwise(loader, state);
}
