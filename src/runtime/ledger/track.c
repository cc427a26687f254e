/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracked allocations: the driver makes them for one request each, and we account for them but do not cache them.
 *
 * Each takes a block number of the heap, and so has a slot in the recording's BLOCKS like a cached block.  The item of
 * that number holds a struct gpc_tracked instead of a struct gpc_block.
 *
 * A free removes the entry before the driver frees the address.  Once the driver has freed it, another thread may get
 * the same address, and the free would remove that thread's entry.
 *
 * The key of most allocations is their address.  The key of physical memory, arrays and external memory is a handle,
 * and that of registered host memory an address that may be another allocation's, too.  The same number may be a key of
 * several of these kinds, so each key space has a map of its own.
 */
#include "runtime/ledger/track.h"

#include <string.h>

#include "alloc/address_map.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread.h"
#include "model/balance.h"
#include "model/counters.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/arrays.h"
#include "runtime/ledger/observe_hot.h"
#include "runtime/ledger/pools.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/rescue.h"
#include "runtime/rescue/spill.h"

struct gpc_tracked {
	struct gpc_list link; /* of all tracked */
	uint64_t address;
	uint64_t size;
	uint64_t requested;
	uint64_t padding;
	struct gpc_context *context;
	uint32_t number;
	uint32_t stack;
	uint32_t pool; /* number of the driver's pool (pools.c); 0: none */
	uint8_t kind;  /* enum gpucache_kind */
	bool is_arena;
};

_Static_assert(sizeof(struct gpc_tracked) <= sizeof(struct gpc_block), "shares the slab of blocks");

enum key_space {
	KEY_ADDRESS,
	KEY_REGISTERED,
	KEY_HANDLE,
	KEY_ARRAY,
	KEY_EXTERNAL,
	N_KEY_SPACES,
};

static struct {
	struct gpc_address_map maps[N_KEY_SPACES];
	struct gpc_list list;
	struct gpc_lock lock;
} tracked_all = {
	.list = GPC_LIST_INIT(tracked_all.list),
	.lock = GPC_LOCK_INIT(GPC_RANK_TRACK),
};

static bool is_on_device(uint8_t kind)
{
	return gpucache_kind_place(kind) == GPUCACHE_ON_DEVICE;
}

/* True for device memory that the program itself requested: it counts in the numbers of calls. */
static bool is_asked_for(uint8_t kind)
{
	return gpucache_kind_is_of_device(kind) && !gpc_kind_is_implicit(kind);
}

/* True if it counts for the limit. */
static bool is_charged(uint8_t kind)
{
	return is_asked_for(kind) && is_on_device(kind);
}

/* As this thread allocates or frees it now. */
static struct gpc_observed observed_of(const struct gpc_tracked *tracked, uint64_t now_ns)
{
	return (struct gpc_observed){
		.context = tracked->context,
		.kind = (enum gpucache_kind)tracked->kind,
		.number = tracked->number,
		.segment = GPUCACHE_NO_SEGMENT,
		.is_arena = tracked->is_arena,
		.address = tracked->address,
		.size = tracked->size,
		.requested = tracked->requested,
		.now_ns = now_ns,
		.who = gpc_record_halves(tracked->stack, gpc_thread_id()),
	};
}

/* Counts an allocation or free in the counters of the context's pool. */
static void count(const struct gpc_tracked *tracked, bool is_malloc, uint64_t now_ns)
{
	struct gpc_pool *pool = &tracked->context->pool;
	struct gpucache_counters *counters = pool->counters;
	bool on_device = is_on_device(tracked->kind);
	bool is_asked = is_asked_for(tracked->kind);
	bool on_host = gpucache_kind_place(tracked->kind) == GPUCACHE_ON_HOST;
	uint64_t *bytes = on_device ? &counters->direct_bytes : &counters->host_bytes;
	uint64_t *peak = on_device ? &counters->peak_direct_bytes : &counters->peak_host_bytes;
	uint64_t change = is_malloc ? tracked->size : -tracked->size;

	gpc_lock_take(&pool->lock);
	if (tracked->context->is_retired) {
		gpc_lock_release(&pool->lock);
		return;
	}
	if (tracked->kind == GPUCACHE_KIND_SPILLED)
		gpc_counter_add_peak(&counters->kind_bytes[tracked->kind],
			&counters->peak_spilled_bytes, change);
	else
		gpc_counter_add(&counters->kind_bytes[tracked->kind], change);
	if (on_device || on_host)
		gpc_counter_add_peak(bytes, peak, change);
	if (is_asked) {
		gpc_counter_add(is_malloc ? &counters->n_malloc : &counters->n_free, 1);
		gpc_counter_add(
			is_malloc ? &counters->n_driver_malloc : &counters->n_driver_free, 1);
	}
	if (is_asked && is_malloc)
		gpc_counter_set(&counters->last_driver_malloc_ns, now_ns);
	gpc_lock_release(&pool->lock);
}

static struct gpc_address_map *map_of(unsigned int kind)
{
	static const uint8_t spaces[GPUCACHE_KIND_COUNT] = {
		[GPUCACHE_KIND_REGISTERED] = KEY_REGISTERED,
		[GPUCACHE_KIND_PHYSICAL] = KEY_HANDLE,
		[GPUCACHE_KIND_PHYSICAL_HOST] = KEY_HANDLE,
		[GPUCACHE_KIND_MULTICAST] = KEY_HANDLE,
		[GPUCACHE_KIND_ARRAY] = KEY_ARRAY,
		[GPUCACHE_KIND_EXTERNAL] = KEY_EXTERNAL,
	};

	return &tracked_all.maps[spaces[kind]];
}

/* Removes the entry with this key from its map; NULL if there is none. */
static struct gpc_tracked *take_locked(unsigned int kind, uint64_t key)
{
	struct gpc_tracked *tracked = gpc_address_map_take(map_of(kind), key);

	if (tracked)
		gpc_list_remove(&tracked->link);
	if (tracked && tracked->is_arena)
		gpc_arrays_piece_end(key);
	return tracked;
}

/*
 * False if there is no metadata, or if another entry has the key: the driver has given it to another thread.  Also
 * false if the context has ended, because nothing would remove the entry.
 */
static bool put_locked(struct gpc_tracked *tracked)
{
	struct gpc_address_map *map = map_of(tracked->kind);

	if (atomic_load(&tracked->context->is_gone) ||
		gpc_address_map_find(map, tracked->address) || gpc_address_map_reserve(map, 1))
		return false;
	gpc_address_map_insert(map, tracked->address, tracked);
	gpc_list_append(&tracked_all.list, &tracked->link);
	return true;
}

/* Ends the accounting of an entry that is no longer in a map. */
static void end(struct gpc_tracked *tracked)
{
	uint64_t now_ns = gpc_clock_monotonic_ns();
	const struct gpc_observed observed = observed_of(tracked, now_ns);

	gpc_observe_free(&observed);
	gpc_observe_block(&observed, GPUCACHE_BLOCK_UNUSED);
	count(tracked, false, now_ns);
	gpc_pools_count(tracked->context->device, tracked->pool, tracked->size, false);
	if (tracked->padding)
		atomic_fetch_sub(&tracked->context->device->row_padding, tracked->padding);
	if (is_charged(tracked->kind))
		atomic_fetch_sub(&tracked->context->device->budget.used_bytes, tracked->size);
	if (tracked->kind == GPUCACHE_KIND_SPILLED) {
		atomic_fetch_sub(&tracked->context->device->budget.yielding_bytes, tracked->size);
		gpc_spill_returned(tracked->size);
	}
	gpc_slab_give_back(&gpc_runtime.heap.blocks, tracked->number);
}

/* Begins the accounting of an entry that is not in a map yet, and so belongs to this thread alone. */
static void begin(const struct gpc_tracked *tracked, const struct gpc_request *request)
{
	const struct gpc_observed observed = observed_of(tracked, request->now_ns);

	if (is_charged(tracked->kind))
		atomic_fetch_add(&tracked->context->device->budget.used_bytes, tracked->size);
	if (tracked->kind == GPUCACHE_KIND_SPILLED)
		atomic_fetch_add(&tracked->context->device->budget.yielding_bytes, tracked->size);
	/* First subtract its bytes from the idle ones of the driver's pool: counted twice, they could set a peak. */
	gpc_pools_count(tracked->context->device, tracked->pool, tracked->size, true);
	count(tracked, true, request->now_ns);
	if (tracked->padding)
		atomic_fetch_add(&tracked->context->device->row_padding, tracked->padding);
	gpc_observe_block(&observed, GPUCACHE_BLOCK_LIVE);
	gpc_observe_malloc(&observed);
}

static bool put(struct gpc_tracked *tracked)
{
	bool is_in;

	gpc_lock_take(&tracked_all.lock);
	is_in = put_locked(tracked);
	gpc_lock_release(&tracked_all.lock);
	return is_in;
}

/*
 * Without metadata the allocation stays untracked.  Once the entry is in its map, another thread may end it: so that
 * comes last.
 */
void gpc_track_remember(struct gpc_context *context, const struct gpc_passed_call *call,
	const struct gpc_request *request)
{
	uint32_t number = 0;
	struct gpc_tracked *tracked = NULL;
	struct gpc_tracked *stale;

	/* A call may succeed and return no address; then there is nothing to track. */
	if (call->ret_address)
		tracked = gpc_slab_take(&gpc_runtime.heap.blocks, &number);
	if (!tracked)
		return;
	*tracked = (struct gpc_tracked){
		.address = call->ret_address,
		.size = call->ret_size,
		.requested = call->size,
		.padding = call->padding,
		.context = context,
		.number = number,
		.stack = request->mark,
		.kind = (uint8_t)call->kind,
		.pool = call->pool,
	};
	/* Memory of a context that another thread is ending may still be in our map, and would take the free. */
	if (map_of(call->kind) == &tracked_all.maps[KEY_ADDRESS] &&
		!gpc_kind_is_implicit(call->kind))
		gpc_segment_map_evict(
			&gpc_runtime.heap.segment_map, call->ret_address, call->ret_size);
	/* If the driver has reused the address, the old allocation was freed in a way that we do not see. */
	stale = gpc_runtime_forget_key(call->kind, call->ret_address);
	if (stale)
		end(stale);
	begin(tracked, request);
	if (!put(tracked))
		end(tracked);
}

void gpc_runtime_mark_arena(enum gpucache_kind kind, uint64_t key)
{
	struct gpc_observed observed;
	struct gpc_tracked *tracked;

	if (gpc_runtime.config.tensors == GPC_TENSORS_OFF)
		return;
	gpc_lock_take(&tracked_all.lock);
	tracked = gpc_address_map_find(map_of(kind), key);
	if (tracked && !tracked->is_arena) {
		observed = observed_of(tracked, gpc_clock_monotonic_ns());
		gpc_observe_arena(&observed);
		tracked->stack = 0;
		tracked->is_arena = true;
		observed = observed_of(tracked, observed.now_ns);
		gpc_observe_block(&observed, GPUCACHE_BLOCK_LIVE);
		atomic_store_explicit(
			&observed.context->device->has_arenas, true, memory_order_relaxed);
	}
	gpc_lock_release(&tracked_all.lock);
}

uint64_t gpc_track_size(const struct gpc_tracked *tracked)
{
	return tracked->size;
}

bool gpc_track_is_spilled(const struct gpc_tracked *tracked)
{
	return tracked && tracked->kind == GPUCACHE_KIND_SPILLED;
}

/* The limit also binds device memory that is not cached.  Before the driver's call only the requested size is known. */
static bool is_beyond_limit(const struct gpc_context *context, const struct gpc_passed_call *call)
{
	const struct gpc_budget *budget = &context->device->budget;
	uint64_t limit = atomic_load(&budget->limit_bytes);

	return is_on_device((uint8_t)call->kind) && limit &&
	       gpc_bytes_add(atomic_load(&budget->used_bytes), call->size) > limit;
}

struct passed_attempt {
	struct gpc_context *context;
	struct gpc_passed_call *call;
};

static enum gpc_status attempt_passed(struct gpc_rescue *rescue)
{
	struct passed_attempt *attempt = rescue->arg;

	if (is_beyond_limit(attempt->context, attempt->call))
		return GPC_LIMIT;
	return gpc_status_from_device((int)attempt->call->make(attempt->call));
}

/* Climbs the ladder of `context`; NULL: climbs none. */
static CUresult pass(
	struct gpc_passed_call *call, struct gpc_context *accounted_to, struct gpc_context *context)
{
	struct passed_attempt attempt = { .context = accounted_to, .call = call };
	struct gpc_rescue rescue = {
		.context = context,
		.kind = call->kind,
		.size = call->size,
		.rounded = call->size,
		.pool = call->pool,
		.attempt = attempt_passed,
		.arg = &attempt,
	};
	enum gpc_status st;

	if (!accounted_to || call->size == 0)
		return call->make(call);
	rescue.request = gpc_runtime_request(call->size);
	st = attempt_passed(&rescue);
	if (context && (st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT))
		st = gpc_rescue_run(&rescue, st);
	if (st == GPC_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (st) {
		gpc_runtime_answered((CUresult)gpc_status_to_device(st));
		return (CUresult)gpc_status_to_device(st);
	}
	if (rescue.spilled)
		call->ret_address = rescue.spilled;
	else
		gpc_track_remember(accounted_to, call, &rescue.request);
	gpc_spill_served();
	if (context)
		gpc_observe_device(context, false);
	gpc_rescue_succeeded(accounted_to->device, (uint8_t)call->kind, call->size);
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_passed_malloc(struct gpc_passed_call *call)
{
	struct gpc_context *context = gpc_context_current();

	return pass(call, context, context);
}

CUresult gpc_runtime_passed_malloc_of_device(struct gpc_passed_call *call, int number)
{
	const struct gpc_context *current = gpc_context_current();
	struct gpc_device *device;

	if (number == -1)
		number = current ? (int)current->device->ordinal : 0;
	device = gpc_device_at(number);
	if (!device)
		return call->make(call);
	return pass(call, gpc_context_owner(device), gpc_context_on(device));
}

struct gpc_tracked *gpc_runtime_forget_key(enum gpucache_kind kind, uint64_t key)
{
	struct gpc_tracked *tracked;

	gpc_lock_take(&tracked_all.lock);
	tracked = take_locked(kind, key);
	gpc_lock_release(&tracked_all.lock);
	return tracked;
}

struct gpc_tracked *gpc_runtime_forget(uint64_t address)
{
	return gpc_runtime_forget_key(GPUCACHE_KIND_DEVICE, address);
}

void gpc_runtime_forgotten(struct gpc_tracked *tracked, CUresult result)
{
	/*
	 * If the driver refused the free, the program still has the memory.  At the end of the process the driver refuses
	 * every call, and the program has done its part.
	 */
	if (tracked && !(result && result != CUDA_ERROR_DEINITIALIZED && put(tracked)))
		end(tracked);
}

/* Takes any entry of this context, or one from the driver's pools on this device. */
static struct gpc_tracked *take_one(
	const struct gpc_context *context, const struct gpc_device *device)
{
	struct gpc_tracked *found = NULL;

	gpc_lock_take(&tracked_all.lock);
	gpc_list_each (link, &tracked_all.list) {
		struct gpc_tracked *tracked = gpc_list_entry(link, struct gpc_tracked, link);

		if (tracked->context == context ||
			(tracked->pool && tracked->context->device == device)) {
			found = take_locked(tracked->kind, tracked->address);
			break;
		}
	}
	gpc_lock_release(&tracked_all.lock);
	return found;
}

void gpc_track_forget(const struct gpc_context *context, const struct gpc_device *device)
{
	struct gpc_tracked *tracked;

	while ((tracked = take_one(context, device)))
		end(tracked);
}
