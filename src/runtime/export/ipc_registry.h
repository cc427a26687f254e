/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an importer learns which part of a segment a handle stands for.
 *
 * A handle of the driver opens at the start of an allocation, so those of two blocks of one segment
 * are the same 64 bytes.  A block that lies further inside gets a handle of ours instead, a tag:
 *
 *      tag      magic  place  slot  nonce  entry  serial        64 bytes, the rest zero
 *                        |      |     |      |
 *      /dev/shm/gpucache-UID/ipc-SLOT --> [ nonce | entry 0 | entry 1 | ... ]
 *                                                      '--> the driver's handle, offset, size
 *
 * Our library in the importer reads the entry, opens the driver's handle and adds the offset.
 * Without it the driver gets the tag, which is none of its handles: an error, and never other
 * memory.
 *
 * The file is made at the first tag, locked while its process lives, and removed at its end; the
 * slot of a process that was killed is taken by the next one.  A nonce of 64 random bits tells the
 * file from every other one of that name, a serial the entry from those before it.
 *
 * Invariants  1 Directories of ours belong to this user and are closed to all others; a file is
 *               neither a link nor somebody else's.
 *             2 A program that closes our descriptor gets the number for a file of its own, and that
 *               is not touched: our file is opened again by its name, where it still has our
 *               nonce and nobody else locked it; else the process takes a new one, and what it
 *               exported before leads nowhere.
 *             3 An entry is written whole before its tag exists.  Files are written and read,
 *               never mapped: a full tmpfs is an error and not a SIGBUS.
 * Threads     The owner's lock.  gpc_ipc_registry_find: any thread, without one.
 * Failure     add: GPC_IO, no directory can be used, it is full, or too many processes have a slot.
 *             find: GPC_NOT_FOUND, no such entry can be read.  Nothing changes.
 * Limits      The processes are of one user and see the same /dev/shm or /tmp.  4096 blocks of a
 *             process and 256 processes at a time.
 */
#ifndef GPC_RUNTIME_IPC_REGISTRY_H
#define GPC_RUNTIME_IPC_REGISTRY_H

#include <stdbool.h>

#include "base/io.h"
#include "base/status.h"
#include "driver/cuda_abi.h"
#include "runtime/rescue/rescue.h"

#define GPC_IPC_MAX_ENTRIES 4096u
#define GPC_IPC_MAX_SLOTS   256u
#define GPC_IPC_N_PLACES    2u

struct gpc_ipc_registry {
	bool is_open;
	int fd;
	struct gpc_io_file file; /* that of fd */
	uint32_t place;
	uint32_t suffix; /* of its directory */
	uint32_t slot;
	uint64_t nonce;
	uint64_t last_serial;
};

/* What a tag stands for. */
struct gpc_ipc_target {
	CUipcMemHandle handle;
	uint64_t offset;
	uint64_t size;
};

/* Tests put others here: each a directory, made where its parent is there; NULL: the usual ones. */
extern const char *const *gpc_ipc_registry_places;

/* Writes entry number `entry` < GPC_IPC_MAX_ENTRIES, and gives its tag. */
GPC_MUST_CHECK enum gpc_status gpc_ipc_registry_add(struct gpc_ipc_registry *registry,
	uint32_t entry, const struct gpc_ipc_target *target, CUipcMemHandle *ret_tag);

/* From now on its tags lead nowhere. */
void gpc_ipc_registry_remove(struct gpc_ipc_registry *registry, uint32_t entry);

/* The end of the process: the file goes.  In a child of fork only its descriptors do. */
void gpc_ipc_registry_fini(struct gpc_ipc_registry *registry, bool is_child);

bool gpc_ipc_is_tag(const CUipcMemHandle *handle);

GPC_MUST_CHECK enum gpc_status gpc_ipc_registry_find(
	const CUipcMemHandle *tag, struct gpc_ipc_target *ret_target);

#endif
