/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to tell a tired person: what would have helped.
 *
 * Advice is a table of {verdict, writer}.  A writer checks by the numbers that its advice would
 * have made this request succeed, or says "may", and writes nothing where that is not so or the
 * option is set already.  Where GPUCACHE_CONF is set, the line to paste keeps what it holds.
 *
 * Invariants
 *   1 At most GPC_MAX_ADVICE lines; every line ends with a newline.
 *   2 Only numbers that were measured are printed.
 *
 * Threads   Pure functions, apart from the describer that the caller brings.
 * Failure   None; text that does not fit is cut.
 * Limits    Judged from one moment; gpumem-report judges from the whole recording.
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
 * Names a call site: writes a terminated text into buf[0 .. size), empty where it cannot.  Called
 * in the failing process, so it must not symbolise: a module and an offset, a tag or a Python line
 * will do.
 */
struct gpc_describer {
	void *self;
	void (*describe)(void *self, uint32_t stack, char *buf, size_t size);
	/*
	 * When its oldest block was taken, on CLOCK_MONOTONIC, and the bytes that it gained lately; 0: not
	 * known.  May be NULL.
	 */
	void (*history)(void *self, uint32_t stack, uint64_t *ret_oldest_ns, uint64_t *ret_growth);
	/*
	 * Whether to free what it holds makes room on the device: not what the driver took for itself, nor
	 * managed memory, which may be elsewhere.  NULL: it does.
	 */
	bool (*can_free)(void *self, uint32_t stack);
};

/* A short text for stack: the describer's (may be NULL), or "stack 17", or "no stack". */
void gpc_site_describe(
	const struct gpc_describer *describer, uint32_t stack, char *buf, size_t size);

/* Appends the advice; returns the number of lines.  describer may be NULL. */
unsigned gpc_advice_write(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	const struct gpc_describer *describer, struct gpc_text *text);

#endif
