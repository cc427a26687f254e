/* SPDX-License-Identifier: Apache-2.0 */
/* No cache: the cost of a driver call for every request. */
#include <stddef.h>

#include "tools/replay/policy.h"

static enum gpc_status create(const struct gpc_policy_ops *policy,
	const struct gpc_policy_params *params, void **ret_self)
{
	(void)policy;
	*ret_self = params->machine->driver;
	return GPC_OK;
}

static enum gpc_status alloc(
	void *self, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address)
{
	struct gpc_driver *driver = self;

	(void)stream;
	(void)now_ns;
	return driver->ops->mem_alloc(driver, size, ret_address);
}

static enum gpc_status free_address(void *self, uint64_t address, uint32_t stream, uint64_t now_ns)
{
	struct gpc_driver *driver = self;

	(void)stream;
	(void)now_ns;
	return driver->ops->mem_free(driver, address);
}

const struct gpc_policy_ops gpc_policy_none = {
	.name = "none",
	.help = "no cache, the driver for everything",
	.create = create,
	.alloc = alloc,
	.free = free_address,
};
