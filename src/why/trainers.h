/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the library that runs the model for the program, or shards it over ranks (trainers.def): its settings are advised.
 *
 * Threads   As those of the evidence.
 * Failure   None: finds nothing.
 */
#ifndef GPC_WHY_TRAINERS_H
#define GPC_WHY_TRAINERS_H

#include "why/evidence.h"
#include "why/why.h"

/* Sets trainer, sharder, their settings, and is_phase. */
void gpc_trainers_find(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts);

#endif
