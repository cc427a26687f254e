/* SPDX-License-Identifier: Apache-2.0 */
/* Each character, of 1, 2 or 4 bytes, is encoded as UTF-8; a surrogate becomes U+FFFD. */
#include "stack/python_text.h"

#include <string.h>

#include "base/text.h"

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
		used += gpc_text_encode(character_at(&text, i), buf + used);
	return used;
}
