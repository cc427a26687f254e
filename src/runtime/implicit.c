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
 * the device lost since then and that is in no books yet, so the sum is right at each end.
 *
 *      base --A begins----B begins----B ends: books A's and B's bytes so far----A ends: the others
 *
 * Which of the modules took it is not known then.  So it goes to the rest, one entry a context, and
 * what an unloading gives back beyond what was booked under its handle comes from there.
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

/* What happens on one device. */
struct window {
	_Atomic uint32_t number;    /* of the ends of such calls, and of unloadings */
	_Atomic uint32_t unloading; /* calls that give back what is in the books */

	/* Lock: bookings.lock.  The calls that are in flight. */
	uint32_t n;
	struct look base;
	bool is_shared;    /* more than one at a time, so far */
	bool is_owed;      /* one that took memory left it to the others to book it */
	uint64_t unloaded; /* bytes that unloadings took out of the books */
};

static struct {
	struct window windows[GPC_MAX_DEVICES];
	struct gpc_lock lock;
} bookings = { .lock = GPC_LOCK_INIT(GPC_RANK_IMPLICIT) };

static struct window *window_of(const struct gpc_device *device)
{
	return &bookings.windows[device->ordinal];
}

static uint64_t books_of(const struct gpc_device *device)
{
	return GPC_DEVICE_SUM(device, reserved_bytes) + GPC_DEVICE_SUM(device, direct_bytes);
}

/* False: another thread is asking NVML. */
static bool ask(const struct gpc_device *device, struct gpc_context *asker, struct look *ret_look)
{
	struct gpc_neighbours neighbours;
	uint64_t total = 0;
	bool is_told;

	ret_look->driver_free = GPUCACHE_UNKNOWN;
	ret_look->process = GPUCACHE_UNKNOWN;
	ret_look->used = GPUCACHE_UNKNOWN;
	if (asker) {
		(void)!asker->drv.base.ops->mem_info(
			&asker->drv.base, &ret_look->driver_free, &total);
		return true;
	}
	is_told = gpc_runtime_ask_neighbours(device, &neighbours);
	ret_look->process = neighbours.process_bytes;
	ret_look->used = neighbours.used_bytes;
	return is_told;
}

static void look(const struct gpc_device *device, struct gpc_context *asker, struct look *ret_look)
{
	const struct window *window = window_of(device);
	bool is_quiet;
	bool is_told;

	ret_look->number = atomic_load(&window->number); /* first: an unloading raises it last */
	is_quiet = atomic_load(&window->unloading) == 0;
	ret_look->books = books_of(device);
	is_told = ask(device, asker, ret_look);
	ret_look->is_sound = is_quiet && is_told && ret_look->books == books_of(device);
}

/* Nothing went into our books, or out of them, since that look began.  Lock: bookings.lock. */
static bool is_current_locked(const struct window *window, const struct look *look)
{
	return look->is_sound && look->number == atomic_load(&window->number);
}

/* What NVML says of this process; one without a context is not in its list. */
static uint64_t process_of(const struct look *look)
{
	return look->process == GPUCACHE_UNKNOWN ? 0 : look->process;
}

/* How many bytes more were taken outside our books; false: that cannot be known. */
static bool find_change(const struct look *before, const struct look *after, int64_t *ret_change)
{
	bool is_by_driver = before->driver_free != GPUCACHE_UNKNOWN;
	int64_t taken;

	/* The driver and NVML count differently. */
	if (is_by_driver != (after->driver_free != GPUCACHE_UNKNOWN))
		return false;
	if (is_by_driver)
		taken = (int64_t)(before->driver_free - after->driver_free);
	else if (after->process != GPUCACHE_UNKNOWN)
		taken = (int64_t)(after->process - process_of(before));
	else if (before->used != GPUCACHE_UNKNOWN && after->used != GPUCACHE_UNKNOWN)
		taken = (int64_t)(after->used - before->used);
	else
		return false;
	*ret_change = taken - (int64_t)(after->books - before->books);
	return true;
}

/* By what limits and the rest are known: addresses inside a context's object, where nothing else is. */
enum {
	THE_REST = 1,
	THE_LIMITS, /* and the number of the limit */
};

/* Where a call's bytes go; without an owner they stay outside the books. */
struct booking {
	struct gpc_context *owner;
	enum gpucache_kind kind;
	uint64_t key;
	bool adds;    /* to what was booked under the key before, or takes away from it */
	bool is_idle; /* the call took nothing itself: it was an unloading, or failed */
	bool has_failed;
};

static uint64_t key_in(const struct gpc_context *owner, uint64_t number)
{
	return (uint64_t)(uintptr_t)owner->handle + number;
}

static struct booking rest_of(struct gpc_context *owner)
{
	return (struct booking){ .owner = owner,
		.kind = GPUCACHE_KIND_MODULE,
		.key = key_in(owner, THE_REST),
		.adds = true };
}

/* A call that failed looks only for others, who may have left what they took to it. */
static struct booking nothing_of(struct gpc_context *asker)
{
	struct booking booking = { .owner = NULL };

	if (asker)
		booking = rest_of(asker);
	booking.is_idle = true;
	booking.has_failed = true;
	return booking;
}

static struct booking booking_of(struct gpc_context *owner, const struct gpc_implicit_call *call)
{
	struct booking booking = {
		.owner = owner,
		.kind = call->kind,
		.key = call->ret_handle,
		/* A limit is set again; a context that two threads retain first at once is one. */
		.adds = call->kind == GPUCACHE_KIND_CONTEXT,
	};

	if (owner && call->is_limit)
		booking.key = key_in(owner, THE_LIMITS + call->ret_handle);
	return booking;
}

static void enter_books(const struct booking *booking, int64_t change, struct gpc_request *request)
{
	struct gpc_passed_call entry = { .kind = booking->kind, .ret_address = booking->key };
	struct gpc_tracked *old = booking->adds ? gpc_runtime_forget(booking->key) : NULL;

	if (old)
		change += (int64_t)gpc_track_size(old);
	gpc_runtime_forgotten(old, CUDA_SUCCESS);
	if (change <= 0)
		return;
	entry.size = (size_t)change;
	entry.ret_size = (uint64_t)change;
	request->size = (uint64_t)change;
	gpc_track_remember(booking->owner, &entry, request);
}

/* Joins the calls in flight, or begins with `before`; false: that look is worth nothing. */
static bool try_begin(struct window *window, const struct look *before)
{
	bool is_in;

	gpc_lock_take(&bookings.lock);
	if (window->n > 0) {
		window->n++;
		window->is_shared = true;
		is_in = true;
	} else {
		is_in = before && is_current_locked(window, before);
		if (is_in) {
			window->n = 1;
			window->base = *before;
			window->is_shared = false;
			window->is_owed = false;
			window->unloaded = 0;
		}
	}
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

/*
 * Books what is in no books yet, where there is an owner that lives; false: `after` is worth
 * nothing.
 */
static bool try_end(struct window *window, const struct booking *booking, const struct look *after,
	struct gpc_request *request)
{
	struct booking rest;
	int64_t change;
	bool is_out;

	gpc_lock_take(&bookings.lock);
	is_out = !booking->owner || is_current_locked(window, after);
	if (is_out && booking->owner && !atomic_load(&booking->owner->is_gone) &&
		find_change(&window->base, after, &change)) {
		/* What others took meanwhile is not what an unloading left behind. */
		if (booking->is_idle && !window->is_owed && change > (int64_t)window->unloaded)
			change = (int64_t)window->unloaded;
		rest = rest_of(booking->owner);
		enter_books(booking->kind == GPUCACHE_KIND_MODULE && window->is_shared ? &rest
										       : booking,
			change, request);
	}
	if (is_out) {
		window->n--;
		atomic_fetch_add(&window->number, 1);
	}
	gpc_lock_release(&bookings.lock);
	return is_out;
}

/*
 * True where others are still in flight: the last of them does it for all; and where there never was
 * another, for a call that failed.
 */
static bool leave_to_others(struct window *window, const struct booking *booking)
{
	bool is_out;

	gpc_lock_take(&bookings.lock);
	is_out = window->n > 1 || (booking->has_failed && !window->is_shared);
	window->n -= is_out;
	window->is_owed |= is_out && !booking->is_idle;
	gpc_lock_release(&bookings.lock);
	return is_out;
}

/* An idle call has nothing of its own to book, and while one unloads no look is sound. */
static void end(struct window *window, const struct booking *booking, struct gpc_context *asker,
	struct gpc_request *request)
{
	bool is_out = false;

	for (unsigned i = 0; i < 2 * MAX_LOOKS && booking->owner && !is_out; i++) {
		struct look after;

		if ((booking->is_idle || i >= MAX_LOOKS) && leave_to_others(window, booking))
			return;
		look(booking->owner->device, asker, &after);
		is_out = try_end(window, booking, &after, request);
	}
	if (!is_out)
		(void)try_end(window, &(struct booking){ .owner = NULL }, NULL, request);
}

static void count_unloaded(struct window *window, uint64_t bytes)
{
	gpc_lock_take(&bookings.lock);
	window->unloaded += bytes;
	gpc_lock_release(&bookings.lock);
}

/* From here on, and until the other: our books and the device change, one after the other. */
static void disturb(struct window *window)
{
	atomic_fetch_add(&window->unloading, 1);
	atomic_fetch_add(&window->number, 1);
}

static void settle(struct window *window)
{
	atomic_fetch_add(&window->number, 1);
	atomic_fetch_sub(&window->unloading, 1);
}

struct gpc_unload gpc_runtime_begin_unload(uint64_t handle)
{
	struct gpc_context *context = gpc_context_current();
	struct gpc_unload unload = { .context = context };

	if (context) {
		struct window *window = window_of(context->device);

		unload.is_measured = begin(window, context->device, context);
		disturb(window);
	}
	unload.tracked = gpc_runtime_forget(handle);
	return unload;
}

void gpc_runtime_end_unload(const struct gpc_unload *unload, CUresult result)
{
	struct gpc_context *context = unload->context;
	uint64_t size = unload->tracked && !result ? gpc_track_size(unload->tracked) : 0;
	struct gpc_request request = { .now_ns = gpc_clock_monotonic_ns(),
		.thread = gpc_thread_id() };
	struct booking rest;
	struct window *window;

	gpc_runtime_forgotten(unload->tracked, result);
	if (!context)
		return;
	window = window_of(context->device);
	settle(window);
	if (!unload->is_measured)
		return;
	rest = rest_of(context);
	rest.is_idle = true;
	request.mark = gpc_runtime_stack();
	count_unloaded(window, size);
	end(window, &rest, context, &request);
}

static struct window *window_of_number(int device)
{
	return device >= 0 && (uint32_t)device < gpc_runtime.n_devices ? &bookings.windows[device]
								       : NULL;
}

void gpc_runtime_begin_closing_on(int device)
{
	struct window *window = window_of_number(device);

	if (window)
		disturb(window);
}

int gpc_runtime_begin_closing(CUcontext handle)
{
	const struct gpc_context *context = gpc_context_find(handle);
	int device = context ? (int)context->device->ordinal : -1;

	gpc_runtime_begin_closing_on(device);
	return device;
}

void gpc_runtime_end_closing(int device)
{
	struct window *window = window_of_number(device);

	if (window)
		settle(window);
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
	struct booking booking;
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
	window = window_of(device);
	is_measured = begin(window, device, asker);
	result = make_or_rescue(call, asker, &request);
	gpc_runtime_heard(result);
	if (!result && is_new_context)
		owner = gpc_context_visit((CUcontext)(uintptr_t)call->ret_handle);
	booking = result ? nothing_of(asker) : booking_of(owner, call);
	if (is_measured)
		end(window, &booking, asker, &request);
	if (!result && owner)
		gpc_observe_device(owner, is_new_context);
	return result;
}
