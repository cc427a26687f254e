/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names of C++ functions, from their symbols: scopes and name, without template arguments, parameters and return
 * type.
 *
 *      _ZN2at6native4fillIfEEvPT_        at::native::fill
 *
 * Threads   Any: pure functions.
 * Failure   The name ends before the first part of the symbol that cannot be parsed.
 * Limits    An operator or lambda gets the name of the enclosing function or class.
 */
#ifndef GPC_STACK_MANGLED_H
#define GPC_STACK_MANGLED_H

#include <stdbool.h>

#include "base/text.h"

/* Appends the short name.  Returns false, with nothing appended, if the symbol is not mangled. */
bool gpc_mangled_read(const char *symbol, struct gpc_text *text);

#endif
