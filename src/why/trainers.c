/* SPDX-License-Identifier: Apache-2.0 */
/* The first row that a stack passes through decides, of the request's stack first, then of the holders'. */
#include "why/trainers.h"

#include "why/libraries.h"
#include "why/numbers.h"

static const struct trainer {
	const char *part;
	const char *function; /* NULL: any */
	const char *name;
	const char *less;
	const char *half;
} trainers[] = {
#define PHASE(part, function, name, less) { part, function, name, less, NULL },
#define TRAINER(part, name, less, half)   { part, NULL, name, less, half },
#define SHARDER(part, name, less)
#define HALF(part)
#include "why/trainers.def"
};

static const struct trainer sharders[] = {
#define PHASE(part, function, name, less)
#define TRAINER(part, name, less, half)
#define SHARDER(part, name, less) { part, NULL, name, less, NULL },
#define HALF(part)
#include "why/trainers.def"
};

static const char *const halves[] = {
#define PHASE(part, function, name, less)
#define TRAINER(part, name, less, half)
#define SHARDER(part, name, less)
#define HALF(part) part,
#include "why/trainers.def"
};

/* Stack i of those to search for libraries: that of the request, then the holders'. */
static uint32_t stack_at(const struct gpucache_oom *oom, uint32_t i)
{
	return i ? oom->holders[i - 1].stack : oom->stack;
}

static bool any_passes(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom, const char *part)
{
	for (uint32_t i = 0; i <= oom->n_holders; i++)
		if (gpc_passes_library(gpc_evidence_frames(evidence, stack_at(oom, i)), part, NULL))
			return true;
	return false;
}

/* The phase is that of the request, wherever the holders come from. */
static const struct trainer *trainer_of(const struct gpc_stack_frames *stack, bool is_asking)
{
	for (size_t i = 0; i < sizeof trainers / sizeof trainers[0]; i++)
		if ((is_asking || !trainers[i].function) &&
			gpc_passes_library(stack, trainers[i].part, trainers[i].function))
			return &trainers[i];
	return NULL;
}

/* The thread of a backward pass has no frames of the library that runs the model: what is held has. */
static void find_trainer(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts)
{
	const struct trainer *trainer = NULL;
	bool is_half = false;

	for (uint32_t i = 0; !trainer && i <= oom->n_holders; i++)
		trainer = trainer_of(gpc_evidence_frames(evidence, stack_at(oom, i)), i == 0);
	if (!trainer)
		return;
	for (size_t i = 0; trainer->half && i < sizeof halves / sizeof halves[0]; i++)
		is_half |= any_passes(evidence, oom, halves[i]);
	facts->trainer = trainer->name;
	facts->trainer_less = trainer->less;
	facts->trainer_half = is_half ? NULL : trainer->half;
	facts->is_phase = truth(trainer->function);
}

void gpc_trainers_find(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts)
{
	find_trainer(evidence, oom, facts);
	for (size_t i = 0; i < sizeof sharders / sizeof sharders[0]; i++)
		if (any_passes(evidence, oom, sharders[i].part)) {
			facts->sharder = sharders[i].name;
			facts->sharder_less = sharders[i].less;
			return;
		}
}
