/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a recording, from a pattern.
 *
 *   %p pid   %h host   %e program   %t seconds since 1970   %n counter, the first free number
 *   %r rank, or p<pid>   %l local rank, or p<pid>   %j job, or "nojob"   %q{VAR} a variable   %% one %
 *
 * In each expansion control characters become '_'.  So do slashes and a first dot, except in %q{VAR}, where the user
 * may want a folder.
 *
 * Limits   An unknown %x is copied unchanged, and its letter is returned.
 */
#ifndef GPC_RECORD_NAME_H
#define GPC_RECORD_NAME_H

#include <stdint.h>

#include "base/text.h"
#include "record/identity.h"

/* The most names that are tried for a pattern with %n. */
#define GPC_NAME_MAX_ATTEMPTS 1000u

/* Every default name begins and ends so.  gpc_stale_clean removes only files with such names. */
#define GPC_NAME_PREFIX "gpucache-"
#define GPC_NAME_SUFFIX ".gpucache"

/*
 * Appends the name for attempt 0, 1, ..., each different.  The identity's pid, host, exe, ranks and job are used.
 * *ret_unknown: the letter of the first unknown %x, or 0.
 */
void gpc_name_expand(struct gpc_text *text, const char *pattern,
	const struct gpucache_header *identity, uint64_t seconds, unsigned attempt,
	char *ret_unknown);

/* Appends the name that a recording gets if the user gave no pattern. */
void gpc_name_default(
	struct gpc_text *text, const struct gpucache_header *identity, unsigned attempt);

#endif
