/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to say about a failed request: the verdict with its numbers, and what to do.
 *
 * The words of a verdict are base/verdict.def's, which the library's short form prints too; the
 * numbers come from the record of the failure.
 *
 * Invariants  1 Advice names no option that this run had set already.  2 No advice where the
 *               numbers say that it cannot help.
 * Threads     One.
 * Failure     Texts are cut to fit.
 * Limits      Advice is not replayed against the recording.
 */
#ifndef GPC_REPORT_ADVICE_H
#define GPC_REPORT_ADVICE_H

#include "tools/gpumem-report/report.h"

/* "fragmented (certain): enough cached memory ..., but ...  9.10 GiB are cached, ..." */
void gpc_advice_why(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

/* What to do about it; never empty. */
void gpc_advice_try(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

/* The sections WHY, SHORT and TRY; with_also: ALSO, the other verdicts that hold, too. */
void gpc_advice_print(
	const struct gpc_report *report, const struct gpucache_oom *oom, bool with_also);

#endif
