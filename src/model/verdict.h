/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words for verdicts and their strength: one table (verdict.def) for the library and for
 * gpumem-report, so that both say the same.
 *
 * Threads   Any; nothing is ever written.
 * Failure   None: a number that this version does not know is "unknown".
 * Limits    Words only.  The tests are in oom/verdict.c.
 */
#ifndef GPC_MODEL_VERDICT_H
#define GPC_MODEL_VERDICT_H

/* One or two words: "fragmented".  Accepts any value that a recording may hold. */
const char *gpc_verdict_word(unsigned verdict);

/* One sentence without a full stop. */
const char *gpc_verdict_meaning(unsigned verdict);

/* "certain", "likely", "possible", or "unknown".  Takes enum gpucache_strength. */
const char *gpc_strength_word(unsigned strength);

#endif
