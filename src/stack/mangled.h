/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names of C++ functions, from their symbols: scopes and name, without template arguments, parameters and return
 * type.
 *
 *      _ZN2at6native4fillIfEEvPT_        at::native::fill
 *
 * Threads   Any: pure functions.
 * Failure   The name ends before the first part of the symbol that cannot be parsed.
 * Limits    An operator gets the name of its class or namespace; a symbol local to a function, such as a lambda's
 *           (_ZZ), that of the function.  A special symbol (_ZTV), and an operator outside any scope, have no short name.
 */
#ifndef GPC_STACK_MANGLED_H
#define GPC_STACK_MANGLED_H

#include <stdbool.h>

#include "base/text.h"

/* Appends the short name.  Returns false, with nothing appended, if the symbol has none. */
bool gpc_mangled_read(const char *symbol, struct gpc_text *text);

#endif
