/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges that the program names, by gpucache_tag_push and NVTX.
 *
 * Threads   Any, at any time, without entering: a range may begin before the first CUDA call.
 * Failure   A full table: the range is labelled with the one around it.
 */
#ifndef GPC_RUNTIME_PROCESS_TAGS_H
#define GPC_RUNTIME_PROCESS_TAGS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Ranges that the program names (stack/tags.h), of this thread; without entering, at any time.
 * push and pop give the level of the range within its domain.
 */
uint32_t gpc_runtime_tag_push(uint32_t domain, const char *name);
bool gpc_runtime_tag_pop(uint32_t domain, uint32_t *ret_level);
uint32_t gpc_runtime_tag_domain(const char *name);
uint32_t gpc_runtime_tag_string(const char *text);
const char *gpc_runtime_tag_name(uint32_t id);
bool gpc_runtime_wants_tags(void); /* false: we are switched off */

/* The recording is open; and the end of all tags, for tables of them. */
void gpc_runtime_tags_start(void);
uint32_t gpc_runtime_tags_end(void);

/* Whether a tag is a range with this name, or within one. */
bool gpc_runtime_is_tagged(uint32_t tag, const char *name);

#endif
