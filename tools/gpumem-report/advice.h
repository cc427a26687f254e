/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to say about a failed request: the verdict with its numbers, and what to do.
 *
 * The words of a verdict are model/verdict.def's, which the library's short form prints too; the
 * numbers come from the record of the failure.
 *
 * Invariants  1 Advice names no option that this run had set already.  2 Of options only those are
 *               advised with which a replay of this recording served the request (answer.h).
 * Threads     One.
 * Failure     Texts are cut to fit.
 */
#ifndef GPC_REPORT_ADVICE_H
#define GPC_REPORT_ADVICE_H

#include "tools/gpumem-report/answer.h"

/* What to do about it; never empty. */
void gpc_advice_try(const struct gpc_report *report, const struct gpc_answer *answer,
	struct gpc_text *ret_text);

/* The sections WHY, SHORT and TRY; with_also: ALSO, the other verdicts that hold, too. */
void gpc_advice_print(
	const struct gpc_report *report, const struct gpc_answer *answer, bool with_also);

#endif
