/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which library reads how much of the GPU is free, to size itself by it (sizers.def).
 *
 * Threads   Pure functions.
 * Failure   NULL: none that is known.
 */
#ifndef GPC_WHY_SIZERS_H
#define GPC_WHY_SIZERS_H

#include "base/text.h"
#include "names/frames.h"

struct gpc_sizer {
	const char *part;
	const char *function;
	const char *name;
	const char *settings;
};

/* The library that the stack passes through. */
const struct gpc_sizer *gpc_sizer_of(const struct gpc_stack_frames *stack);

/* Appends its settings, for a GPU of which so much is free. */
void gpc_sizer_say(const struct gpc_sizer *sizer, uint64_t available, uint64_t total,
	struct gpc_text *ret_text);

#endif
