/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that users compare. */
#include "tools/gpumem-replay/kit.h"

static const struct gpc_policy_ops *const policies[] = {
	&gpc_policy_gpucache,
	&gpc_policy_gpucache_on,
	&gpc_policy_pytorch,
	&gpc_policy_pytorch_expandable,
	&gpc_policy_vmm,
	&gpc_policy_vmm_auto,
	&gpc_policy_none,
};

const struct gpc_kit gpc_kit = { .policies = policies,
	.n_policies = sizeof policies / sizeof policies[0] };
