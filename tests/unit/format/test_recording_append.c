/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/format/built.h"

TEST(stacks_are_found_by_id_with_native_and_python_frames)
{
	const uint64_t native[] = { 1, 2, 3 };
	const uint64_t python[] = { GPUCACHE_FRAME_PYTHON | 7ull << 32 | 40 };
	struct recording_builder b;
	struct gpc_stack_view stack;
	struct gpc_recording *rec;

	builder_init(&b);
	builder_stack(&b, native, 1, NULL, 0);
	builder_stack(&b, native, 3, python, 1);
	rec = open_built(&b);
	assert_true(gpc_recording_find_stack(rec, 2, &stack));
	assert_int_equal(stack.n_native, 3);
	assert_int_equal(stack.native[2], 3);
	assert_int_equal(stack.n_python, 1);
	assert_int_equal(GPUCACHE_FRAME_CODE(stack.python[0]), 7);
	assert_int_equal(GPUCACHE_FRAME_OFFSET(stack.python[0]), 40);
	assert_false(gpc_recording_find_stack(rec, 0, &stack));
	assert_false(gpc_recording_find_stack(rec, 3, &stack));
	gpc_recording_close(rec);
}

/* Threads may append in another order than they took ids; stacks that found no room leave holes. */
TEST(ids_need_neither_be_in_order_nor_without_holes)
{
	const uint32_t ids[] = { 900, 5, 77, UINT32_MAX, 6 };
	struct recording_builder b;
	struct gpc_stack_view stack;
	struct gpc_recording *rec;

	builder_init(&b);
	for (size_t i = 0; i < N_OF(ids); i++) {
		const uint64_t frame = i + 1000;

		b.n_stacks = ids[i] - 1;
		builder_stack(&b, &frame, 1, NULL, 0);
	}
	rec = open_built(&b);
	for (size_t i = 0; i < N_OF(ids); i++) {
		assert_true(gpc_recording_find_stack(rec, ids[i], &stack));
		assert_int_equal(stack.native[0], i + 1000);
	}
	assert_false(gpc_recording_find_stack(rec, 78, &stack));
	gpc_recording_close(rec);
}

TEST(a_damaged_record_ends_its_region_and_keeps_what_was_before)
{
	const uint64_t frames[] = { 1, 2 };
	/* The size of the second record, as it might be left by whatever broke it. */
	const uint32_t sizes[] = { 0, 8, 23, 41, 4096 * 4, UINT32_MAX };

	for (size_t i = 0; i < N_OF(sizes); i++) {
		struct recording_builder b;
		struct gpc_stack_view stack;
		struct gpc_recording *rec;
		char *body;

		builder_init(&b);
		for (int n = 0; n < 3; n++)
			builder_stack(&b, frames, 2, NULL, 0);
		body = (char *)builder_region(&b, GPUCACHE_REGION_STACKS) +
		       sizeof(struct gpucache_append_head);
		memcpy(body + 40, &sizes[i], sizeof sizes[i]);
		rec = open_built(&b);
		assert_int_equal(rec->n_stacks, 1);
		assert_true(gpc_recording_find_stack(rec, 1, &stack));
		assert_int_equal(rec->n_problems, 1);
		assert_int_equal(rec->problems[0].kind, GPUCACHE_REGION_STACKS);
		gpc_recording_close(rec);
	}
}

TEST(more_frames_than_the_record_has_room_for_are_damage)
{
	const uint64_t frame = 1;
	struct recording_builder b;
	struct gpucache_stack *stack;
	struct gpc_recording *rec;

	builder_init(&b);
	builder_stack(&b, &frame, 1, NULL, 0);
	stack = (void *)((char *)builder_region(&b, GPUCACHE_REGION_STACKS) +
			 sizeof(struct gpucache_append_head));
	stack->n_python = 65535;
	rec = open_built(&b);
	assert_int_equal(rec->n_stacks, 0);
	assert_int_equal(rec->n_problems, 1);
	gpc_recording_close(rec);
}

TEST(a_used_beyond_the_region_is_cut_to_it)
{
	struct recording_builder b;
	struct gpucache_append_head *head;
	struct gpc_recording *rec;
	const char *line;
	size_t size;

	builder_init(&b);
	builder_line(&b, "one");
	head = builder_region(&b, GPUCACHE_REGION_TEXT);
	head->used = UINT64_MAX;
	head->n_dropped = 3;
	rec = open_built(&b);
	assert_int_equal(rec->n_problems, 1);
	assert_true(gpc_recording_read_text(rec, 0, &line, &size));
	assert_int_equal(size, 3);
	assert_false(gpc_recording_read_text(rec, 1, &line, &size));
	assert_int_equal(gpc_recording_dropped(rec, GPUCACHE_REGION_TEXT), 3);
	assert_int_equal(gpc_recording_dropped(rec, GPUCACHE_REGION_BLOCKS), 0);
	gpc_recording_close(rec);
}

TEST(code_objects_give_name_file_and_lines)
{
	struct recording_builder b;
	struct gpc_code_view code;
	struct gpc_recording *rec;

	builder_init(&b);
	builder_code(&b, "forward", "/x/model.py", 0x030c, 12, "table", 5);
	rec = open_built(&b);
	assert_true(gpc_recording_find_code(rec, 1, &code));
	assert_memory_equal(code.name, "forward", code.name_size);
	assert_memory_equal(code.file, "/x/model.py", code.file_size);
	assert_memory_equal(code.lines, "table", code.lines_size);
	assert_int_equal(code.first_line, 12);
	assert_int_equal(code.python_version, 0x030c);
	assert_false(gpc_recording_find_code(rec, 2, &code));
	gpc_recording_close(rec);
}

TEST(a_module_without_the_end_of_its_path_is_damage)
{
	struct recording_builder b;
	struct gpc_module_view module;
	struct gpc_recording *rec;
	char *body;

	builder_init(&b);
	builder_module(&b, "/lib/a.so", 0x1000, 0x2000, 0x1000);
	builder_module(&b, "/lib/b.so", 0x3000, 0x4000, 0x3000);
	body = (char *)builder_region(&b, GPUCACHE_REGION_MODULES) +
	       sizeof(struct gpucache_append_head);
	memset(body + 88 + sizeof(struct gpucache_module), 'x', 16);
	rec = open_built(&b);
	assert_int_equal(rec->n_modules, 1);
	assert_true(gpc_recording_read_module(rec, 0, &module));
	assert_string_equal(module.path, "/lib/a.so");
	assert_int_equal(module.module.end, 0x2000);
	assert_false(gpc_recording_read_module(rec, 1, &module));
	assert_int_equal(rec->n_problems, 1);
	gpc_recording_close(rec);
}

TEST(lines_may_end_in_a_newline_or_a_nul)
{
	struct recording_builder b;
	struct gpc_recording *rec;
	const char *line;
	size_t size;

	builder_init(&b);
	builder_line(&b, "first");
	builder_append(&b, GPUCACHE_REGION_TEXT, "second\0\0third", 13);
	rec = open_built(&b);
	assert_true(gpc_recording_read_text(rec, 1, &line, &size));
	assert_memory_equal(line, "second", size);
	assert_true(gpc_recording_read_text(rec, 2, &line, &size));
	assert_memory_equal(line, "third", size);
	assert_false(gpc_recording_read_text(rec, 3, &line, &size));
	/* In any order. */
	assert_true(gpc_recording_read_text(rec, 0, &line, &size));
	assert_memory_equal(line, "first", size);
	assert_true(gpc_recording_read_text(rec, 2, &line, &size));
	assert_memory_equal(line, "third", size);
	gpc_recording_close(rec);
}

static const char *label(const struct gpc_recording *rec, uint32_t id)
{
	static char buf[8192];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_recording_add_tag(rec, id, &text);
	return buf;
}

TEST(a_tag_is_labelled_with_all_ranges_around_it)
{
	struct recording_builder b;
	struct gpc_recording *rec;
	uint32_t outer;
	uint32_t middle;

	builder_init(&b);
	outer = builder_tag(&b, 0, "epoch");
	middle = builder_tag(&b, outer, "step\t1\x1b[31m");
	(void)builder_tag(&b, middle, "gr\u00f6\u00dfe");
	(void)builder_tag(&b, 0, "");
	b.n_tags = 99; /* names that found no room leave holes */
	(void)builder_tag(&b, 50, "inner");
	rec = open_built(&b);
	assert_int_equal(rec->n_problems, 0);
	assert_int_equal(rec->n_tags, 5);
	assert_string_equal(label(rec, 1), "epoch");
	assert_string_equal(label(rec, 3), "epoch/step?1?[31m/gr\u00f6\u00dfe");
	assert_string_equal(label(rec, 4), "");
	assert_string_equal(label(rec, 100), "tag 50/inner");
	assert_string_equal(label(rec, 77), "tag 77");
	assert_string_equal(label(rec, 0), "");
	gpc_recording_close(rec);
}

TEST(a_label_has_an_end_however_deep_the_ranges_are)
{
	struct recording_builder b;
	struct gpc_recording *rec;

	builder_init(&b);
	for (uint32_t i = 0; i < 200; i++)
		(void)builder_tag(&b, i, "x");
	rec = open_built(&b);
	assert_int_equal(strlen(label(rec, 64)), 127);
	assert_int_equal(strncmp(label(rec, 200), "tag 136/x/x", 11), 0);
	assert_int_equal(strlen(label(rec, 200)), strlen("tag 136/") + 127);
	gpc_recording_close(rec);
}

TEST(a_tag_inside_itself_or_longer_than_its_record_is_damage)
{
	struct gpucache_tag bad = { .size = sizeof bad, .id = 2, .parent = 2 };
	struct recording_builder b;
	struct gpc_recording *rec;

	for (int i = 0; i < 2; i++) {
		builder_init(&b);
		(void)builder_tag(&b, 0, "whole");
		builder_append(&b, GPUCACHE_REGION_TAGS, &bad, sizeof bad);
		bad = (struct gpucache_tag){ .size = sizeof bad, .id = 2, .name_size = 1 };
		rec = open_built(&b);
		assert_int_equal(rec->n_problems, 1);
		assert_int_equal(rec->problems[0].kind, GPUCACHE_REGION_TAGS);
		assert_string_equal(label(rec, 1), "whole");
		assert_string_equal(label(rec, 2), "tag 2");
		gpc_recording_close(rec);
	}
}
