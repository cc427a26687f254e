/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code object of CPython: its key, and a copy of its texts.
 *
 * A program that calls exec in a loop frees a code object, and the next one takes the same addresses for code, names
 * and tables.  So the fingerprint covers content, too: first line, sizes, and the last bytes of name, file name and
 * line table, in which generated code differs.
 *
 * Threads   Any, for a code object on a frame of the calling thread: the frame keeps it alive, and it never changes.
 * Failure   None: a part of an unexpected type is omitted, or "?".
 * Limits    Two successive code objects at the same addresses get one key if they have the same first line and sizes,
 *           the same last 16 bytes of name and of file name, and the same last 8 bytes of the line table.  From 3.12 on
 *           Python numbers its code objects, and python.c takes the number instead.
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

/* Room for the texts that gpc_python_code_read converts to UTF-8. */
struct gpc_python_code_texts {
	char name[GPUCACHE_MAX_CODE_NAME + 1];
	char file[GPUCACHE_MAX_CODE_FILE + 1];
};

struct gpc_code_key gpc_python_code_key(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t code);

/* Reads a code object.  The result points into *texts, and, for the line table, into Python's memory. */
struct gpc_code gpc_python_code_read(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t code, struct gpc_python_code_texts *texts);

#endif
