/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a program that read how much of a GPU is free, and ended with an error before it asked for any of it:
 *
 *	gpucache: GAVE UP on GPU 0 (NVIDIA L4, 22.03 GiB) - pid 4711, python3.12
 *	WHY    neighbour (possible): it ended after it had read that 14.01 GiB is free; 7.73 GiB is held by others
 *	READ   by main serve.py:18, via MemorySnapshot.measure < <module>:23
 *	TRY    with vLLM: gpu_memory_utilization=0.63 or less, the part of the GPU that is free
 *
 * Threads   A pure function.
 * Failure   None; text is truncated to fit.
 */
#ifndef GPC_OOM_GAVE_UP_H
#define GPC_OOM_GAVE_UP_H

#include <stdint.h>

#include "base/text.h"
#include "why/sizers.h"

struct gpc_gave_up {
	int device;
	const char *gpu_name; /* NULL or empty: unknown */
	const char *program;
	const char *site; /* the line that read it; empty: unknown */
	const struct gpc_sizer *sizer;
	uint32_t pid;
	uint64_t available;
	uint64_t total;
	uint64_t own; /* held by this process */
};

void gpc_gave_up_write(const struct gpc_gave_up *gave_up, struct gpc_text *ret_text);

#endif
