/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of all spilled memory are reserved before the driver is asked, and given back if it refuses.  What the host has
 * left is read at each request that may be spilled, and for advice at most every OFFER_STEP_NS: /proc and the control
 * groups cost some 100 us.  NVML, which is asked at most every ASK_STEP_NS, costs milliseconds.
 */
#include "runtime/rescue/spill.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/host_memory.h"
#include "base/log.h"
#include "base/own_stack.h"
#include "base/thread.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/track.h"
#include "runtime/process/callers.h"
#include "runtime/rescue/look.h"
#include "stack/named.h"
#include "why/why.h"

#define ASK_STEP_NS   UINT64_C(100000000)
#define OFFER_STEP_NS UINT64_C(1000000000)
#define MAX_SITES     8

enum reason {
	NO_FAULTS,
	AT_MOST,
	HOST_SHORT,
	OTHERS_SHORT,
	PHYSICAL,
	N_REASONS,
};

static const char *const reasons[N_REASONS] = {
	[NO_FAULTS] =
		"this device or driver cannot move managed memory on demand "
		"(concurrentManagedAccess is 0)",
	[AT_MOST] = "more than that would be in host memory",
	[HOST_SHORT] =
		"less than 1/8 of the memory of this host, or of its control group, would stay "
		"free",
	[OTHERS_SHORT] = "other processes hold more than 1/16 of the device and would run short",
	[PHYSICAL] =
		"physical memory (cuMemCreate) cannot be managed; for PyTorch, set "
		"expandable_segments:False",
};

struct site {
	uint32_t stack;
	uint64_t bytes; /* ever spilled for it */
};

static struct {
	_Atomic uint64_t most;       /* bytes, from the option; fixed after the start */
	_Atomic uint64_t bytes;      /* spilled now, and about to be */
	_Atomic uint64_t room;       /* gpc_host_memory.room_bytes when nothing was spilled last */
	_Atomic uint32_t said;       /* bit i: reason i was said */
	_Atomic uint64_t offer;      /* what gpc_spill_offer found last */
	_Atomic uint64_t offered_ns; /* when; 0: never */
	struct {
		_Atomic uint64_t asked_ns; /* when NVML was asked last; 0: never */
		_Atomic bool others_hold;  /* what it said */
	} devices[GPC_MAX_DEVICES];

	/* Lock: gpc_runtime.lock. */
	uint64_t first_ns;
	uint64_t peak;
	uint64_t n;
	struct site sites[MAX_SITES];
} spills;

static void read_host(void *arg)
{
	*(struct gpc_host_memory *)arg = gpc_host_memory_read("");
}

static struct gpc_host_memory ask_host(void)
{
	struct gpc_host_memory memory;

	gpc_own_stack_run(read_host, &memory);
	return memory;
}

static uint64_t auto_of(struct gpc_host_memory memory)
{
	return memory.free_bytes / 2;
}

void gpc_spill_start(void)
{
	uint64_t most = gpc_runtime.config.spill;

	if (most == GPC_SIZE_AUTO)
		most = auto_of(ask_host());
	atomic_store(&spills.most, most);
}

static void add_setting(struct gpc_text *text)
{
	gpc_text_add_amounts(text, "spill:@", atomic_load(&spills.most));
}

static enum gpc_status refuse(const struct gpc_rescue *rescue, enum reason reason)
{
	GPC_TEXT(setting, 32);

	if (atomic_fetch_or(&spills.said, 1u << reason) >> reason & 1)
		return GPC_DEVICE_NO_MEMORY;
	add_setting(&setting);
	gpc_log("GPU %u: %s does not apply: %s", rescue->context->device->ordinal, setting.buf,
		reasons[reason]);
	return GPC_DEVICE_NO_MEMORY;
}

/* False: a caller with a cache of its own may give something back, and then ask again. */
static bool is_last_attempt(const struct gpc_rescue *rescue)
{
	bool is_caching = rescue->request.is_exact ||
			  (gpc_runtime.config.cache != GPC_CACHE_AUTO && gpc_caller_is_caching());

	return !is_caching || gpc_thread.refused_size == rescue->size ||
	       gpc_captures_is_any_open(&gpc_runtime.heap.captures);
}

static bool can_fault(const struct gpc_device *device)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	int value = 0;

	return fns->cuMemAllocManaged && fns->cuDeviceGetAttribute &&
	       !fns->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
		       (CUdevice)device->ordinal) &&
	       value;
}

/* If another thread is asking NVML, its answer will count. */
static void ask_others(void *arg)
{
	const struct gpc_device *device = arg;
	struct gpc_neighbours neighbours;

	if (!gpc_runtime_ask_neighbours(device, &neighbours))
		return;
	atomic_store(&spills.devices[device->ordinal].others_hold,
		neighbours.others_bytes != GPUCACHE_UNKNOWN &&
			neighbours.others_bytes > device->known.total_bytes / GPC_SPILL_OTHERS);
	atomic_store(&spills.devices[device->ordinal].asked_ns, gpc_clock_monotonic_ns());
}

static bool others_hold(struct gpc_device *device)
{
	uint64_t asked_ns = atomic_load(&spills.devices[device->ordinal].asked_ns);

	if (!asked_ns || gpc_clock_monotonic_ns() >= asked_ns + ASK_STEP_NS)
		gpc_own_stack_run(ask_others, device);
	return atomic_load(&spills.devices[device->ordinal].others_hold);
}

/*
 * Managed memory that nobody has touched is on neither side yet.  So the host must have room for the request as it is now,
 * and have had room, before anything was spilled, for all of it together.
 */
static bool host_has_room(uint64_t size, uint64_t spilled_before)
{
	uint64_t room = ask_host().room_bytes;

	if (spilled_before == 0)
		atomic_store(&spills.room, room);
	return size <= room && gpc_bytes_add(spilled_before, size) <= atomic_load(&spills.room);
}

uint64_t gpc_spill_offer(const struct gpc_device *device)
{
	uint64_t offered_ns;
	uint64_t now_ns;

	if (gpc_spill_is_on() || !can_fault(device))
		return 0;
	offered_ns = atomic_load(&spills.offered_ns);
	now_ns = gpc_clock_monotonic_ns();
	/* Threads that read at the same time store much the same. */
	if (!offered_ns || now_ns >= offered_ns + OFFER_STEP_NS) {
		struct gpc_host_memory memory = ask_host();

		atomic_store(&spills.offer, gpc_smaller(memory.room_bytes, auto_of(memory)));
		atomic_store(&spills.offered_ns, now_ns);
	}
	return atomic_load(&spills.offer);
}

/* Makes the driver's calls, which no capture of the program is to forbid.  Advice that fails changes only the speed. */
static enum gpc_status allocate(struct gpc_context *context, uint64_t size, CUdeviceptr *ret_ptr)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_relaxed = !fns->cuThreadExchangeStreamCaptureMode(&mode);
	enum gpc_status st = gpc_cuda_driver_note(
		&context->drv, fns->cuMemAllocManaged(ret_ptr, size, CU_MEM_ATTACH_GLOBAL));

	if (!st && fns->cuMemAdvise)
		(void)gpc_cuda_driver_note(&context->drv,
			fns->cuMemAdvise(*ret_ptr, size, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
				(CUdevice)context->device->ordinal));
	if (is_relaxed)
		(void)!fns->cuThreadExchangeStreamCaptureMode(&mode);
	return st;
}

/* Returns true for the first one. */
static bool count(const struct gpc_rescue *rescue, uint64_t size)
{
	struct site *least = &spills.sites[0];
	bool is_first;

	gpc_lock_take(&gpc_runtime.lock);
	is_first = spills.n++ == 0;
	if (is_first)
		spills.first_ns = gpc_clock_monotonic_ns();
	spills.peak = gpc_larger(spills.peak, atomic_load(&spills.bytes));
	for (struct site *site = spills.sites; site < spills.sites + MAX_SITES; site++) {
		if (site->stack == rescue->request.mark) {
			least = site;
			break;
		}
		if (site->bytes < least->bytes)
			least = site;
	}
	if (least->stack != rescue->request.mark)
		*least = (struct site){ .stack = rescue->request.mark };
	least->bytes += size;
	gpc_lock_release(&gpc_runtime.lock);
	return is_first;
}

struct line {
	uint32_t stack;
	const char *before; /* the site, if it is known */
	struct gpc_text *text;
};

static void add_site(void *arg)
{
	const struct line *line = arg;
	char site[96];

	if (gpc_runtime.has_stacks && line->stack &&
		gpc_stack_describe(&gpc_runtime.stacks, line->stack, site, sizeof site))
		gpc_text_add(line->text, "%s%s", line->before, site);
}

static void say_first(const struct gpc_rescue *rescue, uint64_t size)
{
	GPC_TEXT(text, 256);

	gpc_text_add_amounts(&text, "@", size);
	gpc_own_stack_run(add_site, &(struct line){ rescue->request.mark, " for ", &text });
	gpc_text_add(&text, " went to host memory (");
	add_setting(&text);
	gpc_log("GPU %u is full: %s); the program goes on, slower",
		rescue->context->device->ordinal, text.buf);
}

enum gpc_status gpc_spill_take(struct gpc_rescue *rescue)
{
	struct gpc_context *context = rescue->context;
	struct gpc_passed_call call = { .kind = GPUCACHE_KIND_SPILLED, .size = rescue->size };
	CUdeviceptr ptr = 0;
	uint64_t before;
	enum gpc_status st;

	if (rescue->kind == GPUCACHE_KIND_PHYSICAL)
		return refuse(rescue, PHYSICAL);
	if (rescue->kind != GPUCACHE_KIND_DEVICE || rescue->size > GPC_SIZE_MAX ||
		!is_last_attempt(rescue))
		return GPC_DEVICE_NO_MEMORY;
	call.ret_size = gpc_round_up(rescue->size, GPC_SPILL_GRAIN);
	if (!can_fault(context->device))
		return refuse(rescue, NO_FAULTS);
	before = atomic_fetch_add(&spills.bytes, call.ret_size);
	if (gpc_bytes_add(before, call.ret_size) > atomic_load(&spills.most))
		st = refuse(rescue, AT_MOST);
	else if (!host_has_room(call.ret_size, before))
		st = refuse(rescue, HOST_SHORT);
	else if (others_hold(context->device))
		st = refuse(rescue, OTHERS_SHORT);
	else
		st = allocate(context, rescue->size, &ptr);
	if (st) {
		gpc_spill_returned(call.ret_size);
		/* Of the driver's errors the program expects those of cuMemAlloc. */
		return atomic_load(&context->drv.sticky) ? st : GPC_DEVICE_NO_MEMORY;
	}
	call.ret_address = ptr;
	if (count(rescue, call.ret_size))
		say_first(rescue, call.ret_size);
	gpc_track_remember(context, &call, &rescue->request);
	rescue->spilled = ptr;
	return GPC_OK;
}

void gpc_spill_refused(const struct gpc_rescue *rescue)
{
	gpc_thread.refused_size = rescue->kind == GPUCACHE_KIND_DEVICE ? rescue->size : 0;
}

void gpc_spill_served(void)
{
	gpc_thread.refused_size = 0;
}

void gpc_spill_returned(uint64_t size)
{
	atomic_fetch_sub(&spills.bytes, size);
}

void gpc_spill_say_end(void)
{
	const struct site *most = &spills.sites[0];
	GPC_TEXT(text, 320);

	if (!spills.n)
		return;
	for (const struct site *site = spills.sites; site < spills.sites + MAX_SITES; site++)
		if (site->bytes > most->bytes)
			most = site;
	gpc_text_add_amounts(&text, "up to @", spills.peak);
	gpc_text_add(&text, " lay in host memory, in %llu requests, since ",
		(unsigned long long)spills.n);
	gpc_text_add_age(&text, gpc_clock_monotonic_ns() - spills.first_ns);
	gpc_text_add(&text, " before the end");
	add_site(&(struct line){ most->stack, "; most for ", &text });
	gpc_log("spill: %s", text.buf);
}
