/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed request: climbs the ladder.  If that does not help, records the failure and its verdict, and prints the
 * short form.
 *
 * A failed cudaMalloc need not be the program's last: frameworks catch it, free their caches and retry.  So a failure
 * is recorded at once, and printed when it is final.  It is final if the same request fails again (repeated), or if the
 * process ends and no request of that size has succeeded since (fatal).  oom_report:always prints at once.
 */
#include "runtime/rescue/rescue.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_stack.h"
#include "base/pause.h"
#include "base/thread.h"
#include "model/balance.h"
#include "model/held.h"
#include "oom/balance.h"
#include "oom/ladder.h"
#include "oom/plain.h"
#include "oom/short_form.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/context/pages.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/pools.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/api.h"
#include "runtime/process/enter.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/process/tags.h"
#include "runtime/rescue/holders.h"
#include "runtime/rescue/look.h"
#include "stats/counters.h"
#include "why/why.h"

/*
 * Trims the driver's pools.  They return no memory that was freed in stream order until the host has waited for the
 * device, so wait first.  This wait cannot be bounded, and is left out if oom_sync_ms asks for a bound.
 */
static void trim_pools(struct gpc_context *context)
{
	struct gpc_driver *drv = &context->drv.base;

	if (gpc_runtime.config.oom_sync_ms == 0 && gpc_pools_are_used() &&
		gpc_captures_try_hold(&gpc_runtime.heap.captures)) {
		(void)!drv->ops->context_sync(drv);
		gpc_captures_release(&gpc_runtime.heap.captures);
	}
	gpc_pools_trim(context->device);
}

static void trim_driver(void *arg)
{
	const struct gpc_rescue *rescue = arg;

	trim_pools(rescue->context);
}

static bool call_handlers(void *arg, uint64_t wanted, bool *ret_did_free)
{
	const struct gpc_rescue *rescue = arg;

	return gpc_runtime_ask_handler(rescue->context->device, wanted, ret_did_free);
}

static enum gpc_status attempt_again(void *arg)
{
	struct gpc_rescue *rescue = arg;

	return rescue->attempt(rescue);
}

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
	struct gpucache_oom oom;
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
	return failure->is_waiting && failure->oom.requested == requested;
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

static void fill_growth(struct gpucache_oom *oom, const struct gpc_device *device)
{
	struct gpc_record *record = &gpc_runtime.record;
	struct gpc_growth growth = gpc_record_growth(record, device->ordinal);

	oom->growth_stack = growth.most.stack;
	oom->growth_bytes = record->sites ? growth.most.bytes : GPUCACHE_UNKNOWN;
	oom->growth_others = growth.others_bytes;
	oom->growth_held = growth.most.held;
	oom->growth_blocks = growth.most.n_blocks;
	oom->growth_total = growth.most.total;
	oom->is_renewed = growth.most.is_renewed;
	oom->is_varied = growth.most.is_varied;
	oom->usual_live = gpc_window_clock_usual(&record->clocks[device->ordinal]);
}

/* What the recording's blocks tell: contexts, and what the driver would use for the same blocks. */
static void fill_blocks(struct gpucache_oom *oom, const struct gpc_device *device)
{
	const struct gpc_record *record = &gpc_runtime.record;
	struct gpucache_block block;

	oom->plain_live = gpc_plain_live(
		record->blocks, record->n_blocks, device->ordinal, oom->balance.requested);
	oom->page_waste = gpc_plain_waste(
		record->blocks, record->n_blocks, device->ordinal, &oom->page_blocks);
	for (uint32_t i = 0; i < record->n_blocks; i++)
		oom->n_contexts +=
			gpc_held_read_live(&record->blocks[i], device->ordinal, &block) &&
			block.kind == GPUCACHE_KIND_CONTEXT;
}

static void judge(struct gpucache_oom *oom)
{
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_answer answer;

	gpc_facts_from_oom(&facts, oom);
	answer = gpc_why_then(&facts);
	oom->verdict = (uint8_t)answer.cause;
	oom->strength = (uint8_t)answer.strength;
	oom->also = answer.also;
	oom->short_by = facts.short_by == GPUCACHE_UNKNOWN ? 0 : facts.short_by;
}

static void fill_request(struct gpucache_oom *oom, const struct gpc_rescue *rescue)
{
	oom->device = (int32_t)rescue->context->device->ordinal;
	oom->time_ns = rescue->request.now_ns;
	oom->requested = rescue->size;
	oom->rounded = rescue->rounded;
	oom->limit = atomic_load(&rescue->context->device->budget.limit_bytes);
	oom->stack = rescue->request.mark;
	oom->thread = rescue->request.thread;
	oom->context = rescue->context->pool.context;
	oom->kind = (uint8_t)rescue->kind;
	oom->tag = gpc_thread_tag();
}

static void keep_neighbours(struct gpc_device *device, const struct gpc_neighbours *neighbours)
{
	if (neighbours->index >= 0)
		device->known.physical = (uint64_t)neighbours->index + 1;
	if (neighbours->process_bytes == GPUCACHE_UNKNOWN ||
		neighbours->others_bytes == GPUCACHE_UNKNOWN)
		return;
	device->known.nvml = 1;
	device->known.n_other = neighbours->n_other;
	device->known.process_bytes = neighbours->process_bytes;
	device->known.others_bytes = neighbours->others_bytes;
	device->known.driver_bytes = neighbours->driver_bytes;
}

/* Fills `oom`, a slot of the recording or `spare`, with all that is known about the failure. */
static void fill_oom(struct gpucache_oom *oom, const struct gpc_rescue *rescue,
	const struct gpc_ladder *ladder, const struct gpc_look *look)
{
	struct gpc_context *context = rescue->context;
	struct gpc_record *record = &gpc_runtime.record;

	fill_request(oom, rescue);
	oom->n_rungs = ladder->n_tried;
	for (uint32_t i = 0; i < ladder->n_tried; i++)
		oom->rung_freed[i] = ladder->freed[i];
	keep_neighbours(context->device, &look->neighbours);
	oom->balance = look->balance;
	memcpy(oom->kind_bytes, look->kind_bytes, sizeof oom->kind_bytes);
	memcpy(oom->neighbours, look->neighbours.neighbours, sizeof oom->neighbours);
	oom->n_neighbours = look->neighbours.n_neighbours;
	oom->peak_requested = gpc_counter_get(&context->pool.counters->peak_requested_bytes);
	oom->n_holders = gpc_record_top_holders(record, context->device->ordinal, oom->holders,
		GPUCACHE_MAX_OOM_HOLDERS, &oom->n_sites, &oom->rest_bytes);
	oom->n_tags = gpc_record_top_tags(record, context->device->ordinal, gpc_runtime_tags_end(),
		oom->tags, GPUCACHE_MAX_OOM_TAGS, &oom->tag_rest_bytes);
	oom->torch = gpc_tensors_have(context->device);
	if (rescue->kind == GPUCACHE_KIND_TENSOR)
		oom->torch.requested = rescue->size;
	oom->free_before = oom->free_after = look->device.device_free;
	oom->piece = look->piece;
	oom->other_piece = look->other_piece;
	oom->largest_pending = look->largest_pending;
	oom->setup = look->setup;
	oom->n_free = GPC_DEVICE_SUM(context->device, n_free) +
		      gpc_counter_get(&gpc_tensors_sums(context->device)->n_free);
	oom->host_bytes = GPC_DEVICE_SUM(context->device, host_bytes);
	oom->n_dropped =
		record->header ? record->header->dropped_stacks + record->header->dropped_sites : 0;
	fill_growth(oom, context->device);
	fill_blocks(oom, context->device);
	judge(oom);
}

/* The driver does not tell the size of a context or module.  If the assumed size is free, it must need more. */
static void correct_size(struct gpc_rescue *rescue, uint64_t device_free)
{
	if (!gpc_kind_is_implicit(rescue->kind) || device_free == GPUCACHE_UNKNOWN ||
		device_free < rescue->size)
		return;
	rescue->size += device_free;
	rescue->rounded = rescue->size;
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
	const struct gpucache_oom *oom = &failure->oom;

	if (other->is_waiting && other->oom.thread == oom->thread)
		other->is_waiting = false;
	if (last->is_waiting && last->oom.thread != oom->thread &&
		gpucache_kind_place(last->oom.kind) == gpucache_kind_place(oom->kind) &&
		!(other->is_waiting && other->oom.requested > last->oom.requested))
		*other = *last;
	*last = *failure;
}

struct report {
	struct gpc_rescue *rescue;
	const struct gpc_ladder *ladder;
};

static void report_failure(void *arg)
{
	struct gpc_rescue *rescue = ((struct report *)arg)->rescue;
	const struct gpc_ladder *ladder = ((struct report *)arg)->ladder;
	uint64_t asked = rescue->size;
	static struct gpucache_oom spare; /* Lock: runtime.lock */
	struct gpc_device *device = rescue->context->device;
	struct gpc_look look;
	struct gpucache_oom *slot;
	struct failure failure;

	gpc_observe_device(rescue->context, true);
	gpc_look_take(rescue->context, &look);
	correct_size(rescue, look.device.device_free);
	gpc_lock_take(&gpc_runtime.lock);
	slot = gpc_record_oom_begin(&gpc_runtime.record);
	if (!slot) {
		spare = (struct gpucache_oom){ .number = spare.number + 1 };
		slot = &spare;
	}
	fill_oom(slot, rescue, ladder, &look);
	failure = (struct failure){
		.oom = *slot, .asked = asked, .kept_ns = gpc_clock_monotonic_ns()
	};
	if (slot != &spare)
		gpc_record_oom_commit(&gpc_runtime.record, slot);
	gpc_record_state_add(&gpc_runtime.record, GPUCACHE_STATE_OOM_SEEN);
	gpc_record_device(&gpc_runtime.record, device->ordinal, &device->known);
	failure.is_waiting = !is_printed_now(device, &failure.oom);
	if (!failure.is_waiting)
		atomic_fetch_add(&failures.n_printing, 1);
	keep_failure(device, &failure);
	watch_for(device, &failure.oom, asked);
	gpc_lock_release(&gpc_runtime.lock);
	gpc_tensors_note_failure(device, failure.oom.number);
	if (failure.is_waiting)
		return;
	print_oom(device, &failure.oom);
	atomic_fetch_sub(&failures.n_printing, 1);
}

static void count_outcome(
	struct gpc_rescue *rescue, const struct gpc_ladder *ladder, enum gpc_status st)
{
	struct gpc_pool *pool = &rescue->context->pool;
	struct gpucache_event event = {
		.time_ns = rescue->request.now_ns,
		.size = rescue->size,
		.requested = rescue->size,
		.stack = rescue->request.mark,
		.thread = rescue->request.thread,
		.kind = st ? GPUCACHE_EVENT_OOM : GPUCACHE_EVENT_RESCUED,
		.alloc_kind = (uint8_t)rescue->kind,
		.device = (uint16_t)rescue->context->device->ordinal,
		.context = pool->context,
		.detail = ladder->helped,
		.tag = gpc_thread_tag(),
	};

	gpc_lock_take(&pool->lock);
	gpc_counter_add(st ? &pool->counters->n_oom : &pool->counters->n_rescued, 1);
	if (ladder->helped)
		gpc_counter_add(&pool->counters->n_rescued_by[ladder->helped - 1], 1);
	gpc_lock_release(&pool->lock);
	gpc_record_event(&gpc_runtime.record, &event);
}

/*
 * True if the request exceeds all that could become free.  How much the driver's pools could return is unknown.  If
 * there are such pools, all memory counts that is not live in our pools.  False for requests that the driver serves,
 * because their size may be unknown.
 */
static bool is_out_of_reach(
	const struct gpc_rescue *rescue, struct gpc_pool *const *pools, uint32_t n_pools)
{
	struct gpc_driver *drv = &rescue->context->drv.base;
	const struct gpc_device *device = rescue->context->device;
	uint64_t available;
	uint64_t idle = 0;
	uint64_t total;

	/* First idle, then moving, then free bytes: memory on its way back may count twice, but is not missed. */
	for (uint32_t i = 0; i < n_pools; i++)
		idle += gpc_pool_idle(pools[i]);
	idle += atomic_load(&device->budget.moving_bytes);
	if (rescue->kind != GPUCACHE_KIND_DEVICE || drv->ops->mem_info(drv, &available, &total))
		return false;
	return rescue->rounded >
	       (gpc_pools_are_used() ? gpc_bytes_less(total, GPC_DEVICE_SUM(device, live_bytes))
				     : gpc_bytes_add(available, idle));
}

enum gpc_status gpc_rescue_run(struct gpc_rescue *rescue, enum gpc_status st)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	struct gpc_ladder ladder = {
		.pool = &rescue->context->pool,
		.pools = pools,
		.n_pools = gpc_device_pools(rescue->context->device, pools),
		.wanted = rescue->rounded,
		.wait_ms = gpc_runtime.config.oom_wait_ms,
		.sync_ms = gpc_runtime.config.oom_sync_ms,
		.attempt = attempt_again,
		.trim_driver = trim_driver,
		.call_handlers = call_handlers,
		.arg = rescue,
	};

	ladder.is_out_of_reach = is_out_of_reach(rescue, pools, ladder.n_pools);
	gpc_pages_look_around();
	st = gpc_ladder_climb(&ladder, st);
	if (st && !gpc_ladder_helps(st))
		return st;
	count_outcome(rescue, &ladder, st);
	if (st)
		gpc_own_stack_run(report_failure, &(struct report){ rescue, &ladder });
	return st;
}

void gpc_rescue_torch_limit(struct gpc_device *device, uint64_t size)
{
	const struct gpc_ladder ladder = { 0 };
	struct gpc_rescue rescue = {
		.context = gpc_context_on(device),
		.kind = GPUCACHE_KIND_TENSOR,
		.size = size,
		.rounded = size,
		.request = gpc_runtime_request(size),
	};

	if (!rescue.context)
		return;
	count_outcome(&rescue, &ladder, GPC_LIMIT);
	gpc_own_stack_run(report_failure, &(struct report){ &rescue, &ladder });
}

void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch)
{
	struct failure *last = &failures.last[device->ordinal];

	gpc_lock_take(&gpc_runtime.lock);
	if (last->oom.number != number)
		last = &failures.other[device->ordinal];
	if (last->oom.number == number) {
		last->oom.torch = *torch;
		judge(&last->oom);
		gpc_record_oom_set_torch(&gpc_runtime.record, &last->oom);
	}
	gpc_lock_release(&gpc_runtime.lock);
}

bool gpc_runtime_make_room(void)
{
	struct gpc_context *context = gpc_context_current();
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	uint32_t n = context ? gpc_device_pools(context->device, pools) : 0;

	for (uint32_t i = 0; i < n; i++) {
		(void)gpc_pool_wait(pools[i], 0);
		(void)gpc_pool_trim(pools[i], UINT64_MAX);
	}
	if (context)
		trim_pools(context);
	return context != NULL;
}

/*
 * True if a success of this thread shows that the program survived the failure: it was this thread's failure, or that
 * of a thread that has ended, or it is long ago.  Other threads show nothing by a success, because busy threads succeed
 * until the process ends.  tgkill with signal 0 only tests whether the thread exists.
 */
static bool speaks_for(const struct failure *failure)
{
	return failure->oom.thread == gpc_thread_id() ||
	       gpc_clock_monotonic_ns() > failure->kept_ns + SURVIVED_NS ||
	       syscall(SYS_tgkill, getpid(), failure->oom.thread, 0) != 0;
}

/* Marks the failure as recovered if this success, of `size` bytes in the same memory (host or device), shows it. */
static void settle(struct failure *failure, uint64_t size)
{
	if (!failure->is_waiting || size < failure->asked || !speaks_for(failure))
		return;
	gpc_record_oom_mark(&gpc_runtime.record, failure->oom.number, true, false);
	failure->is_waiting = false;
}

void gpc_rescue_recovered(struct gpc_device *device, uint64_t size)
{
	struct failure *last = &failures.last[device->ordinal];
	struct failure *other = &failures.other[device->ordinal];
	bool is_torch = __atomic_load_n(&device->failed_size, __ATOMIC_ACQUIRE) == GPC_ANY_SIZE;

	gpc_lock_take(&gpc_runtime.lock);
	if (is_on_host(&other->oom) == is_on_host(&last->oom))
		settle(other, size);
	if (is_torch || speaks_for(last)) {
		gpc_record_oom_mark(&gpc_runtime.record, device->failed_number, true, false);
		last->is_waiting = false;
		__atomic_store_n(&device->failed_size, 0, __ATOMIC_RELEASE);
		if (other->is_waiting) {
			*last = *other;
			watch_for(device, &last->oom, last->asked);
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
			print_oom(&gpc_runtime.devices[d], &fatal.oom);
	}
	while (atomic_load(&failures.n_printing) > 0 && gpc_pause(1, &left_ms))
		;
}
