/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags: the ranges that the program names.  Each path of nested names is stored once, under a 32-bit id.
 *
 *      push "step 1", push "forward"          the paths form a tree; each thread is at one tag of the tree
 *
 *      0 --+-- 3 "step 1" --+-- 4 "forward"   <-- place.tag; pop moves it to the parent
 *          |                '-- 5 "backward"
 *          '-- 6 "step *" ...
 *
 * So a thread needs no stack of names, and an allocation finds its tag by one load.  Programs number their ranges
 * without end ("step 412"), and the tree must not grow without end.  So below a parent with many children each number
 * in a new name becomes a star; below one with very many the whole name becomes a star.
 *
 * Ranges of several NVTX domains may overlap: a range ends wherever it is in the path, and the ranges inside stay open.
 *
 * Invariants
 *   1 A tag never changes after its id was returned.  Its parent has a lower id.
 *   2 Once gpc_tags_attach has returned, a range is in the sink before its id is returned.
 * Threads     Any, at any time, also before the library runs and in a child of fork.
 * Ordering    An adder fills a tag, then publishes it in a slot of the hash table with release; readers acquire the
 *             slot.  While a sink is being attached, each tag still reaches the sink exactly once: the adder stores
 *             the tag's stage before it loads the sink, and gpc_tags_attach stores the sink before it loads the stages.
 * Progress    Lock-free except for the sink.  A push of a known name is one bounded probe.
 * Failure     A range whose name finds no room is counted in n_dropped, and gets the tag of the enclosing range.
 * Limits      GPUCACHE_MAX_TAGS names in all, GPC_TAG_MAX_DEPTH nested ranges, GPC_TAG_NAME_SIZE - 1 bytes per name.
 *             While ranges without a tag are open, a pop ends the innermost range, whatever its domain.  Two threads
 *             that add the same name concurrently waste one entry.
 */
#ifndef GPC_STACK_TAGS_H
#define GPC_STACK_TAGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "gpucache_format.h"
#include "stack/sink.h"

#define GPC_TAG_MAX_DEPTH 32u
#define GPC_TAG_NAME_SIZE 77u

struct gpc_tag_table;

/* All zero: no tags, no sink. */
struct gpc_tags {
	_Atomic(struct gpc_tag_table *) table; /* allocated at the first name */
	_Atomic(const struct gpc_stack_sink *) sink;
	_Atomic bool is_closed; /* the sink is full */
	_Atomic uint64_t n_dropped;
};

/* Appends all existing tags, and from now on each new one, to the sink, which must exist until the process ends. */
void gpc_tags_attach(struct gpc_tags *tags, const struct gpc_stack_sink *sink);
void gpc_tags_fini(struct gpc_tags *tags);

/* Begins a range.  Returns its level: the number of open ranges of the same domain around it. */
uint32_t gpc_tags_push(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, const char *name);

/* Ends the innermost range of the domain; *ret_level is what its push returned.  False: no range is open. */
bool gpc_tags_pop(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, uint32_t *ret_level);

/* Return the id, > GPC_TAG_OF_NVTX, of an NVTX domain and of a string that NVTX registers; 0: no room. */
uint32_t gpc_tags_domain(struct gpc_tags *tags, const char *name);
uint32_t gpc_tags_string(struct gpc_tags *tags, const char *text);

/* The name of a tag, domain or string; "" for an unknown id. */
const char *gpc_tags_name(const struct gpc_tags *tags, uint32_t id);

/* The tag of the enclosing range; 0: none. */
uint32_t gpc_tags_parent(const struct gpc_tags *tags, uint32_t id);

/* 1 + the highest id; 0: no tags. */
uint32_t gpc_tags_end(const struct gpc_tags *tags);

#endif
