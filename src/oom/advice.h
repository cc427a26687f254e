/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: what would have helped.
 *
 * Each verdict has its advice.  A setting is not advised if it is set already, or if the numbers show that this
 * request would have failed in spite of it.  If GPUCACHE_CONF is set, the line to paste keeps its options.
 *
 * Invariants
 *   1 At most GPC_MAX_ADVICE lines; every line ends with a newline.
 *   2 Only measured numbers are printed.
 *
 * Threads   Pure functions, except for the caller's describer.
 * Failure   None; text is truncated to fit.
 * Limits    Judges one moment; gpumem-report judges the whole recording.
 */
#ifndef GPC_OOM_ADVICE_H
#define GPC_OOM_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "gpucache_format.h"
#include "oom/verdict.h"

#define GPC_MAX_ADVICE 3u

/*
 * Names call sites.  `describe` fills buf[0 .. size), NUL-terminated; empty: unknown.  The functions run in the
 * failing process, so they must not call malloc or take a lock that the program may hold.
 */
struct gpc_describer {
	void *self;
	void (*describe)(void *self, uint32_t stack, char *buf, size_t size);
	/*
	 * The allocation time of the site's oldest block, on CLOCK_MONOTONIC, and the site's recent growth in
	 * bytes; 0: unknown.  May be NULL.
	 */
	void (*history)(void *self, uint32_t stack, uint64_t *ret_oldest_ns, uint64_t *ret_growth);
	/*
	 * True if freeing the site's memory makes room on the device; false for implicit memory of the driver, and
	 * for managed memory, which may be elsewhere.  NULL: always true.
	 */
	bool (*can_free)(void *self, uint32_t stack);
};

/* Writes the describer's text for `stack`, else "stack 17" or "no stack".  describer may be NULL. */
void gpc_site_describe(
	const struct gpc_describer *describer, uint32_t stack, char *buf, size_t size);

/* Appends the advice; returns the number of lines.  describer may be NULL. */
unsigned gpc_advice_write(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	const struct gpc_describer *describer, struct gpc_text *text);

#endif
