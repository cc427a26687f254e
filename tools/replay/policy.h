/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies: the allocators that serve a trace's requests in a replay, one machine each.
 *
 *      run.c ----> struct gpc_policy_ops ----+---- gpucache        this library's allocator, with ladder and barriers
 *                                            +---- gpucache-on     gpucache, told the stream of each call
 *                                            +---- pytorch         a model of PyTorch; expandable: with that option
 *                                            +---- vmm             gpucache with vmm:on; vmm-auto: with vmm:auto
 *                                            '---- none            every request goes to the driver
 *
 * Invariants  1 A policy takes device memory only through machine->driver, so the device knows what
 *               the policy reserves.
 * Threads     One.
 * Failure     alloc: GPC_DEVICE_NO_MEMORY if no room can be made.  Any other status is a defect.  The run ends with the
 *             first operation that fails, whatever the status.
 * Limits      A trace without work (trace.h) never keeps the device busy, so every fence passes at once.
 */
#ifndef GPC_REPLAY_POLICY_H
#define GPC_REPLAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "tools/replay/machine.h"

/* Parameters of the allocator.  --set of gpumem-replay sets all but limit_bytes. */
struct gpc_policy_settings {
	uint64_t max_split_size;    /* bytes; 0: none */
	uint32_t roundup_divisions; /* 0: none */
	uint32_t gc_threshold_ppm;  /* millionths; 0: off */
	uint64_t limit_bytes;       /* the most bytes of all segments; gpucache only; 0: none */
};

enum gpc_policy_variant {
	GPC_POLICY_PLAIN,
	GPC_POLICY_HOST_ORDER, /* each free waits for the device; for tests/bench/replay, as the next */
	GPC_POLICY_UNSAFE,     /* no fences */
	GPC_POLICY_PAGES,      /* expandable segments; vmm:on */
	GPC_POLICY_PAGES_AUTO, /* vmm:auto */
};

struct gpc_policy_ops {
	const char *name;
	const char *help;
	/* Models the decisions of another allocator.  The model's run time says nothing about that allocator's. */
	bool is_model;
	/* alloc() returns memory that `stream` may use at once; other streams must first be ordered after `stream`. */
	bool is_stream_ordered;
	/* Orders new work after the old users of a reused block only when the program next submits work (submits). */
	bool is_late;
	/* Decides by the size of the device, although it never asks the driver for free memory. */
	bool is_of_size;
	/* Distinguishes policies that share their functions. */
	enum gpc_policy_variant variant;

	/* NULL: nothing to do. */
	enum gpc_status (*create)(const struct gpc_policy_ops *policy, struct gpc_machine *machine,
		const struct gpc_policy_settings *settings, void **ret_self);
	void (*destroy)(void *self);
	/* NULL: every request goes to the driver, as if each allocation had bypassed the policy. */
	enum gpc_status (*alloc)(
		void *self, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address);
	enum gpc_status (*free)(void *self, uint64_t address, uint32_t stream, uint64_t now_ns);
	/* `stream`, which is not the stream of the allocation, is about to use the memory.  NULL: ignored. */
	enum gpc_status (*use)(void *self, uint64_t address, uint32_t stream);
	/* Returns all cached memory to the driver.  NULL: nothing is cached. */
	void (*empty_cache)(void *self);
	/* The program is about to submit work.  NULL: ignored. */
	void (*submits)(void *self);
	/* The program waits for the whole device, by context_sync of `driver`.  NULL: only the driver is called. */
	enum gpc_status (*sync)(void *self, struct gpc_driver *driver, uint64_t now_ns);
	/* The most bytes that were pending at a time.  NULL: 0. */
	uint64_t (*peak_pending)(void *self);

	/* Returns the name of the first broken invariant, NULL if none is.  No function: there is nothing to check. */
	const char *(*check)(void *self);
};

extern const struct gpc_policy_ops gpc_policy_gpucache;
extern const struct gpc_policy_ops gpc_policy_gpucache_on;
extern const struct gpc_policy_ops gpc_policy_none;
extern const struct gpc_policy_ops gpc_policy_vmm;
extern const struct gpc_policy_ops gpc_policy_vmm_auto;
extern const struct gpc_policy_ops gpc_policy_pytorch;
extern const struct gpc_policy_ops gpc_policy_pytorch_expandable;

#endif
