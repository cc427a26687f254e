/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed cudaMalloc need not be the program's last: frameworks catch it, free their caches and retry.  So a failure
 * is recorded at once, and kept: it is why the process ends, unless a request of that size has succeeded since.
 */
#include "runtime/rescue/failure.h"

#include "base/clock.h"
#include "base/own_stack.h"
#include "base/thread.h"
#include "model/counters.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/state.h"
#include "runtime/rescue/gather.h"
#include "runtime/rescue/notice.h"

struct failure {
	struct gpc_gathered gathered;
	struct gpc_notice notice;
	uint64_t asked; /* the size before correct_size; a success of this size settles it */
	uint64_t kept_ns;
	bool is_open; /* the program has not recovered from it */
	bool is_said;
};

/*
 * For each device, the last failure and the largest one of the other threads, because a success of one thread does not
 * show that the others have recovered.  Lock: runtime.lock.
 */
static struct {
	struct failure last[GPC_MAX_DEVICES];
	struct failure other[GPC_MAX_DEVICES];
	uint64_t last_said_ns;
} failures;

#define SAY_STEP_NS (UINT64_C(60) * 1000000000) /* at most one text a minute before the end */

static bool is_on_host(const struct failure *failure)
{
	return gpucache_kind_place(failure->gathered.oom.kind) == GPUCACHE_ON_HOST;
}

static bool is_to_be_said(const struct failure *failure)
{
	return failure->is_open && !failure->is_said && failure->notice.len > 0;
}

/* The failure that would be why the process ends now; NULL: none that has a text yet. */
static const struct failure *fatal_of(uint32_t device)
{
	const struct failure *last = &failures.last[device];
	const struct failure *other = &failures.other[device];

	if (is_to_be_said(last))
		return last;
	/* If the last one was printed, that of another thread may be the same. */
	return is_to_be_said(other) && !(last->is_said && other->asked <= last->asked) ? other
										       : NULL;
}

static void publish_locked(const struct gpc_device *device)
{
	const struct failure *fatal = fatal_of(device->ordinal);

	gpc_notice_publish(device, fatal ? &fatal->notice : NULL);
}

/* The next success of at least this size, in the same memory (host or device), shows that the program recovered. */
static void watch_for(struct gpc_device *device, const struct failure *failure)
{
	__atomic_store_n(&device->failed_on_host, is_on_host(failure), __ATOMIC_RELAXED);
	__atomic_store_n(&device->failed_size, failure->asked, __ATOMIC_RELEASE);
}

static void keep_locked(struct gpc_device *device, const struct failure *failure)
{
	struct failure *last = &failures.last[device->ordinal];
	struct failure *other = &failures.other[device->ordinal];
	uint32_t thread = failure->gathered.oom.thread;

	if (other->is_open && other->gathered.oom.thread == thread)
		other->is_open = false;
	if (last->is_open && last->gathered.oom.thread != thread &&
		is_on_host(last) == is_on_host(failure) &&
		!(other->is_open && other->asked > last->asked))
		*other = *last;
	*last = *failure;
	watch_for(device, last);
}

/* Gives the failure its number, and records it. */
static void record_locked(struct gpucache_oom *oom)
{
	static uint64_t n_unrecorded;
	struct gpucache_oom *slot = gpc_record_oom_begin(&gpc_runtime.record);

	oom->seq = slot ? slot->seq : 0;
	oom->number = slot ? slot->number : ++n_unrecorded;
	if (slot) {
		*slot = *oom;
		gpc_record_oom_commit(&gpc_runtime.record, slot);
	}
	gpc_record_state_add(&gpc_runtime.record, GPUCACHE_STATE_OOM_SEEN);
}

static struct failure *find_locked(const struct gpc_device *device, uint64_t number)
{
	struct failure *last = &failures.last[device->ordinal];
	struct failure *other = &failures.other[device->ordinal];

	if (last->gathered.oom.number == number)
		return last;
	return other->gathered.oom.number == number ? other : NULL;
}

/* True if this failure is to be printed whole before the end.  is_given_up: it will not be repeated. */
static bool is_said_now_locked(const struct failure *failure, bool is_given_up)
{
	uint64_t time_ns = failure->gathered.oom.time_ns;

	if (gpc_runtime.config.oom_report != GPC_OOM_REPORT_ALWAYS &&
		!(failure->notice.is_hosted && is_given_up))
		return false;
	/* Also if the request was made before the last text and failed after it. */
	if (failures.last_said_ns && time_ns < failures.last_said_ns + SAY_STEP_NS)
		return false;
	failures.last_said_ns = time_ns;
	return true;
}

/* Prints what is due now, and prepares what the end prints. */
static void tell(struct gpc_device *device, struct failure *failure)
{
	const struct gpucache_oom *oom = &failure->gathered.oom;
	/* PyTorch repeats a request after it has returned its own cache, and tells us if that fails, too. */
	const bool is_given_up =
		oom->torch.requested || !gpc_counter_get(&gpc_tensors_sums(device)->n_malloc);
	struct failure *kept;
	bool is_now;

	if (gpc_runtime.config.oom_report == GPC_OOM_REPORT_NEVER)
		return;
	if (!failure->notice.len)
		gpc_notice_write(device, oom, &failure->notice);
	failure->notice.number = oom->number;
	gpc_lock_take(&gpc_runtime.lock);
	gpc_record_oom_set_cause(&gpc_runtime.record, oom->number, failure->notice.answer.cause,
		failure->notice.answer.strength, failure->notice.answer.also);
	is_now = is_said_now_locked(failure, is_given_up);
	kept = find_locked(device, oom->number);
	if (kept) {
		kept->notice = failure->notice;
		kept->is_said |= is_now;
		publish_locked(device);
	}
	gpc_lock_release(&gpc_runtime.lock);
	if (is_now)
		gpc_notice_say_now(&failure->notice);
	else if (gpc_runtime.config.oom_report == GPC_OOM_REPORT_AUTO && is_given_up)
		gpc_notice_say_first(device, oom, &failure->notice);
}

/* True if the text about a failure is right for another one, on the same evidence. */
static bool has_text_of(const struct gpucache_oom *a, const struct gpucache_oom *b)
{
	return a->requested == b->requested && a->rounded == b->rounded && a->kind == b->kind &&
	       a->stack == b->stack && a->limit == b->limit && a->verdict == b->verdict &&
	       a->torch.requested == b->torch.requested && a->tag == b->tag;
}

struct report {
	struct gpc_rescue *rescue;
	const struct gpc_ladder *ladder;
};

static void report(void *arg)
{
	struct gpc_rescue *rescue = ((struct report *)arg)->rescue;
	struct gpc_device *device = rescue->context->device;
	struct gpucache_oom before;
	struct failure failure;
	bool is_alike;

	gpc_lock_take(&gpc_runtime.lock);
	failure = failures.last[device->ordinal];
	gpc_lock_release(&gpc_runtime.lock);
	before = failure.gathered.oom;
	failure.asked = rescue->size;
	/* Pages that PyTorch has made for a larger request go back: they are no peak. */
	if (rescue->kind != GPUCACHE_KIND_PHYSICAL)
		gpc_observe_peak(device);
	is_alike = gpc_gather(rescue->context, &failure.gathered);
	gpc_gather_request(&failure.gathered, rescue, ((struct report *)arg)->ladder);
	is_alike = is_alike && has_text_of(&before, &failure.gathered.oom);
	/* What was printed is not printed again, and what was written not written again. */
	failure.is_said = failure.is_said && is_alike;
	failure.notice.len = is_alike ? failure.notice.len : 0;
	failure.kept_ns = gpc_clock_monotonic_ns();
	failure.notice.time_ns = failure.kept_ns;
	failure.notice.is_caught = false;
	failure.is_open = true;
	gpc_lock_take(&gpc_runtime.lock);
	record_locked(&failure.gathered.oom);
	failure.notice.number = failure.gathered.oom.number;
	keep_locked(device, &failure);
	gpc_lock_release(&gpc_runtime.lock);
	gpc_tensors_note_failure(device, failure.gathered.oom.number);
	tell(device, &failure);
}

void gpc_failure_report(struct gpc_rescue *rescue, const struct gpc_ladder *ladder)
{
	gpc_notice_begin();
	gpc_own_stack_run(report, &(struct report){ rescue, ladder });
	gpc_notice_end();
}

struct judgement {
	struct gpc_device *device;
	uint64_t number;
	const struct gpucache_oom_torch *torch;
};

static void judge_again(void *arg)
{
	const struct judgement *judgement = arg;
	struct gpc_device *device = judgement->device;
	struct failure *kept;
	struct failure failure;

	gpc_lock_take(&gpc_runtime.lock);
	kept = find_locked(device, judgement->number);
	if (kept) {
		kept->asked = judgement->torch->requested;
		kept->notice.len = 0;
		gpc_gather_torch(&kept->gathered, device, judgement->torch);
		gpc_record_oom_set_torch(&gpc_runtime.record, &kept->gathered.oom);
		/* PyTorch now raises an exception; a program that makes a tensor of any size has caught it. */
		if (kept == &failures.last[device->ordinal])
			__atomic_store_n(&device->failed_size, GPC_ANY_SIZE, __ATOMIC_RELEASE);
		failure = *kept;
	}
	gpc_lock_release(&gpc_runtime.lock);
	if (kept)
		tell(device, &failure);
}

void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch)
{
	gpc_notice_begin();
	gpc_own_stack_run(judge_again, &(struct judgement){ device, number, torch });
	gpc_notice_end();
}

/*
 * True if a success of this thread shows that the program survived the failure: it was this thread's failure, or it is
 * long ago.  Other threads show nothing by a success, because busy threads succeed until the process ends.
 */
static bool speaks_for(const struct failure *failure)
{
	return failure->gathered.oom.thread == gpc_thread_id() ||
	       gpc_clock_monotonic_ns() > failure->kept_ns + GPC_SURVIVED_NS;
}

/* Closes the failure if this success, of `size` bytes in the same memory (host or device), shows that it is over. */
static void settle_locked(struct failure *failure, uint64_t size)
{
	if (!failure->is_open || size < failure->asked || !speaks_for(failure))
		return;
	gpc_record_oom_recover(&gpc_runtime.record, failure->gathered.oom.number, size);
	failure->is_open = false;
}

/*
 * PyTorch made a tensor that is smaller than the one it could not make: the program went on, or it only looks at what it
 * has before it ends.
 */
static void note_caught_locked(struct gpc_device *device, struct failure *last)
{
	gpc_record_oom_recover(&gpc_runtime.record, last->gathered.oom.number, 0);
	last->notice.is_caught = true;
	watch_for(device, last);
}

void gpc_rescue_recovered(struct gpc_device *device, uint64_t size)
{
	struct failure *last = &failures.last[device->ordinal];
	struct failure *other = &failures.other[device->ordinal];

	gpc_lock_take(&gpc_runtime.lock);
	if (is_on_host(other) == is_on_host(last))
		settle_locked(other, size);
	settle_locked(last, size);
	if (last->is_open && size < last->asked)
		note_caught_locked(device, last);
	if (!last->is_open && other->is_open) {
		*last = *other;
		other->is_open = false;
		watch_for(device, last);
	}
	if (!last->is_open)
		__atomic_store_n(&device->failed_size, 0, __ATOMIC_RELEASE);
	publish_locked(device);
	gpc_lock_release(&gpc_runtime.lock);
}
