/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/python_text.h"

#include <string.h>

/* Bits of the state word, counted from the character size. */
#define KIND_MASK   7u
#define COMPACT_BIT 3u
#define ASCII_BIT   4u

/* A name or path longer than this is not one. */
#define MAX_LENGTH (UINT64_C(1) << 30)

static unsigned kind_of(const struct gpc_python_layout *layout, uint64_t state)
{
	return (unsigned)(state >> layout->kind_shift) & KIND_MASK;
}

static bool has_bit(const struct gpc_python_layout *layout, uint64_t state, unsigned bit)
{
	return state >> (layout->kind_shift + bit) & 1;
}

bool gpc_python_text_is_sane(
	const struct gpc_python_layout *layout, uint64_t state, uint64_t length)
{
	unsigned kind = kind_of(layout, state);

	if (!has_bit(layout, state, COMPACT_BIT) || length > MAX_LENGTH)
		return false;
	return has_bit(layout, state, ASCII_BIT) ? kind == 1 : kind == 1 || kind == 2 || kind == 4;
}

/* UTF-8 of one character; surrogates and numbers beyond Unicode become U+FFFD. */
static uint32_t encode(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t character_at(const char *data, unsigned kind, uint64_t i)
{
	uint32_t c = 0;

	memcpy(&c, data + i * kind, kind);
	return c;
}

uint32_t gpc_python_text_read(const struct gpc_python_layout *layout, uintptr_t object,
	uintptr_t text_type, char *buf, uint32_t size)
{
	uintptr_t type = 0;
	uint64_t length = 0;
	uint32_t state = 0;
	uint32_t used = 0;
	const char *data;
	bool is_ascii;

	buf[0] = '?';
	if (!object)
		return 1;
	memcpy(&type, (const char *)object + layout->object_type, sizeof(type));
	memcpy(&length, (const char *)object + layout->text_length, sizeof(length));
	memcpy(&state, (const char *)object + layout->text_state, sizeof(state));
	if (type != text_type || !gpc_python_text_is_sane(layout, state, length))
		return 1;
	is_ascii = has_bit(layout, state, ASCII_BIT);
	data = (const char *)object + (is_ascii ? layout->text_ascii_data : layout->text_wide_data);
	for (uint64_t i = 0; i < length && used + 4 <= size; i++)
		used += encode(character_at(data, kind_of(layout, state), i), buf + used);
	return used;
}
