/* SPDX-License-Identifier: Apache-2.0 */
/* A model of PyTorch's allocator, for comparison. */
#ifndef GPC_REPLAY_POLICY_PYTORCH_H
#define GPC_REPLAY_POLICY_PYTORCH_H

#include "tools/replay/policy.h"

extern const struct gpc_policy_ops gpc_policy_pytorch;
extern const struct gpc_policy_ops gpc_policy_pytorch_expandable; /* expandable_segments:True */

#endif
