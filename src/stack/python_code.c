/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fingerprint is a multilinear hash: the sum of each word times a constant of its own.  The words are addresses,
 * sizes, the first line, and the ends of name, file name and line table.
 */
#include "stack/python_code.h"

#include <string.h>

#include "stack/python_text.h"

static uint64_t load_word(uintptr_t object, uint16_t offset)
{
	uint64_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static uint32_t load_half(uintptr_t object, uint16_t offset)
{
	uint32_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

/* The words of a code object that are hashed. */
enum {
	FIRST,
	NAME,
	NAME_TAIL,
	NAME_BEFORE,
	FILE_PART,
	FILE_TAIL,
	FILE_BEFORE,
	TABLE,
	TABLE_TAIL,
	N_WORDS
};

/*
 * An odd constant for each word: digits of square roots.  The hash is the sum of the words' products with their
 * constants.  No product needs another one, so the processor overlaps them.
 */
static const uint64_t factors[N_WORDS] = {
	UINT64_C(0x6a09e667f3bcc909),
	UINT64_C(0xbb67ae8584caa73b),
	UINT64_C(0x3c6ef372fe94f82b),
	UINT64_C(0xa54ff53a5f1d36f1),
	UINT64_C(0x510e527fade682d1),
	UINT64_C(0x9b05688c2b3e6c1f),
	UINT64_C(0x1f83d9abfb41bd6b),
	UINT64_C(0x5be0cd19137e2179),
	UINT64_C(0xcbbb9d5dc1059ed9),
};

/*
 * The last 8 of the `size` bytes that end at `end`, or all if there are fewer.  The load may read 8 bytes in any case,
 * because the object's head lies before its data.  Bytes of the head, which may change, are shifted out.
 */
static inline uint64_t last_word(uintptr_t end, uint64_t size)
{
	uint64_t word;

	if (!size)
		return 0;
	memcpy(&word, (const void *)(end - sizeof(word)), sizeof(word));
	return size >= sizeof(word) ? word : word >> (8 * (sizeof(word) - size));
}

/* What a string adds to the sum: its address, size and last 16 bytes, times factors[at .. at + 2]. */
static inline uint64_t sum_text(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t object, unsigned at)
{
	uint64_t sum = object * factors[at];
	struct gpc_python_text text;
	uint64_t size;

	if (!object || load_word(object, layout->object_type) != types->text ||
		!gpc_python_text_find(layout, object, &text))
		return sum;
	size = text.n * text.kind;
	sum += (size ^ last_word(text.data + size, size)) * factors[at + 1];
	if (size > 8)
		sum += last_word(text.data + size - 8, size - 8) * factors[at + 2];
	return sum;
}

static inline uint64_t sum_table(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t object)
{
	uint64_t sum = object * factors[TABLE];
	uint64_t size;

	if (!object || load_word(object, layout->object_type) != types->bytes)
		return sum;
	size = load_word(object, layout->object_size);
	return sum +
	       (size ^ last_word(object + layout->bytes_data + size, size)) * factors[TABLE_TAIL];
}

struct gpc_code_key gpc_python_code_key(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t code)
{
	uint64_t first = load_half(code, layout->code_first_line);
	uint64_t sum;

	/* From 3.11 on the instructions are in the code object, whose size is their number. */
	if (layout->code_bytes != GPC_PYTHON_NO_FIELD)
		first ^= load_word(code, layout->object_size) << 32;
	sum = first * factors[FIRST];
	sum += sum_text(layout, types, load_word(code, layout->code_name), NAME);
	sum += sum_text(layout, types, load_word(code, layout->code_file), FILE_PART);
	sum += sum_table(layout, types, load_word(code, layout->code_line_table));
	return (struct gpc_code_key){ .code = code, .fingerprint = sum ^ sum >> 32 };
}

struct gpc_code gpc_python_code_read(const struct gpc_python_layout *layout,
	const struct gpc_python_types *types, uintptr_t code, struct gpc_python_code_texts *texts)
{
	uintptr_t lines = load_word(code, layout->code_line_table);
	struct gpc_code result = {
		.name = texts->name,
		.file = texts->file,
		.lines = "",
		.first_line = load_half(code, layout->code_first_line),
		.python_version = layout->version,
	};
	uint64_t size;

	result.name_size = gpc_python_text_read(layout, load_word(code, layout->code_name),
		types->text, texts->name, sizeof(texts->name));
	result.file_size = gpc_python_text_read(layout, load_word(code, layout->code_file),
		types->text, texts->file, sizeof(texts->file));
	if (lines && load_word(lines, layout->object_type) == types->bytes) {
		size = load_word(lines, layout->object_size);
		result.lines = (const void *)(lines + layout->bytes_data);
		result.lines_size =
			(uint32_t)(size < GPUCACHE_MAX_CODE_LINES ? size : GPUCACHE_MAX_CODE_LINES);
	}
	return result;
}
