/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From 3.13 on the interpreter publishes the offsets of its structures (_Py_DebugOffsets).  Those of 3.9 to 3.12 are
 * tables here.  python.c verifies both before it uses them.
 */
#include "stack/python_layout.h"

#include <stddef.h>
#include <string.h>

#define NONE GPC_PYTHON_NO_FIELD

/* All structures that we read are smaller, so a greater number is no offset. */
#define MAX_OFFSET 4096u

/* The characters of a string begin right behind its head, which is shorter for ASCII strings. */
#define TEXT_BEFORE_312                                                              \
	.kind_shift = 2, .text_length = 16, .text_state = 32, .text_ascii_data = 48, \
	.text_wide_data = 72
#define TEXT_FROM_312                                                                \
	.kind_shift = 2, .text_length = 16, .text_state = 32, .text_ascii_data = 40, \
	.text_wide_data = 56
#define OBJECT .object_type = 8, .object_size = 16, .bytes_data = 32

/* The frame objects of 3.9 and 3.10, which differ only in frame_instruction. */
#define FRAME_OBJECTS                                                                      \
	.chain = GPC_PYTHON_FRAME_OBJECTS, .thread_id = 176, .thread_frame = 24,           \
	.cframe_frame = NONE, .frame_previous = 24, .frame_code = 32, .frame_owner = NONE, \
	.frame_is_entry = NONE, .code_file = 104, .code_name = 112, .code_first_line = 40, \
	.code_line_table = 120, .code_bytes = NONE, .code_version = NONE

/* Interpreter frames of 3.11, behind a cframe.  A flag marks those entered from C. */
#define FRAMES_311                                                                                \
	.chain = GPC_PYTHON_ENTRY_FLAGS, .thread_id = 152, .thread_frame = 56, .cframe_frame = 8, \
	.frame_previous = 48, .frame_code = 32, .frame_instruction = 56, .frame_owner = 69,       \
	.frame_is_entry = 68, .code_file = 112, .code_name = 128, .code_first_line = 72,          \
	.code_line_table = 136, .code_bytes = 184, .code_version = NONE

/* Interpreter frames of 3.12, behind a cframe.  A shim is the caller of those entered from C. */
#define FRAMES_312                                                                          \
	.chain = GPC_PYTHON_SHIMS, .thread_id = 136, .thread_frame = 56, .cframe_frame = 0, \
	.frame_previous = 8, .frame_code = 0, .frame_instruction = 56, .frame_owner = 70,   \
	.frame_is_entry = NONE, .code_file = 112, .code_name = 128, .code_first_line = 68,  \
	.code_line_table = 136, .code_bytes = 192, .code_version = 92

static const struct gpc_python_layout layouts[] = {
	{ .version = 0x0309, .frame_instruction = 104, FRAME_OBJECTS, OBJECT, TEXT_BEFORE_312 },
	{ .version = 0x030a, .frame_instruction = 96, FRAME_OBJECTS, OBJECT, TEXT_BEFORE_312 },
	{ .version = 0x030b, FRAMES_311, OBJECT, TEXT_BEFORE_312 },
	{ .version = 0x030c, FRAMES_312, OBJECT, TEXT_FROM_312 },
};

/*
 * _Py_DebugOffsets is a row of 8-byte words: cookie, version, free-threaded, and then one group per structure.  A map
 * says at which word each group starts.  Word 0 of a group is the size of the structure, the others are offsets in it.
 */
struct offsets_map {
	uint16_t version;
	/* The bits before `kind` in the state word: 2, or 16 in the first releases of 3.14. */
	uint8_t kind_shift;
	uint8_t other_kind_shift;
	uint8_t thread;
	uint8_t frame;
	uint8_t code;
	uint8_t object;
	uint8_t bytes;
	uint8_t text;
};

static const struct offsets_map maps[] = {
	{ 0x030d, 2, 0, 19, 28, 34, 44, 64, 67 },
	{ 0x030e, 2, 16, 22, 31, 39, 50, 74, 77 },
};

/* From 3.12 on a code object has co_version this many bytes before its file name. */
#define VERSION_BEFORE_FILE 20u

/* The head of a non-ASCII string is longer by the two words utf8_length and utf8. */
#define WIDE_HEAD_EXTRA 16u

static bool read_number(const char **text, unsigned *ret_number)
{
	const char *at = *text;
	unsigned number = 0;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9' && number < 1000; at++)
		number = number * 10 + (unsigned)(*at - '0');
	*text = at;
	*ret_number = number;
	return true;
}

/* "3.11.2 (main" is 0x030b; a text without three numbers, an alpha, a beta and another major version are 0. */
static uint16_t parse_version(const char *text)
{
	unsigned major, minor, patch;

	if (!read_number(&text, &major) || *text++ != '.' || !read_number(&text, &minor) ||
		*text++ != '.' || !read_number(&text, &patch))
		return 0;
	if (*text == 'a' || *text == 'b' || major != 3 || minor > 255)
		return 0;
	return (uint16_t)(major << 8 | minor);
}

/* Returns word `word` of a group, an offset.  Clears *ok if the offset is not below the size, the group's word 0. */
static uint16_t offset_at(const uint64_t *group, unsigned word, bool *ok)
{
	if (group[0] == 0 || group[0] > MAX_OFFSET || group[word] >= group[0])
		*ok = false;
	return (uint16_t)group[word];
}

static enum gpc_status read_offsets(
	const struct offsets_map *map, const uint64_t *words, struct gpc_python_layout *ret_layout)
{
	const uint64_t *thread = words + map->thread, *frame = words + map->frame;
	const uint64_t *code = words + map->code, *object = words + map->object;
	const uint64_t *bytes = words + map->bytes, *text = words + map->text;
	bool ok = true;
	struct gpc_python_layout layout = {
		.version = map->version,
		.chain = GPC_PYTHON_SHIMS,
		.kind_shift = map->kind_shift,
		.other_kind_shift = map->other_kind_shift,
		.thread_id = offset_at(thread, 5, &ok),
		.thread_frame = offset_at(thread, 4, &ok),
		.cframe_frame = NONE,
		.frame_previous = offset_at(frame, 1, &ok),
		.frame_code = offset_at(frame, 2, &ok),
		.frame_instruction = offset_at(frame, 3, &ok),
		.frame_owner = offset_at(frame, 5, &ok),
		.frame_is_entry = NONE,
		.code_file = offset_at(code, 1, &ok),
		.code_name = offset_at(code, 3, &ok),
		.code_first_line = offset_at(code, 5, &ok),
		.code_line_table = offset_at(code, 4, &ok),
		.code_bytes = offset_at(code, 9, &ok),
		.code_version = NONE,
		.object_type = offset_at(object, 1, &ok),
		.object_size = offset_at(bytes, 1, &ok),
		.bytes_data = offset_at(bytes, 2, &ok),
		.text_length = offset_at(text, 2, &ok),
		.text_state = offset_at(text, 1, &ok),
		.text_ascii_data = offset_at(text, 3, &ok),
		.text_wide_data = (uint16_t)(text[3] + WIDE_HEAD_EXTRA),
	};

	if (!ok)
		return GPC_UNSUPPORTED;
	/* Not published, but it is where it was in 3.12.  Without the GIL threads have ranges of versions. */
	if (!words[2] && layout.code_file > VERSION_BEFORE_FILE)
		layout.code_version = (uint16_t)(layout.code_file - VERSION_BEFORE_FILE);
	*ret_layout = layout;
	return GPC_OK;
}

static enum gpc_status find_offsets(
	uint16_t version, const void *runtime, struct gpc_python_layout *ret_layout)
{
	const uint64_t *words = runtime;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		if (maps[i].version == version && words && memcmp(words, "xdebugpy", 8) == 0 &&
			words[1] >> 16 == version)
			return read_offsets(&maps[i], words, ret_layout);
	}
	return GPC_UNSUPPORTED;
}

enum gpc_status gpc_python_layout_find(
	const char *version_text, const void *runtime, struct gpc_python_layout *ret_layout)
{
	uint16_t version = parse_version(version_text);

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version == version) {
			*ret_layout = layouts[i];
			return GPC_OK;
		}
	}
	return find_offsets(version, runtime, ret_layout);
}
