/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code object of CPython: its key, and the data copied from it.
 *
 * Generated code dies, and a new code object soon takes its memory: exec in a loop reuses the addresses
 * of code, names and tables at once.  So the fingerprint covers addresses and content: first line,
 * sizes, and the last bytes of name, file name and line table, in which generated code differs.
 *
 * Threads   Any, for a code object on a frame of the calling thread: the frame keeps it alive, and
 *           it never changes.
 * Failure   None: a part of an unexpected type is omitted, or "?".
 * Limits    Two successive code objects at the same addresses are confused if they have the same sizes
 *           and first line, their names and files end in the same 16 bytes and their tables in the same
 *           8.
 */
#ifndef GPC_STACK_PYTHON_CODE_H
#define GPC_STACK_PYTHON_CODE_H

#include <stdint.h>

#include "stack/codes.h"
#include "stack/python_layout.h"

/* Addresses of PyCode_Type, PyUnicode_Type, PyBytes_Type. */
struct gpc_python_types {
	uintptr_t code;
	uintptr_t text;
	uintptr_t bytes;
};

/* Room for the texts of a struct gpc_code that is read from Python's memory. */
struct gpc_python_code_texts {
	char name[GPUCACHE_MAX_CODE_NAME + 1];
	char file[GPUCACHE_MAX_CODE_FILE + 1];
};

struct gpc_code_key gpc_python_code_key(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t code);

/* The result points into *texts and into Python's memory. */
struct gpc_code gpc_python_code_read(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t code, struct gpc_python_code_texts *texts);

#endif
