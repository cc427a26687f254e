/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads CPython's strings from memory, as UTF-8.
 *
 * The strings of a code object are compact: a head, then characters of 1, 2 or 4 bytes each.  The head's state word has
 * the size of a character, and a bit that says that all characters are ASCII, which makes the head shorter.
 *
 * Failure   "?" for an object of another type, a subclass of str included, and for a string that is not compact.
 */
#ifndef GPC_STACK_PYTHON_TEXT_H
#define GPC_STACK_PYTHON_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "stack/python_layout.h"

/* Bits of the state word, counted from bit kind_shift, where the size of a character begins. */
#define GPC_PYTHON_KIND_MASK   7u
#define GPC_PYTHON_COMPACT_BIT 3u
#define GPC_PYTHON_ASCII_BIT   4u

/* No name or path has more characters: an object with a greater length is no string. */
#define GPC_PYTHON_MAX_TEXT (UINT64_C(1) << 30)

/* The characters of a compact string: address, number, and bytes of each. */
struct gpc_python_text {
	uintptr_t data;
	uint64_t n;
	uint32_t kind;
};

/* True if a head with this state word and length belongs to a compact string. */
static inline bool gpc_python_text_is_sane(
	const struct gpc_python_layout *layout, uint64_t state, uint64_t length)
{
	uint64_t bits = state >> layout->kind_shift;
	uint64_t kind = bits & GPC_PYTHON_KIND_MASK;

	if (!(bits >> GPC_PYTHON_COMPACT_BIT & 1) || length > GPC_PYTHON_MAX_TEXT)
		return false;
	return kind == 1 || (!(bits >> GPC_PYTHON_ASCII_BIT & 1) && (kind == 2 || kind == 4));
}

/*
 * Finds the characters of the string at `object`, which must be a string.  Returns false, with nothing written, if the
 * string is not compact.  Inline, because a walk calls it twice per frame.
 */
static inline bool gpc_python_text_find(
	const struct gpc_python_layout *layout, uintptr_t object, struct gpc_python_text *ret_text)
{
	uint64_t length, bits;
	uint32_t state;

	memcpy(&length, (const void *)(object + layout->text_length), sizeof(length));
	memcpy(&state, (const void *)(object + layout->text_state), sizeof(state));
	if (!gpc_python_text_is_sane(layout, state, length))
		return false;
	bits = (uint64_t)state >> layout->kind_shift;
	ret_text->data = object + (bits >> GPC_PYTHON_ASCII_BIT & 1 ? layout->text_ascii_data
								    : layout->text_wide_data);
	ret_text->n = length;
	ret_text->kind = bits & GPC_PYTHON_KIND_MASK;
	return true;
}

/*
 * Writes the string at `object` to buf[0 .. size), size >= 8, truncated between characters, without a NUL.  Returns the
 * number of bytes written.  text_type: the address of PyUnicode_Type.
 */
uint32_t gpc_python_text_read(const struct gpc_python_layout *layout, uintptr_t object,
	uintptr_t text_type, char *buf, uint32_t size);

#endif
