/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that catch what the pieces of a program raise which they run (hosts.def).
 *
 * Threads   Pure function.
 * Failure   False: none that is known.
 */
#ifndef GPC_WHY_HOSTS_H
#define GPC_WHY_HOSTS_H

#include "names/frames.h"

/* True if such a library runs this; stack: NULL if it is not known. */
bool gpc_is_hosted(const struct gpc_stack_frames *stack);

#endif
