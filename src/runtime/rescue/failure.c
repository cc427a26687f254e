/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed cudaMalloc need not be the program's last: frameworks catch it, free their caches and retry.  So a failure
 * is recorded at once, and printed when it is final.  It is final if the same request fails again (repeated), or if the
 * process ends and no request of that size has succeeded since (fatal).  oom_report:always prints at once.
 */
#include "runtime/rescue/failure.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own_stack.h"
#include "base/pause.h"
#include "base/thread.h"
#include "oom/short_form.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/state.h"
#include "runtime/rescue/gather.h"
#include "runtime/rescue/holders.h"
#include "stats/counters.h"

static void print_oom(struct gpc_device *device, const struct gpucache_oom *oom)
{
	const struct gpc_describer describer = gpc_holder_describer(device);
	const struct gpucache_header *header = gpc_runtime.record.header;
	struct gpc_short_form form = {
		.oom = oom,
		.conf = gpc_runtime.config.text,
		.describer = &describer,
		.gpu_name = device->known.name,
		.physical = (int)device->known.physical - 1,
		.program = header ? gpc_base_name(header->exe) : "",
		.recording = gpc_runtime.record.path[0] ? gpc_runtime.record.path : NULL,
		.pid = (uint32_t)getpid(),
		.rank = header ? header->rank : -1,
		.world_size = header ? header->world_size : -1,
	};
	GPC_TEXT(text, GPC_SHORT_SIZE);

	gpc_short_form_write(&form, &text);
	gpc_log_block(text.buf, text.len);
	gpc_record_oom_mark(&gpc_runtime.record, oom->number, false, true);
}

/* A failure.  If it is_waiting, it is not printed yet, and the exit prints it unless the program recovers before. */
struct failure {
	struct gpc_gathered gathered;
	uint64_t asked; /* the size before correct_size; a success of this size settles it */
	uint64_t kept_ns;
	bool is_waiting;
};

/*
 * For each device, the last failure and the largest one of the other threads, because a success of one thread does not
 * show that the others have recovered.  Lock: runtime.lock.
 */
static struct {
	struct failure last[GPC_MAX_DEVICES];
	struct failure other[GPC_MAX_DEVICES];
	uint64_t last_printed_ns;
	_Atomic uint32_t n_printing; /* threads that are printing one */
} failures;

/* Bounds the exit's wait for threads that are printing. */
#define PRINTING_MS 1000

static bool is_waiting_for(const struct failure *failure, uint64_t requested)
{
	return failure->is_waiting && failure->gathered.oom.requested == requested;
}

/* A program that still runs after this long has survived a failure. */
#define SURVIVED_NS (UINT64_C(60) * 1000000000)

#define PRINT_STEP_NS (UINT64_C(60) * 1000000000) /* at most one report a minute */

/* True if the failure is to be printed now; otherwise it is kept for the exit. */
static bool is_printed_now(struct gpc_device *device, const struct gpucache_oom *oom)
{
	uint32_t d = device->ordinal;
	/* PyTorch repeats each failed request after it has returned its own cache, so there one repetition proves nothing. */
	bool is_repeated = (is_waiting_for(&failures.last[d], oom->requested) ||
				   is_waiting_for(&failures.other[d], oom->requested)) &&
			   gpc_counter_get(&gpc_tensors_sums(device)->n_malloc) == 0;

	if (gpc_runtime.config.oom_report == GPC_OOM_REPORT_NEVER)
		return false;
	if (gpc_runtime.config.oom_report != GPC_OOM_REPORT_ALWAYS && !is_repeated)
		return false;
	/* Also true if the request was made before the last report and failed after it. */
	if (failures.last_printed_ns && oom->time_ns < failures.last_printed_ns + PRINT_STEP_NS)
		return false;
	failures.last_printed_ns = oom->time_ns;
	return true;
}

static bool is_on_host(const struct gpucache_oom *oom)
{
	return gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST;
}

/* The next success of at least this size, in the same memory (host or device), shows that the program recovered. */
static void watch_for(struct gpc_device *device, const struct gpucache_oom *oom, uint64_t size)
{
	device->failed_number = oom->number;
	__atomic_store_n(&device->failed_on_host, is_on_host(oom), __ATOMIC_RELAXED);
	__atomic_store_n(&device->failed_size, size, __ATOMIC_RELEASE);
}

static void keep_failure(struct gpc_device *device, const struct failure *failure)
{
	struct failure *last = &failures.last[device->ordinal];
	struct failure *other = &failures.other[device->ordinal];
	const struct gpucache_oom *oom = &failure->gathered.oom;

	if (other->is_waiting && other->gathered.oom.thread == oom->thread)
		other->is_waiting = false;
	if (last->is_waiting && last->gathered.oom.thread != oom->thread &&
		gpucache_kind_place(last->gathered.oom.kind) == gpucache_kind_place(oom->kind) &&
		!(other->is_waiting &&
			other->gathered.oom.requested > last->gathered.oom.requested))
		*other = *last;
	*last = *failure;
}

/* Gives the failure its number, and records it. */
static void record(struct gpucache_oom *oom)
{
	static uint64_t n_unrecorded; /* Lock: runtime.lock */
	struct gpucache_oom *slot = gpc_record_oom_begin(&gpc_runtime.record);

	oom->seq = slot ? slot->seq : 0;
	oom->number = slot ? slot->number : ++n_unrecorded;
	if (slot) {
		*slot = *oom;
		gpc_record_oom_commit(&gpc_runtime.record, slot);
	}
	gpc_record_state_add(&gpc_runtime.record, GPUCACHE_STATE_OOM_SEEN);
}

struct report {
	struct gpc_rescue *rescue;
	const struct gpc_ladder *ladder;
};

static void report(void *arg)
{
	struct gpc_rescue *rescue = ((struct report *)arg)->rescue;
	struct gpc_device *device = rescue->context->device;
	struct failure failure = { .asked = rescue->size };

	gpc_lock_take(&gpc_runtime.lock);
	failure.gathered = failures.last[device->ordinal].gathered;
	gpc_lock_release(&gpc_runtime.lock);
	gpc_gather(rescue->context, &failure.gathered);
	gpc_gather_request(&failure.gathered, rescue, ((struct report *)arg)->ladder);
	failure.kept_ns = gpc_clock_monotonic_ns();
	gpc_lock_take(&gpc_runtime.lock);
	record(&failure.gathered.oom);
	failure.is_waiting = !is_printed_now(device, &failure.gathered.oom);
	if (!failure.is_waiting)
		atomic_fetch_add(&failures.n_printing, 1);
	keep_failure(device, &failure);
	watch_for(device, &failure.gathered.oom, failure.asked);
	gpc_lock_release(&gpc_runtime.lock);
	gpc_tensors_note_failure(device, failure.gathered.oom.number);
	if (failure.is_waiting)
		return;
	print_oom(device, &failure.gathered.oom);
	atomic_fetch_sub(&failures.n_printing, 1);
}

void gpc_failure_report(struct gpc_rescue *rescue, const struct gpc_ladder *ladder)
{
	gpc_own_stack_run(report, &(struct report){ rescue, ladder });
}

struct judgement {
	struct gpc_device *device;
	uint64_t number;
	const struct gpucache_oom_torch *torch;
};

static void judge_again(void *arg)
{
	const struct judgement *judgement = arg;
	struct failure *last = &failures.last[judgement->device->ordinal];

	gpc_lock_take(&gpc_runtime.lock);
	if (last->gathered.oom.number != judgement->number)
		last = &failures.other[judgement->device->ordinal];
	if (last->gathered.oom.number == judgement->number) {
		last->gathered.oom.torch = *judgement->torch;
		gpc_gather_verdict(&last->gathered);
		gpc_record_oom_set_torch(&gpc_runtime.record, &last->gathered.oom);
	}
	gpc_lock_release(&gpc_runtime.lock);
}

void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch)
{
	gpc_own_stack_run(judge_again, &(struct judgement){ device, number, torch });
}

/*
 * True if a success of this thread shows that the program survived the failure: it was this thread's failure, or that
 * of a thread that has ended, or it is long ago.  Other threads show nothing by a success, because busy threads succeed
 * until the process ends.  tgkill with signal 0 only tests whether the thread exists.
 */
static bool speaks_for(const struct failure *failure)
{
	return failure->gathered.oom.thread == gpc_thread_id() ||
	       gpc_clock_monotonic_ns() > failure->kept_ns + SURVIVED_NS ||
	       syscall(SYS_tgkill, getpid(), failure->gathered.oom.thread, 0) != 0;
}

/* Marks the failure as recovered if this success, of `size` bytes in the same memory (host or device), shows it. */
static void settle(struct failure *failure, uint64_t size)
{
	if (!failure->is_waiting || size < failure->asked || !speaks_for(failure))
		return;
	gpc_record_oom_mark(&gpc_runtime.record, failure->gathered.oom.number, true, false);
	failure->is_waiting = false;
}

void gpc_rescue_recovered(struct gpc_device *device, uint64_t size)
{
	struct failure *last = &failures.last[device->ordinal];
	struct failure *other = &failures.other[device->ordinal];
	bool is_torch = __atomic_load_n(&device->failed_size, __ATOMIC_ACQUIRE) == GPC_ANY_SIZE;

	gpc_lock_take(&gpc_runtime.lock);
	if (is_on_host(&other->gathered.oom) == is_on_host(&last->gathered.oom))
		settle(other, size);
	if (is_torch || speaks_for(last)) {
		gpc_record_oom_mark(&gpc_runtime.record, device->failed_number, true, false);
		last->is_waiting = false;
		__atomic_store_n(&device->failed_size, 0, __ATOMIC_RELEASE);
		if (other->is_waiting) {
			*last = *other;
			watch_for(device, &last->gathered.oom, last->asked);
		}
		other->is_waiting = false;
	}
	gpc_lock_release(&gpc_runtime.lock);
}

/*
 * Copies the failure that may be why the process ends; false: there is none.  If the last failure has been printed, it
 * may be a larger one of another thread.
 */
static bool take_fatal(uint32_t device, struct failure *ret_failure)
{
	struct failure *last = &failures.last[device];
	struct failure *other = &failures.other[device];
	struct failure *fatal;
	bool is_fatal;

	gpc_lock_take(&gpc_runtime.lock);
	fatal = last->is_waiting || other->asked <= last->asked ? last : other;
	is_fatal = fatal->is_waiting;
	fatal->is_waiting = false;
	*ret_failure = *fatal;
	gpc_lock_release(&gpc_runtime.lock);
	return is_fatal;
}

/* Other threads run on, and may fail or recover meanwhile. */
void gpc_rescue_at_exit(void)
{
	uint64_t left_ms = PRINTING_MS;

	if (gpc_runtime.config.oom_report == GPC_OOM_REPORT_NEVER)
		return;
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		struct failure fatal;

		if (take_fatal(d, &fatal))
			print_oom(&gpc_runtime.devices[d], &fatal.gathered.oom);
	}
	while (atomic_load(&failures.n_printing) > 0 && gpc_pause(1, &left_ms))
		;
}
