/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies: the allocators that a trace is replayed against, all over the same simulated device.
 *
 *      run.c ----> struct gpc_policy_ops ----+---- gpucache   the allocator of this library, and its ladder
 *                                            +---- pytorch    a model of PyTorch's rules, for comparison
 *                                            '---- none       every request goes to the driver
 *
 * Invariants  1 A policy takes device memory through `driver` only, so the simulated device's
 *               account is the truth about what it reserves.
 * Threads     One.
 * Failure     alloc: GPC_DEVICE_NO_MEMORY where no room could be made; others are defects, and end
 *             the run.
 * Limits      Work of the device is not in a trace: every fence passes at once.
 */
#ifndef GPC_REPLAY_POLICY_H
#define GPC_REPLAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "driver/driver.h"

/* Allocator parameters, as --set gives them. */
struct gpc_policy_settings {
	uint64_t max_split_size;    /* bytes; 0: none */
	uint32_t roundup_divisions; /* 0: none */
	uint32_t gc_threshold_ppm;  /* millionths; 0: off */
};

struct gpc_policy_params {
	struct gpc_driver *driver;
	uint64_t device_bytes;
	uint32_t n_streams;
	struct gpc_policy_settings settings;
};

struct gpc_policy_ops {
	const char *name;
	const char *help;
	bool is_model; /* of another allocator's decisions: how long it takes says nothing */

	enum gpc_status (*create)(const struct gpc_policy_params *params, void **ret_self);
	void (*destroy)(void *self);
	enum gpc_status (*alloc)(
		void *self, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address);
	enum gpc_status (*free)(void *self, uint64_t address, uint64_t now_ns);

	/* NULL: every invariant holds; else the name of the first that does not. */
	const char *(*check)(void *self);
};

extern const struct gpc_policy_ops gpc_policy_gpucache;
extern const struct gpc_policy_ops gpc_policy_pytorch;
extern const struct gpc_policy_ops gpc_policy_none;

#endif
