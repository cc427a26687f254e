/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include "base/check.h"

#if GPC_CHECK_LEVEL >= 1

static _Thread_local unsigned held __attribute__((tls_model("initial-exec")));

void gpc_lock_note_taken(enum gpc_lock_rank rank)
{
	GPC_ASSERT(held >> rank == 0);
	held |= 1u << rank;
}

void gpc_lock_note_released(enum gpc_lock_rank rank)
{
	GPC_ASSERT(held & (1u << rank));
	held &= ~(1u << rank);
}

bool gpc_lock_is_any_held(void)
{
	return held != 0;
}

#endif
