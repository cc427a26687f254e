/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC: memory exported to other processes by handle, and memory imported from them.
 *
 *      cuIpcGetMemHandle(ptr)      starts its segment        the driver's handle
 *                                  inside its segment        a tag (ipc_registry.h); until the block is freed,
 *                                                            later calls return the same tag
 *      cuIpcOpenMemHandle(tag)     the tag's entry exists    opens the driver's handle, and adds the offset
 *                                  the entry is gone         an error, and a line on stderr
 *
 * As with the driver, any address inside a block exports the block.  A program may have queried the base of the block's
 * segment before (cuMemGetAddressRange, as UCX does).  Its importer then adds the block's offset itself, so such a
 * program gets the driver's handle of the segment instead of a tag.
 *
 * The driver counts references to imported memory per segment, so we count them per tag.  Imported memory is accounted
 * to the kind IPC: memory of other processes.
 */
#include "runtime/export/ipc.h"

#include <string.h>

#include "alloc/address_map.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "runtime/context/contexts.h"
#include "runtime/context/pages.h"
#include "runtime/context/reach.h"
#include "runtime/export/ipc_registry.h"
#include "runtime/ledger/track.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"

/* A block that was exported by a tag. */
struct exported {
	const struct gpc_pool *pool;
	CUipcMemHandle tag;
	uint32_t number; /* of the item in the slab, and of the entry in the registry */
};

/* An imported handle that the program holds open. */
struct opened {
	struct gpc_list link;
	const struct gpc_context *context;
	CUdeviceptr ptr;  /* as returned to the program */
	CUdeviceptr base; /* as returned by the driver */
	uint64_t size;    /* 0: unknown */
	uint32_t n_opens;
	uint32_t number; /* in the slab */
};

#define MAX_OPENED        (1u << 20)
#define FIRST_CHUNK_ITEMS 64

static struct {
	struct gpc_address_map exports; /* by block address */
	struct gpc_slab exported_items;
	struct gpc_ipc_registry registry;
	struct gpc_address_map opens; /* by address as returned to the program */
	struct gpc_slab opened_items;
	struct gpc_list opened;
	_Atomic uint32_t n_exports; /* read without the lock */
	_Atomic uint32_t n_inside;  /* opened at an offset; read without the lock */
	struct gpc_lock lock;
} ipc = {
	.exported_items = GPC_SLAB_INIT(struct exported, FIRST_CHUNK_ITEMS, GPC_IPC_MAX_ENTRIES),
	.opened_items = GPC_SLAB_INIT(struct opened, FIRST_CHUNK_ITEMS, MAX_OPENED),
	.opened = GPC_LIST_INIT(ipc.opened),
	.lock = GPC_LOCK_INIT(GPC_RANK_IPC),
};

/* --- Exports ---------------------------------------------------------------------------------- */

static void withdraw_locked(uint64_t address)
{
	struct exported *exported = gpc_address_map_take(&ipc.exports, address);

	if (!exported)
		return;
	gpc_ipc_registry_remove(&ipc.registry, exported->number);
	gpc_slab_give_back(&ipc.exported_items, exported->number);
	atomic_fetch_sub(&ipc.n_exports, 1);
}

void gpc_ipc_withdraw(uint64_t address)
{
	if (atomic_load_explicit(&ipc.n_exports, memory_order_relaxed) == 0)
		return;
	gpc_lock_take(&ipc.lock);
	withdraw_locked(address);
	gpc_lock_release(&ipc.lock);
}

static enum gpc_status tag_locked(const struct gpc_pool *pool, const struct gpc_span *span,
	const CUipcMemHandle *handle, CUipcMemHandle *ret_tag)
{
	struct exported *exported = gpc_address_map_find(&ipc.exports, span->block);
	struct gpc_ipc_target target = {
		.handle = *handle, .offset = span->block - span->segment, .size = span->size
	};
	uint32_t number = 0;
	enum gpc_status st;

	if (exported && exported->pool == pool) {
		*ret_tag = exported->tag;
		return GPC_OK;
	}
	/* The block of a context that another thread is ending: the driver has given its address to this one. */
	if (exported)
		withdraw_locked(span->block);
	if (atomic_load(&gpc_context_of(pool)->is_gone))
		return GPC_NOT_FOUND;
	if (gpc_address_map_reserve(&ipc.exports, 1))
		return GPC_NO_METADATA;
	exported = gpc_slab_take(&ipc.exported_items, &number);
	if (!exported)
		return GPC_FULL;
	st = gpc_ipc_registry_add(&ipc.registry, number, &target, &exported->tag);
	if (st) {
		gpc_slab_give_back(&ipc.exported_items, number);
		return st;
	}
	exported->pool = pool;
	exported->number = number;
	gpc_address_map_insert(&ipc.exports, span->block, exported);
	atomic_fetch_add(&ipc.n_exports, 1);
	*ret_tag = exported->tag;
	return GPC_OK;
}

static CUresult refuse(CUdeviceptr ptr, const char *why)
{
	gpc_log("cuIpcGetMemHandle(0x%llx): refused, because another process would read wrong "
		"data: this block lies inside a cached segment, and %s; or run the program with "
		"GPUCACHE_CONF=cache:off",
		(unsigned long long)ptr, why);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void say_once(CUdeviceptr ptr)
{
	static atomic_bool was_said;

	if (!atomic_exchange(&was_said, true))
		gpc_log("cuIpcGetMemHandle(0x%llx): this block lies inside a cached segment; the "
			"process that opens its handle needs libgpucache, too, or gets an error "
			"(GPUCACHE_CONF=cache:off if it cannot have it)",
			(unsigned long long)ptr);
}

static CUresult export_inside(struct gpc_pool *pool, const struct gpc_span *span,
	const CUipcMemHandle *handle, CUipcMemHandle *ret_handle)
{
	enum gpc_status st;

	gpc_lock_take(&ipc.lock);
	st = tag_locked(pool, span, handle, ret_handle);
	gpc_lock_release(&ipc.lock);
	if (st == GPC_NOT_FOUND)
		return CUDA_ERROR_INVALID_VALUE; /* another thread ended the context meanwhile */
	if (st)
		return refuse(span->block, st == GPC_FULL
						   ? "too many such blocks are exported already"
						   : "its place cannot be stored in /dev/shm or "
						     "/tmp");
	say_once(span->block);
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_ipc_export(CUipcMemHandle *ret_handle, CUdeviceptr ptr,
	CUresult (*real)(CUipcMemHandle *, CUdeviceptr))
{
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);
	struct gpc_span span = { .segment = ptr, .block = ptr };
	CUipcMemHandle handle;
	enum gpc_status st = GPC_OK;
	gpc_devptr base;
	uint64_t size;
	CUresult result;

	if (!ret_handle || !pool || gpc_pool_segment_of(pool, ptr, &base, &size))
		return real(ret_handle, ptr);
	/* At a segment's start the program may export the whole segment, even without a block there. */
	if (base != ptr)
		st = gpc_pool_decide_view(pool, ptr, GPC_VIEW_OPEN, &span);
	gpc_runtime_leaves_order(ptr);
	result = real(&handle, span.segment);
	if (!result && st)
		result = CUDA_ERROR_INVALID_VALUE; /* no live block has this address */
	if (result)
		return result;
	atomic_store(&gpc_runtime.heap.watches_frees, true);
	gpc_heap_set_apart(&gpc_runtime.heap, GPC_WHOLE_EXPORTED);
	if (gpc_pool_export(pool, span.segment, &base))
		return CUDA_ERROR_INVALID_VALUE; /* another thread freed it meanwhile */
	if (span.block != span.segment &&
		gpc_pool_decide_view(pool, span.block, GPC_VIEW_OWN, &span))
		return CUDA_ERROR_INVALID_VALUE;
	if (span.view == GPC_VIEW_OWN)
		return export_inside(pool, &span, &handle, ret_handle);
	*ret_handle = handle;
	return CUDA_SUCCESS;
}

/* --- Memory of others ------------------------------------------------------------------------- */

static void drop_opened_locked(struct opened *opened)
{
	(void)gpc_address_map_take(&ipc.opens, opened->ptr);
	gpc_list_remove(&opened->link);
	if (opened->ptr != opened->base)
		atomic_fetch_sub(&ipc.n_inside, 1);
	gpc_slab_give_back(&ipc.opened_items, opened->number);
}

static bool note_opened_locked(const struct opened *what)
{
	struct opened *opened = gpc_address_map_find(&ipc.opens, what->ptr);
	uint32_t number = 0;

	/* Another thread has ended the context meanwhile, and the memory went with it. */
	if (what->context && atomic_load(&what->context->is_gone))
		return true;
	/* The entry is stale: its context was destroyed unseen, and the memory with the context. */
	if (opened && (opened->base != what->base || opened->context != what->context)) {
		drop_opened_locked(opened);
		opened = NULL;
	}
	if (opened) {
		opened->n_opens += what->n_opens;
		return true;
	}
	if (gpc_address_map_reserve(&ipc.opens, 1))
		return false;
	opened = gpc_slab_take(&ipc.opened_items, &number);
	if (!opened)
		return false;
	*opened = *what;
	opened->number = number;
	gpc_address_map_insert(&ipc.opens, opened->ptr, opened);
	gpc_list_append(&ipc.opened, &opened->link);
	if (opened->ptr != opened->base)
		atomic_fetch_add(&ipc.n_inside, 1);
	return true;
}

static bool note_opened(const struct opened *what)
{
	bool is_noted;

	gpc_lock_take(&ipc.lock);
	is_noted = note_opened_locked(what);
	gpc_lock_release(&ipc.lock);
	return is_noted;
}

/* The driver's call of a tracked allocation, which has been made already. */
static CUresult make_known(struct gpc_passed_call *call)
{
	(void)call;
	return CUDA_SUCCESS;
}

static void book(const struct opened *what)
{
	struct gpc_passed_call call = {
		.make = make_known,
		.kind = GPUCACHE_KIND_IPC,
		.size = what->size,
		.ret_address = what->ptr,
		.ret_size = what->size,
	};

	(void)gpc_runtime_passed_malloc(&call);
}

/* Asks the driver for the size; 0: unknown. */
static uint64_t ask_size(CUdeviceptr base)
{
	CUdeviceptr start = 0;
	size_t size = 0;

	if (!gpc_runtime.fns->cuMemGetAddressRange_v2 ||
		gpc_runtime.fns->cuMemGetAddressRange_v2(&start, &size, base) || start > base)
		return 0;
	return size - (base - start);
}

CUresult gpc_runtime_ipc_open(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags,
	CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
	CUresult (*real_close)(CUdeviceptr))
{
	struct gpc_ipc_target target = { .handle = handle };
	struct opened opened = { .context = gpc_context_current(), .n_opens = 1 };
	CUresult result;

	gpc_pages_end();
	if (!ret_ptr)
		return real(ret_ptr, handle, flags);
	if (gpc_ipc_is_tag(&handle) && gpc_ipc_registry_find(&handle, &target)) {
		gpc_log("cuIpcOpenMemHandle: this handle refers to a block inside a segment of "
			"another process's libgpucache, and that block is gone or not visible "
			"here; both processes must belong to one user and share /dev/shm");
		return CUDA_ERROR_INVALID_VALUE;
	}
	result = real(&opened.base, target.handle, flags);
	if (result)
		return result;
	opened.ptr = opened.base + target.offset;
	opened.size = target.size ? target.size : ask_size(opened.base);
	/* cuIpcCloseMemHandle finds the driver's base of an interior pointer by its entry. */
	if (!note_opened(&opened) && opened.ptr != opened.base) {
		(void)real_close(opened.base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (opened.size)
		book(&opened);
	*ret_ptr = opened.ptr;
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_ipc_close(CUdeviceptr ptr, CUresult (*real_close)(CUdeviceptr))
{
	struct gpc_tracked *tracked = NULL;
	struct opened what = { .base = ptr };
	struct opened *opened;
	CUresult result;
	bool is_last = false;

	/* The entry goes before the driver's call, because the driver may then give the address to another thread. */
	gpc_lock_take(&ipc.lock);
	opened = gpc_address_map_find(&ipc.opens, ptr);
	if (opened) {
		what = *opened;
		is_last = --opened->n_opens == 0;
	}
	if (is_last)
		drop_opened_locked(opened);
	gpc_lock_release(&ipc.lock);
	if (is_last)
		tracked = gpc_runtime_forget(ptr);
	result = real_close(what.base);
	what.n_opens = 1;
	if (result && opened)
		(void)note_opened(&what);
	gpc_runtime_forgotten(tracked, result);
	return result;
}

/* --- Queries, and the end of memory ----------------------------------------------------------- */

void gpc_runtime_identified(CUdeviceptr ptr)
{
	if (!gpc_heap_find_pool(&gpc_runtime.heap, ptr))
		return;
	gpc_pages_end();
	gpc_heap_set_apart(&gpc_runtime.heap, GPC_WHOLE_ASKED);
}

static bool find_inside(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_size)
{
	bool is_found = false;

	gpc_lock_take(&ipc.lock);
	gpc_list_each (link, &ipc.opened) {
		const struct opened *at = gpc_list_entry(link, struct opened, link);

		if (at->ptr == at->base || ptr - at->ptr >= at->size)
			continue;
		*ret_base = at->ptr;
		*ret_size = at->size;
		is_found = true;
	}
	gpc_lock_release(&ipc.lock);
	return is_found;
}

bool gpc_runtime_ipc_range(
	CUdeviceptr ptr, bool is_base_told, CUdeviceptr *ret_base, size_t *ret_size)
{
	const enum gpc_block_view view = is_base_told ? GPC_VIEW_SEGMENT : GPC_VIEW_OPEN;
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);
	struct gpc_span span;

	if (!pool)
		return atomic_load_explicit(&ipc.n_inside, memory_order_relaxed) > 0 &&
		       find_inside(ptr, ret_base, ret_size);
	gpc_pages_end();
	gpc_heap_set_apart(&gpc_runtime.heap, GPC_WHOLE_ASKED);
	if (gpc_pool_decide_view(pool, ptr, view, &span) || span.view != GPC_VIEW_OWN)
		return false;
	*ret_base = span.block;
	*ret_size = span.size;
	return true;
}

/* Withdraws the exports of one pool. */
static void withdraw_pool_locked(const struct gpc_pool *pool)
{
	uint64_t i = 0;

	while (i < ipc.exports.n_slots) {
		const struct gpc_address_slot *slot = &ipc.exports.slots[i];
		const struct exported *exported = slot->value;

		/* Removal may shift a later entry into this slot, so stay. */
		if (slot->address && exported->pool == pool)
			withdraw_locked(slot->address);
		else
			i++;
	}
}

void gpc_ipc_forget_context(const struct gpc_context *context)
{
	gpc_lock_take(&ipc.lock);
	withdraw_pool_locked(&context->pool);
	gpc_list_each_safe (link, &ipc.opened) {
		struct opened *at = gpc_list_entry(link, struct opened, link);

		if (at->context == context)
			drop_opened_locked(at);
	}
	gpc_lock_release(&ipc.lock);
}

void gpc_ipc_end(bool is_child)
{
	/* A fork child has one thread.  No thread there would release a lock that was held at the fork. */
	if (!is_child)
		gpc_lock_take(&ipc.lock);
	gpc_ipc_registry_fini(&ipc.registry, is_child);
	if (!is_child)
		gpc_lock_release(&ipc.lock);
}

void gpc_runtime_exported(CUdeviceptr ptr)
{
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);
	gpc_devptr base = 0;

	gpc_runtime_leaves_order(ptr);
	if (pool)
		(void)!gpc_pool_export(pool, ptr, &base);
}

void gpc_runtime_imported(CUdeviceptr ptr)
{
	struct gpc_context *context = gpc_context_current();
	struct gpc_passed_call call = { .kind = GPUCACHE_KIND_IPC, .ret_address = ptr };
	struct gpc_request request;
	size_t size = 0;

	if (!context || !gpc_runtime.fns->cuMemGetAddressRange_v2 ||
		gpc_runtime.fns->cuMemGetAddressRange_v2(NULL, &size, ptr))
		return;
	call.size = size;
	call.ret_size = size;
	request = gpc_runtime_request(size);
	gpc_track_remember(context, &call, &request);
}
