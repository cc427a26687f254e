/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors: what PyTorch's allocator hands out of the memory that it got from us.
 *
 *      cudaMalloc(20 MiB)  -->  a block, marked as an arena         its site no longer holds the bytes
 *      tensor, 3 MiB       -->  a block of kind TENSOR within it    the tensor's site holds its 3 MiB
 *
 * So each byte has one holder.  Peaks, growth, leaks, tags and the short form are computed from sites and blocks, and
 * therefore show tensors instead of their arenas.  The region TORCH of the recording has PyTorch's own sums per device:
 * reserved less allocated is what PyTorch caches.
 *
 * An arena is recognized by its thread: after PyTorch has requested memory, it reports the tensor for which it
 * requested the memory before it requests more.  Physical memory (expandable segments) is recognized by the caller, in
 * hooks_vmm.c.
 *
 * Each tensor takes a block number of the heap, as a tracked allocation does (track.c).  A tensor without a slot in
 * BLOCKS still counts in sites and sums.  With tensors:sampled, only tensors with a stack are recorded one by one.
 *
 * Arrays of XLA (arrays.h) are entered here, too, as tensors: in a file of their own the functions that both share are
 * calls, and a pair of PyTorch's is 3 to 8 % slower.
 *
 * PyTorch does not report a tensor's stream.  A tensor is allocated on the thread's current stream unless the program
 * names another one (raw_alloc_with_stream), so the current stream is recorded.  The streams of frees are unknown.
 *
 * Threads   Any.  PyTorch calls us under its own lock of the device, so there is hardly any contention for our locks.
 *           Under our locks we call neither PyTorch nor the driver.
 * Failure   Without metadata, or without the owner of the device, a tensor counts in TORCH only.
 */
#include "runtime/ledger/tensors.h"

#include "alloc/address_map.h"
#include "base/clock.h"
#include "model/counters.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/context/streams.h"
#include "runtime/ledger/arrays.h"
#include "runtime/ledger/observe_hot.h"
#include "runtime/memory.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/rescue.h"

struct tensor {
	uint64_t key; /* in the map: its address, or XLA's handle of an array */
	uint64_t address;
	uint64_t size;
	uint32_t number; /* in the slab, and in the recording */
	uint32_t stack;
};

_Static_assert(sizeof(struct tensor) <= sizeof(struct gpc_block), "shares the slab of blocks");

/* The tensors of one device. */
struct books {
	struct gpc_lock lock;
	struct gpc_address_map map;
	/* Freed, but still in the map with its number, because the next tensor often has the same address. */
	struct tensor *spare;
	struct gpucache_torch own;     /* used without a recording */
	uint64_t array_bytes;          /* in arrays of XLA */
	_Atomic uint64_t pool_bytes;   /* of XLA's own pool */
	struct gpc_address_map pieces; /* of that pool: their sizes */
	_Atomic uint64_t n_arrays;
};

static struct books all_books[GPC_MAX_DEVICES] = {
	[0 ... GPC_MAX_DEVICES - 1] = { .lock = GPC_LOCK_INIT(GPC_RANK_TENSORS) },
};

/* The last device memory that this thread allocated: an arena, if the thread's next tensor lies in it. */
static _Thread_local struct {
	uint64_t address;
	uint64_t size;
} last_malloc;

/* The last failed request of this thread since its last tensor. */
static _Thread_local struct {
	const struct gpc_device *device;
	uint64_t number;
} last_failure;

void gpc_tensors_note_failure(const struct gpc_device *device, uint64_t number)
{
	last_failure.device = device;
	last_failure.number = number;
}

void gpc_tensors_note_malloc(uint64_t address, uint64_t size)
{
	last_malloc.address = address;
	last_malloc.size = size;
}

/* Written under the lock of the device's books. */
struct gpucache_torch *gpc_tensors_sums(const struct gpc_device *device)
{
	struct gpucache_torch *sums = gpc_runtime.record.torch;

	return sums ? &sums[device->ordinal] : &all_books[device->ordinal].own;
}

struct gpucache_oom_torch gpc_tensors_have(const struct gpc_device *device)
{
	const struct gpucache_torch *sums = gpc_tensors_sums(device);

	return (struct gpucache_oom_torch){
		.allocated = gpc_counter_get(&sums->allocated_bytes),
		.reserved = gpc_counter_get(&sums->reserved_bytes),
	};
}

uint64_t gpc_tensors_idle_bytes(const struct gpc_device *device)
{
	struct gpucache_oom_torch torch = gpc_tensors_have(device);

	return gpc_bytes_less(torch.reserved, torch.allocated);
}

static void adopt_last_malloc(uint64_t address)
{
	if (address - last_malloc.address >= last_malloc.size)
		return;
	gpc_memory_mark_arena(last_malloc.address);
	last_malloc.size = 0;
}

static bool is_spare(const struct books *books, uint64_t key)
{
	return books->spare && books->spare->key == key;
}

static struct tensor *put_locked(struct books *books, struct gpc_array array, uint32_t stack)
{
	struct tensor *tensor = books->spare;
	bool is_in_map = is_spare(books, array.buffer);
	uint32_t number = tensor ? tensor->number : 0;

	if (!is_in_map && gpc_address_map_reserve(&books->map, 1))
		return NULL;
	books->spare = NULL;
	if (!tensor)
		tensor = gpc_slab_take(&gpc_runtime.heap.blocks, &number);
	else if (!is_in_map)
		(void)gpc_address_map_take(&books->map, tensor->key);
	if (!tensor)
		return NULL;
	*tensor = (struct tensor){
		.key = array.buffer,
		.address = array.address,
		.size = array.size,
		.number = number,
		.stack = stack,
	};
	if (!is_in_map)
		gpc_address_map_insert(&books->map, array.buffer, tensor);
	return tensor;
}

static void count_malloc_locked(struct gpucache_torch *sums, uint64_t allocated, uint64_t reserved)
{
	if (sums->n_malloc == 0 && gpc_runtime.record.base)
		gpc_record_mark_page(&gpc_runtime.record, sums);
	gpc_counter_add(&sums->n_malloc, 1);
	gpc_counter_set(&sums->allocated_bytes, allocated);
	gpc_counter_set(&sums->reserved_bytes, reserved);
	gpc_counter_raise(&sums->peak_allocated_bytes, allocated);
	gpc_counter_raise(&sums->peak_reserved_bytes, reserved);
}

/* Tells the recording that the tensor was allocated or freed. */
GPC_HOT void observe(struct gpc_context *owner, const struct tensor *tensor, bool is_freed)
{
	struct gpc_observed observed = {
		.context = owner,
		.kind = GPUCACHE_KIND_TENSOR,
		.number = tensor->number,
		.segment = GPUCACHE_NO_SEGMENT,
		.is_sampled = true,
		.address = tensor->address,
		.size = tensor->size,
		.requested = tensor->size,
		.who = gpc_record_halves(tensor->stack, gpc_thread_id()),
	};

	/* The processor fetches the block and the site, which are stored next, while the clock is read. */
	gpc_record_expect_block(&gpc_runtime.record, tensor->number);
	gpc_record_expect_site(&gpc_runtime.record, owner->device->ordinal, tensor->stack);
	observed.now_ns = gpc_clock_ns();
	if (is_freed) {
		gpc_observe_free(&observed);
		gpc_observe_block(&observed, GPUCACHE_BLOCK_UNUSED);
	} else {
		gpc_observe_block(&observed, GPUCACHE_BLOCK_LIVE);
		gpc_observe_malloc(&observed);
	}
}

/* Removes a tensor; returns its size, 0 if it is not known. */
static uint64_t forget_locked(struct books *books, struct gpc_context *owner, uint64_t key)
{
	struct tensor *tensor =
		is_spare(books, key) ? NULL : gpc_address_map_find(&books->map, key);
	uint64_t size;

	if (!tensor)
		return 0;
	size = tensor->size;
	observe(owner, tensor, true);
	if (!books->spare) {
		books->spare = tensor;
		return size;
	}
	(void)gpc_address_map_take(&books->map, key);
	gpc_slab_give_back(&gpc_runtime.heap.blocks, tensor->number);
	return size;
}

/* With tensors:sampled, a tensor without a stack has no site either (model/share.h): only TORCH counts it. */
static bool is_left_out(uint32_t stack)
{
	return stack == 0 && gpc_runtime.config.tensors == GPC_TENSORS_SAMPLED &&
	       gpc_runtime.config.stacks == GPC_STACKS_SAMPLED;
}

static bool record_locked(
	struct books *books, struct gpc_context *owner, struct gpc_array array, uint32_t stack)
{
	const struct tensor *tensor = put_locked(books, array, stack);

	if (tensor)
		observe(owner, tensor, false);
	return tensor;
}

/*
 * What PyTorch mapped for the tensor may have made a peak before the tensor was reported, when no site held it yet: the
 * peak is taken again.
 */
static void renew_peak(struct gpc_device *device)
{
	atomic_store_explicit(&device->has_arenas, false, memory_order_relaxed);
	gpc_record_peak_reopen(&gpc_runtime.record, device->ordinal);
	gpc_levels_record(device, gpc_levels_sum(device), gpc_clock_ns());
}

static void allocated(struct gpc_device *device, uint64_t address, uint64_t size,
	uint64_t allocated_bytes, uint64_t reserved_bytes, gpc_tensor_stream *find_stream)
{
	struct gpc_context *owner = gpc_context_owner(device);
	struct books *books = &all_books[device->ordinal];
	uint32_t stack = gpc_runtime_stack_of(size);
	CUstream stream;

	if (!is_left_out(stack) && find_stream((int)device->ordinal, &stream)) {
		gpc_streams_name(stream);
		if (gpc_runtime_is_captured(stream))
			gpc_record_site_mark(&gpc_runtime.record, device->ordinal, stack,
				GPUCACHE_SITE_CAPTURED);
	}
	adopt_last_malloc(address);
	gpc_lock_take(&books->lock);
	count_malloc_locked(gpc_tensors_sums(device), allocated_bytes, reserved_bytes);
	(void)forget_locked(books, owner, address); /* its free was not reported */
	if (owner && !is_left_out(stack))
		(void)record_locked(
			books, owner, (struct gpc_array){ address, address, size, true }, stack);
	gpc_lock_release(&books->lock);
	if (atomic_load_explicit(&device->has_arenas, memory_order_relaxed))
		renew_peak(device);
	last_failure.device = NULL;
	gpc_rescue_succeeded(device, GPUCACHE_KIND_TENSOR, size);
}

static void freed(struct gpc_device *device, uint64_t address, uint64_t allocated_bytes,
	uint64_t reserved_bytes)
{
	struct gpc_context *owner = gpc_context_owner(device);
	struct books *books = &all_books[device->ordinal];
	struct gpucache_torch *sums = gpc_tensors_sums(device);

	gpc_record_expect_event(&gpc_runtime.record);
	gpc_lock_take(&books->lock);
	gpc_counter_set(&sums->allocated_bytes, allocated_bytes);
	gpc_counter_set(&sums->reserved_bytes, reserved_bytes);
	gpc_counter_add(&sums->n_free, 1);
	(void)forget_locked(books, owner, address);
	gpc_lock_release(&books->lock);
}

bool gpc_runtime_wants_arrays(void)
{
	return gpc_runtime.config.tensors != GPC_TENSORS_OFF;
}

static struct gpc_device *device_of(int number)
{
	return gpc_runtime_wants_arrays() ? gpc_device_at(number) : NULL;
}

void gpc_runtime_tensor(int number, uint64_t address, int64_t size, uint64_t allocated_bytes,
	uint64_t reserved_bytes, gpc_tensor_stream *find_stream)
{
	struct gpc_device *device = device_of(number);

	if (device && size > 0)
		allocated(device, address, (uint64_t)size, allocated_bytes, reserved_bytes,
			find_stream);
	else if (device && size < 0)
		freed(device, address, allocated_bytes, reserved_bytes);
}

/* A request of `torch->requested` bytes failed within the framework. */
static void failed(struct gpc_device *device, const struct gpucache_oom_torch *torch)
{
	struct gpucache_torch *sums = gpc_tensors_sums(device);

	gpc_lock_take(&all_books[device->ordinal].lock);
	gpc_counter_add(&sums->n_failed, 1);
	gpc_counter_set(&sums->failed_bytes, torch->requested);
	gpc_counter_set(&sums->allocated_bytes, torch->allocated);
	gpc_counter_set(&sums->reserved_bytes, torch->reserved);
	gpc_lock_release(&all_books[device->ordinal].lock);
	if (last_failure.device != device)
		gpc_rescue_refused(
			gpc_context_on(device), GPUCACHE_KIND_TENSOR, torch->requested, GPC_LIMIT);
	if (last_failure.device == device)
		gpc_rescue_torch_failed(device, last_failure.number, torch);
	last_failure.device = NULL;
}

void gpc_runtime_tensor_failed(
	int number, int64_t size, uint64_t allocated_bytes, uint64_t reserved_bytes)
{
	struct gpc_device *device = device_of(number);

	if (device && size >= 0)
		failed(device, &(struct gpucache_oom_torch){
				       (uint64_t)size, allocated_bytes, reserved_bytes });
}

/* ---- arrays of XLA (arrays.h) ---- */

_Atomic uint32_t gpc_arrays_n_pieces;

/* What the program needs whose failure this thread reports. */
static _Thread_local struct gpucache_oom_program failing;

struct gpucache_oom_program gpc_arrays_program(void)
{
	return failing;
}

/* Without a pool each array has memory of its own, which is lent to it. */
static void adopt_own(const struct books *books, uint64_t address)
{
	if (!atomic_load_explicit(&books->pool_bytes, memory_order_relaxed))
		gpc_memory_mark_arena(address);
}

/* Without a pool, all that XLA holds is in arrays. */
static uint64_t reserved_locked(const struct books *books)
{
	return gpc_larger(books->array_bytes, atomic_load(&books->pool_bytes));
}

void gpc_runtime_array(int number, const struct gpc_array *array, uint32_t stack)
{
	struct gpc_device *device = device_of(number);
	struct gpc_context *owner;
	struct books *books;
	struct gpucache_torch *sums;

	if (!device || !array->size)
		return;
	owner = gpc_context_owner(device);
	books = &all_books[device->ordinal];
	sums = gpc_tensors_sums(device);
	adopt_own(books, array->address);
	gpc_lock_take(&books->lock);
	/* An array whose end passed us by. */
	books->array_bytes -= forget_locked(books, owner, array->buffer);
	if (owner && !is_left_out(stack) && record_locked(books, owner, *array, stack))
		books->array_bytes += array->size;
	sums->framework = GPUCACHE_FRAMEWORK_XLA;
	count_malloc_locked(sums, books->array_bytes, reserved_locked(books));
	atomic_fetch_add_explicit(&books->n_arrays, 1, memory_order_relaxed);
	gpc_lock_release(&books->lock);
	last_failure.device = NULL;
	if (array->is_sure)
		gpc_rescue_succeeded(device, GPUCACHE_KIND_TENSOR, array->size);
}

static void resize_pool_locked(struct gpc_device *device, uint64_t change)
{
	struct books *books = &all_books[device->ordinal];

	atomic_fetch_add(&books->pool_bytes, change);
	gpc_counter_set(&gpc_tensors_sums(device)->reserved_bytes, reserved_locked(books));
}

static void end_piece_locked(struct gpc_device *device, uint64_t key)
{
	struct gpc_address_map *pieces = &all_books[device->ordinal].pieces;
	uint64_t size = (uintptr_t)gpc_address_map_take(pieces, key);

	if (!size)
		return;
	atomic_fetch_sub(&gpc_arrays_n_pieces, 1);
	resize_pool_locked(device, -size);
}

void gpc_runtime_arrays_pool(int number, int64_t change)
{
	struct gpc_device *device = device_of(number);

	if (!device)
		return;
	gpc_lock_take(&all_books[number].lock);
	resize_pool_locked(device, (uint64_t)change);
	gpc_lock_release(&all_books[number].lock);
}

void gpc_arrays_piece(int number, uint64_t key, uint64_t size)
{
	struct gpc_device *device = device_of(number);
	struct gpc_address_map *pieces;

	if (!device)
		return;
	pieces = &all_books[number].pieces;
	gpc_lock_take(&all_books[number].lock);
	end_piece_locked(device, key); /* its end passed us by */
	if (!gpc_address_map_reserve(pieces, 1)) {
		gpc_address_map_insert(pieces, key, (void *)(uintptr_t)size);
		atomic_fetch_add(&gpc_arrays_n_pieces, 1);
		atomic_store(&gpc_runtime.heap.watches_frees, true);
	}
	gpc_lock_release(&all_books[number].lock);
}

void gpc_arrays_end_piece(uint64_t key)
{
	for (uint32_t i = 0; i < gpc_runtime.n_devices; i++) {
		gpc_lock_take(&all_books[i].lock);
		end_piece_locked(&gpc_runtime.devices[i], key);
		gpc_lock_release(&all_books[i].lock);
	}
}

static bool end_array(struct gpc_device *device, uint64_t buffer)
{
	struct books *books = &all_books[device->ordinal];
	struct gpucache_torch *sums = gpc_tensors_sums(device);
	struct gpc_context *owner;
	uint64_t size;

	if (!atomic_load_explicit(&books->n_arrays, memory_order_relaxed))
		return false;
	owner = gpc_context_owner(device);
	gpc_lock_take(&books->lock);
	size = forget_locked(books, owner, buffer);
	books->array_bytes -= size;
	if (size) {
		gpc_counter_set(&sums->allocated_bytes, books->array_bytes);
		gpc_counter_set(&sums->reserved_bytes, reserved_locked(books));
		gpc_counter_add(&sums->n_free, 1);
	}
	gpc_lock_release(&books->lock);
	return size;
}

void gpc_runtime_array_end(uint64_t buffer)
{
	for (uint32_t i = 0; i < gpc_runtime.n_devices; i++)
		if (end_array(&gpc_runtime.devices[i], buffer))
			return;
}

/* The device with the most arrays, for a failure that names none. */
static int likely_device(void)
{
	int most = 0;

	for (int i = 1; i < (int)GPC_MAX_DEVICES; i++)
		if (atomic_load(&all_books[i].n_arrays) > atomic_load(&all_books[most].n_arrays))
			most = i;
	return most;
}

void gpc_runtime_array_failed(
	int number, uint64_t size, uint64_t in_use, const struct gpucache_oom_program *program)
{
	struct gpc_device *device = device_of(number < 0 ? likely_device() : number);
	struct gpucache_oom_torch torch = { .requested = size };
	struct books *books;

	if (!device)
		return;
	books = &all_books[device->ordinal];
	gpc_lock_take(&books->lock);
	torch.allocated = books->array_bytes;
	torch.reserved = reserved_locked(books);
	gpc_tensors_sums(device)->framework = GPUCACHE_FRAMEWORK_XLA;
	gpc_lock_release(&books->lock);
	failing = program ? *program : (struct gpucache_oom_program){ 0 };
	failing.pool_in_use = in_use;
	failed(device, &torch);
	failing = (struct gpucache_oom_program){ 0 };
}
