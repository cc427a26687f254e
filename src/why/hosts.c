/* SPDX-License-Identifier: Apache-2.0 */
/* One table of parts of paths. */
#include "why/hosts.h"

#include "why/libraries.h"

bool gpc_is_hosted(const struct gpc_stack_frames *stack)
{
	static const char *const hosts[] = {
#define HOST(part) part,
#include "why/hosts.def"
	};

	for (size_t h = 0; h < sizeof hosts / sizeof hosts[0]; h++)
		if (gpc_passes_library(stack, hosts[h], NULL))
			return true;
	return false;
}
