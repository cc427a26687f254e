/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of this process: pid, names, and its rank under a launcher.
 *
 * The rank comes from the option `rank`.  Without the option, it comes from the first launcher in the list of
 * identity.c whose variable of the rank is set; of torchrun, all three variables must be.
 *
 * Failure   Unknown fields are 0, -1 (ranks) or empty.
 * Limits    Only the environment variables listed in identity.c are read and recorded.
 */
#ifndef GPC_RECORD_IDENTITY_H
#define GPC_RECORD_IDENTITY_H

#include <stddef.h>

#include "gpucache_format.h"

/*
 * Fills pid, uid, start_ticks, pid_namespace, ranks, world_size, restart_count, boot_id, host, exe, command and job of
 * the header, and zeroes its other fields.  `rank` is the option; -1: not set.
 */
void gpc_identity_read(struct gpucache_header *identity, int64_t rank);

/* Copies text[0 .. len) to field[0 .. size), truncated between characters, and fills the rest with NULs. */
void gpc_identity_copy_text(char *field, size_t size, const char *text, size_t len);

/* Calls emit with the line "env NAME=value" for each listed variable that is set. */
void gpc_identity_each_variable(void (*emit)(void *arg, const char *line), void *arg);

#endif
