/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: reserved addresses, physical memory, and mappings of one onto the
 * other.
 *
 * All devices share one range of addresses.  Physical memory is one memfd, with each piece at an offset of its own.  A
 * mapping maps a piece of the file into the shadow, so two mappings of one piece show the same bytes.  If the program
 * gave the host access, the host reaches the bytes at the device address itself.
 *
 *      va       | reserved ............ | free | reserved |      no access; mapped if the host has access
 *      shadow   |  A  |  B  |           |      |  A  |    |
 *      file     ... A ........ B ...
 *
 * Invariants  1 A piece counts as used on its device as long as a holder of its handle or a mapping
 *               is left.  2 A mapping lies in one reservation.  3 Handles are small numbers, reused
 *               once nothing holds their piece.
 * Threads     Any; one lock, taken after that of the effects and before a device's.
 * Failure     The driver's codes, as the descriptions in cuda.h have them.
 * Limits      One granularity, 2 MiB, also on the host.  An exported descriptor does not keep its piece
 *             alive, and only the same process can import it.  Multicast objects cannot be mapped.
 */
#ifndef GPC_SIM_VMM_H
#define GPC_SIM_VMM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

struct gpc_sim;
struct gpc_sim_device;

struct gpc_sim_physical {
	uint64_t size;
	uint64_t offset; /* where the piece starts in the file */
	uint64_t serial; /* never reused */
	CUmemAllocationProp prop;
	uint32_t n_holders;
	uint32_t n_mappings;
	bool is_multicast;
};

struct gpc_sim_va_chunk {
	uint32_t n_reserved; /* chunks of a reservation, at its first chunk; else 0 */
	uint32_t n_mapped;   /* chunks of a mapping, at its first chunk; else 0 */
	uint32_t handle;     /* 0: not mapped */
	uint16_t readers;    /* bit i: device i */
	uint16_t writers;
	bool is_reserved;
	bool host_may; /* the host has access; set at the first chunk of a mapping */
};

struct gpc_sim_vmm {
	/* Fixed after init. */
	uint64_t base;
	uint64_t span;
	uint32_t n_chunks;
	void *va;
	char *shadow;
	int fd;

	/* Lock: lock. */
	struct gpc_sim_va_chunk *chunks;
	struct gpc_sim_physical *physicals; /* handle h is physicals[h - 1] */
	uint32_t n_physicals;
	uint64_t file_size;
	uint64_t n_created; /* pieces so far; the serial of the last one */

	pthread_mutex_t lock;
};

/* False if the kernel provides no addresses or no file. */
bool gpc_sim_vmm_init(struct gpc_sim_vmm *vmm, uint64_t memory, bool is_numbers_only);
void gpc_sim_vmm_fini(struct gpc_sim_vmm *vmm);

CUresult gpc_sim_vmm_reserve(
	struct gpc_sim_vmm *vmm, uint64_t size, uint64_t alignment, uint64_t *ret_ptr);
CUresult gpc_sim_vmm_unreserve(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t size);

CUresult gpc_sim_vmm_create(
	struct gpc_sim *sim, uint64_t size, const CUmemAllocationProp *prop, uint64_t *ret_handle);
CUresult gpc_sim_vmm_multicast(struct gpc_sim *sim, uint64_t size, uint64_t *ret_handle);
CUresult gpc_sim_vmm_release(struct gpc_sim *sim, uint64_t handle);

/* Adds a holder to the piece mapped at `ptr`.  INVALID_VALUE: nothing is mapped there. */
CUresult gpc_sim_vmm_retain(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t *ret_handle);

CUresult gpc_sim_vmm_map(struct gpc_sim *sim, uint64_t ptr, uint64_t size, uint64_t handle);

/*
 * Unmaps the mappings in ptr[0 .. size), skipping holes.  INVALID_VALUE: the range has no mapping, or only a part of
 * one.  As on an H100, does not wait for work: a kernel in flight that touches an unmapped address fails with a sticky
 * 700.
 */
CUresult gpc_sim_vmm_unmap(struct gpc_sim *sim, uint64_t ptr, uint64_t size);

/* Sets the access to the mappings in ptr[0 .. size), skipping holes.  INVALID_VALUE: the range has no mapping. */
CUresult gpc_sim_vmm_set_access(
	struct gpc_sim *sim, uint64_t ptr, uint64_t size, const CUmemAccessDesc *desc);
CUresult gpc_sim_vmm_get_access(
	struct gpc_sim *sim, uint64_t ptr, const CUmemLocation *location, unsigned *ret_flags);

/* Exports a handle as a file descriptor, which the caller closes. */
CUresult gpc_sim_vmm_export(
	struct gpc_sim_vmm *vmm, uint64_t handle, CUmemAllocationHandleType type, int *ret_fd);

/* Imports an exported descriptor: finds its handle and adds a holder to it. */
CUresult gpc_sim_vmm_import(struct gpc_sim_vmm *vmm, int fd, uint64_t *ret_handle);

/* Copies the record of a handle.  False: there is no such handle. */
bool gpc_sim_vmm_find(
	struct gpc_sim_vmm *vmm, uint64_t handle, struct gpc_sim_physical *ret_physical);

/* Finds the mapping that contains `ptr`, an address of vmm, and its handle; false if nothing is mapped there. */
bool gpc_sim_vmm_mapping_at(struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t *ret_base,
	uint64_t *ret_size, uint64_t *ret_handle);

/*
 * True if ptr[0 .. size) is mapped and readable, or with must_write writable, by that device; -1: by any.  `ptr` must
 * be an address of vmm.
 */
bool gpc_sim_vmm_may(
	struct gpc_sim_vmm *vmm, uint64_t ptr, uint64_t size, int device, bool must_write);

static inline bool gpc_sim_vmm_has(const struct gpc_sim_vmm *vmm, uint64_t ptr)
{
	return ptr - vmm->base < vmm->span;
}

static inline void *gpc_sim_vmm_bytes(const struct gpc_sim_vmm *vmm, uint64_t ptr)
{
	return vmm->shadow + (ptr - vmm->base);
}

#endif
