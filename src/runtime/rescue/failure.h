/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests that no rung could serve: each is recorded with its evidence and verdict, and kept until the program
 * has recovered from it, or ends.
 *
 * Threads   Any; the caller holds no lock.
 * Failure   None.
 */
#ifndef GPC_RUNTIME_RESCUE_FAILURE_H
#define GPC_RUNTIME_RESCUE_FAILURE_H

#include "oom/ladder.h"
#include "runtime/rescue/rescue.h"

void gpc_failure_report(struct gpc_rescue *rescue, const struct gpc_ladder *ladder);

#endif
