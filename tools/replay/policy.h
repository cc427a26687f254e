/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies: the allocators that a trace is replayed against, all over the same kind of machine.
 *
 *      run.c ----> struct gpc_policy_ops ----+---- gpucache        the allocator of this library, and its ladder
 *                                            +---- fence           the same with free_order:fence
 *                                            +---- host            the same with free_order:host
 *                                            +---- gpucache-on     the same, told the streams
 *                                            +---- pytorch         a model of PyTorch's rules (gpumem-replay)
 *                                            +---- vmm             gpucache with vmm:on; vmm-auto: with vmm:auto
 *                                            +---- none            every request goes to the driver
 *                                            '---- unsafe          gpucache without fences
 *
 * Invariants  1 A policy takes device memory through machine->driver only, so the device's account
 *               is the truth about what it reserves.
 * Threads     One.
 * Failure     alloc: GPC_DEVICE_NO_MEMORY where no room could be made; others are defects, and end
 *             the run.
 * Limits      Only workloads (workload.h) have work of the device; for other traces every fence
 *             passes at once.
 */
#ifndef GPC_REPLAY_POLICY_H
#define GPC_REPLAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "tools/replay/machine.h"

/* Allocator parameters, as --set gives them. */
struct gpc_policy_settings {
	uint64_t max_split_size;    /* bytes; 0: none */
	uint32_t roundup_divisions; /* 0: none */
	uint32_t gc_threshold_ppm;  /* millionths; 0: off */
	uint64_t limit_bytes;       /* for all of the policy's segments; 0: none */
};

struct gpc_policy_params {
	struct gpc_machine *machine;
	struct gpc_policy_settings settings;
};

struct gpc_policy_ops {
	const char *name;
	const char *help;
	bool is_model; /* of another allocator's decisions: how long it takes says nothing */
	/* What is asked for on a stream is first used on it, or behind it. */
	bool is_stream_ordered;
	/* All streams are put behind the old owner's work before the next submission, not before. */
	bool is_late;

	enum gpc_status (*create)(const struct gpc_policy_params *params, void **ret_self);
	void (*destroy)(void *self);
	enum gpc_status (*alloc)(
		void *self, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address);
	enum gpc_status (*free)(void *self, uint64_t address, uint32_t stream, uint64_t now_ns);
	/* A stream that the free will not name uses it, too.  NULL: does not matter. */
	enum gpc_status (*use)(void *self, uint64_t address, uint32_t stream);
	/* The program asks for what is cached to go back to the driver.  NULL: nothing is. */
	void (*empty_cache)(void *self);
	/* Work is about to be submitted.  NULL: does not matter. */
	void (*submits)(void *self);
	/* The program waits for the whole device: before and after it did.  NULL: do not matter. */
	uint64_t (*begin_sync)(void *self);
	void (*end_sync)(void *self, uint64_t number, uint64_t now_ns);
	/* The most bytes that were freed and could not be reused yet.  NULL: there never are any. */
	uint64_t (*peak_pending)(void *self);

	/* NULL: every invariant holds; else the name of the first that does not. */
	const char *(*check)(void *self);
};

extern const struct gpc_policy_ops gpc_policy_gpucache;
extern const struct gpc_policy_ops gpc_policy_gpucache_fence;
extern const struct gpc_policy_ops gpc_policy_gpucache_host;
extern const struct gpc_policy_ops gpc_policy_gpucache_on;
extern const struct gpc_policy_ops gpc_policy_unsafe;
extern const struct gpc_policy_ops gpc_policy_none;
extern const struct gpc_policy_ops gpc_policy_vmm;
extern const struct gpc_policy_ops gpc_policy_vmm_auto;

#endif
