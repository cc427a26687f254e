/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents of 2 MiB chunks in segregated lists by size class, coalesced when freed; smaller requests share chunks
 * (slots.h, smalls.h).  A request takes the extent freed last of those that fit, from the smallest class that has one.
 * Where the real driver would place it is not documented.
 */
#include "sim/gpu/device.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "sim/gpu/memory/map.h"

static uint32_t class_of(uint32_t n)
{
	return 31 - (uint32_t)__builtin_clz(n);
}

/* ---- extents ---- */

static void extent_insert(struct gpc_sim_device *device, uint32_t i, uint32_t n)
{
	struct gpc_sim_chunk *chunk = &device->chunks[i];
	uint32_t *head = &device->classes[class_of(n)];

	if (n > 1) {
		device->chunks[i + n - 1].state = GPC_SIM_CHUNK_FREE_END;
		device->chunks[i + n - 1].n = n;
	}
	chunk->state = GPC_SIM_CHUNK_FREE;
	chunk->n = n;
	chunk->prev = GPC_SIM_NO_CHUNK;
	chunk->next = *head;
	if (*head != GPC_SIM_NO_CHUNK)
		device->chunks[*head].prev = i;
	*head = i;
}

static void extent_remove(struct gpc_sim_device *device, uint32_t i)
{
	struct gpc_sim_chunk *chunk = &device->chunks[i];

	if (chunk->prev != GPC_SIM_NO_CHUNK)
		device->chunks[chunk->prev].next = chunk->next;
	else
		device->classes[class_of(chunk->n)] = chunk->next;
	if (chunk->next != GPC_SIM_NO_CHUNK)
		device->chunks[chunk->next].prev = chunk->prev;
	device->chunks[i + chunk->n - 1].state = GPC_SIM_CHUNK_INSIDE;
	chunk->state = GPC_SIM_CHUNK_INSIDE;
}

/* Takes n chunks from the front of a free extent; GPC_SIM_NO_CHUNK if no extent is that long. */
static uint32_t extent_take_locked(struct gpc_sim_device *device, uint32_t n)
{
	for (uint32_t k = class_of(n); k < GPC_SIM_N_CLASSES; k++) {
		for (uint32_t i = device->classes[k]; i != GPC_SIM_NO_CHUNK;
			i = device->chunks[i].next) {
			uint32_t has = device->chunks[i].n;
			if (has < n)
				continue;
			extent_remove(device, i);
			if (has > n)
				extent_insert(device, i + n, has - n);
			return i;
		}
	}
	return GPC_SIM_NO_CHUNK;
}

/* Maps the bytes of the extent to `file`; if that is -1, to new zeroed pages. */
static bool map_bytes(struct gpc_sim_device *device, uint32_t i, uint64_t size, int file)
{
	int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	void *at = device->shadow + i * GPC_SIM_CHUNK;

	return mmap(at, size, PROT_READ | PROT_WRITE, MAP_FIXED | flags, file, 0) == at;
}

static void unshare_locked(struct gpc_sim_device *device, uint32_t i, uint32_t n)
{
	struct gpc_sim_chunk *chunk = &device->chunks[i];

	if (chunk->shared == 0)
		return;
	(void)map_bytes(device, i, n * GPC_SIM_CHUNK, -1);
	close(chunk->shared - 1);
	chunk->shared = 0;
}

static void extent_give_back_locked(struct gpc_sim_device *device, uint32_t i, uint32_t n)
{
	struct gpc_sim_chunk *chunks = device->chunks;

	unshare_locked(device, i, n);
	device->used -= n * GPC_SIM_CHUNK;
	chunks[i].state = GPC_SIM_CHUNK_INSIDE;
	if (i + n < device->n_chunks && chunks[i + n].state == GPC_SIM_CHUNK_FREE) {
		uint32_t more = chunks[i + n].n;
		extent_remove(device, i + n);
		n += more;
	}
	if (i > 0 && (chunks[i - 1].state == GPC_SIM_CHUNK_FREE ||
			     chunks[i - 1].state == GPC_SIM_CHUNK_FREE_END)) {
		uint32_t more = chunks[i - 1].n;
		i -= more;
		extent_remove(device, i);
		n += more;
	}
	extent_insert(device, i, n);
}

uint64_t gpc_sim_device_room_locked(const struct gpc_sim_device *device)
{
	uint64_t taken = device->foreign + device->used;

	return taken < device->memory ? device->memory - taken : 0;
}

static void charge_locked(struct gpc_sim_device *device, uint64_t bytes)
{
	device->used += bytes;
	if (device->used > device->peak_used)
		device->peak_used = device->used;
	gpc_sim_managed_squeeze_locked(&device->managed, gpc_sim_device_room_locked(device));
}

/* Takes n chunks for `owner` and counts them as used; GPC_SIM_NO_CHUNK if memory or addresses are lacking. */
static uint32_t chunks_take_locked(
	struct gpc_sim_device *device, uint32_t owner, uint32_t n, enum gpc_sim_chunk_state state)
{
	if (gpc_sim_device_room_locked(device) < n * GPC_SIM_CHUNK)
		return GPC_SIM_NO_CHUNK;
	uint32_t i = extent_take_locked(device, n);
	if (i == GPC_SIM_NO_CHUNK)
		return i;
	device->chunks[i].state = state;
	device->chunks[i].n = n;
	device->chunks[i].owner = owner;
	device->chunks[i].is_bare = false;
	charge_locked(device, n * GPC_SIM_CHUNK);
	return i;
}

/* ---- small allocations ---- */

static struct gpc_sim_small *small_create_locked(struct gpc_sim_device *device, uint32_t owner)
{
	struct gpc_sim_small *small = calloc(1, sizeof *small);

	if (!small)
		return NULL;
	small->chunk = chunks_take_locked(device, owner, 1, GPC_SIM_CHUNK_SMALL);
	if (small->chunk == GPC_SIM_NO_CHUNK) {
		free(small);
		return NULL;
	}
	small->owner = owner;
	gpc_sim_slots_init(small);
	gpc_sim_smalls_add(&device->smalls, small);
	device->chunks[small->chunk].small = small;
	return small;
}

static void small_destroy_locked(struct gpc_sim_device *device, struct gpc_sim_small *small)
{
	gpc_sim_smalls_remove(&device->smalls, small);
	device->chunks[small->chunk].small = NULL;
	extent_give_back_locked(device, small->chunk, 1);
	free(small);
}

static CUresult alloc_small_locked(
	struct gpc_sim_device *device, uint32_t owner, uint64_t size, uint64_t *ret_ptr)
{
	uint32_t n = gpc_sim_slots_of(size);
	struct gpc_sim_small *small = gpc_sim_smalls_find(&device->smalls, owner, n);
	uint32_t first;

	if (!small)
		small = small_create_locked(device, owner);
	if (!small)
		return CUDA_ERROR_OUT_OF_MEMORY;
	first = gpc_sim_slots_find(small, n);
	gpc_sim_slots_flip(small, first, n);
	gpc_sim_smalls_update(&device->smalls, small);
	small->size[first] = (uint32_t)size;
	small->number[first] = ++device->n_ever;
	*ret_ptr = device->base + small->chunk * GPC_SIM_CHUNK + first * GPC_SIM_SLOT;
	return CUDA_SUCCESS;
}

static CUresult free_small_locked(
	struct gpc_sim_device *device, struct gpc_sim_small *small, uint64_t offset)
{
	uint32_t first = (uint32_t)(offset / GPC_SIM_SLOT);

	if (offset % GPC_SIM_SLOT || small->size[first] == 0)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_sim_slots_flip(small, first, gpc_sim_slots_of(small->size[first]));
	gpc_sim_smalls_update(&device->smalls, small);
	small->size[first] = 0;
	device->n_allocations--;
	if (gpc_sim_slots_longest(small) == GPC_SIM_SLOTS)
		small_destroy_locked(device, small);
	return CUDA_SUCCESS;
}

/* ---- allocations of any size ---- */

CUresult gpc_sim_device_alloc(
	struct gpc_sim_device *device, uint32_t owner, uint64_t size, uint64_t *ret_ptr)
{
	CUresult res = CUDA_SUCCESS;

	if (size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > device->memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&device->lock);
	if (device->oom_after && device->handed_out + size > device->oom_after) {
		res = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (size < GPC_SIM_CHUNK) {
		res = alloc_small_locked(device, owner, size, ret_ptr);
	} else {
		uint32_t n = (uint32_t)(gpc_round_up(size, GPC_SIM_CHUNK) / GPC_SIM_CHUNK);
		uint32_t i = chunks_take_locked(device, owner, n, GPC_SIM_CHUNK_LARGE);
		if (i == GPC_SIM_NO_CHUNK) {
			res = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			device->chunks[i].size = size;
			device->chunks[i].number = ++device->n_ever;
			*ret_ptr = device->base + i * GPC_SIM_CHUNK;
		}
	}
	if (res == CUDA_SUCCESS) {
		device->handed_out += size;
		device->n_allocations++;
	}
	pthread_mutex_unlock(&device->lock);
	return res;
}

CUresult gpc_sim_device_reserve(struct gpc_sim_device *device, uint64_t size, uint64_t *ret_ptr)
{
	uint64_t n = gpc_round_up(size, GPC_SIM_CHUNK) / GPC_SIM_CHUNK;

	if (n == 0 || n > device->n_chunks)
		return n ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device->lock);
	uint32_t i = extent_take_locked(device, (uint32_t)n);
	if (i != GPC_SIM_NO_CHUNK) {
		device->chunks[i].state = GPC_SIM_CHUNK_LARGE;
		device->chunks[i].n = (uint32_t)n;
		device->chunks[i].owner = 0;
		device->chunks[i].size = size;
		device->chunks[i].number = ++device->n_ever;
		device->chunks[i].is_bare = true;
		*ret_ptr = device->base + i * GPC_SIM_CHUNK;
	}
	pthread_mutex_unlock(&device->lock);
	return i != GPC_SIM_NO_CHUNK ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult free_locked(struct gpc_sim_device *device, uint64_t ptr)
{
	uint64_t offset = ptr - device->base;
	uint32_t i = (uint32_t)(offset / GPC_SIM_CHUNK);
	struct gpc_sim_chunk *chunk = &device->chunks[i];

	if (chunk->state == GPC_SIM_CHUNK_SMALL)
		return free_small_locked(device, chunk->small, offset % GPC_SIM_CHUNK);
	if (chunk->state != GPC_SIM_CHUNK_LARGE || offset % GPC_SIM_CHUNK)
		return CUDA_ERROR_INVALID_VALUE;
	/* Balances extent_give_back_locked(), which subtracts what a bare extent never added. */
	if (chunk->is_bare)
		device->used += chunk->n * GPC_SIM_CHUNK;
	else
		device->n_allocations--;
	extent_give_back_locked(device, i, chunk->n);
	return CUDA_SUCCESS;
}

CUresult gpc_sim_device_free(struct gpc_sim_device *device, uint64_t ptr)
{
	if (!gpc_sim_device_has(device, ptr))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device->lock);
	CUresult res = free_locked(device, ptr);
	pthread_mutex_unlock(&device->lock);
	return res;
}

static void free_small_of_owner_locked(struct gpc_sim_device *device, uint32_t owner)
{
	for (uint32_t i = device->smalls.n; i-- > 0;) {
		struct gpc_sim_small *small = device->smalls.rows[i];

		if (!small || small->owner != owner)
			continue;
		for (uint32_t k = 0; k < GPC_SIM_SLOTS; k++)
			device->n_allocations -= small->size[k] != 0;
		small_destroy_locked(device, small);
	}
}

void gpc_sim_device_free_owner(struct gpc_sim_device *device, uint32_t owner)
{
	pthread_mutex_lock(&device->lock);
	free_small_of_owner_locked(device, owner);
	for (uint32_t i = 0, next; i < device->n_chunks; i = next) {
		struct gpc_sim_chunk *chunk = &device->chunks[i];
		next = i + chunk->n;
		if (chunk->state != GPC_SIM_CHUNK_LARGE || chunk->owner != owner)
			continue;
		/* free_locked() coalesces this extent with the free one after it: skip that one. */
		if (next < device->n_chunks && device->chunks[next].state == GPC_SIM_CHUNK_FREE)
			next += device->chunks[next].n;
		(void)free_locked(device, device->base + i * GPC_SIM_CHUNK);
	}
	pthread_mutex_unlock(&device->lock);
}

CUresult gpc_sim_device_charge(struct gpc_sim_device *device, uint64_t bytes)
{
	pthread_mutex_lock(&device->lock);
	bool has_room = gpc_sim_device_room_locked(device) >= bytes;
	if (has_room)
		charge_locked(device, bytes);
	pthread_mutex_unlock(&device->lock);
	return has_room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void gpc_sim_device_uncharge(struct gpc_sim_device *device, uint64_t bytes)
{
	pthread_mutex_lock(&device->lock);
	device->used -= bytes;
	pthread_mutex_unlock(&device->lock);
}

uint64_t gpc_sim_device_free_bytes(struct gpc_sim_device *device)
{
	pthread_mutex_lock(&device->lock);
	uint64_t room = gpc_sim_device_room_locked(device) - device->managed.resident;
	pthread_mutex_unlock(&device->lock);
	return room;
}

uint64_t gpc_sim_device_used_bytes(struct gpc_sim_device *device)
{
	pthread_mutex_lock(&device->lock);
	uint64_t used = device->used;
	pthread_mutex_unlock(&device->lock);
	return used;
}

uint64_t gpc_sim_device_peak_bytes(struct gpc_sim_device *device)
{
	pthread_mutex_lock(&device->lock);
	uint64_t peak = device->foreign + device->peak_used;
	pthread_mutex_unlock(&device->lock);
	return peak;
}

uint64_t gpc_sim_device_n_allocations(struct gpc_sim_device *device)
{
	pthread_mutex_lock(&device->lock);
	uint64_t n = device->n_allocations;
	pthread_mutex_unlock(&device->lock);
	return n;
}

/* Finds the allocation that covers `offset`, which may be in any of its chunks. */
static bool find_locked(struct gpc_sim_device *device, uint64_t offset, uint64_t *ret_base,
	uint64_t *ret_size, uint32_t *ret_owner)
{
	uint32_t i = (uint32_t)(offset / GPC_SIM_CHUNK);

	while (i > 0 && device->chunks[i].state == GPC_SIM_CHUNK_INSIDE)
		i--;
	const struct gpc_sim_chunk *chunk = &device->chunks[i];
	uint64_t base = i * GPC_SIM_CHUNK;
	uint64_t size = chunk->size;

	if (chunk->state == GPC_SIM_CHUNK_SMALL) {
		uint32_t k = (uint32_t)((offset - base) / GPC_SIM_SLOT);
		while (k > 0 && chunk->small->size[k] == 0)
			k--;
		base += k * GPC_SIM_SLOT;
		size = chunk->small->size[k];
	} else if (chunk->state != GPC_SIM_CHUNK_LARGE) {
		return false;
	}
	if (offset - base >= size)
		return false;
	*ret_base = device->base + base;
	*ret_size = size;
	*ret_owner = chunk->owner;
	return true;
}

bool gpc_sim_device_find(struct gpc_sim_device *device, uint64_t ptr, uint64_t *ret_base,
	uint64_t *ret_size, uint32_t *ret_owner)
{
	uint64_t base = 0;
	uint64_t size = 0;
	uint32_t owner = 0;

	if (!gpc_sim_device_has(device, ptr))
		return false;
	pthread_mutex_lock(&device->lock);
	bool found = find_locked(device, ptr - device->base, &base, &size, &owner);
	pthread_mutex_unlock(&device->lock);
	if (!found)
		return false;
	if (ret_base)
		*ret_base = base;
	if (ret_size)
		*ret_size = size;
	if (ret_owner)
		*ret_owner = owner;
	return true;
}

/* ---- memory that other processes map ---- */

/* Does not write blocks of zeros, so that they stay holes of the file. */
static bool copy_bytes(const char *bytes, uint64_t size, int file)
{
	static const char zeros[1 << 16];

	for (uint64_t at = 0; at < size; at += sizeof zeros)
		if (memcmp(bytes + at, zeros, sizeof zeros) != 0 &&
			pwrite(file, bytes + at, sizeof zeros, (off_t)at) != sizeof zeros)
			return false;
	return true;
}

static int share_locked(struct gpc_sim_device *device, uint32_t i)
{
	uint64_t size = device->chunks[i].n * GPC_SIM_CHUNK;
	const char *bytes = device->shadow + i * GPC_SIM_CHUNK;
	struct rlimit limit;
	int file;

	/* A write beyond the limit would raise SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < size)
		return -1;
	file = gpc_io_lift(memfd_create("gpusim", MFD_CLOEXEC));
	if (file < 0)
		return -1;
	if (ftruncate(file, (off_t)size) || !copy_bytes(bytes, size, file) ||
		!map_bytes(device, i, size, file)) {
		close(file);
		return -1;
	}
	device->chunks[i].shared = file + 1;
	return file;
}

CUresult gpc_sim_device_share(struct gpc_sim_device *device, uint64_t ptr, int *ret_file,
	uint64_t *ret_base, uint64_t *ret_size)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;
	uint64_t base, size;
	uint32_t owner;

	if (!gpc_sim_device_has(device, ptr))
		return res;
	pthread_mutex_lock(&device->lock);
	if (find_locked(device, ptr - device->base, &base, &size, &owner)) {
		uint32_t i = (uint32_t)((base - device->base) / GPC_SIM_CHUNK);
		int file = device->chunks[i].shared - 1;

		if (!device->chunks[i].is_bare) {
			if (file < 0)
				file = share_locked(device, i);
			res = file < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
			*ret_file = file;
			*ret_base = device->base + i * GPC_SIM_CHUNK;
			*ret_size = device->chunks[i].n * GPC_SIM_CHUNK;
		}
	}
	pthread_mutex_unlock(&device->lock);
	return res;
}

bool gpc_sim_device_attach(struct gpc_sim_device *device, uint64_t base, uint64_t size, int file)
{
	uint32_t i = (uint32_t)((base - device->base) / GPC_SIM_CHUNK);
	int own = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	bool is_in;

	if (own < 0)
		return false;
	pthread_mutex_lock(&device->lock);
	is_in = map_bytes(device, i, size, own);
	if (is_in)
		device->chunks[i].shared = own + 1;
	pthread_mutex_unlock(&device->lock);
	if (!is_in)
		close(own);
	return is_in;
}

/* ---- creation and destruction ---- */

bool gpc_sim_device_init(
	struct gpc_sim_device *device, const struct gpc_sim_config *config, unsigned ordinal)
{
	uint64_t n =
		gpc_round_up(config->memory, GPC_SIM_CHUNK) / GPC_SIM_CHUNK * GPC_SIM_VA_FACTOR;
	uint64_t span = n * GPC_SIM_CHUNK;

	memset(device, 0, sizeof *device);
	if (n == 0 || n > UINT32_MAX / 2)
		return false;
	/* One more chunk, to align the first address to 2 MiB. */
	void *va = config->is_numbers_only ? NULL : gpc_sim_map(span + GPC_SIM_CHUNK, PROT_NONE);
	if (!va && !config->is_numbers_only)
		return false;
	device->shadow = va ? gpc_sim_map(span, PROT_READ | PROT_WRITE) : NULL;
	if (va && !device->shadow)
		goto undo_va;
	device->chunks = gpc_sim_map(n * sizeof *device->chunks, PROT_READ | PROT_WRITE);
	if (!device->chunks)
		goto undo_shadow;
	if (!gpc_sim_smalls_init(&device->smalls, (uint32_t)n / GPC_SIM_VA_FACTOR))
		goto undo_chunks;

	device->ordinal = ordinal;
	device->memory = config->memory;
	device->oom_after = config->oom_after;
	for (unsigned i = 0; i < config->n_processes; i++)
		device->foreign += config->processes[i].bytes;
	if (device->foreign > device->memory)
		device->foreign = device->memory;
	device->base = va ? gpc_round_up((uint64_t)(uintptr_t)va, GPC_SIM_CHUNK)
			  : GPC_SIM_NUMBERS + ordinal * span;
	device->span = span;
	device->n_chunks = (uint32_t)n;
	for (unsigned k = 0; k < GPC_SIM_N_CLASSES; k++)
		device->classes[k] = GPC_SIM_NO_CHUNK;
	extent_insert(device, 0, device->n_chunks);
	pthread_mutex_init(&device->lock, NULL);
	device->va = va;
	return true;

undo_chunks:
	gpc_sim_unmap(device->chunks, n * sizeof *device->chunks);
undo_shadow:
	gpc_sim_unmap(device->shadow, span);
undo_va:
	gpc_sim_unmap(va, span + GPC_SIM_CHUNK);
	return false;
}

void gpc_sim_device_fini(struct gpc_sim_device *device)
{
	gpc_sim_managed_fini(device);
	gpc_sim_smalls_fini(&device->smalls);
	for (uint32_t i = 0; i < device->n_chunks; i += device->chunks[i].n)
		if (device->chunks[i].shared)
			close(device->chunks[i].shared - 1);
	gpc_sim_unmap(device->chunks, device->n_chunks * sizeof *device->chunks);
	gpc_sim_unmap(device->shadow, device->span);
	gpc_sim_unmap(device->va, device->span + GPC_SIM_CHUNK);
	pthread_mutex_destroy(&device->lock);
}
