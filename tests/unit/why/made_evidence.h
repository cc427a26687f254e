/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence that a test makes: the frames and the call site of each stack, and no earlier failure. */
#ifndef GPC_TESTS_UNIT_WHY_MADE_EVIDENCE_H
#define GPC_TESTS_UNIT_WHY_MADE_EVIDENCE_H

#include <string.h>

#include "why/torch_facts.h"

enum {
	N_STACKS = 5, /* 0 is none */
	MAX_FRAMES = 10
};

static struct {
	struct gpc_stack_frames list;
	struct gpc_frame frames[MAX_FRAMES];
} stacks[N_STACKS];
static struct gpucache_site sites[N_STACKS];
static struct gpucache_oom oom;

/* Innermost first. */
static inline void set(uint32_t id, const struct gpc_frame *frames, size_t n)
{
	stacks[id].list.n = n;
	memcpy(stacks[id].list.frames, frames, n * sizeof *frames);
	gpc_frames_finish(&stacks[id].list);
}

static inline void clear_evidence(void)
{
	memset(stacks, 0, sizeof stacks);
	memset(sites, 0, sizeof sites);
	memset(&oom, 0, sizeof oom);
}

static inline const struct gpc_stack_frames *find_frames(void *self, uint32_t stack)
{
	return stack < N_STACKS ? &stacks[stack].list : NULL;
}

static inline bool read_site(void *self, uint64_t i, struct gpucache_site *ret_site)
{
	*ret_site = sites[i];
	return true;
}

static inline bool find_oom(void *self, uint64_t number, struct gpucache_oom *ret_oom)
{
	return false;
}

static const struct gpc_evidence evidence = {
	.frames = find_frames, .read_site = read_site, .n_sites = N_STACKS, .find_oom = find_oom
};

#endif
