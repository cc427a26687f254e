/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a recording, from a pattern.
 *
 *   %p pid   %h host   %e program   %t seconds since 1970   %n counter, the first number that is free
 *   %r rank, or p<pid>   %l local rank, or p<pid>   %j job, or "nojob"   %q{VAR} a variable   %% one %
 *
 * What is put in for a letter cannot leave the directory: '/' and control characters become '_'.
 * The value of a variable may hold '/', as it is the user's own.
 *
 * Limits   An unknown %x stays as it is; the caller is told the letter.
 */
#ifndef GPC_RECORD_NAME_H
#define GPC_RECORD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "record/identity.h"

/* Attempts with one pattern, each another name. */
#define GPC_NAME_MAX_ATTEMPTS 1000u

/* Ours are known by both ends of their names. */
#define GPC_NAME_PREFIX "gpucache-"
#define GPC_NAME_SUFFIX ".gpucache"

/*
 * Appends the name for the attempt-th try (0, 1, ...), each different from the others.
 * *ret_unknown: the letter of the first unknown %x, or 0.
 */
void gpc_name_expand(struct gpc_text *text, const char *pattern,
	const struct gpc_identity *identity, uint64_t seconds, unsigned attempt, char *ret_unknown);

/* Appends the name that is used where there is no pattern. */
void gpc_name_default(struct gpc_text *text, const struct gpc_identity *identity, unsigned attempt);

#endif
