/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: device memory by CUDA's virtual memory API.  Addresses are reserved first, and physical memory is mapped there
 * page by page.
 *
 *      reserve   addresses   |............................|
 *      map       a page      |  P  |......................|      no device may access it yet
 *      map ...               |  P  |  P  |  P  |..........|
 *      open      access      |##P##|##P##|##P##|..........|
 *      unmap                 |##P##|...........|..........|      the driver has the page again
 *      release   addresses   (all of them, once nothing is mapped)
 *
 * A page is one allocation handle of the driver, and is mapped and unmapped whole.  Unmapping a page ends the devices'
 * access to it.  The handle is released as soon as the page is mapped, so the mapping alone holds the memory.
 *
 * Threads   Any.  Every function may block, and none needs a current context.
 * Failure   As driver.h.  A failed call changes nothing.
 * Limits    CUDA does not say that unmap waits for work on the page.  So the caller unmaps only pages without work.
 */
#ifndef GPC_DRIVER_DRIVER_PAGES_H
#define GPC_DRIVER_DRIVER_PAGES_H

#include "driver/driver.h"

/* Sizes and addresses of pages are multiples of this. */
#define GPC_PAGE_ALIGN UINT64_C(0x200000)

struct gpc_page_ops {
	/* Reserves addresses; `size` is a multiple of GPC_PAGE_ALIGN. */
	enum gpc_status (*reserve)(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr);
	/* Releases one whole reservation. */
	void (*release)(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size);
	/* Maps one page of this size.  GPC_DEVICE_NO_MEMORY: no room now. */
	enum gpc_status (*map)(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size);
	/* Gives the device of `drv` access to mapped pages, and device i if bit i of `devices` is set. */
	enum gpc_status (*open)(
		struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices);
	/* Unmaps one or more adjacent whole pages. */
	enum gpc_status (*unmap)(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size);
};

#endif
