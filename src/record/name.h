/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a recording, from a pattern.
 *
 *   %p pid   %h host   %e program   %t seconds since 1970   %n counter, the first free number
 *   %r rank, or p<pid>   %l local rank, or p<pid>   %j job, or "nojob"   %q{VAR} a variable   %% one %
 *
 * Control characters become '_'; so do slashes and a first dot, except in a variable's value, which is the user's own.
 *
 * Limits   An unknown %x stays unchanged, and its letter is returned.
 */
#ifndef GPC_RECORD_NAME_H
#define GPC_RECORD_NAME_H

#include <stdint.h>

#include "base/text.h"
#include "record/identity.h"

/* Names tried for one pattern with %n. */
#define GPC_NAME_MAX_ATTEMPTS 1000u

/* Default names begin and end so; record/stale.h removes no other files. */
#define GPC_NAME_PREFIX "gpucache-"
#define GPC_NAME_SUFFIX ".gpucache"

/*
 * Appends the name for attempt 0, 1, ..., each different.  *ret_unknown: the letter of the first
 * unknown %x, or 0.
 */
void gpc_name_expand(struct gpc_text *text, const char *pattern,
	const struct gpucache_header *identity, uint64_t seconds, unsigned attempt,
	char *ret_unknown);

/* Appends the default name, used without a pattern. */
void gpc_name_default(
	struct gpc_text *text, const struct gpucache_header *identity, unsigned attempt);

#endif
