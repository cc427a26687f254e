/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of this process: pid, names, and its rank under a launcher.
 *
 * The rank comes from the option rank, else from the first launcher whose variables are complete.
 * Slurm comes last, because under torchrun its rank is the node's.
 *
 * Failure   Unknown fields are 0, -1 (ranks) or empty.
 * Limits    Reads and records only the environment variables listed in identity.c.
 */
#ifndef GPC_RECORD_IDENTITY_H
#define GPC_RECORD_IDENTITY_H

#include <stddef.h>

#include "gpucache_format.h"

/*
 * Fills pid, uid, start_ticks, pid_namespace, ranks, world_size, restart_count, boot_id, host, exe, command and job of
 * the header, and zeroes its other fields.  `rank`, the configured one, takes precedence unless it is negative.
 */
void gpc_identity_read(struct gpucache_header *identity, int64_t rank);

/* Copies at most size - 1 bytes, truncated between characters, and fills the rest with NULs. */
void gpc_identity_copy_text(char *field, size_t size, const char *text, size_t len);

/* Calls emit with "env NAME=value" for each listed variable that is set. */
void gpc_identity_each_variable(void (*emit)(void *arg, const char *line), void *arg);

#endif
