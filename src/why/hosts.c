/* SPDX-License-Identifier: Apache-2.0 */
/* One table, searched from the innermost frame outwards. */
#include "why/hosts.h"

#include <string.h>

bool gpc_is_hosted(const struct gpc_stack_frames *stack)
{
	static const char *const hosts[] = {
#define HOST(part) part,
#include "why/hosts.def"
#undef HOST
	};

	for (size_t i = 0; stack && i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		for (size_t h = 0; h < sizeof hosts / sizeof hosts[0]; h++)
			if (frame->is_python && frame->is_library && frame->file &&
				strstr(frame->file, hosts[h]))
				return true;
	}
	return false;
}
