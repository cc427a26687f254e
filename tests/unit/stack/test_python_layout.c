/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "stack/python_layout.h"

/* _Py_DebugOffsets of 3.13 and 3.14, as far as it is read: one plausible structure a group. */
static void fill(uint64_t *words, uint64_t version, unsigned thread, unsigned frame, unsigned code,
	unsigned object, unsigned bytes, unsigned text)
{
	static const uint64_t thread_words[] = { 336, 0, 8, 16, 72, 152 };
	static const uint64_t frame_words[] = { 88, 8, 0, 56, 80, 70 };
	static const uint64_t code_words[] = { 208, 112, 120, 128, 136, 68, 52, 96, 104, 200 };
	static const uint64_t object_words[] = { 16, 8 };
	static const uint64_t bytes_words[] = { 40, 16, 32 };
	static const uint64_t text_words[] = { 64, 32, 16, 40 };

	memset(words, 0, 100 * sizeof(*words));
	memcpy(words, "xdebugpy", 8);
	words[1] = version;
	memcpy(words + thread, thread_words, sizeof(thread_words));
	memcpy(words + frame, frame_words, sizeof(frame_words));
	memcpy(words + code, code_words, sizeof(code_words));
	memcpy(words + object, object_words, sizeof(object_words));
	memcpy(words + bytes, bytes_words, sizeof(bytes_words));
	memcpy(words + text, text_words, sizeof(text_words));
}

static void check_offsets(const struct gpc_python_layout *layout)
{
	assert_int_equal(layout->chain, GPC_PYTHON_SHIMS);
	assert_int_equal(layout->thread_frame, 72);
	assert_int_equal(layout->thread_id, 152);
	assert_int_equal(layout->cframe_frame, GPC_PYTHON_NO_FIELD);
	assert_int_equal(layout->frame_previous, 8);
	assert_int_equal(layout->frame_owner, 70);
	assert_int_equal(layout->code_name, 128);
	assert_int_equal(layout->code_line_table, 136);
	assert_int_equal(layout->code_first_line, 68);
	assert_int_equal(layout->code_bytes, 200);
	assert_int_equal(layout->code_version, 92);
	assert_int_equal(layout->bytes_data, 32);
	assert_int_equal(layout->text_state, 32);
	assert_int_equal(layout->text_wide_data, 56);
}

TEST(versions_39_to_312_come_from_tables)
{
	struct gpc_python_layout layout;

	assert_int_equal(
		gpc_python_layout_find("3.9.18 (main, Jan  1 2026)", NULL, &layout), GPC_OK);
	assert_int_equal(layout.version, 0x0309);
	assert_int_equal(layout.frame_instruction, 104);
	assert_int_equal(gpc_python_layout_find("3.10.0rc2 (x)", NULL, &layout), GPC_OK);
	assert_int_equal(layout.version, 0x030a);
	assert_int_equal(gpc_python_layout_find("3.11.2 (main", NULL, &layout), GPC_OK);
	assert_int_equal(layout.chain, GPC_PYTHON_ENTRY_FLAGS);
	assert_int_equal(layout.code_version, GPC_PYTHON_NO_FIELD);
	assert_int_equal(gpc_python_layout_find("3.12.1+ (main", NULL, &layout), GPC_OK);
	assert_int_equal(layout.chain, GPC_PYTHON_SHIMS);
	assert_int_equal(layout.code_version, 92);
}

TEST(versions_313_and_314_tell_their_own_offsets)
{
	uint64_t words[100];
	struct gpc_python_layout layout;

	fill(words, 0x030d00f0, 19, 28, 34, 44, 64, 67);
	assert_int_equal(gpc_python_layout_find("3.13.0 (main", words, &layout), GPC_OK);
	assert_int_equal(layout.version, 0x030d);
	assert_int_equal(layout.kind_shift, 2);
	assert_int_equal(layout.other_kind_shift, 0);
	check_offsets(&layout);
	fill(words, 0x030e01f0, 22, 31, 39, 50, 74, 77);
	assert_int_equal(gpc_python_layout_find("3.14.1 (main", words, &layout), GPC_OK);
	assert_int_equal(layout.version, 0x030e);
	assert_int_equal(layout.kind_shift, 2);
	assert_int_equal(layout.other_kind_shift, 16);
	check_offsets(&layout);
	/* Without the GIL. */
	words[2] = 1;
	assert_int_equal(gpc_python_layout_find("3.14.1 (main", words, &layout), GPC_OK);
	assert_int_equal(layout.code_version, GPC_PYTHON_NO_FIELD);
}

TEST(offsets_that_cannot_be_are_refused)
{
	uint64_t words[100];
	struct gpc_python_layout layout = { .version = 7 };

	assert_int_equal(gpc_python_layout_find("3.13.0", NULL, &layout), GPC_UNSUPPORTED);
	fill(words, 0x030d00f0, 19, 28, 34, 44, 64, 67);
	words[0] ^= 1;
	assert_int_equal(gpc_python_layout_find("3.13.0", words, &layout), GPC_UNSUPPORTED);
	fill(words, 0x030c00f0, 19, 28, 34, 44, 64, 67);
	assert_int_equal(gpc_python_layout_find("3.13.0", words, &layout), GPC_UNSUPPORTED);
	/* The words of 3.14 read by the map of 3.13. */
	fill(words, 0x030d00f0, 22, 31, 39, 50, 74, 77);
	assert_int_equal(gpc_python_layout_find("3.13.0", words, &layout), GPC_UNSUPPORTED);
	assert_int_equal(layout.version, 7);
}

TEST(other_versions_are_not_guessed)
{
	static const char *const texts[] = { "", "3", "3.", "3.8.18 (", "3.15.0 (", "2.7.18",
		"4.0.1", "3.11.0a7", "3.12.0b1+", "3.x.1", "PyPy", "3.99999999999.1" };
	struct gpc_python_layout layout;

	for (size_t i = 0; i < N_OF(texts); i++)
		assert_int_equal(gpc_python_layout_find(texts[i], NULL, &layout), GPC_UNSUPPORTED);
}
