/* SPDX-License-Identifier: Apache-2.0 */
#include "document/page.h"

static const struct gpc_column words[] = { { "text", "" } };

TEST(a_table_has_a_label_heads_its_first_rows_and_the_sums_of_the_others)
{
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	page_fill(&doc);
	gpc_document_end(&doc);
	assert_string_equal(page,
		"TOP      GPU 0\n"
		"         own   share  function\n"
		"    1.00 MiB  25.0 %  main\n"
		"    1.00 MiB  25.0 %  step\n"
		"    2.00 MiB  50.0 %  all others\n");
}

TEST(a_limit_replaces_the_sections_own)
{
	struct gpc_document doc = page_new(&gpc_render_text);

	doc.limit = 4;
	gpc_document_begin(&doc);
	page_fill(&doc);
	assert_non_null(strstr(page, "save"));
	assert_null(strstr(page, "all others"));
}

TEST(what_the_section_does_not_list_counts_for_the_others)
{
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &page_functions);
	page_row(&doc, GPC_MIB, "main");
	gpc_document_others(&doc, gpc_bytes(GPC_GIB), gpc_share(GPC_GIB, 2 * GPC_GIB), gpc_blank());
	gpc_document_close(&doc);
	assert_non_null(strstr(page, "    1.00 GiB  50.0 %  all others\n"));
}

TEST(a_sum_of_which_a_part_is_unknown_is_not_shown)
{
	static const struct gpc_column columns[] = { { NULL, "blocks", 7, GPC_SUMS },
		{ NULL, "who" } };
	static const struct gpc_section section = { NULL, NULL, GPC_COLUMNS(columns), 1 };
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &section);
	gpc_document_row(&doc, gpc_count(1), gpc_name("a"));
	gpc_document_row(&doc, gpc_count(2), gpc_name("b"));
	gpc_document_row(&doc, gpc_count(GPUCACHE_UNKNOWN), gpc_name("c"));
	gpc_document_row(&doc, gpc_count(3), gpc_name("d"));
	gpc_document_close(&doc);
	assert_string_equal(page, " blocks  who\n      1  a\n         all others\n");
}

TEST(an_empty_section_leaves_nothing_and_a_filled_one_stands_apart)
{
	static const struct gpc_section why = { "why", "WHY", GPC_COLUMNS(words),
		.flags = GPC_BESIDE };
	static const struct gpc_section try = { "try", "TRY", GPC_COLUMNS(words),
		.flags = GPC_BESIDE };
	static const struct gpc_section also = { "also", "ALSO", GPC_COLUMNS(words),
		.flags = GPC_BESIDE | GPC_JOINED };
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &why);
	gpc_document_close(&doc);
	page_tell(&doc, &also, gpc_sentence("first"));
	gpc_document_open(&doc, &try);
	gpc_document_row(&doc, gpc_sentence("second"));
	gpc_document_row(&doc, gpc_sentence("third"));
	gpc_document_close(&doc);
	page_tell(&doc, &also, gpc_sentence("fourth"));
	assert_string_equal(page,
		"ALSO     first\n"
		"\n"
		"TRY      second\n"
		"         third\n"
		"ALSO     fourth\n");
}

TEST(a_sentence_is_wrapped_below_itself_and_keeps_numbers_with_their_units)
{
	static const struct gpc_column columns[] = { { "bytes", "", 12 }, { "text", "" } };
	static const struct gpc_section where = { "where", "WHERE", GPC_COLUMNS(columns),
		.flags = GPC_BESIDE };
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &where);
	gpc_document_row(&doc, gpc_bytes(512),
		gpc_sentence("enough is free in total, but none of 1.40 GiB or more"));
	gpc_document_close(&doc);
	assert_string_equal(page,
		"WHERE           512 B  enough is free in total, but none of\n"
		"                       1.40 GiB or more\n");
}

TEST(a_path_is_longer_than_a_line_rather_than_in_two_parts)
{
	static const char path[] =
		"/a/path/of/more/than/sixty/characters/that/the/user/copies/from/here";
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	gpc_document_say(&doc, "see %s there", path);
	assert_string_equal(page,
		"see\n"
		"  /a/path/of/more/than/sixty/characters/that/the/user/copies/from/here\n"
		"  there\n");
}

TEST(a_name_is_cut_by_letters_at_its_end_or_its_beginning)
{
	static const struct gpc_column columns[] = { { "host", "host", -8 },
		{ "range", "range", .flags = GPC_KEEP_END } };
	static const struct gpc_section section = { "x", NULL, GPC_COLUMNS(columns) };
	struct gpc_document doc = page_new(&gpc_render_text);

	doc.width = 20;
	gpc_document_begin(&doc);
	gpc_document_open(&doc, &section);
	gpc_document_row(&doc, gpc_name("näher am Ende"), gpc_name("epoch 1/step 12/forward"));
	gpc_document_row(&doc, gpc_name("büro"), gpc_name("x"));
	gpc_document_close(&doc);
	assert_string_equal(page,
		"host      range\n"
		"näher ..  ../forward\n"
		"büro      x\n");
}

TEST(names_of_a_tree_are_indented_as_far_as_there_is_room)
{
	static const struct gpc_column columns[] = { { "name", "" } };
	static const struct gpc_section tree = { "tree", NULL, GPC_COLUMNS(columns) };
	struct gpc_document doc = page_new(&gpc_render_text);
	struct gpc_cell cell = gpc_name("x");

	doc.width = 30;
	gpc_document_begin(&doc);
	gpc_document_open(&doc, &tree);
	for (cell.depth = 0; cell.depth < 5; cell.depth += 2)
		gpc_document_row(&doc, cell);
	gpc_document_close(&doc);
	assert_string_equal(page, "x\n    x\n      x\n");
}

TEST(a_narrow_page_leaves_columns_out)
{
	static const struct gpc_column columns[] = { { "a", "a", 4 }, { "b", "b", 4, .from = 72 } };
	static const struct gpc_section section = { "x", NULL, GPC_COLUMNS(columns) };
	struct gpc_document doc = page_new(&gpc_render_text);

	gpc_document_begin(&doc);
	gpc_document_open(&doc, &section);
	gpc_document_row(&doc, gpc_number(1), gpc_number(2));
	gpc_document_close(&doc);
	assert_string_equal(page, "   a\n   1\n");
}

TEST(without_colours_the_text_is_the_same)
{
	struct gpc_document doc = page_new(&gpc_render_text);
	struct gpc_cell cell = gpc_name("main");

	doc.has_colour = true;
	cell.ink = GPC_INK_ALARM;
	gpc_document_begin(&doc);
	gpc_document_open(&doc, &page_functions);
	gpc_document_row(&doc, gpc_bytes(1), gpc_share(1, 1), cell);
	gpc_document_close(&doc);
	assert_string_equal(page,
		"\033[1mTOP\033[0m\n"
		"\033[2m         own   share  function\033[0m\n"
		"         1 B 100.0 %  \033[1;31mmain\033[0m\n");
}

TEST(times_are_local_if_the_page_knows_how)
{
	struct gpc_document doc = page_new(&gpc_render_text);
	static const struct gpc_section section = { "x", NULL, GPC_COLUMNS(words) };

	gpc_document_begin(&doc);
	page_tell(&doc, &section, gpc_time(UINT64_C(1786291200) * 1000000000));
	assert_string_equal(page, "2026-08-09 16:00:00\n");
}

/* ---- the brief form ---- */

static struct gpc_document page_brief(unsigned width, unsigned max_lines)
{
	struct gpc_document doc = page_new(&gpc_render_text);

	doc.is_brief = true;
	doc.indent = 7;
	doc.width = width;
	doc.max_lines = max_lines;
	gpc_document_begin(&doc);
	return doc;
}

TEST(the_brief_form_has_rows_beside_labels_and_no_heads_gaps_or_sums)
{
	struct gpc_document doc = page_brief(60, 25);

	page_fill(&doc);
	assert_string_equal(page, "TOP    GPU 0\n           1.00 MiB  25.0 %  main\n");
}

TEST(the_brief_form_leaves_out_sections_without_brief_rows)
{
	static const struct gpc_section setup = { "setup", "SETUP", GPC_COLUMNS(words) };
	struct gpc_document doc = page_brief(60, 25);

	gpc_document_open(&doc, &setup);
	page_fill(&doc);
	gpc_document_say(&doc, "not here");
	gpc_document_row(&doc, gpc_sentence("nor here"));
	gpc_document_close(&doc);
	assert_string_equal(page, "");
}

TEST(the_brief_form_ends_with_its_lines_and_keeps_one_for_what_comes_last)
{
	static const struct gpc_section why = { "why", "WHY", GPC_COLUMNS(words), .n_brief = 1 };
	static const struct gpc_section full = { "full", "FULL", GPC_COLUMNS(words), .n_brief = 1 };
	struct gpc_document doc = page_brief(12, 3);

	doc.n_reserved = 1;
	page_tell(&doc, &why, gpc_sentence("one two three four"));
	doc.n_reserved = 0;
	page_tell(&doc, &full, gpc_sentence("last"));
	assert_string_equal(page,
		"WHY    one\n"
		"       two\n"
		"FULL   last\n");
}

TEST(the_brief_form_is_ascii_and_no_line_is_too_long)
{
	static const struct gpc_section why = { "why", "WHY", GPC_COLUMNS(words), .n_brief = 1 };
	struct gpc_document doc = page_brief(14, 9);

	page_tell(&doc, &why, gpc_sentence("a\tb abcdefghijk"));
	assert_string_equal(page,
		"WHY    a?b\n"
		"       abcdefg\n"
		"       hijk\n");
}
