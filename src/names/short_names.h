/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names of functions, and hashes of text.
 *
 *      std::vector<T> at::native::(anonymous namespace)::fill<float>(T const&)    at::native::fill
 *      main.<locals>.step                                                         main.step
 *
 * Threads     One.
 * Failure     None.
 * Limits      Goes by the text of the name, which must be demangled.
 */
#ifndef GPC_NAMES_SHORT_NAMES_H
#define GPC_NAMES_SHORT_NAMES_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/text.h"

/* Appends the name without return type, templates, parameters, "(anonymous namespace)" and "<locals>". */
void gpc_name_short(const char *function, struct gpc_text *ret_text);

/* If the function is a node of PyTorch's backward pass, appends its name, as "AddmmBackward0".  Else returns false. */
bool gpc_name_node(const char *function, struct gpc_text *ret_text);

/* If the function is PyTorch's entry point of an operator, appends the operator, as "gelu".  Else returns false. */
bool gpc_name_operator(const char *function, struct gpc_text *ret_text);

#endif
