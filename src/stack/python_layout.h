/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of CPython's frames and code objects in this process.
 *
 *   3.9, 3.10    thread state -> frame object -> frame object ...
 *   3.11, 3.12   thread state -> cframe -> interpreter frame -> interpreter frame ...
 *   3.13, 3.14   thread state -> interpreter frame ...; the interpreter publishes the offsets
 *                (_Py_DebugOffsets, at the start of _PyRuntime, cookie "xdebugpy")
 *
 * The tables of 3.9 to 3.12 are offsetof() in the headers of 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1 on LP64.  A
 * minor version keeps its structures from its first release candidate on.  Before python.c uses a layout, it verifies
 * the layout on real frames, with reads that cannot fault.
 *
 * Failure   GPC_UNSUPPORTED: another version, an alpha or beta, or an offset beyond its structure.  A build with
 *           another object head (Py_TRACE_REFS) is found here, and fails that verification.
 * Limits    64-bit CPython only.  Free-threaded 3.14 keeps instructions per thread, at offsets that are unknown, so its
 *           frames have no lines.
 */
#ifndef GPC_STACK_PYTHON_LAYOUT_H
#define GPC_STACK_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* A field that this version does not have. */
#define GPC_PYTHON_NO_FIELD UINT16_MAX

enum gpc_python_chain {
	GPC_PYTHON_FRAME_OBJECTS, /* C enters every frame; frame_instruction is a number */
	GPC_PYTHON_ENTRY_FLAGS, /* frame_is_entry marks frames entered from C; frame_instruction is a pointer */
	GPC_PYTHON_SHIMS, /* a shim frame is the caller of a frame entered from C; frame_instruction is a pointer */
};

/* Offsets in bytes, except for the first four members. */
struct gpc_python_layout {
	uint16_t version;         /* 0x030b: 3.11 */
	uint8_t chain;            /* enum gpc_python_chain */
	uint8_t kind_shift;       /* position of the character size in a string's state word */
	uint8_t other_kind_shift; /* kind_shift in other releases of this version, or 0 */

	uint16_t thread_id;
	uint16_t thread_frame; /* the innermost frame, or the cframe that holds it */
	uint16_t cframe_frame; /* the innermost frame in the cframe */

	uint16_t frame_previous;
	uint16_t frame_code;
	uint16_t frame_instruction;
	uint16_t frame_owner;
	uint16_t frame_is_entry;

	uint16_t code_file;
	uint16_t code_name; /* the qualified one, if there is one */
	uint16_t code_first_line;
	uint16_t code_line_table;
	uint16_t code_bytes;   /* the first instruction */
	uint16_t code_version; /* a number that no other code object ever gets, or 0; 4 bytes */

	uint16_t object_type;
	uint16_t object_size; /* the number of items in an object of variable size */
	uint16_t bytes_data;
	uint16_t text_length;
	uint16_t text_state;
	uint16_t text_ascii_data;
	uint16_t text_wide_data;
};

/*
 * Finds the layout of Python `version_text` ("3.11.2 (main, ...").  `runtime` is the address of _PyRuntime or NULL, and
 * is read from 3.13 on.
 */
GPC_MUST_CHECK enum gpc_status gpc_python_layout_find(
	const char *version_text, const void *runtime, struct gpc_python_layout *ret_layout);

#endif
