/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's strings as UTF-8, by reading their memory.
 *
 * A string of code objects is compact: a head, then the characters, of 1, 2 or 4 bytes each.  The state word of the head
 * tells which, and whether all are ASCII, in which case the head is shorter.
 *
 * Failure   "?" for what is not an exact, compact string.
 */
#ifndef GPC_STACK_PYTHON_TEXT_H
#define GPC_STACK_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/python_layout.h"

/* True where a head with that state word and length is a compact string's. */
bool gpc_python_text_is_sane(
	const struct gpc_python_layout *layout, uint64_t state, uint64_t length);

/*
 * Writes the string at `object` to buf[0 .. size), at least 8 bytes, cut between characters, without a NUL.  Its size in bytes.
 * text_type: the address of PyUnicode_Type.
 */
uint32_t gpc_python_text_read(const struct gpc_python_layout *layout, uintptr_t object,
	uintptr_t text_type, char *buf, uint32_t size);

#endif
