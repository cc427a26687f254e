/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags: the program's named ranges, each path of names once, under a 32-bit id.
 *
 *      push "step 1", push "forward"          ranges form a tree; a thread is at one of its tags
 *
 *      0 --+-- 3 "step 1" --+-- 4 "forward"   <-- place.tag; pop: to the parent
 *          |                '-- 5 "backward"
 *          '-- 6 "step *" ...
 *
 * So a thread needs no stack of names, and an allocation gets its tag by one load.  Programs number their ranges
 * without end ("step 412"); below a parent with many children, the numbers in a new name become stars, and later
 * the whole name does, which bounds the tree.
 *
 * Ranges of several domains may overlap: the end of one removes it from the path, at any level.
 *
 * Invariants
 *   1 A tag never changes once its id was given out; its parent has a lower id.
 *   2 A tag is in the sink, if one is attached, before the tag's id is given out.
 * Threads     Any, at any time, also before the library runs and in a child of fork.
 * Ordering    A tag is filled, then published by a slot of the hash table (release); readers acquire
 *             it.  A tag is appended to a sink that is being attached exactly once: the adder stores the
 *             tag's stage and then loads the sink; gpc_tags_attach stores the sink and then loads the stages.
 * Progress    Lock-free except for the sink: a push of a known name is a bounded probe.
 * Failure     A range without room for its name is counted, and gets the tag of the enclosing one.
 * Limits      GPUCACHE_MAX_TAGS names in all, GPC_TAG_MAX_DEPTH nested ranges, GPC_TAG_NAME_SIZE - 1 bytes
 *             per name.  Beyond them, a pop ends the innermost range, whatever its domain.  Two threads that
 *             add the same name concurrently waste one entry.
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

/* Appends all tags to the sink, existing and later ones; the sink must live for ever. */
void gpc_tags_attach(struct gpc_tags *tags, const struct gpc_stack_sink *sink);
void gpc_tags_fini(struct gpc_tags *tags);

/* Begins a range.  Returns its level: the number of enclosing ranges of the same domain. */
uint32_t gpc_tags_push(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, const char *name);

/* Ends the innermost range of the domain; *ret_level: as push returned it.  False: there is none. */
bool gpc_tags_pop(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, uint32_t *ret_level);

/* The id, > GPC_TAG_OF_NVTX, of an NVTX domain, and of a registered string; 0: no room. */
uint32_t gpc_tags_domain(struct gpc_tags *tags, const char *name);
uint32_t gpc_tags_string(struct gpc_tags *tags, const char *text);

/* The name of any id; "" if it is unknown. */
const char *gpc_tags_name(const struct gpc_tags *tags, uint32_t id);

/* The enclosing tag; 0: none. */
uint32_t gpc_tags_parent(const struct gpc_tags *tags, uint32_t id);

/* 1 + the highest id; 0: no tags. */
uint32_t gpc_tags_end(const struct gpc_tags *tags);

#endif
