/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First fit over the pieces of each slab; a piece is split on allocation, and coalesced with free neighbours on free.
 */
#include "sim/gpu/memory/slab.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "sim/gpu/device.h"
#include "sim/gpu/memory/map.h"

/* The owner of slabs' device memory.  No context has this number, so no context's end frees a slab. */
#define NO_CONTEXT 0

struct gpc_sim_slab {
	struct gpc_list link;
	struct gpc_list pieces;
	uint64_t ptr;
	uint64_t size;
};

static struct gpc_sim_piece *piece_of(struct gpc_list *link)
{
	return gpc_list_entry(link, struct gpc_sim_piece, link);
}

static struct gpc_sim_slab *slab_of(struct gpc_list *link)
{
	return gpc_list_entry(link, struct gpc_sim_slab, link);
}

static struct gpc_sim_piece *piece_create(struct gpc_sim_slab *slab, uint64_t ptr, uint64_t size)
{
	struct gpc_sim_piece *piece = calloc(1, sizeof *piece);

	if (piece)
		*piece = (struct gpc_sim_piece){ .slab = slab, .ptr = ptr, .size = size };
	return piece;
}

static void piece_destroy(struct gpc_sim_piece *piece)
{
	gpc_list_remove(&piece->link);
	free(piece);
}

/* ---- slabs ---- */

void gpc_sim_slabs_init(struct gpc_sim_slabs *slabs, struct gpc_sim_device *device, uint64_t max)
{
	gpc_list_init(&slabs->list);
	slabs->device = device;
	slabs->reserved = 0;
	slabs->max = max;
}

static CUresult memory_take(const struct gpc_sim_slabs *slabs, uint64_t size, uint64_t *ret_ptr)
{
	void *ptr;

	if (slabs->max && slabs->reserved + size > slabs->max)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (slabs->device)
		return gpc_sim_device_alloc(slabs->device, NO_CONTEXT, size, ret_ptr);
	ptr = gpc_sim_map(size, PROT_READ | PROT_WRITE);
	if (!ptr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_ptr = (uintptr_t)ptr;
	return CUDA_SUCCESS;
}

static CUresult add_slab(struct gpc_sim_slabs *slabs, uint64_t size)
{
	struct gpc_sim_slab *slab = calloc(1, sizeof *slab);
	struct gpc_sim_piece *piece = piece_create(slab, 0, size);
	CUresult res = CUDA_ERROR_OUT_OF_MEMORY;

	if (slab && piece)
		res = memory_take(slabs, size, &slab->ptr);
	if (res != CUDA_SUCCESS) {
		free(piece);
		free(slab);
		return res;
	}
	slab->size = size;
	piece->ptr = slab->ptr;
	gpc_list_init(&slab->pieces);
	gpc_list_append(&slab->pieces, &piece->link);
	gpc_list_append(&slabs->list, &slab->link);
	slabs->reserved += size;
	return CUDA_SUCCESS;
}

CUresult gpc_sim_slabs_grow(struct gpc_sim_slabs *slabs, uint64_t size)
{
	CUresult res = add_slab(slabs, gpc_round_up(size, GPC_SIM_SLAB));

	return res == CUDA_SUCCESS ? res : add_slab(slabs, gpc_round_up(size, GPC_SIM_CHUNK));
}

static void slab_destroy(struct gpc_sim_slabs *slabs, struct gpc_sim_slab *slab)
{
	while (!gpc_list_is_empty(&slab->pieces))
		piece_destroy(piece_of(slab->pieces.next));
	gpc_list_remove(&slab->link);
	slabs->reserved -= slab->size;
	if (slabs->device)
		(void)gpc_sim_device_free(slabs->device, slab->ptr);
	else
		gpc_sim_unmap((void *)(uintptr_t)slab->ptr, slab->size);
	free(slab);
}

void gpc_sim_slabs_clear(struct gpc_sim_slabs *slabs)
{
	while (!gpc_list_is_empty(&slabs->list))
		slab_destroy(slabs, slab_of(slabs->list.next));
}

static bool is_idle(const struct gpc_sim_slab *slab)
{
	const struct gpc_sim_piece *first = piece_of(slab->pieces.next);

	return first->state == GPC_SIM_PIECE_FREE && first->size == slab->size;
}

bool gpc_sim_slabs_are_idle(const struct gpc_sim_slabs *slabs)
{
	gpc_list_each (link, &slabs->list) {
		if (!is_idle(slab_of(link)))
			return false;
	}
	return true;
}

void gpc_sim_slabs_trim(struct gpc_sim_slabs *slabs, uint64_t keep)
{
	gpc_list_each_safe (link, &slabs->list) {
		struct gpc_sim_slab *slab = slab_of(link);

		if (is_idle(slab) && slabs->reserved >= keep &&
			slabs->reserved - slab->size >= keep)
			slab_destroy(slabs, slab);
	}
}

/* ---- pieces ---- */

static struct gpc_sim_piece *search(
	const struct gpc_sim_slabs *slabs, uint64_t size, uint64_t stream)
{
	gpc_list_each (link, &slabs->list) {
		gpc_list_each (at, &slab_of(link)->pieces) {
			struct gpc_sim_piece *piece = piece_of(at);
			bool may = piece->state == GPC_SIM_PIECE_FREE ||
				   (piece->state == GPC_SIM_PIECE_FREED &&
					   piece->free_stream == stream);

			if (may && piece->size >= size)
				return piece;
		}
	}
	return NULL;
}

struct gpc_sim_piece *gpc_sim_slabs_take(
	struct gpc_sim_slabs *slabs, uint64_t size, uint64_t stream)
{
	struct gpc_sim_piece *piece = search(slabs, size, stream);
	struct gpc_sim_piece *rest;

	if (!piece)
		return NULL;
	if (piece->size > size) {
		/* The remainder inherits the state of the whole piece. */
		rest = piece_create(piece->slab, piece->ptr + size, piece->size - size);
		if (!rest)
			return NULL;
		rest->state = piece->state;
		rest->free_number = piece->free_number;
		rest->free_stream = piece->free_stream;
		/* gpc_list_append() inserts before the next piece, so right after this one. */
		gpc_list_append(piece->link.next, &rest->link);
		piece->size = size;
	}
	piece->state = GPC_SIM_PIECE_USED;
	return piece;
}

struct gpc_sim_piece *gpc_sim_slabs_find(const struct gpc_sim_slabs *slabs, uint64_t ptr)
{
	gpc_list_each (link, &slabs->list) {
		const struct gpc_sim_slab *slab = slab_of(link);

		if (ptr - slab->ptr >= slab->size)
			continue;
		gpc_list_each (at, &slab->pieces) {
			struct gpc_sim_piece *piece = piece_of(at);

			if (ptr - piece->ptr < piece->size)
				return piece->state == GPC_SIM_PIECE_USED ? piece : NULL;
		}
	}
	return NULL;
}

bool gpc_sim_slabs_have(const struct gpc_sim_slabs *slabs, uint64_t ptr)
{
	gpc_list_each (link, &slabs->list) {
		if (ptr - slab_of(link)->ptr < slab_of(link)->size)
			return true;
	}
	return false;
}

void gpc_sim_piece_free(struct gpc_sim_piece *piece)
{
	struct gpc_list *pieces = &piece->slab->pieces;
	struct gpc_list *next = piece->link.next;
	struct gpc_list *prev = piece->link.prev;

	piece->state = GPC_SIM_PIECE_FREE;
	if (next != pieces && piece_of(next)->state == GPC_SIM_PIECE_FREE) {
		piece->size += piece_of(next)->size;
		piece_destroy(piece_of(next));
	}
	if (prev != pieces && piece_of(prev)->state == GPC_SIM_PIECE_FREE) {
		piece_of(prev)->size += piece->size;
		piece_destroy(piece);
	}
}

void gpc_sim_slabs_finish(struct gpc_sim_slabs *slabs, uint64_t number)
{
	gpc_list_each (link, &slabs->list) {
		struct gpc_list *pieces = &slab_of(link)->pieces;

		for (struct gpc_list *at = pieces->next; at != pieces; at = at->next) {
			struct gpc_sim_piece *piece = piece_of(at);

			if (piece->state != GPC_SIM_PIECE_FREED || piece->free_number != number)
				continue;
			/* The piece may coalesce into the one before it, which stays: continue from that one. */
			at = at->prev;
			gpc_sim_piece_free(piece);
		}
	}
}
