/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the facts of NAMES are found in: stacks, call sites and earlier failures.  The report reads them from a recording,
 * the library from the running process.
 *
 * Threads     As the functions' owner says.
 * Failure     What is not there: NULL or false.
 */
#ifndef GPC_WHY_EVIDENCE_H
#define GPC_WHY_EVIDENCE_H

#include "gpucache_format.h"
#include "names/frames.h"

struct gpc_evidence {
	void *self;
	/* The frames of a stack, which stay as long as the evidence; NULL: not known. */
	const struct gpc_stack_frames *(*frames)(void *self, uint32_t stack);
	/* The sums of call site i < n_sites, of any device; false: there are none. */
	bool (*read_site)(void *self, uint64_t i, struct gpucache_site *ret_site);
	uint64_t n_sites;
	/* The record of an earlier failure. */
	bool (*find_oom)(void *self, uint64_t number, struct gpucache_oom *ret_oom);
};

static inline const struct gpc_stack_frames *gpc_evidence_frames(
	const struct gpc_evidence *evidence, uint32_t stack)
{
	return evidence->frames(evidence->self, stack);
}

/* Reads call site i, if it is one of this device. */
static inline bool gpc_evidence_site(const struct gpc_evidence *evidence, uint64_t i,
	int32_t device, struct gpucache_site *ret_site)
{
	return evidence->read_site(evidence->self, i, ret_site) && ret_site->stack &&
	       (int32_t)ret_site->device == device;
}

/* Finds the call site of this stack on this device. */
static inline bool gpc_evidence_find_site(const struct gpc_evidence *evidence, int32_t device,
	uint32_t stack, struct gpucache_site *ret_site)
{
	for (uint64_t i = 0; i < evidence->n_sites; i++)
		if (gpc_evidence_site(evidence, i, device, ret_site) && ret_site->stack == stack)
			return true;
	return false;
}

/* The holder of this stack in the record of a failure; NULL: it is not listed. */
static inline const struct gpucache_holder *gpc_holder_of(
	const struct gpucache_oom *oom, uint32_t stack)
{
	for (uint32_t i = 0; i < oom->n_holders; i++)
		if (oom->holders[i].stack == stack)
			return &oom->holders[i];
	return NULL;
}

#endif
