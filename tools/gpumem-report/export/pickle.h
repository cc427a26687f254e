/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pickles of protocol 2 with dictionaries, lists, words and numbers, for pickle.load and the
 * viewer at pytorch.org/memory_viz.
 *
 *      begin_list  item item ... end_list           written in batches, because the viewer's stack is small
 *      begin_dict  key value key value end_dict
 *
 * Invariants  1 A word is written once; after that, a reference to it is written.
 *             2 Constants are found by their address, so the text at that address must not change.
 * Threads     One.
 * Failure     Write errors stay in the stream.
 * Limits      Lists nest at most GPC_PICKLE_MAX_DEPTH deep.
 */
#ifndef GPC_REPORT_PICKLE_H
#define GPC_REPORT_PICKLE_H

#include <stdio.h>

#include "tools/lib/map.h"

#define GPC_PICKLE_MAX_DEPTH 8

struct gpc_pickle {
	FILE *out;
	/* 1 + the number in the pickle's memo: */
	struct gpc_map words;     /* by the text */
	struct gpc_map constants; /* by the address */
	struct gpc_map lists;     /* by the id */
	uint32_t n_memo;          /* numbers given so far */
	unsigned depth;
	unsigned n_items[GPC_PICKLE_MAX_DEPTH]; /* in the present batch of each open list */
};

void gpc_pickle_begin(struct gpc_pickle *pickle, FILE *out);
void gpc_pickle_end(struct gpc_pickle *pickle);

void gpc_pickle_begin_dict(struct gpc_pickle *pickle);
void gpc_pickle_end_dict(struct gpc_pickle *pickle);

void gpc_pickle_begin_list(struct gpc_pickle *pickle);
void gpc_pickle_item(struct gpc_pickle *pickle); /* call it before writing an item */
void gpc_pickle_end_list(struct gpc_pickle *pickle);

/* Begins list `id`, or refers to it if it was written before.  Returns true if its items must be written now. */
bool gpc_pickle_begin_numbered_list(struct gpc_pickle *pickle, size_t id);

/* Writes a constant: a string literal, looked up by its address. */
void gpc_pickle_constant(struct gpc_pickle *pickle, const char *text);
void gpc_pickle_false(struct gpc_pickle *pickle);

/* Writes a key, which is a constant, and its value. */
void gpc_pickle_put_word(struct gpc_pickle *pickle, const char *key, const char *text);
void gpc_pickle_put_number(struct gpc_pickle *pickle, const char *key, uint64_t number);

#endif
