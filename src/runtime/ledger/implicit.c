/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implicit allocations: memory that the driver takes for itself during another call, for contexts, modules and limits.
 *
 * The driver does not report the size of such memory.  So free memory is read before and after the call, and the loss
 * is the size.  A measurement is valid only if nothing else changed free memory between the two readings:
 *
 *   I1  No other such call, no unloading and no end of a context was in flight on the device.
 *   I2  Our own accounting, and the budget of segments in flight, are the same at both readings.
 *
 * If calls overlap, none of them is measured, and their bytes stay in "this process, not tracked".  A measured size is
 * accounted for under the handle that the call returned, and removed when that handle is destroyed.
 *
 * Before the first context of a device exists, the driver cannot be asked for free memory.  NVML is asked instead,
 * before and after.  If NVML does not answer either, the call is not measured.
 *
 * Limits    A measurement includes what other processes allocate or free during the call.  It also includes what
 *           another thread allocates outside the cache, if the second reading falls between the driver's answer to that
 *           thread and our accounting.
 */
#include "runtime/ledger/implicit.h"

#include "base/clock.h"
#include "base/thread.h"
#include "oom/neighbours.h"
#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/track.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/look.h"
#include "runtime/rescue/rescue.h"

/*
 * The bytes that the ladder tries to free for a call that names no size.  Contexts of current GPUs take 300 to 600 MiB,
 * modules of large libraries some tens.  A wrong value does little harm: the fourth rung returns everything.
 */
#define ASSUMED_CONTEXT (512 * GPC_MIB)
#define ASSUMED_MODULE  (64 * GPC_MIB)

/* For each device, how many calls that change free memory have begun and ended.  The difference is in flight. */
static struct {
	_Atomic uint32_t begun;
	_Atomic uint32_t ended;
} calls[GPC_MAX_DEVICES];

/* Returns the number of this call; *ret_is_alone: no other call is in flight. */
static uint32_t begin(uint32_t device, bool *ret_is_alone)
{
	uint32_t ended = atomic_load(&calls[device].ended); /* first: never exceeds `begun` */
	uint32_t number = atomic_fetch_add(&calls[device].begun, 1) + 1;

	*ret_is_alone = ended + 1 == number;
	return number;
}

static void end(uint32_t device)
{
	atomic_fetch_add(&calls[device].ended, 1);
}

void gpc_runtime_begin_unmeasured_on(int device)
{
	bool is_alone;

	if (gpc_device_at(device))
		(void)begin((uint32_t)device, &is_alone);
}

int gpc_runtime_begin_unmeasured(CUcontext handle)
{
	const struct gpc_context *context =
		handle ? gpc_context_find(handle) : gpc_context_current();
	int device = context ? (int)context->device->ordinal : -1;

	gpc_runtime_begin_unmeasured_on(device);
	return device;
}

void gpc_runtime_end_unmeasured(int device)
{
	if (gpc_device_at(device))
		end((uint32_t)device);
}

/* Our accounting of the device. */
struct books {
	uint64_t held;
	uint64_t charged; /* each segment, from before its request until after its return */
};

static struct books read_books(const struct gpc_device *device)
{
	return (struct books){
		.held = GPC_DEVICE_SUM(device, reserved_bytes) +
			GPC_DEVICE_SUM(device, direct_bytes),
		.charged = atomic_load(&device->budget.used_bytes),
	};
}

/* A reading of the device's memory: by the driver, or by NVML.  GPUCACHE_UNKNOWN: the number was not read. */
struct look {
	bool is_told;
	uint64_t driver_free;
	uint64_t process; /* NVML's figure for this process */
	uint64_t used;    /* NVML's figure for all processes */
};

static struct look look(const struct gpc_device *device, struct gpc_context *asker)
{
	struct look look = { true, GPUCACHE_UNKNOWN, GPUCACHE_UNKNOWN, GPUCACHE_UNKNOWN };
	struct gpc_neighbours neighbours;
	uint64_t total;

	if (asker) {
		look.is_told =
			!asker->drv.base.ops->mem_info(&asker->drv.base, &look.driver_free, &total);
		return look;
	}
	look.is_told = gpc_runtime_ask_neighbours(device, &neighbours);
	look.process = neighbours.process_bytes;
	look.used = neighbours.used_bytes;
	return look;
}

/* Finds by how many bytes the memory in use has grown; false if that is unknown. */
static bool find_change(const struct look *before, const struct look *after, int64_t *ret_change)
{
	/* Without a context this process is not on NVML's list, and uses no memory. */
	uint64_t process = before->process == GPUCACHE_UNKNOWN ? 0 : before->process;

	if (!before->is_told || !after->is_told)
		return false;
	if (after->driver_free != GPUCACHE_UNKNOWN)
		*ret_change = (int64_t)(before->driver_free - after->driver_free);
	else if (after->process != GPUCACHE_UNKNOWN)
		*ret_change = (int64_t)(after->process - process);
	else if (before->used != GPUCACHE_UNKNOWN && after->used != GPUCACHE_UNKNOWN)
		*ret_change = (int64_t)(after->used - before->used);
	else
		return false;
	return true;
}

/* A call under way. */
struct measurement {
	struct gpc_implicit_call *call;
	struct gpc_device *device;
	struct gpc_context *asker; /* NULL: NVML is asked */
	uint32_t number;
	bool is_alone;
	bool is_known; /* `change` was measured, by the last attempt */
	int64_t change;
};

/* Makes the call between two readings.  A repeated call has its own two, which exclude what the ladder freed. */
static CUresult make_measured(struct measurement *m)
{
	/* Read before the first look, and again after the second. */
	struct books before = read_books(m->device);
	struct look first = { .is_told = false };
	struct look second;
	struct books after;
	CUresult result;

	if (m->is_alone)
		first = look(m->device, m->asker);
	result = m->call->make(m->call);
	m->is_known = false;
	if (result || !first.is_told)
		return result;
	second = look(m->device, m->asker);
	after = read_books(m->device);
	m->is_known = find_change(&first, &second, &m->change) && before.held == after.held &&
		      before.charged == after.charged &&
		      atomic_load(&calls[m->device->ordinal].begun) == m->number;
	return result;
}

static enum gpc_status attempt_implicit(struct gpc_rescue *rescue)
{
	return gpc_status_from_device((int)make_measured(rescue->arg));
}

/* What the call may take: of a context what those before took. */
static uint64_t assume(const struct gpc_device *device, enum gpucache_kind kind)
{
	uint64_t bytes = GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_CONTEXT]);
	uint32_t n = gpc_contexts_count(device);

	if (kind != GPUCACHE_KIND_CONTEXT)
		return ASSUMED_MODULE;
	return bytes && n ? bytes / n : ASSUMED_CONTEXT;
}

/* Makes the call, and repeats it after each rung of the ladder if memory was short. */
static CUresult make_or_rescue(struct measurement *m, const struct gpc_request *request)
{
	struct gpc_context *climber = m->asker;
	uint64_t assumed = assume(m->device, m->call->kind);
	struct gpc_rescue rescue = {
		.context = climber,
		.kind = m->call->kind,
		.size = assumed,
		.rounded = assumed,
		.request = *request,
		.attempt = attempt_implicit,
		.arg = m,
	};
	CUresult result = make_measured(m);
	enum gpc_status st = gpc_status_from_device((int)result);

	if (climber && st == GPC_DEVICE_NO_MEMORY) {
		st = gpc_rescue_run(&rescue, st);
		result = (CUresult)gpc_status_to_device(st);
	}
	if (climber && !result)
		gpc_rescue_succeeded(climber->device, (uint8_t)m->call->kind, assumed);
	return result;
}

/* A limit has one key, however often it is set: an address inside the driver's object of the context. */
static uint64_t key_of(const struct gpc_implicit_call *call, const struct gpc_context *owner)
{
	return call->is_limit ? (uint64_t)(uintptr_t)owner->handle + 1 + call->ret_handle
			      : call->ret_handle;
}

static void book(
	const struct measurement *m, struct gpc_context *owner, struct gpc_request *request)
{
	const struct gpc_implicit_call *call = m->call;
	struct gpc_passed_call entry = { .kind = call->kind, .ret_address = key_of(call, owner) };
	struct gpc_tracked *old = gpc_runtime_forget(entry.ret_address);
	bool is_again = old && call->kind == GPUCACHE_KIND_CONTEXT && !call->is_limit;
	int64_t change = m->is_known ? m->change : 0;

	if (is_again || (m->is_known && change == 0)) {
		/* Keep the old entry: two threads made the first retain at once, or the limit took no memory. */
		gpc_runtime_forgotten(old, CUDA_ERROR_UNKNOWN);
		return;
	}
	/* A measured change of a limit adds to its old size.  After an unmeasured change the size is unknown. */
	if (old && m->is_known && call->is_limit)
		change += (int64_t)gpc_track_size(old);
	gpc_runtime_forgotten(old, CUDA_SUCCESS);
	if (change <= 0)
		return;
	entry.size = (size_t)change;
	entry.ret_size = (uint64_t)change;
	request->size = (uint64_t)change;
	gpc_track_remember(owner, &entry, request);
}

CUresult gpc_runtime_implicit(struct gpc_implicit_call *call)
{
	bool is_new_context = call->device >= 0;
	struct gpc_context *owner = gpc_context_current();
	struct gpc_request request = gpc_runtime_request(0); /* book() sets the size */
	struct measurement m = { .call = call, .asker = owner };
	CUresult result;

	if (is_new_context)
		m.device = gpc_device_at(call->device);
	else if (owner)
		m.device = owner->device;
	if (!m.device)
		return call->make(call);
	if (is_new_context)
		m.asker = gpc_context_on(m.device);
	m.number = begin(m.device->ordinal, &m.is_alone);
	result = make_or_rescue(&m, &request);
	gpc_runtime_answered(result);
	if (!result && is_new_context) {
		const CUcontext handle = (CUcontext)(uintptr_t)call->ret_handle;
		const struct gpc_context *known = gpc_context_find_own(handle);

		/* The driver has reused the handle of an ending context: wait until that context is forgotten. */
		if (known && atomic_load(&known->is_ending))
			gpc_context_await_end();
		owner = gpc_context_visit(handle);
	}
	if (!result && owner)
		book(&m, owner, &request);
	end(m.device->ordinal);
	if (!result && owner)
		gpc_observe_device(owner, is_new_context);
	return result;
}
