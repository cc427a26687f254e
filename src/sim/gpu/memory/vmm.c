/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One memfd holds all physical memory, each piece at an offset that is never reused.  A mapping maps a piece of the
 * file into the shadow, so two mappings of one piece show the same bytes.  A handle is an index into the table of
 * pieces.
 */
#include "sim/gpu/memory/vmm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "sim/gpu/memory/map.h"
#include "sim/gpu/sim.h"

#define MAGIC     UINT64_C(0x6770757369766d6d)
#define N_HANDLES (1u << 16)

/* Addresses per byte of memory: a program may reserve as much as the whole memory several times, once per stream. */
#define VA_FACTOR 8

/* The content of an exported descriptor. */
struct exported {
	uint64_t magic;
	uint64_t serial;
	int64_t pid;
};

bool gpc_sim_vmm_init(struct gpc_sim_vmm *vmm, uint64_t memory, bool is_numbers_only)
{
	uint64_t span = gpc_round_up(memory, GPC_SIM_CHUNK) * VA_FACTOR;

	memset(vmm, 0, sizeof *vmm);
	vmm->fd = gpc_io_lift(memfd_create("gpusim", MFD_CLOEXEC));
	if (vmm->fd < 0)
		return false;
	/* One more chunk, to align the first address to 2 MiB. */
	vmm->va = is_numbers_only ? NULL : gpc_sim_map(span + GPC_SIM_CHUNK, PROT_NONE);
	if (!vmm->va && !is_numbers_only)
		goto undo_fd;
	vmm->shadow = vmm->va ? gpc_sim_map(span, PROT_NONE) : NULL;
	if (vmm->va && !vmm->shadow)
		goto undo_va;
	vmm->n_chunks = (uint32_t)(span / GPC_SIM_CHUNK);
	vmm->chunks = gpc_sim_map(vmm->n_chunks * sizeof *vmm->chunks, PROT_READ | PROT_WRITE);
	if (!vmm->chunks)
		goto undo_shadow;
	vmm->physicals = gpc_sim_map(N_HANDLES * sizeof *vmm->physicals, PROT_READ | PROT_WRITE);
	if (!vmm->physicals)
		goto undo_chunks;
	vmm->base = vmm->va ? gpc_round_up((uint64_t)(uintptr_t)vmm->va, GPC_SIM_CHUNK)
			    : GPC_SIM_NUMBERS / 2;
	vmm->span = span;
	pthread_mutex_init(&vmm->lock, NULL);
	return true;

undo_chunks:
	gpc_sim_unmap(vmm->chunks, vmm->n_chunks * sizeof *vmm->chunks);
undo_shadow:
	gpc_sim_unmap(vmm->shadow, span);
undo_va:
	gpc_sim_unmap(vmm->va, span + GPC_SIM_CHUNK);
undo_fd:
	close(vmm->fd);
	return false;
}

void gpc_sim_vmm_fini(struct gpc_sim_vmm *vmm)
{
	gpc_sim_unmap(vmm->physicals, N_HANDLES * sizeof *vmm->physicals);
	gpc_sim_unmap(vmm->chunks, vmm->n_chunks * sizeof *vmm->chunks);
	gpc_sim_unmap(vmm->shadow, vmm->span);
	gpc_sim_unmap(vmm->va, vmm->span + GPC_SIM_CHUNK);
	close(vmm->fd);
	pthread_mutex_destroy(&vmm->lock);
}

/* ---- reserved addresses ---- */

static bool is_aligned(uint64_t n)
{
	return n % GPC_SIM_CHUNK == 0;
}

/* The first chunk of ptr[0 .. size); NULL unless that is a range of whole chunks of vmm. */
static struct gpc_sim_va_chunk *range(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t size)
{
	uint64_t offset = ptr - vmm->base;

	if (size == 0 || !is_aligned(ptr) || !is_aligned(size) || offset >= vmm->span ||
		size > vmm->span - offset)
		return NULL;
	return &vmm->chunks[offset / GPC_SIM_CHUNK];
}

static uint32_t n_of(uint64_t size)
{
	return (uint32_t)(size / GPC_SIM_CHUNK);
}

/* The first of n consecutive free chunks, aligned; n_chunks if there are none. */
static uint32_t find_free_locked(const struct gpc_sim_vmm *vmm, uint32_t n, uint64_t alignment)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < vmm->n_chunks; i++) {
		uint64_t ptr = vmm->base + i * GPC_SIM_CHUNK;

		if (vmm->chunks[i].is_reserved || (run == 0 && ptr % alignment))
			run = 0;
		else if (++run == n)
			return i + 1 - n;
	}
	return vmm->n_chunks;
}

CUresult gpc_sim_vmm_reserve(
	struct gpc_sim_vmm *vmm, uint64_t size, uint64_t alignment, uint64_t *ret_ptr)
{
	uint64_t step = alignment > GPC_SIM_CHUNK ? alignment : GPC_SIM_CHUNK;

	if (size == 0 || !is_aligned(size) || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (size > vmm->span)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&vmm->lock);
	uint32_t n = n_of(size);
	uint32_t first = find_free_locked(vmm, n, step);
	if (first < vmm->n_chunks) {
		vmm->chunks[first].n_reserved = n;
		for (uint32_t i = first; i < first + n; i++)
			vmm->chunks[i].is_reserved = true;
		*ret_ptr = vmm->base + first * GPC_SIM_CHUNK;
	}
	pthread_mutex_unlock(&vmm->lock);
	return first < vmm->n_chunks ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult gpc_sim_vmm_unreserve(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t size)
{
	struct gpc_sim_va_chunk *chunk = range(vmm, ptr, size);
	bool is_good;

	if (!chunk)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm->lock);
	is_good = chunk->n_reserved == n_of(size);
	for (uint32_t i = 0; is_good && i < n_of(size); i++)
		is_good = chunk[i].handle == 0;
	if (is_good)
		memset(chunk, 0, n_of(size) * sizeof *chunk);
	pthread_mutex_unlock(&vmm->lock);
	return is_good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- physical memory ---- */

static struct gpc_sim_device *device_of(struct gpc_sim *sim, const struct gpc_sim_physical *piece)
{
	if (piece->is_multicast || piece->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return NULL;
	return &sim->devices[piece->prop.location.id];
}

/* The piece of a handle; NULL if that is not a handle, or has no holders. */
static struct gpc_sim_physical *find_locked(struct gpc_sim_vmm *vmm, uint64_t handle)
{
	struct gpc_sim_physical *piece =
		handle - 1 < vmm->n_physicals ? &vmm->physicals[handle - 1] : NULL;

	return piece && piece->n_holders ? piece : NULL;
}

/* Takes a free row of the table, and returns its handle; 0 if the table is full. */
static uint64_t take_handle_locked(struct gpc_sim_vmm *vmm)
{
	for (uint32_t i = 0; i < vmm->n_physicals; i++) {
		if (vmm->physicals[i].serial == 0)
			return i + 1;
	}
	return vmm->n_physicals < N_HANDLES ? ++vmm->n_physicals : 0;
}

/* Creates a piece at the end of the file.  Offsets are never reused, so a new piece never shows an old one's data. */
static CUresult piece_create(
	struct gpc_sim *sim, const struct gpc_sim_physical *what, uint64_t *ret_handle)
{
	struct gpc_sim_vmm *vmm = &sim->vmm;
	struct gpc_sim_device *device = device_of(sim, what);
	CUresult res = device ? gpc_sim_device_charge(device, what->size) : CUDA_SUCCESS;
	uint64_t handle = 0;

	if (res != CUDA_SUCCESS)
		return res;
	pthread_mutex_lock(&vmm->lock);
	if (what->is_multicast || ftruncate(vmm->fd, (off_t)(vmm->file_size + what->size)) == 0)
		handle = take_handle_locked(vmm);
	if (handle) {
		struct gpc_sim_physical *piece = &vmm->physicals[handle - 1];

		*piece = *what;
		piece->offset = vmm->file_size;
		piece->serial = ++vmm->n_created;
		piece->n_holders = 1;
		if (!what->is_multicast)
			vmm->file_size += what->size;
		*ret_handle = handle;
	}
	pthread_mutex_unlock(&vmm->lock);
	if (!handle && device)
		gpc_sim_device_uncharge(device, what->size);
	return handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult gpc_sim_vmm_create(
	struct gpc_sim *sim, uint64_t size, const CUmemAllocationProp *prop, uint64_t *ret_handle)
{
	struct gpc_sim_physical piece = { .size = size };

	if (!prop || size == 0 || !is_aligned(size) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	piece.prop = *prop;
	switch ((int)prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (prop->location.id < 0 || (unsigned)prop->location.id >= sim->config.n_devices)
			return CUDA_ERROR_INVALID_DEVICE;
		break;
	case CU_MEM_LOCATION_TYPE_HOST:
		if (prop->requestedHandleTypes)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if (prop->location.id != 0)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return piece_create(sim, &piece, ret_handle);
}

CUresult gpc_sim_vmm_multicast(struct gpc_sim *sim, uint64_t size, uint64_t *ret_handle)
{
	const struct gpc_sim_physical object = { .size = size, .is_multicast = true };

	if (size == 0 || !is_aligned(size))
		return CUDA_ERROR_INVALID_VALUE;
	return piece_create(sim, &object, ret_handle);
}

/* Frees the piece if nothing holds or maps it any more. */
static void drop_if_last_locked(struct gpc_sim *sim, struct gpc_sim_physical *piece)
{
	struct gpc_sim_device *device = device_of(sim, piece);

	if (piece->n_holders || piece->n_mappings)
		return;
	if (device)
		gpc_sim_device_uncharge(device, piece->size);
	if (!piece->is_multicast)
		(void)!fallocate(sim->vmm.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)piece->offset, (off_t)piece->size);
	memset(piece, 0, sizeof *piece);
}

CUresult gpc_sim_vmm_release(struct gpc_sim *sim, uint64_t handle)
{
	pthread_mutex_lock(&sim->vmm.lock);
	struct gpc_sim_physical *piece = find_locked(&sim->vmm, handle);
	if (piece) {
		piece->n_holders--;
		drop_if_last_locked(sim, piece);
	}
	pthread_mutex_unlock(&sim->vmm.lock);
	return piece ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult gpc_sim_vmm_retain(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t *ret_handle)
{
	uint32_t handle = 0;

	if (!gpc_sim_vmm_has(vmm, ptr))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm->lock);
	handle = vmm->chunks[(ptr - vmm->base) / GPC_SIM_CHUNK].handle;
	if (handle) {
		vmm->physicals[handle - 1].n_holders++;
		*ret_handle = handle;
	}
	pthread_mutex_unlock(&vmm->lock);
	return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool gpc_sim_vmm_find(
	struct gpc_sim_vmm *vmm, uint64_t handle, struct gpc_sim_physical *ret_physical)
{
	pthread_mutex_lock(&vmm->lock);
	const struct gpc_sim_physical *piece = find_locked(vmm, handle);
	if (piece)
		*ret_physical = *piece;
	pthread_mutex_unlock(&vmm->lock);
	return piece != NULL;
}

CUresult gpc_sim_vmm_export(
	struct gpc_sim_vmm *vmm, uint64_t handle, CUmemAllocationHandleType type, int *ret_fd)
{
	struct gpc_sim_physical piece;
	struct exported content = { .magic = MAGIC, .pid = getpid() };

	if (!gpc_sim_vmm_find(vmm, handle, &piece) || !(piece.prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	content.serial = piece.serial;
	int fd = memfd_create("gpusim-handle", MFD_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pwrite(fd, &content, sizeof content, 0) != (ssize_t)sizeof content) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_fd = fd;
	return CUDA_SUCCESS;
}

CUresult gpc_sim_vmm_import(struct gpc_sim_vmm *vmm, int fd, uint64_t *ret_handle)
{
	struct exported content = { 0 };
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (pread(fd, &content, sizeof content, 0) != (ssize_t)sizeof content ||
		content.magic != MAGIC || content.serial == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (content.pid != getpid())
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&vmm->lock);
	for (uint32_t i = 0; i < vmm->n_physicals && res != CUDA_SUCCESS; i++) {
		if (vmm->physicals[i].serial != content.serial)
			continue;
		vmm->physicals[i].n_holders++;
		*ret_handle = i + 1;
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&vmm->lock);
	return res;
}

/* ---- mappings ---- */

/* Maps `size` bytes of the file, from `offset` on, at the address `at`.  Does nothing with is_numbers_only. */
static bool map_file(const struct gpc_sim_vmm *vmm, void *at, uint64_t size, uint64_t offset)
{
	return !vmm->shadow || mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				       vmm->fd, (off_t)offset) != MAP_FAILED;
}

static void unmap_file(const struct gpc_sim_vmm *vmm, void *at, uint64_t size)
{
	if (vmm->shadow)
		(void)!mmap(at, size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* True if the chunks are in one reservation with nothing mapped. */
static bool is_free_locked(const struct gpc_sim_va_chunk *chunk, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!chunk[i].is_reserved || chunk[i].handle || (i > 0 && chunk[i].n_reserved))
			return false;
	}
	return true;
}

CUresult gpc_sim_vmm_map(struct gpc_sim *sim, uint64_t ptr, uint64_t size, uint64_t handle)
{
	struct gpc_sim_vmm *vmm = &sim->vmm;
	struct gpc_sim_va_chunk *chunk = range(vmm, ptr, size);
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (!chunk)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm->lock);
	struct gpc_sim_physical *piece = find_locked(vmm, handle);
	if (piece && piece->is_multicast) {
		res = CUDA_ERROR_NOT_SUPPORTED;
	} else if (piece && size <= piece->size && is_free_locked(chunk, n_of(size))) {
		res = map_file(vmm, gpc_sim_vmm_bytes(vmm, ptr), size, piece->offset)
			      ? CUDA_SUCCESS
			      : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (res == CUDA_SUCCESS) {
		piece->n_mappings++;
		chunk->n_mapped = n_of(size);
		for (uint32_t i = 0; i < n_of(size); i++)
			chunk[i].handle = (uint32_t)handle;
	}
	pthread_mutex_unlock(&vmm->lock);
	return res;
}

static bool has_mapped_locked(const struct gpc_sim_va_chunk *chunk, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (chunk[i].handle)
			return true;
	}
	return false;
}

/* True if the chunks contain one or more whole mappings, perhaps with holes between them. */
static bool is_whole_locked(const struct gpc_sim_va_chunk *chunk, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && !chunk[i].handle == !chunk[i].n_mapped)
		i += chunk[i].handle ? chunk[i].n_mapped : 1;
	return i == n && has_mapped_locked(chunk, n);
}

CUresult gpc_sim_vmm_unmap(struct gpc_sim *sim, uint64_t ptr, uint64_t size)
{
	struct gpc_sim_vmm *vmm = &sim->vmm;
	struct gpc_sim_va_chunk *chunk = range(vmm, ptr, size);
	uint32_t n = chunk ? n_of(size) : 0;

	gpc_sim_settle(sim);
	pthread_mutex_lock(&vmm->lock);
	bool is_good = n && is_whole_locked(chunk, n);
	for (uint32_t i = 0; is_good && i < n; i++) {
		if (!chunk[i].handle)
			continue;
		uint32_t n_mapped = chunk[i].n_mapped;
		struct gpc_sim_physical *piece = &vmm->physicals[chunk[i].handle - 1];

		for (uint32_t k = i; k < i + n_mapped; k++)
			chunk[k] = (struct gpc_sim_va_chunk){ .n_reserved = chunk[k].n_reserved,
				.is_reserved = true };
		piece->n_mappings--;
		drop_if_last_locked(sim, piece);
		i += n_mapped - 1;
	}
	if (is_good) {
		unmap_file(vmm, gpc_sim_vmm_bytes(vmm, ptr), size);
		unmap_file(vmm, (void *)(uintptr_t)ptr, size);
	}
	pthread_mutex_unlock(&vmm->lock);
	return is_good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- access ---- */

static uint16_t bit_of(int device)
{
	return (uint16_t)(1u << device);
}

/* Allows or denies the host access to a mapping. */
static void set_host_access(
	struct gpc_sim_vmm *vmm, struct gpc_sim_va_chunk *chunk, uint64_t ptr, bool may)
{
	const struct gpc_sim_physical *piece = &vmm->physicals[chunk->handle - 1];
	uint64_t size = chunk->n_mapped * GPC_SIM_CHUNK;
	void *at = (void *)(uintptr_t)ptr;

	if (may)
		may = map_file(vmm, at, size, piece->offset);
	else
		unmap_file(vmm, at, size);
	chunk->host_may = may;
}

CUresult gpc_sim_vmm_set_access(
	struct gpc_sim *sim, uint64_t ptr, uint64_t size, const CUmemAccessDesc *desc)
{
	struct gpc_sim_vmm *vmm = &sim->vmm;
	struct gpc_sim_va_chunk *chunk = range(vmm, ptr, size);
	bool is_device = desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	bool may_read = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
	bool may_write = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

	if (!chunk || (may_read && !may_write && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_device && (unsigned)desc->location.id >= sim->config.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!is_device && desc->location.type != CU_MEM_LOCATION_TYPE_HOST &&
		desc->location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm->lock);
	bool has_any = has_mapped_locked(chunk, n_of(size));
	for (uint32_t i = 0; i < n_of(size); i++) {
		if (!chunk[i].handle)
			continue;
		uint16_t bit = is_device ? bit_of(desc->location.id) : 0;

		chunk[i].readers = (uint16_t)((chunk[i].readers & ~bit) | (may_read ? bit : 0));
		chunk[i].writers = (uint16_t)((chunk[i].writers & ~bit) | (may_write ? bit : 0));
		if (!is_device && chunk[i].n_mapped)
			set_host_access(vmm, &chunk[i], ptr + i * GPC_SIM_CHUNK, may_write);
	}
	pthread_mutex_unlock(&vmm->lock);
	return has_any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The first chunk of the mapping around `offset`; NULL if nothing is mapped there. */
static struct gpc_sim_va_chunk *first_locked(struct gpc_sim_vmm *vmm, uint64_t offset)
{
	struct gpc_sim_va_chunk *chunk = &vmm->chunks[offset / GPC_SIM_CHUNK];

	if (!chunk->handle)
		return NULL;
	while (!chunk->n_mapped)
		chunk--;
	return chunk;
}

CUresult gpc_sim_vmm_get_access(
	struct gpc_sim *sim, uint64_t ptr, const CUmemLocation *location, unsigned *ret_flags)
{
	struct gpc_sim_vmm *vmm = &sim->vmm;
	bool is_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (!gpc_sim_vmm_has(vmm, ptr))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_device && (unsigned)location->id >= sim->config.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&vmm->lock);
	uint64_t offset = ptr - vmm->base;
	const struct gpc_sim_va_chunk *chunk = &vmm->chunks[offset / GPC_SIM_CHUNK];
	const struct gpc_sim_va_chunk *first = first_locked(vmm, offset);
	if (first) {
		uint16_t bit = is_device ? bit_of(location->id) : 0;
		bool may_write = is_device ? chunk->writers & bit : first->host_may;
		bool may_read = is_device ? chunk->readers & bit : first->host_may;

		*ret_flags = may_write  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			     : may_read ? CU_MEM_ACCESS_FLAGS_PROT_READ
					: CU_MEM_ACCESS_FLAGS_PROT_NONE;
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&vmm->lock);
	return res;
}

bool gpc_sim_vmm_mapping_at(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t *ret_base,
	uint64_t *ret_size, uint64_t *ret_handle)
{
	pthread_mutex_lock(&vmm->lock);
	const struct gpc_sim_va_chunk *first = first_locked(vmm, ptr - vmm->base);
	if (first) {
		*ret_base = vmm->base + (uint64_t)(first - vmm->chunks) * GPC_SIM_CHUNK;
		*ret_size = first->n_mapped * GPC_SIM_CHUNK;
		*ret_handle = first->handle;
	}
	pthread_mutex_unlock(&vmm->lock);
	return first != NULL;
}

bool gpc_sim_vmm_may(
	struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t size, int device, bool must_write)
{
	uint64_t first = (ptr - vmm->base) / GPC_SIM_CHUNK;
	uint64_t end = (ptr - vmm->base + size + GPC_SIM_CHUNK - 1) / GPC_SIM_CHUNK;
	bool may = size <= vmm->span - (ptr - vmm->base);

	pthread_mutex_lock(&vmm->lock);
	for (uint64_t i = first; may && i < end; i++) {
		const struct gpc_sim_va_chunk *chunk = &vmm->chunks[i];
		uint16_t who = must_write ? chunk->writers : chunk->readers;

		may = chunk->handle && (device < 0 ? who != 0 : (who & bit_of(device)) != 0);
	}
	pthread_mutex_unlock(&vmm->lock);
	return may;
}
