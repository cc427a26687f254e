/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains a failed request: the verdict with its numbers, and what to do.
 *
 * The words of a verdict come from model/verdict.def, as in the message that the library prints itself.  The numbers
 * come from the record of the failure.
 *
 * Invariants  1 Advice never repeats a setting of this run: it names another value, or advises to drop the setting.
 *             2 Against fragmentation and rounding, an option of gpucache is named only if a replay of this recording
 *               with that option served the request (answer.h).  `limit` and `oom_wait_ms` are named without a replay.
 * Threads     One.
 * Failure     Text that does not fit into its buffer is truncated.
 */
#ifndef GPC_REPORT_ADVICE_H
#define GPC_REPORT_ADVICE_H

#include "tools/gpumem-report/why/answer.h"

/* Appends the verdict with its numbers: "fragmented (certain): enough cached memory ...".  Defined in evidence.c. */
void gpc_evidence_say(const struct gpc_answer *answer, struct gpc_text *ret_text);

/* Appends what the user can do about the failure; appends at least one sentence. */
void gpc_advice_try(const struct gpc_answer *answer, struct gpc_text *ret_text);

/* Prints the sections WHY, HELD (unless empty), SHORT and TRY; with_also: also ALSO, the other verdicts that hold. */
void gpc_advice_print(const struct gpc_answer *answer, bool with_also);

#endif
