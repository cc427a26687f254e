/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WHY: a verdict in words, its strength, and the numbers behind it.
 *
 *      "fragmented (certain): enough cached memory ..., but ...  9.10 GiB are cached, ..."
 *
 * Threads   One.
 * Failure   None; text is truncated to fit.
 */
#ifndef GPC_REPORT_EVIDENCE_H
#define GPC_REPORT_EVIDENCE_H

#include "tools/gpumem-report/answer.h"

void gpc_evidence_say(const struct gpc_answer *answer, struct gpc_text *ret_text);

#endif
