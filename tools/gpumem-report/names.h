/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names of functions, and hashes of text.
 *
 *      std::vector<T> at::native::(anonymous namespace)::fill<float>(T const&)    at::native::fill
 *      main.<locals>.step                                                         main.step
 *
 * Threads     One.
 * Failure     None.
 * Limits      Knows only the text of the demangled name.
 */
#ifndef GPC_REPORT_NAMES_H
#define GPC_REPORT_NAMES_H

#include <stdbool.h>

#include "base/text.h"

/* Drops return type, templates, parameters, unnamed and local scopes. */
void gpc_name_short(const char *function, struct gpc_text *ret_text);

/* "AddmmBackward0", if the function is a node of PyTorch's backward pass. */
bool gpc_name_node(const char *function, struct gpc_text *ret_text);

/* "gelu", if the function is PyTorch's entry point of that operator. */
bool gpc_name_operator(const char *function, struct gpc_text *ret_text);

/* FNV-1a, continued from `hash`: 64 bits, so stacks of a job do not collide by chance. */
#define GPC_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t gpc_hash_bytes(uint64_t hash, const void *data, size_t size);

#endif
