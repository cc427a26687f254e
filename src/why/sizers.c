/* SPDX-License-Identifier: Apache-2.0 */
/* The first row that a stack passes through decides. */
#include "why/sizers.h"

#include <inttypes.h>
#include <string.h>

#include "why/libraries.h"

#define PART "{part}"

static const struct gpc_sizer sizers[] = {
#define SIZER(part, function, name, settings) { part, function, name, settings },
#include "why/sizers.def"
};

const struct gpc_sizer *gpc_sizer_of(const struct gpc_stack_frames *stack)
{
	for (size_t i = 0; i < sizeof sizers / sizeof sizers[0]; i++)
		if (gpc_passes_library(stack, sizers[i].part, sizers[i].function))
			return &sizers[i];
	return NULL;
}

void gpc_sizer_say(const struct gpc_sizer *sizer, uint64_t available, uint64_t total,
	struct gpc_text *ret_text)
{
	const char *part = strstr(sizer->settings, PART);
	const uint64_t percent = total >= 100 ? available / (total / 100) : 0;

	if (!part) {
		gpc_text_add(ret_text, "%s", sizer->settings);
		return;
	}
	gpc_text_add(ret_text, "%.*s0.%02" PRIu64 "%s", (int)(part - sizer->settings),
		sizer->settings, percent < 99 ? percent : 99, part + strlen(PART));
}
