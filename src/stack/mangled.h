/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of C++ functions as a person says them, read from the symbol: scopes and name, without
 * templates, parameters and return type.
 *
 *      _ZN2at6native4fillIfEEvPT_        at::native::fill
 *
 * Threads   Any: pure functions.
 * Failure   What cannot be read ends the name there.
 * Limits    Operators and lambdas are told by the function around them.
 */
#ifndef GPC_STACK_MANGLED_H
#define GPC_STACK_MANGLED_H

#include <stdbool.h>

#include "base/text.h"

/* Appends the name; false, and nothing appended, where it is no mangled one. */
bool gpc_mangled_read(const char *symbol, struct gpc_text *text);

#endif
