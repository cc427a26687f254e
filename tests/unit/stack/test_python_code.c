/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdbool.h>

#include "stack/python_code.h"

/* Code objects as 3.12 lays them out; what real ones look like is tested in test_python.c. */

static const int code_type, text_type, bytes_type;

struct fake_text {
	uint64_t refs;
	uintptr_t type;
	uint64_t length;
	uint64_t hash;
	uint32_t state;
	uint32_t padding;
	char data[64];
};

struct fake_bytes {
	uint64_t refs;
	uintptr_t type;
	uint64_t size;
	uint64_t hash;
	char data[64];
};

struct fake_code {
	uint64_t words[32];
};

static struct gpc_python_layout layout;
static struct gpc_python_types types;
static struct fake_text name, file;
static struct fake_bytes lines;
static struct fake_code code;

static void set_text(struct fake_text *text, const char *data)
{
	*text = (struct fake_text){
		.type = types.text,
		.length = strlen(data),
		.state = 1u << 2 | 1u << 5 | 1u << 6,
	};
	memcpy(text->data, data, strlen(data));
}

static void set_pointer(uint16_t offset, const void *to)
{
	memcpy((char *)&code + offset, &to, sizeof(to));
}

static void set_first_line(uint32_t line)
{
	memcpy((char *)&code + layout.code_first_line, &line, sizeof(line));
}

static int setup(void **state)
{
	if (gpc_python_layout_find("3.12.1", NULL, &layout) != GPC_OK)
		return -1;
	types = (struct gpc_python_types){ (uintptr_t)&code_type, (uintptr_t)&text_type,
		(uintptr_t)&bytes_type };
	set_text(&name, "Net.grow");
	set_text(&file, "<eval_with_key>.12");
	lines = (struct fake_bytes){ .type = types.bytes, .size = 3, .data = { (char)0x80, 1, 2 } };
	memset(&code, 0, sizeof(code));
	set_pointer(layout.object_type, &code_type);
	set_pointer(layout.code_name, &name);
	set_pointer(layout.code_file, &file);
	set_pointer(layout.code_line_table, &lines);
	set_first_line(41);
	return 0;
}

FIXTURE(setup, NULL);

static uint64_t fingerprint(void)
{
	return gpc_python_code_key(&layout, &types, (uintptr_t)&code).fingerprint;
}

TEST(reading_copies_names_and_points_to_the_table)
{
	struct gpc_python_code_texts texts;
	struct gpc_code read = gpc_python_code_read(&layout, &types, (uintptr_t)&code, &texts);

	assert_int_equal(read.name_size, 8);
	assert_memory_equal(read.name, "Net.grow", 8);
	assert_int_equal(read.file_size, 18);
	assert_memory_equal(read.file, "<eval_with_key>.12", 18);
	assert_int_equal(read.lines_size, 3);
	assert_ptr_equal(read.lines, lines.data);
	assert_int_equal(read.first_line, 41);
	assert_int_equal(read.python_version, 0x030c);
}

TEST(parts_of_the_wrong_type_are_left_out)
{
	struct gpc_python_code_texts texts;
	struct gpc_code read;

	name.type = types.bytes;
	lines.type = types.text;
	set_pointer(layout.code_file, NULL);
	read = gpc_python_code_read(&layout, &types, (uintptr_t)&code, &texts);
	assert_memory_equal(read.name, "?", 1);
	assert_memory_equal(read.file, "?", 1);
	assert_int_equal(read.lines_size, 0);
	(void)fingerprint();
	set_pointer(layout.code_line_table, NULL);
	read = gpc_python_code_read(&layout, &types, (uintptr_t)&code, &texts);
	assert_int_equal(read.lines_size, 0);
	(void)fingerprint();
}

TEST(a_long_line_table_is_cut)
{
	struct gpc_python_code_texts texts;

	lines.size = 1u << 20;
	assert_int_equal(gpc_python_code_read(&layout, &types, (uintptr_t)&code, &texts).lines_size,
		GPUCACHE_MAX_CODE_LINES);
}

TEST(the_fingerprint_tells_reused_memory_from_what_was_there)
{
	uint64_t before = fingerprint();

	assert_int_equal(fingerprint(), before);
	set_text(&file, "<eval_with_key>.13");
	assert_int_not_equal(fingerprint(), before);
	set_text(&file, "<eval_with_key>.12");
	set_text(&name, "Net.grew");
	assert_int_not_equal(fingerprint(), before);
	set_text(&name, "Net.grow");
	lines.data[2] = 3;
	assert_int_not_equal(fingerprint(), before);
	lines.data[2] = 2;
	set_first_line(42);
	assert_int_not_equal(fingerprint(), before);
	set_first_line(41);
	code.words[2] = 17; /* number of instructions */
	assert_int_not_equal(fingerprint(), before);
	code.words[2] = 0;
	assert_int_equal(fingerprint(), before);
}

TEST(what_python_changes_in_a_string_does_not_change_the_fingerprint)
{
	uint64_t before;

	set_text(&name, "go");
	before = fingerprint();
	name.refs = 99;
	name.hash = 4711;
	name.state |= 2; /* interned later */
	assert_int_equal(fingerprint(), before);
}
