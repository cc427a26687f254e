/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated machine is like: devices, memory, costs, faults.
 *
 * A configuration is a struct, or a text `key:value,key:value`, which the stand-in libcuda takes
 * from the environment variable GPUSIM.  Every key stands with its meaning in one table, in
 * config.c; the text `help:true` prints it.
 *
 * Invariants  1 gpc_sim_config_default gives a machine whose calls cost nothing and never fail.
 * Threads     A configuration belongs to one thread until a machine is made from it.
 * Failure     A key or value that is not understood is reported in one line on standard error, and
 *             ignored.
 * Limits      All devices are alike.
 */
#ifndef GPC_SIM_CONFIG_H
#define GPC_SIM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/model.h"

#define GPC_SIM_MAX_DEVICES   16
#define GPC_SIM_MAX_PROCESSES 8
#define GPC_SIM_MAX_FAULTS    16
#define GPC_SIM_MAX_QUEUE     65536

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

/* Nanoseconds per call, as published for V100 to H20 class machines; the sources are next to them. */
extern const uint64_t gpc_sim_published_costs[GPC_SIM_COST_COUNT];

/* Another process, simulated, that holds memory of every device. */
struct gpc_sim_process {
	unsigned pid;
	uint64_t bytes;
	char name[64];
};

/* The calls number nth, nth + 1 ... nth + count - 1 of `entry` fail with `code`. */
struct gpc_sim_fault_rule {
	char entry[48];
	uint64_t nth; /* 1 is the next call */
	uint64_t count;
	int code;
};

struct gpc_sim_config {
	unsigned n_devices;
	unsigned n_physical;                    /* devices of the machine, with hidden ones */
	unsigned physical[GPC_SIM_MAX_DEVICES]; /* of device i, the number in the machine */
	const struct gpc_sim_model *model;      /* what the devices are */
	int driver_version;
	bool virtual_clock;
	bool is_data_full;
	bool is_numbers_only;  /* addresses are only numbers: a replay reads no bytes */
	uint64_t keep;         /* bytes of data that the host keeps, unless is_data_full */
	uint64_t memory;       /* what cuMemGetInfo calls total */
	uint64_t reserved;     /* the driver's reserve, beyond `memory`; NVML counts it */
	uint64_t context_cost; /* device memory that a context takes */
	uint64_t module_cost;  /* device memory that a module takes */
	bool has_code;         /* also takes the measured code size of libraries */
	uint64_t oom_after;    /* 0, or: fail after this many bytes in total */
	uint64_t free_waits;   /* cuMemFree of at least this many bytes waits */
	bool free_waits_alone; /* only for work of the memory's context, not the device's */
	uint64_t queue;        /* entries in a stream's queue; 0: unbounded */
	bool is_host_near; /* reports that the host accesses device memory directly, as on Grace */
	bool is_event_queued; /* a context's event takes an entry in the queue of each of its streams */
	char launches[256]; /* a file to list launches and copies; empty: none */
	char calls[256];    /* a file to list called entries; empty: none */
	uint64_t cost_ns[GPC_SIM_COST_COUNT];
	uint64_t kernel_ns;       /* duration of a kernel */
	uint64_t copy_ns;         /* least duration of a copy or a memset */
	uint64_t copy_ns_per_mib; /* and per MiB */

	unsigned n_processes;
	struct gpc_sim_process processes[GPC_SIM_MAX_PROCESSES];
	unsigned n_faults;
	struct gpc_sim_fault_rule faults[GPC_SIM_MAX_FAULTS];
};

/* One device of 8 GiB, nothing costs, nothing fails, real clock, driver 13.0. */
struct gpc_sim_config gpc_sim_config_default(void);

/*
 * Keeps the devices numbered in `list`, the value of CUDA_VISIBLE_DEVICES, in its order, up to the first invalid one;
 * NULL, or a list of UUIDs: all.
 */
void gpc_sim_config_show(struct gpc_sim_config *config, const char *list);

/* Applies `text` to the configuration.  Returns the number of invalid parts. */
unsigned gpc_sim_config_parse(struct gpc_sim_config *config, const char *text);

#endif
