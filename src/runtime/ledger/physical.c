/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference counts of physical memory.  By them we know when the driver frees the memory, and remove its entry.
 *
 *      handle ---- n_holders    cuMemCreate, cuMemRetainAllocationHandle, an import that returned the same handle
 *             '--- n_mappings   cuMemMap, by start address
 *
 * cuda.h: "The memory allocation will be freed when all outstanding mappings to the memory are
 * unmapped and when all outstanding references to the handle are also released."  So the entry in track.c is removed
 * before the driver's call that drops the last holder or mapping, and restored if the driver refuses the call.  The end
 * of a context frees no physical memory, which by cuda.h belongs to no context.
 *
 * Invariants  1 A handle is listed while it has holders or mappings.
 * Threads     Any; one lock, under which the lock of track.c may be taken.
 * Failure     Without metadata a handle or mapping is not listed.  An unlisted handle is assumed to be freed by its
 *             release.
 * Limits      Other references are not seen: exported file descriptors, other processes, tiles of sparse arrays,
 *             bindings to multicast objects.  Memory imported under a new handle has no entry: the exporting process
 *             accounts for it.
 */
#include "runtime/ledger/physical.h"

#include "alloc/address_map.h"
#include "base/metamem.h"
#include "runtime/ledger/track.h"

struct handle {
	uint64_t key;
	uint32_t number; /* in the slab */
	uint32_t n_holders;
	uint32_t n_mappings;
};

struct gpc_mapping {
	struct gpc_mapping *next;    /* of the same unmap call */
	struct gpc_tracked *tracked; /* set if this was the last reference to the memory */
	uint64_t address;
	uint64_t size;
	uint64_t handle;
	uint32_t number;
};

/* Enough for 32 TiB in 2 MiB pieces. */
#define MAX_ITEMS         (1u << 24)
#define FIRST_CHUNK_ITEMS 256

static struct {
	struct gpc_address_map handles;
	struct gpc_address_map mappings;
	struct gpc_slab handle_items;
	struct gpc_slab mapping_items;
	struct gpc_lock lock;
} physical = {
	.handle_items = GPC_SLAB_INIT(struct handle, FIRST_CHUNK_ITEMS, MAX_ITEMS),
	.mapping_items = GPC_SLAB_INIT(struct gpc_mapping, FIRST_CHUNK_ITEMS, MAX_ITEMS),
	.lock = GPC_LOCK_INIT(GPC_RANK_PHYSICAL),
};

/* Finds the handle or lists it; NULL: no metadata. */
static struct handle *get_locked(uint64_t key)
{
	struct handle *handle = gpc_address_map_find(&physical.handles, key);
	uint32_t number = 0;

	if (handle || key == 0 || gpc_address_map_reserve(&physical.handles, 1))
		return handle;
	handle = gpc_slab_take(&physical.handle_items, &number);
	if (!handle)
		return NULL;
	handle->key = key;
	handle->number = number;
	gpc_address_map_insert(&physical.handles, key, handle);
	return handle;
}

/* If the handle has no holders and no mappings, unlists it, and removes and returns its entry in track.c. */
static struct gpc_tracked *drop_if_last_locked(struct handle *handle)
{
	uint64_t key = handle->key;

	if (handle->n_holders > 0 || handle->n_mappings > 0)
		return NULL;
	(void)gpc_address_map_take(&physical.handles, key);
	gpc_slab_give_back(&physical.handle_items, handle->number);
	return gpc_runtime_forget_key(GPUCACHE_KIND_PHYSICAL, key);
}

static void hold_locked(uint64_t key)
{
	struct handle *handle = get_locked(key);

	if (handle)
		handle->n_holders++;
}

void gpc_runtime_handle_created(uint64_t key)
{
	struct handle *handle;

	gpc_lock_take(&physical.lock);
	handle = get_locked(key);
	if (handle) {
		handle->n_holders = 1;
		handle->n_mappings = 0;
	}
	gpc_lock_release(&physical.lock);
}

void gpc_runtime_handle_held(uint64_t key)
{
	gpc_lock_take(&physical.lock);
	hold_locked(key);
	gpc_lock_release(&physical.lock);
}

static void list_locked(struct gpc_mapping *mapping)
{
	struct handle *handle = get_locked(mapping->handle);

	if (!handle || gpc_address_map_reserve(&physical.mappings, 1)) {
		gpc_slab_give_back(&physical.mapping_items, mapping->number);
		return;
	}
	gpc_address_map_insert(&physical.mappings, mapping->address, mapping);
	handle->n_mappings++;
}

void gpc_runtime_handle_mapped(uint64_t key, uint64_t address, uint64_t size)
{
	struct gpc_mapping *mapping;
	uint32_t number = 0;

	gpc_lock_take(&physical.lock);
	mapping = gpc_slab_take(&physical.mapping_items, &number);
	if (mapping) {
		mapping->address = address;
		mapping->size = size;
		mapping->handle = key;
		mapping->number = number;
		list_locked(mapping);
	}
	gpc_lock_release(&physical.lock);
}

struct gpc_release gpc_runtime_begin_release(uint64_t key)
{
	struct gpc_release release = { .handle = 0 };
	struct handle *handle;

	gpc_lock_take(&physical.lock);
	handle = gpc_address_map_find(&physical.handles, key);
	if (!handle) {
		release.tracked = gpc_runtime_forget_key(GPUCACHE_KIND_PHYSICAL, key);
	} else if (handle->n_holders > 0) {
		release.handle = key;
		handle->n_holders--;
		release.tracked = drop_if_last_locked(handle);
	}
	gpc_lock_release(&physical.lock);
	return release;
}

/* The driver accepts only whole mappings, one or several adjacent ones. */
struct gpc_release gpc_runtime_begin_unmap(uint64_t address, uint64_t size)
{
	struct gpc_release release = { .handle = 0 };
	struct gpc_mapping *mapping;

	gpc_lock_take(&physical.lock);
	for (uint64_t done = 0; done < size; done += mapping->size) {
		struct handle *handle;

		mapping = gpc_address_map_take(&physical.mappings, address + done);
		if (!mapping)
			break;
		mapping->next = release.mappings;
		release.mappings = mapping;
		handle = gpc_address_map_find(&physical.handles, mapping->handle);
		if (handle && handle->n_mappings > 0) {
			handle->n_mappings--;
			mapping->tracked = drop_if_last_locked(handle);
		}
	}
	gpc_lock_release(&physical.lock);
	return release;
}

void gpc_runtime_end_release(struct gpc_release release, CUresult result)
{
	struct gpc_mapping *next;

	gpc_runtime_forgotten(release.tracked, result);
	if (!release.mappings && !(release.handle && result))
		return;
	gpc_lock_take(&physical.lock);
	if (result && release.handle)
		hold_locked(release.handle);
	for (struct gpc_mapping *mapping = release.mappings; mapping; mapping = next) {
		next = mapping->next;
		gpc_runtime_forgotten(mapping->tracked, result);
		mapping->tracked = NULL;
		if (result)
			list_locked(mapping);
		else
			gpc_slab_give_back(&physical.mapping_items, mapping->number);
	}
	gpc_lock_release(&physical.lock);
}
