/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: our library with its fences disabled, to prove that tests detect unsafe reuse.
 * libgpucache-nofence.so has the objects of libgpucache.so; the linker (--wrap) replaces the function that tells
 * whether a freed block is safe at once.  The library itself has no such option.
 */
#include "alloc/fence.h"

bool __wrap_gpc_fences_is_free_safe(const struct gpc_fences *fences);

bool __wrap_gpc_fences_is_free_safe(const struct gpc_fences *fences)
{
	(void)fences;
	return true;
}
