/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as a stack of PyTorch has them. */
#ifndef GPC_TESTS_UNIT_NAMES_MADE_FRAMES_H
#define GPC_TESTS_UNIT_NAMES_MADE_FRAMES_H

#include "names/frames.h"

static inline struct gpc_frame native(const char *function)
{
	return (struct gpc_frame){
		.function = function, .module = "libtorch_cpu.so", .is_library = true
	};
}

static inline struct gpc_frame python(const char *function, const char *file, bool is_library)
{
	return (struct gpc_frame){ .function = function,
		.file = file,
		.line = 7,
		.is_python = true,
		.is_library = is_library,
		.text = (uint64_t)(uintptr_t)file | 1 };
}

#endif
