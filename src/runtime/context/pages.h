/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option vmm: which contexts have pages (alloc/pool_pages.c), who else may use them, and what ends them.
 *
 * Pages are no memory for legacy IPC, and libraries that register memory by its address range see one page of many.
 * So with vmm:auto there are no more of them once the program asks for such a thing, and none in a process that has
 * loaded a library which does (MPI, UCX).  With vmm:on the program was told, and the driver's own errors answer.
 *
 * Threads   Any; no lock of ours may be held.
 * Failure   None: without pages memory comes from cuMemAlloc.
 */
#ifndef GPC_RUNTIME_CONTEXT_PAGES_H
#define GPC_RUNTIME_CONTEXT_PAGES_H

struct gpc_context;

/* The context is new. */
void gpc_pages_offer(struct gpc_context *context);

/* Work of `reaching` uses memory of `owner`, from now on. */
void gpc_pages_reached(struct gpc_context *owner, const struct gpc_context *reaching);

/* The program asked for what pages cannot give: with vmm:auto those that are free go back, and no more come. */
void gpc_pages_end(void);

/* Memory is short, so that pages may come next: not beside libraries that would ask. */
void gpc_pages_look_around(void);

#endif
