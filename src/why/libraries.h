/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a stack passes through a known library: by a part of a file's path, and of a function's name there.  A file of
 * the program, of the same name, is no library's.
 */
#ifndef GPC_WHY_LIBRARIES_H
#define GPC_WHY_LIBRARIES_H

#include <stdbool.h>
#include <string.h>

#include "names/frames.h"

/* True if the frame is in a file of a Python library whose path contains `part`. */
static inline bool gpc_is_in_library(const struct gpc_frame *frame, const char *part)
{
	return frame->is_python && frame->is_library && frame->file && strstr(frame->file, part);
}

/* True for a stack through such a file, and there through a function whose name contains `function`; NULL: any. */
static inline bool gpc_passes_library(
	const struct gpc_stack_frames *stack, const char *part, const char *function)
{
	for (size_t i = 0; stack && i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (gpc_is_in_library(frame, part) &&
			(!function || (frame->function && strstr(frame->function, function))))
			return true;
	}
	return false;
}

#endif
