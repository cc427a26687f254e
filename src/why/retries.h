/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what earlier attempts have left: a program asks, fails, asks for less, and has not freed what the first attempt
 * had made by then.
 *
 * Threads     Pure, but for the evidence.
 * Failure     Finds nothing.
 * Limits      Of a framework's memory why/torch_facts.h knows more, and this says nothing.
 */
#ifndef GPC_WHY_RETRIES_H
#define GPC_WHY_RETRIES_H

#include "why/evidence.h"
#include "why/why.h"

/* Sets retried_site and retried_bytes. */
void gpc_retries_find(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts);

#endif
