/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes on the GPU, from the driver's management library (NVML), queried once per OOM.
 *
 * NVML is never linked.  The caller supplies dlopen and dlsym, since the preload library interposes
 * these and must use the real ones.
 *
 * NVML lists processes by pid.  Inside a pid namespace it may list none, or pids of the outer one.  This
 * process has memory on the device when it queries, so:
 *
 *	own pid listed      the pids are of our namespace: this process and the others can be told apart
 *	own pid not listed  any entry may be this process: nothing is attributed
 *
 * Invariants
 *   1 What NVML does not report, or reports as all ones, is GPUCACHE_UNKNOWN.
 *   2 others_bytes is known only if the bytes of every other process are.
 *   3 neighbours[0 .. n) are biggest first, unknown last.
 *
 * Threads   One caller at a time for one struct gpc_nvml (it holds the buffer for the answers).
 * Failure   gpc_nvml_init: a status, and nothing stays open.  gpc_neighbours_ask: fields stay unknown.
 * Limits    256 processes; beyond that nothing is attributed.  Compute processes only: graphics memory
 *           ends up in the balance's `unattributed`.
 */
#ifndef GPC_OOM_NEIGHBOURS_H
#define GPC_OOM_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gpucache_format.h"

/* The ABI of libnvidia-ml.so.1 as far as we use it; tests/unit/oom compares it with nvml.h. */
#define GPC_NVML_LIBRARY           "libnvidia-ml.so.1"
#define GPC_NVML_SUCCESS           0
#define GPC_NVML_INSUFFICIENT_SIZE 7
#define GPC_NVML_MEMORY_V2         0x02000028u /* size of the struct, version in the top byte */

struct gpc_nvml_device; /* NVML's opaque handle */

struct gpc_nvml_memory {
	unsigned version; /* GPC_NVML_MEMORY_V2 */
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long available; /* `free` in nvml.h */
	unsigned long long used;
};

struct gpc_nvml_process {
	unsigned pid;
	unsigned long long used; /* all ones: not available */
	unsigned gpu_instance;
	unsigned compute_instance;
};

#define GPC_NVML_MAX_PROCESSES 256u

struct gpc_nvml_loader {
	void *(*open)(const char *name);
	void *(*lookup_in)(void *library, const char *name);
};

struct gpc_nvml {
	bool ready;
	int (*init)(void);
	int (*by_uuid)(const char *uuid, struct gpc_nvml_device **device);
	int (*by_pci)(const char *bus_id, struct gpc_nvml_device **device);
	int (*by_index)(unsigned index, struct gpc_nvml_device **device);
	int (*index_of)(struct gpc_nvml_device *device, unsigned *index);
	int (*memory)(struct gpc_nvml_device *device, struct gpc_nvml_memory *memory);
	int (*processes)(
		struct gpc_nvml_device *device, unsigned *count, struct gpc_nvml_process *infos);
	int (*process_name)(unsigned pid, char *name, unsigned length);
	struct gpc_nvml_process infos[GPC_NVML_MAX_PROCESSES];
};

/*
 * What the caller knows of the device.  NVML finds it by the first of uuid, pci_bus_id and index that is set and works.
 */
struct gpc_neighbours_query {
	const char *uuid;       /* "GPU-..." or "MIG-..."; NULL or empty: unknown */
	const char *pci_bus_id; /* "0000:17:00.0"; NULL or empty: unknown */
	int index;              /* NVML's, not CUDA's; -1: unknown */
	uint32_t own_pid;
	const char *proc; /* "/proc"; tests give another folder */
};

struct gpc_neighbours {
	uint64_t process_bytes;
	uint64_t others_bytes;
	uint64_t driver_bytes;     /* reserved by the driver, whether inside CUDA's total or not */
	uint64_t used_bytes;       /* by all processes, without the driver's reserve */
	uint64_t nvml_total_bytes; /* NVML's own total, which counts the reserve */
	int index;                 /* nvidia-smi's index; -1: unknown */
	uint32_t n_other;          /* other processes, if they can be told apart from this one */
	uint32_t n_neighbours;     /* entries of neighbours[] */
	struct gpucache_neighbour neighbours[GPUCACHE_MAX_NEIGHBOURS];
};

/*
 * Opens and initializes NVML.  GPC_NOT_FOUND: no such library; GPC_UNSUPPORTED: it lacks a function or
 * fails to initialize.  NVML stays open until the process ends.
 */
GPC_MUST_CHECK enum gpc_status gpc_nvml_init(
	struct gpc_nvml *nvml, const struct gpc_nvml_loader *loader);

/*
 * What is free on the device, in bytes, if at least a part of 1/GPC_ROOMY_PART is, and all processes together use at most
 * 1/GPC_IDLE_PART beyond the own_bytes; else 0, also if unknown.
 */
#define GPC_IDLE_PART  32
#define GPC_ROOMY_PART 4
uint64_t gpc_nvml_idle(
	const struct gpc_nvml *nvml, const struct gpc_neighbours_query *query, uint64_t own_bytes);

/* Makes a bounded number of NVML calls.  If nvml is NULL or not ready, all is unknown. */
void gpc_neighbours_ask(struct gpc_nvml *nvml, const struct gpc_neighbours_query *query,
	struct gpc_neighbours *ret_neighbours);

#endif
