/* SPDX-License-Identifier: Apache-2.0 */
#include "document/page.h"

TEST(json_has_every_row_and_no_sums_heads_or_sentences)
{
	struct gpc_document doc = page_new(&gpc_render_json);

	gpc_document_begin(&doc);
	gpc_document_member(&doc, "view", gpc_name("top"));
	page_fill(&doc);
	gpc_document_end(&doc);
	assert_string_equal(page,
		"{\n"
		"  \"view\": \"top\",\n"
		"  \"functions\": [\n"
		"    { \"own_bytes\": 1048576, \"function\": \"main\" },\n"
		"    { \"own_bytes\": 1048576, \"function\": \"step\" },\n"
		"    { \"own_bytes\": 1048576, \"function\": \"load\" },\n"
		"    { \"own_bytes\": 1048576, \"function\": \"save\" }\n"
		"  ]\n"
		"}\n");
}

TEST(a_limit_holds_for_json_and_what_it_leaves_out_has_no_members)
{
	static const struct gpc_column columns[] = { { "frame" } };
	static const struct gpc_section stack = { "stack", NULL, GPC_COLUMNS(columns) };
	struct gpc_document doc = page_new(&gpc_render_json);

	doc.limit = 1;
	gpc_document_begin(&doc);
	gpc_document_open(&doc, &page_functions);
	for (unsigned i = 0; i < 2; i++) {
		page_row(&doc, i, "main");
		page_tell(&doc, &stack, gpc_number(i));
	}
	gpc_document_close(&doc);
	gpc_document_end(&doc);
	assert_string_equal(page,
		"{\n"
		"  \"functions\": [\n"
		"    { \"own_bytes\": 0, \"function\": \"main\", \"stack\": [\n"
		"      { \"frame\": 0 }\n"
		"    ] }\n"
		"  ]\n"
		"}\n");
}

TEST(sections_are_objects_elements_members_and_flat_arrays)
{
	static const struct gpc_section devices = { "devices" };
	static const struct gpc_section device = { .flags = GPC_OBJECT };
	static const struct gpc_section balance = { "balance", .flags = GPC_OBJECT };
	static const struct gpc_section calls = { .label = "CALLS", .flags = GPC_MEMBERS };
	static const struct gpc_column columns[] = { { "stack" }, { "bytes" } };
	static const struct gpc_section flat = { "holders", NULL, GPC_COLUMNS(columns),
		.flags = GPC_FLAT };
	static const struct gpc_section empty = { "empty" };
	struct gpc_document doc = page_new(&gpc_render_json);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &devices);
	gpc_document_open(&doc, &device);
	gpc_document_open(&doc, &balance);
	gpc_document_member(&doc, "live_bytes", gpc_bytes(7));
	gpc_document_close(&doc);
	gpc_document_open(&doc, &calls);
	gpc_document_member(&doc, "n_malloc", gpc_count(8));
	gpc_document_close(&doc);
	gpc_document_open(&doc, &flat);
	gpc_document_row(&doc, gpc_number(1), gpc_bytes(2));
	gpc_document_row(&doc, gpc_number(3), gpc_bytes(4));
	gpc_document_close(&doc);
	gpc_document_open(&doc, &empty);
	gpc_document_close(&doc);
	gpc_document_close(&doc);
	gpc_document_close(&doc);
	gpc_document_end(&doc);
	assert_string_equal(page,
		"{\n"
		"  \"devices\": [\n"
		"    {\n"
		"      \"balance\": {\n"
		"        \"live_bytes\": 7\n"
		"      },\n"
		"      \"n_malloc\": 8,\n"
		"      \"holders\": [1,2,3,4],\n"
		"      \"empty\": []\n"
		"    }\n"
		"  ]\n"
		"}\n");
}

TEST(each_kind_has_its_type)
{
	struct gpc_document doc = page_new(&gpc_render_json);

	gpc_document_begin(&doc);
	gpc_document_member(&doc, "largest", gpc_bytes(UINT64_MAX - 1));
	gpc_document_member(&doc, "change", gpc_change(5, 3));
	gpc_document_member(&doc, "less_one", gpc_signed(-1));
	gpc_document_member(&doc, "share", gpc_share(1, 3));
	gpc_document_member(&doc, "time", gpc_time(UINT64_C(1786291200) * 1000000000));
	gpc_document_member(&doc, "is_it", gpc_truth(true));
	gpc_document_member(&doc, "text", gpc_name("a\"b\\c\n\x01ä"));
	gpc_document_end(&doc);
	assert_string_equal(page,
		"{\n"
		"  \"largest\": 18446744073709551614,\n"
		"  \"change\": -2,\n"
		"  \"less_one\": -1,\n"
		"  \"share\": 0.3333,\n"
		"  \"time\": \"2026-08-09T16:00:00Z\",\n"
		"  \"is_it\": true,\n"
		"  \"text\": \"a\\\"b\\\\c\\u000a\\u0001ä\"\n"
		"}\n");
}

TEST(a_document_within_a_document_is_members_of_its_object)
{
	struct gpc_document doc = page_new(&gpc_render_json);

	gpc_document_begin(&doc);
	gpc_document_open_object(&doc, "summary");
	gpc_document_begin(&doc);
	gpc_document_member(&doc, "view", gpc_name("summary"));
	gpc_document_end(&doc);
	gpc_document_close(&doc);
	gpc_document_end(&doc);
	assert_string_equal(page,
		"{\n"
		"  \"summary\": {\n"
		"    \"view\": \"summary\"\n"
		"  }\n"
		"}\n");
}

TEST(what_is_unknown_is_null)
{
	const struct gpc_cell cells[] = { gpc_blank(), gpc_bytes(GPUCACHE_UNKNOWN), gpc_name(NULL),
		gpc_sentence(""), gpc_time(0), gpc_share(1, 0) };

	for (size_t i = 0; i < N_OF(cells); i++) {
		struct gpc_document doc = page_new(&gpc_render_json);

		gpc_document_begin(&doc);
		gpc_document_member(&doc, "x", cells[i]);
		assert_string_equal(page, "{\n  \"x\": null");
	}
}

TEST(what_is_only_text_is_left_out_with_all_that_is_in_it)
{
	static const struct gpc_section text = { "text", .flags = GPC_TEXT_ONLY };
	struct gpc_document doc = page_new(&gpc_render_json);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &text);
	page_fill(&doc);
	gpc_document_member(&doc, "x", gpc_blank());
	gpc_document_close(&doc);
	gpc_document_end(&doc);
	assert_string_equal(page, "{\n}\n");
}
