/* SPDX-License-Identifier: Apache-2.0 */
/* heap.is_paging_over ends the use of pages for good.  The loader is asked for libraries only when memory is short. */
#include "runtime/context/pages.h"

#include <link.h>
#include <stdatomic.h>

#include "base/module.h"
#include "runtime/context/contexts.h"
#include "runtime/process/state.h"
#include "stack/exported.h"

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
static const char *const sharers[] = { "libmpi", "libucp", "libgdrapi", "libnvshmem", NULL };
/* Functions that export memory, and fail for pages. */
static const char *const exports[] = { "cudaIpcGetMemHandle", "cuIpcGetMemHandle", "gdr_pin_buffer",
	NULL };
/* PyTorch has the function in each process, and calls it if the program shares tensors. */
static const char *const pytorch[] = { "libc10", "libtorch", NULL };

struct look {
	uint64_t n_before; /* modules that had been loaded, ever, at the last look */
	uint64_t n_loaded;
	bool can_export;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *look = arg;

	(void)size;
	look->n_loaded = info->dlpi_adds;
	if (look->n_loaded == look->n_before)
		return 1;
	look->can_export = look->can_export || gpc_module_file_begins(info->dlpi_name, sharers) ||
			   (!gpc_module_file_begins(info->dlpi_name, pytorch) &&
				   gpc_exported_is_imported(info, exports));
	return 0;
}

void gpc_pages_look_around(void)
{
	static _Atomic uint64_t looked_at;
	struct look look = { .n_before = atomic_load_explicit(&looked_at, memory_order_relaxed) };

	if (gpc_runtime.config.vmm != GPC_VMM_AUTO ||
		atomic_load_explicit(&gpc_runtime.heap.is_paging_over, memory_order_relaxed))
		return;
	(void)dl_iterate_phdr(look_at, &look);
	atomic_store_explicit(&looked_at, look.n_loaded, memory_order_relaxed);
	if (look.can_export)
		gpc_pages_end();
}
