/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as short call paths: the program's own frames from main on, then the library function that it called.
 *
 *      stack   cudaMalloc, 22 frames of libtorch, forward linear.py, step train.py:40, main train.py:9
 *      path    main  train.py:9  >  step  train.py:40  >  Linear.forward
 *
 * Invariants  1 A path has at least one name, and no name is empty.
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_PATHS_H
#define GPC_REPORT_PATHS_H

#include "tools/gpumem-report/holders/moment.h"

struct gpc_path {
	char **names; /* outermost first; `tree --bottom-up` reverses them */
	size_t n;
	size_t site; /* the index of the call site's name */
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_paths {
	struct gpc_path *rows;
	size_t n;
	uint64_t total_bytes;
	uint64_t rest_bytes; /* of stacks that are not listed */
};

/* Makes a path of each stack that holds memory of the moment's device. */
void gpc_paths_create(
	struct gpc_paths *paths, const struct gpc_report *report, const struct gpc_moment *moment);
void gpc_paths_fini(struct gpc_paths *paths);

/* The length of "step  train.py" in "step  train.py:41". */
size_t gpc_path_function_length(const char *name);

#endif
