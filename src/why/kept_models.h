/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that a PyTorch program makes one after the other, and keeps.
 *
 *	Net.__init__   w . . w . . w . .     each stack makes a weight again after passes have run,
 *	forward        . a a . a a . a a     and none of those before it was freed
 *
 * The windows of the run (record/windows.h) see it only if there are many models.
 *
 * Threads   As those of the evidence.
 * Failure   None.
 */
#ifndef GPC_WHY_KEPT_MODELS_H
#define GPC_WHY_KEPT_MODELS_H

#include "why/evidence.h"

struct gpc_kept_models {
	uint32_t stack; /* which holds most of them; 0: there are none */
	uint64_t bytes; /* of all but the last model */
	uint64_t held;  /* of all */
	uint64_t n_blocks;
};

struct gpc_kept_models gpc_kept_models_find(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom);

#endif
