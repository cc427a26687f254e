/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of the simulated machine: devices, memory, costs, faults.
 *
 * A configuration is a struct, or a text `key:value,key:value`, which the stand-in libcuda takes
 * from the environment variable GPUSIM.  A table in config.c has every key with its meaning; the text `help:true`
 * prints that table.
 *
 * Invariants  1 gpc_sim_config_default gives a machine whose calls cost nothing and have no injected faults.
 * Threads     A configuration belongs to one thread until a machine is made from it.
 * Failure     A key or value that is not understood is reported in one line on standard error, and
 *             ignored.
 * Limits      All devices are alike.
 */
#ifndef GPC_SIM_CONFIG_H
#define GPC_SIM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/gpu/model.h"

#define GPC_SIM_MAX_DEVICES   16
#define GPC_SIM_MAX_PROCESSES 8
#define GPC_SIM_MAX_FAULTS    16
#define GPC_SIM_MAX_QUEUE     65536
#define GPC_SIM_FILE_BYTES    256

/* Calls that can be given a cost. */
enum gpc_sim_cost {
	GPC_SIM_COST_MALLOC,
	GPC_SIM_COST_FREE,
	GPC_SIM_COST_INFO,
	GPC_SIM_COST_EVENT_CREATE,
	GPC_SIM_COST_RECORD,
	GPC_SIM_COST_QUERY,
	GPC_SIM_COST_WAIT,
	GPC_SIM_COST_SYNC,
	GPC_SIM_COST_LAUNCH,
	GPC_SIM_COST_COUNT
};

/* Nanoseconds per call, as published for machines from V100 to H20; config.c says what each figure measures. */
extern const uint64_t gpc_sim_published_costs[GPC_SIM_COST_COUNT];

/* A simulated other process, which holds `bytes` of memory on every device. */
struct gpc_sim_process {
	unsigned pid;
	uint64_t bytes;
	char name[64];
};

/* `count` calls of `entry` fail with `code`, from call number `nth` on. */
struct gpc_sim_fault_rule {
	char entry[48];
	uint64_t nth; /* 1 is the next call */
	uint64_t count;
	int code;
};

struct gpc_sim_config {
	unsigned n_devices;
	unsigned n_physical;                    /* devices of the machine, including hidden ones */
	unsigned physical[GPC_SIM_MAX_DEVICES]; /* [i]: the machine's number of device i */
	const struct gpc_sim_model *model;      /* the GPU that each device simulates */
	int driver_version;
	bool virtual_clock;
	bool is_data_full;     /* the host stores every byte (data.h) */
	bool is_numbers_only;  /* no address is mapped: a replay accesses no bytes */
	uint64_t keep;         /* bytes of data that the host stores, unless is_data_full */
	uint64_t memory;       /* the total that cuMemGetInfo reports */
	uint64_t reserved;     /* held by the driver beyond `memory`; NVML reports it */
	uint64_t context_cost; /* device memory that a context takes */
	uint64_t module_cost;  /* device memory that a module takes */
	bool has_code;         /* libraries take device memory for code (sim/libcuda/code.def) */
	uint64_t oom_after;  /* bytes that a device allocates in all, even if freed; 0: no limit */
	uint64_t free_waits; /* a cuMemFree of at least this many bytes waits for work */
	bool free_waits_alone; /* a free waits only for work of the memory's context */
	bool is_async_free_late; /* cuMemFreeAsync of memory of cuMemAlloc waits for the whole device */
	uint64_t queue;          /* entries in a stream's queue; 0: unbounded */
	bool is_host_near; /* reports that the host accesses device memory directly, as on Grace */
	bool is_event_queued; /* cuCtxRecordEvent, cuCtxWaitEvent take an entry in each stream's queue */
	bool is_answered; /* results that no kernel computed are read as numbers, not as what is there */
	uint64_t
		one_every; /* is_answered: every so manieth read of a line gives 1, the others 0; 0: all 0 */
	char launches[GPC_SIM_FILE_BYTES]; /* a file to list launches and copies; empty: none */
	char calls[GPC_SIM_FILE_BYTES];    /* a file to list called entries; empty: none */
	uint64_t cost_ns[GPC_SIM_COST_COUNT];
	uint64_t kernel_ns;       /* duration of a kernel */
	uint64_t copy_ns;         /* duration of a copy or a memset of 0 bytes */
	uint64_t copy_ns_per_mib; /* added to copy_ns for each MiB */
	uint64_t
		migrate_ns_per_mib; /* added to work for each MiB of managed memory that it moves */
	bool is_managed_pinned; /* the device cannot fault on managed memory: no concurrent access */

	unsigned n_processes;
	struct gpc_sim_process processes[GPC_SIM_MAX_PROCESSES];
	unsigned n_faults;
	struct gpc_sim_fault_rule faults[GPC_SIM_MAX_FAULTS];
};

/* Returns one device of 8 GiB with driver 13.0 and the real clock, without costs and injected faults. */
struct gpc_sim_config gpc_sim_config_default(void);

/*
 * Hides devices as CUDA_VISIBLE_DEVICES does, whose value is `list`: the listed devices remain, in the list's order, up
 * to the first invalid number.  If `list` is NULL or begins with a UUID, all devices remain.
 */
void gpc_sim_config_set_visible(struct gpc_sim_config *config, const char *list);

/* Applies `text` to the configuration.  Returns the number of invalid parts. */
unsigned gpc_sim_config_parse(struct gpc_sim_config *config, const char *text);

#endif
