/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evidence for a verdict, in numbers that were measured.
 *
 * Threads   Pure functions.
 * Failure   None; text that does not fit is cut.
 */
#ifndef GPC_OOM_EVIDENCE_H
#define GPC_OOM_EVIDENCE_H

#include "base/text.h"
#include "gpucache_format.h"
#include "oom/verdict.h"

/* Writes the numbers behind oom->verdict as one sentence without a full stop. */
void gpc_evidence_write(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	struct gpc_text *text);

#endif
