/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one simulated device: its addresses, its bytes, and how much is in use.
 *
 * Addresses come from a range that is reserved in the host process without access.  So a device address never equals a
 * host address, and the host faults if it dereferences a device address.  The bytes are in a second mapping, the
 * shadow, at the same offset; the kernel allocates a page at the first write.
 *
 *   va      | 2 MiB chunk | chunk | ...                        no access
 *   shadow  | bytes       | bytes | ...                        accessed by gpc_sim_device_bytes
 *   chunks  | FREE n ... FREE_END | LARGE n ... | SMALL |      a record per chunk; only the first of an extent is set,
 *                                                 |            and the last of a free one
 *                                                 '--> 4096 slots of 512 bytes for requests below 2 MiB
 *
 * The range is GPC_SIM_VA_FACTOR times the device's memory, so that a request fails for lack of memory and not for
 * lack of consecutive addresses, as with the real driver.  A freed address is reused soon, so that a test can see
 * early reuse.
 *
 * Invariants  1 free = memory - foreign - charges - 2 MiB * (chunks neither free nor bare; bare chunks are addresses
 *             without memory).  2 Two free extents are never adjacent.  3 Memory belongs to an owner (a context), whose
 *             end frees it.
 * Threads     Any; one lock, held during no call of a part of the simulator that has a lock of its own.
 * Failure     The driver's codes: OUT_OF_MEMORY; INVALID_VALUE for a size of 0, or to free what is not the start of an
 *             allocation.
 * Limits      An allocation is not cleared: it holds the bytes that its last owner left there.
 */
#ifndef GPC_SIM_DEVICE_H
#define GPC_SIM_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "sim/gpu/config.h"
#include "sim/gpu/memory/managed.h"
#include "sim/gpu/memory/smalls.h"

#define GPC_SIM_VA_FACTOR 4 /* addresses per byte of memory */
#define GPC_SIM_N_CLASSES 32
#define GPC_SIM_NO_CHUNK  UINT32_MAX

enum gpc_sim_chunk_state {
	GPC_SIM_CHUNK_INSIDE,   /* not the first of an extent, nor the last of a free one */
	GPC_SIM_CHUNK_FREE,     /* the first of a free extent */
	GPC_SIM_CHUNK_FREE_END, /* the last of a free extent of two or more */
	GPC_SIM_CHUNK_LARGE,
	GPC_SIM_CHUNK_SMALL,
};

struct gpc_sim_chunk {
	enum gpc_sim_chunk_state state;
	uint32_t n; /* length of the extent in chunks, also at a FREE_END */
	uint32_t owner;
	uint32_t prev, next; /* FREE: in the list of its class */
	uint64_t size;       /* LARGE: bytes, as requested */
	uint64_t number;     /* LARGE: the allocation's number */
	bool is_bare;        /* LARGE: addresses without memory */
	int shared; /* 1 + the descriptor of the file that holds the extent's bytes; 0: none */
	struct gpc_sim_small *small; /* SMALL: its slots */
};

/*
 * The first device address if no addresses are mapped (is_numbers_only).  The addresses of vmm.h then start at half of
 * this number, those that tools/replay itself gives out at twice this number.
 */
#define GPC_SIM_NUMBERS (UINT64_C(1) << 45)

struct gpc_sim_device {
	/* Fixed after init. */
	unsigned ordinal;
	uint64_t memory;
	uint64_t foreign; /* bytes of the simulated other processes */
	uint64_t oom_after;
	uint64_t base; /* the first device address */
	uint64_t span; /* device addresses are base[0 .. span) */
	uint32_t n_chunks;
	char *shadow;
	void *va; /* the reserved range, which starts up to 2 MiB before `base` */

	_Atomic uint64_t tail_ns; /* when the last of the submitted work ends */
	_Atomic int fault;        /* the CUresult of every call on its contexts; 0: none */

	/* Lock: lock. */
	struct gpc_sim_chunk *chunks;
	uint32_t classes[GPC_SIM_N_CLASSES]; /* class k: extents of 2^k .. 2^(k+1) - 1 chunks */
	struct gpc_sim_smalls smalls;
	struct gpc_sim_managed managed;
	uint64_t used; /* bytes of chunks in use, and of charges; without managed memory */
	uint64_t peak_used;
	uint64_t handed_out; /* bytes allocated so far, freed or not; for oom_after */
	uint64_t n_allocations;
	uint64_t n_ever; /* allocations so far; also the number of the last one */

	pthread_mutex_t lock;
};

/* Returns false if the kernel cannot reserve the addresses. */
bool gpc_sim_device_init(
	struct gpc_sim_device *device, const struct gpc_sim_config *config, unsigned ordinal);
void gpc_sim_device_fini(struct gpc_sim_device *device);

CUresult gpc_sim_device_alloc(
	struct gpc_sim_device *device, uint32_t owner, uint64_t size, uint64_t *ret_ptr);
CUresult gpc_sim_device_free(struct gpc_sim_device *device, uint64_t ptr);

/* Allocates addresses without memory.  A caller that puts memory there counts it by gpc_sim_device_charge. */
CUresult gpc_sim_device_reserve(struct gpc_sim_device *device, uint64_t size, uint64_t *ret_ptr);
void gpc_sim_device_free_owner(struct gpc_sim_device *device, uint32_t owner);

/*
 * Moves the bytes of the extent that contains `ptr` into a file, which the device owns.  Another process can map the
 * file, and its mapping keeps the bytes after this process frees the memory.  Nothing may write to the memory during
 * the call.  *ret_base and *ret_size are the extent's.  INVALID_VALUE if there is no allocation with memory,
 * OUT_OF_MEMORY if the kernel provides no file.
 */
CUresult gpc_sim_device_share(struct gpc_sim_device *device, uint64_t ptr, int *ret_file,
	uint64_t *ret_base, uint64_t *ret_size);

/* Maps a file that gpc_sim_device_share made in another process at reserved addresses; the caller closes `file`. */
bool gpc_sim_device_attach(struct gpc_sim_device *device, uint64_t base, uint64_t size, int file);

/* Counts memory without an address, such as a context's own, as used.  OUT_OF_MEMORY if that much is not free. */
CUresult gpc_sim_device_charge(struct gpc_sim_device *device, uint64_t bytes);
void gpc_sim_device_uncharge(struct gpc_sim_device *device, uint64_t bytes);

/* What is left for allocations.  Managed memory may be there, and leaves for them. */
uint64_t gpc_sim_device_room_locked(const struct gpc_sim_device *device);

uint64_t gpc_sim_device_free_bytes(struct gpc_sim_device *device);
uint64_t gpc_sim_device_used_bytes(struct gpc_sim_device *device);
/* The least memory of a device on which every request so far would have succeeded. */
uint64_t gpc_sim_device_peak_bytes(struct gpc_sim_device *device);
uint64_t gpc_sim_device_n_allocations(struct gpc_sim_device *device);

/* Finds the allocation that contains `ptr`; false if there is none.  Any output may be NULL. */
bool gpc_sim_device_find(struct gpc_sim_device *device, uint64_t ptr, uint64_t *ret_base,
	uint64_t *ret_size, uint32_t *ret_owner);

static inline bool gpc_sim_device_has(const struct gpc_sim_device *device, uint64_t ptr)
{
	return ptr - device->base < device->span;
}

/* The host's address of a device address's bytes. */
static inline void *gpc_sim_device_bytes(const struct gpc_sim_device *device, uint64_t ptr)
{
	return device->shadow + (ptr - device->base);
}

#endif
