/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of zeros go back to the kernel; pages with data stay, up to `keep` bytes.  A table has one byte of state for
 * each chunk of 2 MiB.  A read of dropped data is noted, so that no result silently depends on stale bytes.
 */
#include "sim/gpu/memory/data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "sim/gpu/memory/map.h"
#include "sim/gpu/sim.h"

#define PIECE ((uint64_t)64 * GPC_KIB)
#define PAGE  ((uint64_t)4 * GPC_KIB)

/* The length of the table: the chunks of all devices, then those of mapped memory. */
static uint64_t n_chunks(const struct gpc_sim *sim)
{
	uint64_t n = sim->vmm.n_chunks;

	for (unsigned i = 0; i < sim->config.n_devices; i++)
		n += sim->devices[i].n_chunks;
	return n;
}

bool gpc_sim_data_init(struct gpc_sim *sim)
{
	sim->data.is_full = sim->config.is_data_full;
	sim->data.keep = sim->config.keep;
	sim->data.chunks = gpc_sim_map(n_chunks(sim), PROT_READ | PROT_WRITE);
	return sim->data.chunks;
}

void gpc_sim_data_fini(struct gpc_sim *sim)
{
	gpc_sim_unmap(sim->data.chunks, n_chunks(sim));
}

/* The state of the chunk that contains the address `bytes`; *ret_at is the offset in the chunk.  NULL: host memory. */
static unsigned char *locate(struct gpc_sim *sim, const char *bytes, uint64_t *ret_at)
{
	unsigned char *first = sim->data.chunks;
	uint64_t offset;

	for (unsigned i = 0; i < sim->config.n_devices; i++) {
		const struct gpc_sim_device *device = &sim->devices[i];

		offset = (uintptr_t)bytes - (uintptr_t)device->shadow;
		*ret_at = offset % GPC_SIM_CHUNK;
		if (offset < device->span)
			return first + offset / GPC_SIM_CHUNK;
		first += device->n_chunks;
	}
	offset = (uintptr_t)bytes - (uintptr_t)sim->vmm.shadow;
	*ret_at = offset % GPC_SIM_CHUNK;
	return offset / GPC_SIM_CHUNK < sim->vmm.n_chunks ? first + offset / GPC_SIM_CHUNK : NULL;
}

static unsigned char *chunk_of(struct gpc_sim *sim, const char *bytes)
{
	uint64_t at;

	return locate(sim, bytes, &at);
}

static void forget_data(struct gpc_sim *sim, unsigned char *chunk)
{
	if (*chunk == GPC_SIM_DATA_KEPT)
		sim->data.kept -= GPC_SIM_CHUNK;
	*chunk = GPC_SIM_DATA_ZEROS;
}

/* Sets whole pages to 0 by returning them to the kernel: MADV_REMOVE for pages of a file, MADV_DONTNEED for others. */
static void give_back(char *dst, uint64_t size)
{
	bool is_zero = madvise(dst, size, MADV_REMOVE) == 0 ||
		       (errno == EINVAL && madvise(dst, size, MADV_DONTNEED) == 0);

	if (!is_zero)
		memset(dst, 0, size);
}

void gpc_sim_data_zero(struct gpc_sim *sim, char *dst, uint64_t size)
{
	uint64_t before = gpc_round_up((uintptr_t)dst, PIECE) - (uintptr_t)dst;

	if (sim->data.is_full || size < before + PIECE || !chunk_of(sim, dst)) {
		memset(dst, 0, size);
		return;
	}
	memset(dst, 0, before);
	while (before + PIECE <= size) {
		uint64_t at;
		unsigned char *chunk = locate(sim, dst + before, &at);
		/* One chunk at a time, because the next may be a mapping of another kind. */
		uint64_t n = GPC_SIM_CHUNK - at;

		if (n > size - before)
			n = (size - before) / PIECE * PIECE;
		give_back(dst + before, n);
		if (n == GPC_SIM_CHUNK)
			forget_data(sim, chunk);
		before += n;
	}
	memset(dst + before, 0, size - before);
}

/* Frees the pages that a read of mapped memory allocated: to read a hole of a memfd allocates its pages. */
static void free_read_pages(struct gpc_sim *sim, const char *src, uint64_t size)
{
	uint64_t before = gpc_round_up((uintptr_t)src, PAGE) - (uintptr_t)src;

	if ((uintptr_t)src - (uintptr_t)sim->vmm.shadow >= sim->vmm.span)
		return;
	size = (size - before) / PAGE * PAGE;
	(void)madvise((char *)(uintptr_t)src + before, size, MADV_REMOVE);
}

/*
 * How many bytes from `bytes` on are in a hole of the file of mapped memory, so are 0; none for other memory.  A copy
 * does not read holes, because that would allocate pages.
 */
static uint64_t hole_at(struct gpc_sim *sim, const char *bytes)
{
	uint64_t offset = (uintptr_t)bytes - (uintptr_t)sim->vmm.shadow;
	struct gpc_sim_physical piece;
	uint64_t base;
	uint64_t size;
	uint64_t handle;
	uint64_t end;
	off_t data;

	if (offset >= sim->vmm.span ||
		!gpc_sim_vmm_mapping_at(&sim->vmm, sim->vmm.base + offset, &base, &size, &handle) ||
		!gpc_sim_vmm_find(&sim->vmm, handle, &piece))
		return 0;
	offset -= base - sim->vmm.base;
	data = lseek(sim->vmm.fd, (off_t)(piece.offset + offset), SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? size - offset : 0;
	end = (uint64_t)data - piece.offset;
	return (end < size ? end : size) - offset;
}

/* True if the piece at bytes[at] is in a hole.  *end is the end of the last hole found, as an index of `bytes`. */
static bool is_hole(struct gpc_sim *sim, const char *bytes, uint64_t at, uint64_t *end)
{
	if (*end < at + PIECE)
		*end = at + hole_at(sim, bytes + at);
	return *end >= at + PIECE;
}

static bool is_zero(const char *bytes, uint64_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Decides whether the chunk may store new data, and counts the chunk in `kept` if it may. */
static bool keep(struct gpc_sim *sim, unsigned char *chunk)
{
	struct gpc_sim_data *data = &sim->data;

	if (*chunk == GPC_SIM_DATA_KEPT)
		return true;
	if (data->kept + GPC_SIM_CHUNK > data->keep) {
		*chunk = GPC_SIM_DATA_DROPPED;
		return false;
	}
	*chunk = GPC_SIM_DATA_KEPT;
	data->kept += GPC_SIM_CHUNK;
	return true;
}

static void note_read(struct gpc_sim *sim, const char *src, uint64_t size)
{
	for (uint64_t in = 0; size && !sim->data.dropped_was_read;) {
		const unsigned char *chunk = locate(sim, src, &in);
		uint64_t n = size < GPC_SIM_CHUNK - in ? size : GPC_SIM_CHUNK - in;

		sim->data.dropped_was_read = chunk && *chunk == GPC_SIM_DATA_DROPPED;
		src += n;
		size -= n;
	}
}

/* Sets the piece at dst[at] to 0 by returning its pages, if it has any. */
static void copy_zeros(struct gpc_sim *sim, char *dst, uint64_t at, uint64_t *dst_end)
{
	if (!is_hole(sim, dst, at, dst_end))
		give_back(dst + at, PIECE);
}

void gpc_sim_data_copy(struct gpc_sim *sim, char *dst, const char *src, uint64_t size)
{
	uint64_t before = gpc_round_up((uintptr_t)dst, PIECE) - (uintptr_t)dst;
	uint64_t src_end = 0;
	uint64_t dst_end = 0;
	bool is_apart = dst + size <= src || src + size <= dst;

	if (sim->data.is_full || size < before + PIECE || !is_apart || !chunk_of(sim, dst)) {
		if (sim->data.dropped && !chunk_of(sim, dst))
			note_read(sim, src, size);
		memmove(dst, src, size);
		return;
	}
	memcpy(dst, src, before);
	for (; before + PIECE <= size; before += PIECE) {
		if (is_hole(sim, src, before, &src_end)) {
			copy_zeros(sim, dst, before, &dst_end);
		} else if (is_zero(src + before, PIECE)) {
			copy_zeros(sim, dst, before, &dst_end);
			free_read_pages(sim, src + before, PIECE);
		} else if (keep(sim, chunk_of(sim, dst + before))) {
			memcpy(dst + before, src + before, PIECE);
		} else {
			sim->data.dropped += PIECE;
		}
	}
	memcpy(dst + before, src + before, size - before);
}
