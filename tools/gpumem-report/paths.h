/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as the way that a person would tell: the program's own frames from main on, and what a library
 * was asked for at the end.
 *
 *      cudaMalloc, 22 frames of libtorch, forward linear.py, step train.py:40, main train.py:9
 *
 *      main  train.py:9  >  step  train.py:40  >  Linear.forward
 *
 * Invariants  1 A path has at least one name.  2 The last names who asked, in words for every case.
 * Threads     One.
 * Failure     GPC_NO_METADATA.
 * Limits      None.
 */
#ifndef GPC_REPORT_PATHS_H
#define GPC_REPORT_PATHS_H

#include "tools/gpumem-report/holdings.h"

struct gpc_path {
	char **names; /* outermost first; the bottom-up ones are turned round */
	size_t n;
	size_t site; /* the name that is blamed */
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_paths {
	struct gpc_path *rows;
	size_t n;
	uint64_t total_bytes;
	uint64_t
		rest_bytes; /* of holders that the recording does not list, PyTorch's unused cache included */
};

GPC_MUST_CHECK enum gpc_status gpc_paths_create(struct gpc_paths *paths,
	const struct gpc_report *report, const struct gpc_holdings *holdings);
void gpc_paths_fini(struct gpc_paths *paths);

/* "step  train.py" of "step  train.py:41": lines of one function are one. */
size_t gpc_path_function_length(const char *name);

/* Innermost first. */
void gpc_paths_turn(struct gpc_paths *paths);

/* In the order of their names. */
void gpc_paths_sort(struct gpc_paths *paths);

#endif
