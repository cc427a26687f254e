/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option vmm: which contexts use pages (alloc/pool_pages.c), which devices may access them, and what ends them.
 *
 * Legacy IPC (cuIpcGetMemHandle) cannot export pages, and a library that registers memory by its address range gets
 * only the one page at that address.  So vmm:auto stops using pages once the program calls such a function, or has
 * loaded a module, other than PyTorch's, that imports one or is known to look one up (MPI, UCX, GDRCopy, NVSHMEM).
 * vmm:on keeps the pages, and the program gets the driver's own errors.
 *
 * Threads   Any; the caller holds no lock of ours.
 * Failure   None: without pages, memory comes from cuMemAlloc.
 */
#ifndef GPC_RUNTIME_CONTEXT_PAGES_H
#define GPC_RUNTIME_CONTEXT_PAGES_H

struct gpc_context;

/* Enables pages in a new context, unless vmm:off. */
void gpc_pages_offer(struct gpc_context *context);

/* Call before work of `reaching` uses memory of `owner`: gives the device of `reaching` access to the owner's pages. */
void gpc_pages_reached(struct gpc_context *owner, const struct gpc_context *reaching);

/* Call when the program calls a function that fails for pages: vmm:auto returns the free pages and maps no more. */
void gpc_pages_end(void);

/* Call when memory is short, before vmm:auto begins to use pages: ends them if such a library is loaded. */
void gpc_pages_look_around(void);

#endif
