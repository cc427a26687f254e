/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders as table rows, biggest first.  Holders with the same call site and callers share a row, which does not say what
 * of a library they called.
 *
 *	216.12 MiB        34 blocks   12 s  +216.12 MiB  Block.__init__ gpt.py:20 < main:32
 *	                              age of its oldest block, growth in the later part of the run
 *
 * Threads   Pure functions, except for the caller's describer.
 * Failure   None; text is truncated to fit.
 * Limits    GPUCACHE_MAX_OOM_HOLDERS holders.
 */
#ifndef GPC_OOM_HOLDER_ROWS_H
#define GPC_OOM_HOLDER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "gpucache_format.h"

#define GPC_HOLDER_SITE_SIZE 72

/*
 * Names call sites.  `describe` fills buf[0 .. size), NUL-terminated, with has_via also by what the site called of a
 * library; empty: unknown.  The functions run in the failing process, so they must not call malloc or take a lock that
 * the program may hold.
 */
struct gpc_describer {
	void *self;
	void (*describe)(void *self, uint32_t stack, bool has_via, char *buf, size_t size);
	/*
	 * The allocation time of the site's oldest block, on CLOCK_MONOTONIC, and the site's recent growth in
	 * bytes; 0: unknown.  May be NULL.
	 */
	void (*history)(void *self, uint32_t stack, uint64_t *ret_oldest_ns, uint64_t *ret_growth);
	/*
	 * True if freeing the site's memory makes room on the device; false for managed memory, which may be
	 * elsewhere.  NULL: always true.
	 */
	bool (*can_free)(void *self, uint32_t stack);
};

/* Writes the describer's text for `stack`, else "stack 17" or "no stack".  describer may be NULL. */
void gpc_site_describe(const struct gpc_describer *describer, uint32_t stack, bool has_via,
	char *buf, size_t size);

struct gpc_holder_row {
	char site[GPC_HOLDER_SITE_SIZE];
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t oldest_ns; /* CLOCK_MONOTONIC; 0: unknown */
	uint64_t growth;    /* bytes */
	uint32_t stack;     /* of its largest holder */
	uint32_t n_holders;
};

/*
 * Fills rows[0 .. GPUCACHE_MAX_OOM_HOLDERS) from holders[0 .. n); the text of a site has at most site_size bytes.
 * Returns the number of rows.
 */
uint32_t gpc_holder_rows_fill(struct gpc_holder_row *rows, const struct gpucache_holder *holders,
	uint32_t n, const struct gpc_describer *describer, size_t site_size);

/*
 * Appends a table of the biggest rows, at most `max`, and a row for the rest of `total`.
 */
void gpc_holder_rows_write(struct gpc_text *text, const struct gpc_holder_row *rows, uint32_t n,
	uint32_t max, uint64_t total, uint64_t now_ns);

#endif
