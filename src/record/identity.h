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
#include <stdint.h>

struct gpc_identity {
	uint32_t pid;
	uint32_t uid;
	uint64_t start_ticks;
	uint64_t pid_namespace;
	int32_t rank;
	int32_t local_rank;
	int32_t world_size;    /* 0: unknown */
	int32_t restart_count; /* 0: unknown */
	char boot_id[40];
	char host[64];
	char exe[256];
	char command[256];
	char job[64];
};

/* `rank`, the configured one, takes precedence unless it is negative. */
void gpc_identity_read(struct gpc_identity *identity, int64_t rank);

/* Copies at most size - 1 bytes, truncated between characters, and fills the rest with NULs. */
void gpc_identity_copy_text(char *field, size_t size, const char *text, size_t len);

/* Calls emit with "env NAME=value" for each listed variable that is set. */
void gpc_identity_each_variable(void (*emit)(void *arg, const char *line), void *arg);

#endif
