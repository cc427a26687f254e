/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IPC registry: maps our handles to parts of a segment, for importing processes.
 *
 * A handle of the driver stands for a whole allocation, so all blocks of a segment would have the same handle of 64
 * bytes.  A block inside a segment gets a handle of ours instead, a tag:
 *
 *      tag      magic  place  slot  nonce  serial  entry  suffix     64 bytes, the rest zero
 *                        |      |     |      |
 *      /dev/shm/gpucache-UID/ipc-SLOT --> [ nonce | entry 0 | entry 1 | ... ]
 *                                                      '--> the driver's handle, offset, size
 *
 * The library in the importer reads the entry, opens the driver's handle and adds the offset.  An importer without the
 * library passes the tag to the driver.  The driver rejects the tag, so the importer gets an error and no wrong memory.
 *
 * The file is created at the first tag, locked while its process lives, and removed at the end of the process.  The
 * slot of a killed process is reused.  The nonce, 64 random bits, distinguishes the file from later files of the same
 * name, and the serial distinguishes the entry from its predecessors in the same place.
 *
 * Invariants  1 Our directories belong to this user and are closed to all others.  A file of ours is a regular file of
 *               this user.
 *             2 The program may close our descriptor and open another file under the same number: that file is not
 *               touched.  Our file is then reopened by name, if it still has our nonce and no other process has locked
 *               it.  Otherwise the process makes a new file, and its earlier tags become invalid.
 *             3 An entry is complete before its tag exists.  Files are written and read, but not mapped: on a full
 *               tmpfs a write returns an error, and an access to a mapping would raise SIGBUS.
 * Threads     Under the lock of ipc.c; gpc_ipc_registry_find: any, without a lock.
 * Failure     A failed call changes nothing.  gpc_ipc_registry_add returns GPC_IO without a usable directory, space or
 *             a free slot; gpc_ipc_registry_find returns GPC_NOT_FOUND if it cannot read the entry.
 * Limits      Processes of one user with a common /dev/shm or /tmp.  4096 blocks per process, 256 processes at a time.
 */
#ifndef GPC_RUNTIME_IPC_REGISTRY_H
#define GPC_RUNTIME_IPC_REGISTRY_H

#include <stdbool.h>

#include "base/io.h"
#include "base/status.h"
#include "driver/cuda_abi.h"

#define GPC_IPC_MAX_ENTRIES 4096u
#define GPC_IPC_MAX_SLOTS   256u
#define GPC_IPC_N_PLACES    2u

struct gpc_ipc_registry {
	bool is_open;
	int fd;
	struct gpc_io_file file; /* the identity of fd */
	uint32_t place;
	uint32_t suffix; /* of its directory */
	uint32_t slot;
	uint64_t nonce;
	uint64_t last_serial;
};

/* The memory that a tag refers to. */
struct gpc_ipc_target {
	CUipcMemHandle handle;
	uint64_t offset;
	uint64_t size;
};

/* Tests set other directories, which are created if their parents exist; NULL: the usual ones. */
extern const char *const *gpc_ipc_registry_places;

/* Writes entry number `entry` < GPC_IPC_MAX_ENTRIES, and returns its tag. */
GPC_MUST_CHECK enum gpc_status gpc_ipc_registry_add(struct gpc_ipc_registry *registry,
	uint32_t entry, const struct gpc_ipc_target *target, CUipcMemHandle *ret_tag);

/* Invalidates the tags of an entry. */
void gpc_ipc_registry_remove(struct gpc_ipc_registry *registry, uint32_t entry);

/* Removes the file at the end of the process; in a fork child only closes the descriptor. */
void gpc_ipc_registry_fini(struct gpc_ipc_registry *registry, bool is_child);

bool gpc_ipc_is_tag(const CUipcMemHandle *handle);

GPC_MUST_CHECK enum gpc_status gpc_ipc_registry_find(
	const CUipcMemHandle *tag, struct gpc_ipc_target *ret_target);

#endif
