/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For one kind of test, never for use: our library with its fences switched off, to show what they
 * are for.  libgpucache-nofence.so has the objects of libgpucache.so, and the linker leads their one
 * question whether a free is safe at once to this answer (--wrap).  The library itself has no switch
 * for it.
 */
#include "alloc/fence.h"

bool __wrap_gpc_fences_is_free_safe(const struct gpc_fences *fences);

bool __wrap_gpc_fences_is_free_safe(const struct gpc_fences *fences)
{
	(void)fences;
	return true;
}
