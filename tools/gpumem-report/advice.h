/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains a failed request: the verdict with its numbers, and what to do.
 *
 * The words of a verdict come from model/verdict.def, as in the library's short form; the numbers
 * come from the record of the failure.
 *
 * Invariants  1 Advice names no option that this run had set already.  2 It names an option only if a
 *               replay of this recording served the request with it (answer.h).
 * Threads     One.
 * Failure     Text is truncated to fit.
 */
#ifndef GPC_REPORT_ADVICE_H
#define GPC_REPORT_ADVICE_H

#include "tools/gpumem-report/answer.h"

/* evidence.c: "fragmented (certain): enough cached memory ..., but ...", the verdict with its numbers. */
void gpc_evidence_say(const struct gpc_answer *answer, struct gpc_text *ret_text);

/* What to do; never empty. */
void gpc_advice_try(const struct gpc_answer *answer, struct gpc_text *ret_text);

/* The sections WHY, SHORT and TRY; with_also: and ALSO, the other verdicts that hold. */
void gpc_advice_print(const struct gpc_answer *answer, bool with_also);

#endif
