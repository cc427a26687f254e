/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: device memory by virtual memory management, in handles that are mapped where they are needed.
 *
 *      reserve   addresses   |............................|
 *      map       a page      |  P  |......................|      nobody may use it yet
 *      map ...               |  P  |  P  |  P  |..........|
 *      open      access      |##P##|##P##|##P##|..........|
 *      unmap                 |##P##|...........|..........|      the page is the driver's again
 *      release   addresses   (all of them, once nothing is mapped)
 *
 * A page is one handle: never split, and mapped and unmapped whole.  Its access goes with its mapping.  The handle
 * itself is let go as soon as it is mapped, so the mapping alone holds the memory.
 *
 * Threads   Any.  All [may block], and none needs a current context.
 * Failure   As driver.h.  What fails leaves everything as it was.
 * Limits    That unmap waits for work on the page is nowhere promised: the caller knows that there is none.
 */
#ifndef GPC_DRIVER_DRIVER_PAGES_H
#define GPC_DRIVER_DRIVER_PAGES_H

#include "driver/driver.h"

/* Sizes and addresses of pages are multiples of this: the least that the driver maps. */
#define GPC_PAGE_ALIGN UINT64_C(0x200000)

struct gpc_page_ops {
	/* Addresses without memory; `size` is a multiple of GPC_PAGE_ALIGN.  GPC_UNSUPPORTED: no such thing here. */
	enum gpc_status (*reserve)(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr);
	/* All that one reserve gave. */
	void (*release)(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size);
	/* One page of exactly this size.  GPC_DEVICE_NO_MEMORY: no such room now. */
	enum gpc_status (*map)(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size);
	/* Lets the own device at these pages, and device i where bit i of `devices` is set. */
	enum gpc_status (*open)(
		struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices);
	/* Whole pages, one or several next to each other. */
	enum gpc_status (*unmap)(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size);
};

#endif
