/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the driver takes for itself while it answers another call: contexts, modules.
 *
 * Nobody says how much, so it is measured: what the device lost around the call, less what our own
 * books gained meanwhile.
 *
 *      bytes taken in all, our books  --call-->  bytes taken in all, our books
 *                     '------ the change between the differences ------'
 *
 * The first context of a device cannot be asked before it exists; then NVML is, before and after.
 * Where nobody answers, nothing is booked: those bytes stay in "this process, outside our books".
 *
 * Calls that overlap share one base, the look before the first of them.  Whoever ends books all that
 * the device lost since then and that is in no books yet, so the sum is right at each end; which of
 * the calls took it is not known.
 *
 *      base --A begins----B begins----B ends: books A's and B's bytes so far----A ends: the rest
 *
 * Bookings are numbered: a look that has one of them in between is made again.
 *
 * What cannot be told apart from the call: what other processes take or give back during it, and what
 * another thread's allocation changed on the device and has not yet changed in the books.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "oom/neighbours.h"
#include "runtime/internal.h"
#include "stats/counters.h"

/*
 * How much the ladder makes free for a call that names no size: contexts of current GPUs take 300
 * to 600 MiB, modules of the large libraries some tens.  Its fourth rung gives back all there is.
 */
#define ASSUMED_CONTEXT (512 * GPC_MIB)
#define ASSUMED_MODULE  (64 * GPC_MIB)

/*
 * Looks that other threads spoil before it is given up: a look is some 10 us, a call of these is
 * mostly more than a millisecond.
 */
#define MAX_LOOKS 64

/* A look at the device; GPUCACHE_UNKNOWN where nobody said. */
struct look {
	bool is_sound; /* our books stood still meanwhile */
	uint64_t driver_free;
	uint64_t process; /* NVML's figure for this process */
	uint64_t used;    /* and for all */
	uint64_t books;
	uint32_t number;
};

/* The calls that are in flight on one device. */
struct window {
	uint32_t n;
	struct look base;
};

static struct {
	_Atomic uint32_t number;    /* of the ends of such calls, and of unloadings */
	_Atomic uint32_t unloading; /* calls that give back what is in the books */

	/* Lock: lock. */
	struct window windows[GPC_MAX_DEVICES];

	struct gpc_lock lock;
} bookings = { .lock = GPC_LOCK_INIT(GPC_RANK_IMPLICIT) };

static uint64_t books_of(const struct gpc_device *device)
{
	return GPC_DEVICE_SUM(device, reserved_bytes) + GPC_DEVICE_SUM(device, direct_bytes);
}

static void ask(const struct gpc_device *device, struct gpc_context *asker, struct look *ret_look)
{
	struct gpc_neighbours neighbours;
	uint64_t total = 0;

	ret_look->driver_free = GPUCACHE_UNKNOWN;
	ret_look->process = GPUCACHE_UNKNOWN;
	ret_look->used = GPUCACHE_UNKNOWN;
	if (asker) {
		(void)!asker->drv.base.ops->mem_info(
			&asker->drv.base, &ret_look->driver_free, &total);
		return;
	}
	gpc_runtime_ask_neighbours(device, &neighbours);
	ret_look->process = neighbours.process_bytes;
	ret_look->used = neighbours.used_bytes;
}

static void look(const struct gpc_device *device, struct gpc_context *asker, struct look *ret_look)
{
	bool is_quiet = atomic_load(&bookings.unloading) == 0;

	ret_look->number = atomic_load(&bookings.number);
	ret_look->books = books_of(device);
	ask(device, asker, ret_look);
	ret_look->is_sound = is_quiet && ret_look->books == books_of(device);
}

/* Nothing went into our books, or out of them, since that look began.  Lock: bookings.lock. */
static bool is_current_locked(const struct look *look)
{
	return look->is_sound && look->number == atomic_load(&bookings.number);
}

/* How many bytes more were taken outside our books; false: that cannot be known. */
static bool find_change(const struct look *before, const struct look *after, int64_t *ret_change)
{
	int64_t taken;

	if (before->driver_free != GPUCACHE_UNKNOWN && after->driver_free != GPUCACHE_UNKNOWN)
		taken = (int64_t)(before->driver_free - after->driver_free);
	else if (after->process != GPUCACHE_UNKNOWN)
		/* A process without a context is not in NVML's list. */
		taken = (int64_t)(after->process -
				  (before->process == GPUCACHE_UNKNOWN ? 0 : before->process));
	else if (before->used != GPUCACHE_UNKNOWN && after->used != GPUCACHE_UNKNOWN)
		taken = (int64_t)(after->used - before->used);
	else
		return false;
	*ret_change = taken - (int64_t)(after->books - before->books);
	return true;
}

/*
 * The change goes into the books of `owner`.  A limit is known there by an address inside the
 * context's object, at which nothing else can be.
 */
static void enter_books(struct gpc_context *owner, const struct gpc_implicit_call *call,
	int64_t change, struct gpc_request *request)
{
	struct gpc_passed_call entry = { .kind = call->kind, .ret_address = call->ret_handle };
	struct gpc_tracked *old = NULL;

	if (call->is_limit) {
		entry.ret_address += (uint64_t)(uintptr_t)owner->handle + 1;
		old = gpc_runtime_forget(entry.ret_address);
	}
	if (old)
		change += (int64_t)gpc_track_size(old);
	gpc_runtime_forgotten(old, CUDA_SUCCESS);
	if (change <= 0)
		return;
	entry.size = (size_t)change;
	entry.ret_size = (uint64_t)change;
	request->size = (uint64_t)change;
	gpc_track_remember(owner, &entry, request);
}

/* Joins the calls in flight, or begins with `before`; false: that look is worth nothing. */
static bool try_begin(struct window *window, const struct look *before)
{
	bool is_in;

	gpc_lock_take(&bookings.lock);
	is_in = window->n > 0 || (before && is_current_locked(before));
	if (is_in && window->n++ == 0)
		window->base = *before;
	gpc_lock_release(&bookings.lock);
	return is_in;
}

static bool begin(struct window *window, const struct gpc_device *device, struct gpc_context *asker)
{
	bool is_in = try_begin(window, NULL);

	for (unsigned i = 0; i < MAX_LOOKS && !is_in; i++) {
		struct look before;

		look(device, asker, &before);
		is_in = try_begin(window, &before);
	}
	return is_in;
}

/* Books what is in no books yet, for `owner` where that is not NULL; false: `after` is worth nothing. */
static bool try_end(struct window *window, struct gpc_context *owner,
	const struct gpc_implicit_call *call, const struct look *after, struct gpc_request *request)
{
	int64_t change;
	bool is_out;

	gpc_lock_take(&bookings.lock);
	is_out = !owner || is_current_locked(after);
	if (is_out && owner && find_change(&window->base, after, &change))
		enter_books(owner, call, change, request);
	if (is_out) {
		window->n--;
		atomic_fetch_add(&bookings.number, 1);
	}
	gpc_lock_release(&bookings.lock);
	return is_out;
}

static void end(struct window *window, struct gpc_context *owner, struct gpc_context *asker,
	const struct gpc_implicit_call *call, struct gpc_request *request)
{
	bool is_out = false;

	for (unsigned i = 0; i < MAX_LOOKS && owner && !is_out; i++) {
		struct look after;

		look(owner->device, asker, &after);
		is_out = try_end(window, owner, call, &after, request);
	}
	if (!is_out)
		(void)try_end(window, NULL, call, NULL, request);
}

struct gpc_tracked *gpc_runtime_begin_unload(uint64_t handle)
{
	atomic_fetch_add(&bookings.unloading, 1);
	atomic_fetch_add(&bookings.number, 1);
	return gpc_runtime_forget(handle);
}

void gpc_runtime_end_unload(struct gpc_tracked *tracked, CUresult result)
{
	gpc_runtime_forgotten(tracked, result);
	atomic_fetch_add(&bookings.number, 1);
	atomic_fetch_sub(&bookings.unloading, 1);
}

static enum gpc_status attempt_implicit(void *arg)
{
	struct gpc_implicit_call *call = arg;

	return gpc_status_from_device((int)call->make(call));
}

/* The call, and again where the ladder made room. */
static CUresult make_or_rescue(struct gpc_implicit_call *call, struct gpc_context *climber,
	const struct gpc_request *request)
{
	uint64_t assumed = call->kind == GPUCACHE_KIND_CONTEXT ? ASSUMED_CONTEXT : ASSUMED_MODULE;
	struct gpc_rescue rescue = {
		.context = climber,
		.kind = call->kind,
		.size = assumed,
		.rounded = assumed,
		.request = *request,
		.attempt = attempt_implicit,
		.arg = call,
	};
	CUresult result = call->make(call);
	enum gpc_status st = gpc_status_from_device((int)result);

	if (climber && st == GPC_DEVICE_NO_MEMORY) {
		st = gpc_rescue_run(&rescue, st);
		result = (CUresult)gpc_status_to_device(st);
	}
	if (climber && !result)
		gpc_rescue_succeeded(climber->device, assumed);
	return result;
}

CUresult gpc_runtime_implicit(struct gpc_implicit_call *call)
{
	bool is_new_context = call->device >= 0;
	bool is_measured;
	struct gpc_context *current = gpc_context_current();
	struct gpc_context *asker = current;
	struct gpc_context *owner = current;
	struct gpc_device *device = current ? current->device : NULL;
	struct gpc_request request = {
		.now_ns = gpc_clock_monotonic_ns(),
		.mark = gpc_runtime_stack(),
		.thread = gpc_thread_id(),
	};
	struct window *window;
	CUresult result;

	if (is_new_context) {
		if ((uint32_t)call->device >= gpc_runtime.n_devices)
			return call->make(call);
		device = &gpc_runtime.devices[call->device];
		asker = gpc_context_on(device);
		owner = NULL;
	}
	if (!device)
		return call->make(call);
	window = &bookings.windows[device->ordinal];
	is_measured = begin(window, device, asker);
	result = make_or_rescue(call, asker, &request);
	gpc_runtime_heard(result);
	if (!result && is_new_context)
		owner = gpc_context_visit((CUcontext)(uintptr_t)call->ret_handle);
	if (is_measured)
		end(window, result ? NULL : owner, asker, call, &request);
	if (!result && owner)
		gpc_observe_device(owner, is_new_context);
	return result;
}
