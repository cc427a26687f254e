/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs by name: their attributes, and the memory that a context takes.  The models are in models.def; gpucache-run
 * lists them.
 *
 * Threads     Any: constants.
 * Failure     gpc_sim_model_find: NULL for an unknown name.
 */
#ifndef GPC_SIM_MODEL_H
#define GPC_SIM_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct gpc_sim_model {
	const char *key;
	const char *name;
	int major, minor; /* compute capability */
	int sms;
	uint64_t memory; /* bytes, as cuMemGetInfo reports */
	int l2_bytes;
	int bus_bits;
	int threads_per_sm;
	int blocks_per_sm;
	int shared_per_block; /* the most bytes that a kernel can opt in to */
	int shared_per_sm;
};

/* The generic model, of a GPU given by size only; never NULL. */
const struct gpc_sim_model *gpc_sim_model_default(void);

const struct gpc_sim_model *gpc_sim_model_find(const char *key);

/* Model number i, of which 0 is the generic one; NULL after the last. */
const struct gpc_sim_model *gpc_sim_model_at(size_t i);

/* Device memory that a context takes. */
uint64_t gpc_sim_model_context_bytes(const struct gpc_sim_model *model);

#endif
