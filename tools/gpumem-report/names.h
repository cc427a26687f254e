/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions as short as a person says them, and texts as numbers.
 *
 *      std::vector<T> at::native::(anonymous namespace)::fill<float>(T const&)    at::native::fill
 *      main.<locals>.step                                                         main.step
 *
 * Threads     One.
 * Failure     None.
 * Limits      Goes by the text of the demangled name.
 */
#ifndef GPC_REPORT_NAMES_H
#define GPC_REPORT_NAMES_H

#include <stdbool.h>

#include "base/text.h"

/* Without return type, templates, parameters, unnamed and local scopes. */
void gpc_name_short(const char *function, struct gpc_text *ret_text);

/* The name as it is; the short one where that would fill more than a line. */
void gpc_name_cut(const char *function, struct gpc_text *ret_text);

/* "AddmmBackward0", where the function is PyTorch's, of a node of its backward pass. */
bool gpc_name_node(const char *function, struct gpc_text *ret_text);

/* "gelu", where the function is PyTorch's entrance to that operator. */
bool gpc_name_operator(const char *function, struct gpc_text *ret_text);

/* Of bytes after bytes (FNV-1a): no two stacks of a job are the same by chance. */
#define GPC_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t gpc_hash_bytes(uint64_t hash, const void *data, size_t size);

#endif
