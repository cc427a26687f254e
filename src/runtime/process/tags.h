/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's named ranges, from gpucache_tag_push and NVTX.
 *
 * Threads   Any, at any time, without entering: a range may begin before the first CUDA call.
 * Failure   With a full table, a range gets the tag of the enclosing one.
 */
#ifndef GPC_RUNTIME_PROCESS_TAGS_H
#define GPC_RUNTIME_PROCESS_TAGS_H

#include <stdbool.h>
#include <stdint.h>

/* Ranges of this thread (stack/tags.h).  gpc_runtime_tag_push and _pop give the level of the range in its domain. */
uint32_t gpc_runtime_tag_push(uint32_t domain, const char *name);
bool gpc_runtime_tag_pop(uint32_t domain, uint32_t *ret_level);
uint32_t gpc_runtime_tag_domain(const char *name);
uint32_t gpc_runtime_tag_string(const char *text);
const char *gpc_runtime_tag_name(uint32_t id);
bool gpc_runtime_wants_tags(void); /* false: the library is switched off */

/* Call once the recording is open: writes the ranges pushed so far into it. */
void gpc_runtime_tags_start(void);

/* 1 + the highest tag, the size of a table of tags; 0: there are none. */
uint32_t gpc_runtime_tags_end(void);

/* True if the range of `tag`, or one that encloses it, has this name. */
bool gpc_runtime_is_tagged(uint32_t tag, const char *name);

#endif
