/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags: the ranges that a program names, each path of names once, under a 32-bit id.
 *
 *      push "step 1", push "forward"          ranges form a tree; a thread is at one of its tags
 *
 *      0 --+-- 3 "step 1" --+-- 4 "forward"   <-- place.tag; pop: to the parent
 *          |                '-- 5 "backward"
 *          '-- 6 "step *" ...
 *
 * So a thread needs no stack of names and an allocation no more than one load.  Programs number
 * their ranges without end ("step 412"); below a parent that has many children, the numbers of a
 * new name become stars, and later whole names: the tree stays small, and says what there is.
 *
 * Ranges of several domains may overlap: the end of one takes it out of the path, wherever it is.
 *
 * Invariants
 *   1 A tag never changes once its id was given out; its parent has a lower id.
 *   2 Before its id is given out it is in the sink, if there is one.
 * Threads     Any, at any time, also before the library runs and in a child of fork.
 * Ordering    A tag is filled, then published by a slot of the hash table (release); readers
 *             acquire it.  While a sink comes, exactly one tells it of a tag: the adder stores
 *             the tag's stage and then looks for a sink, gpc_tags_attach the other way round.
 * Progress    Lock-free but for the sink: a push of a known name is a bounded probe.
 * Failure     A range without room for its name is counted, and labelled as the one around it.
 * Limits      GPC_TAGS_MAX names in all, GPC_TAG_MAX_DEPTH ranges deep, GPC_TAG_NAME_SIZE - 1 bytes
 *             a name.  Beyond, ranges of overlapping domains may end in another order than theirs.
 *             Two threads that add the same name at once waste one place.
 */
#ifndef GPC_STACK_TAGS_H
#define GPC_STACK_TAGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "gpucache_format.h"
#include "stack/sink.h"

#define GPC_TAGS_MAX      GPUCACHE_MAX_TAGS
#define GPC_TAG_MAX_DEPTH 32u
#define GPC_TAG_NAME_SIZE 77u

struct gpc_tag_table;

/* All zero is a table without tags and without a sink. */
struct gpc_tags {
	_Atomic(struct gpc_tag_table *) table; /* made by the first name */
	_Atomic(const struct gpc_stack_sink *) sink;
	_Atomic bool is_closed; /* the sink is full */
	_Atomic uint64_t n_dropped;
};

/* From here on tags go to the sink, which lives for ever; first those that there are. */
void gpc_tags_attach(struct gpc_tags *tags, const struct gpc_stack_sink *sink);
void gpc_tags_fini(struct gpc_tags *tags);

/* A range begins.  Returns how many of the same domain are around it. */
uint32_t gpc_tags_push(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, const char *name);

/* The innermost range of the domain ends; *ret_level: as push returned.  False: there is none. */
bool gpc_tags_pop(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, uint32_t *ret_level);

/* NVTX: a domain, and a string, by an id > GPC_TAG_OF_NVTX; 0: no room. */
uint32_t gpc_tags_domain(struct gpc_tags *tags, const char *name);
uint32_t gpc_tags_string(struct gpc_tags *tags, const char *text);

/* The name under an id, which may be anything; "" for one that was not given out. */
const char *gpc_tags_name(const struct gpc_tags *tags, uint32_t id);

/* The tag around it; 0: none. */
uint32_t gpc_tags_parent(const struct gpc_tags *tags, uint32_t id);

/* Behind the highest id; 0 where there was never a tag. */
uint32_t gpc_tags_end(const struct gpc_tags *tags);

#endif
