/* SPDX-License-Identifier: Apache-2.0 */
/* The head's state word gives the width of a character.  Each character is encoded to UTF-8, surrogates as U+FFFD. */
#include "stack/python_text.h"

#include <string.h>

/* Encodes one character; surrogates and numbers beyond Unicode become U+FFFD. */
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

static uint32_t character_at(const struct gpc_python_text *text, uint64_t i)
{
	uint32_t c = 0;

	memcpy(&c, (const void *)(text->data + i * text->kind), text->kind);
	return c;
}

uint32_t gpc_python_text_read(const struct gpc_python_layout *layout, uintptr_t object,
	uintptr_t text_type, char *buf, uint32_t size)
{
	struct gpc_python_text text;
	uintptr_t type = 0;
	uint32_t used = 0;

	buf[0] = '?';
	if (!object)
		return 1;
	memcpy(&type, (const char *)object + layout->object_type, sizeof(type));
	if (type != text_type || !gpc_python_text_find(layout, object, &text))
		return 1;
	for (uint64_t i = 0; i < text.n && used + 4 <= size; i++)
		used += encode(character_at(&text, i), buf + used);
	return used;
}
