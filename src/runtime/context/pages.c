/* SPDX-License-Identifier: Apache-2.0 */
/* heap.is_paging_over ends the use of pages for good.  The loader is asked for libraries only when memory is short. */
#include "runtime/context/pages.h"

#include <link.h>

#include "base/module.h"
#include "runtime/context/contexts.h"
#include "runtime/process/state.h"

void gpc_pages_offer(struct gpc_context *context)
{
	if (gpc_runtime.config.vmm != GPC_VMM_OFF)
		(void)gpc_cuda_driver_use_pages(&context->drv, (CUdevice)context->device->ordinal);
}

void gpc_pages_reached(struct gpc_context *owner, const struct gpc_context *reaching)
{
	if (owner->drv.base.pages && owner->device != reaching->device)
		gpc_pool_open_pages(&owner->pool, reaching->device->ordinal);
}

void gpc_pages_end(void)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	if (gpc_runtime.config.vmm != GPC_VMM_AUTO ||
		atomic_exchange(&gpc_runtime.heap.is_paging_over, true))
		return;
	while ((pool = gpc_pool_next(&walk)))
		if (atomic_load(&pool->is_pressed))
			gpc_pool_end_pages(pool);
}

/* Libraries that export their callers' memory to other processes and network cards. */
static const char *const sharers[] = { "libmpi", "libucp", NULL };

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return gpc_module_file_begins(info->dlpi_name, sharers);
}

void gpc_pages_look_around(void)
{
	if (gpc_runtime.config.vmm == GPC_VMM_AUTO &&
		!atomic_load_explicit(&gpc_runtime.heap.is_paging_over, memory_order_relaxed) &&
		dl_iterate_phdr(look_at, NULL))
		gpc_pages_end();
}
