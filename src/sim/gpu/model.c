/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of models.def, and the memory of a context as a function of the model. */
#include "sim/gpu/model.h"

#include <string.h>

#include "base/bytes.h"

#define N_MODELS (sizeof models / sizeof models[0])

/* The columns of architectures as constants, so that a model without an architecture does not compile. */
enum {
#define ARCHITECTURE(major, minor, threads, blocks, shared_block, shared_sm)    \
	THREADS_##major##_##minor = threads, BLOCKS_##major##_##minor = blocks, \
	SHARED_BLOCK_##major##_##minor = shared_block, SHARED_SM_##major##_##minor = shared_sm,
#include "sim/gpu/models.def"
};

static const struct gpc_sim_model models[] = {
#define MODEL(key_, name_, major_, minor_, sms_, memory_mib, l2_kib, bus_bits_) \
	{                                                                       \
		.key = key_,                                                    \
		.name = name_,                                                  \
		.major = major_,                                                \
		.minor = minor_,                                                \
		.sms = sms_,                                                    \
		.memory = memory_mib * GPC_MIB,                                 \
		.l2_bytes = l2_kib * 1024,                                      \
		.bus_bits = bus_bits_,                                          \
		.threads_per_sm = THREADS_##major_##_##minor_,                  \
		.blocks_per_sm = BLOCKS_##major_##_##minor_,                    \
		.shared_per_block = SHARED_BLOCK_##major_##_##minor_,           \
		.shared_per_sm = SHARED_SM_##major_##_##minor_,                 \
	},
#include "sim/gpu/models.def"
};

const struct gpc_sim_model *gpc_sim_model_default(void)
{
	return &models[0];
}

const struct gpc_sim_model *gpc_sim_model_at(size_t i)
{
	return i < N_MODELS ? &models[i] : NULL;
}

const struct gpc_sim_model *gpc_sim_model_find(const char *key)
{
	for (size_t i = 0; i < N_MODELS; i++)
		if (strcmp(models[i].key, key) == 0)
			return &models[i];
	return NULL;
}

/*
 * 2 KiB per resident thread, of which 1 KiB is the default stack.  The result is within 5 % of measurements: a 4060 Ti
 * with 34 multiprocessors takes 107 MiB, an RTX PRO 6000 with 188 takes 555 MiB (ggml-org/llama.cpp#23604); an A100
 * with 108 takes 216 MiB for stacks alone (arcs-skku/EMDC_llvm#13).
 */
uint64_t gpc_sim_model_context_bytes(const struct gpc_sim_model *model)
{
	uint64_t threads = (uint64_t)model->sms * (uint64_t)model->threads_per_sm;

	return gpc_round_up(threads * 2 * GPC_KIB, 2 * GPC_MIB);
}
