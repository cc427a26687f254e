/* SPDX-License-Identifier: Apache-2.0 */
/* What renderers have in common: which sections and rows are shown, and the sums of the rows that are not. */
#include "document/document.h"

#include <string.h>

#include "base/check.h"
#include "base/saturating.h"
#include "gpucache_format.h"

#define SENTENCE 1024

struct gpc_level *gpc_document_level(struct gpc_document *doc)
{
	return &doc->levels[doc->n_levels - 1];
}

bool gpc_document_is_whole(const struct gpc_document *doc)
{
	return doc->renderer->is_json;
}

void gpc_document_begin(struct gpc_document *doc)
{
	static const struct gpc_section root = { .flags = GPC_OBJECT };

	if (doc->n_levels) {
		doc->n_within++;
		return;
	}
	doc->levels[0] = (struct gpc_level){ .section = &root };
	doc->n_levels = 1;
	doc->n_lines = 0;
	if (doc->renderer->begin)
		doc->renderer->begin(doc);
}

static bool is_hidden(const struct gpc_document *doc, const struct gpc_section *section)
{
	if (doc->renderer->is_json)
		return section->flags & GPC_TEXT_ONLY;
	return section->flags & GPC_JSON_ONLY || (doc->is_brief && !section->n_brief);
}

void gpc_document_open(struct gpc_document *doc, const struct gpc_section *section)
{
	bool is_labelled = section->label ||
			   (gpc_document_level(doc)->is_labelled && section->flags & GPC_BESIDE);
	bool is_of_row = gpc_document_level(doc)->is_row_hidden && section->key;

	GPC_CHECK(section->n_columns <= GPC_MAX_COLUMNS);
	if (doc->n_hidden || is_hidden(doc, section) || is_of_row ||
		doc->n_levels == GPC_MAX_DEPTH) {
		doc->n_hidden++;
		return;
	}
	doc->levels[doc->n_levels++] =
		(struct gpc_level){ .section = section, .is_labelled = is_labelled };
	if (section->n_rows) {
		memset(doc->others, 0, sizeof doc->others);
		doc->has_others = false;
	}
	doc->renderer->open(doc);
}

/* 0: every row. */
static unsigned limit_of(struct gpc_document *doc)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;

	if (doc->is_brief)
		return section->n_brief;
	if (!section->n_rows || doc->limit)
		return section->n_rows ? doc->limit : 0;
	return gpc_document_is_whole(doc) ? 0 : section->n_rows;
}

static void add_others(struct gpc_document *doc, const struct gpc_cell cells[])
{
	const struct gpc_section *section = gpc_document_level(doc)->section;

	for (size_t i = 0; i < section->n_columns; i++) {
		struct gpc_cell sum = cells[i];

		if (!(section->columns[i].flags & GPC_SUMS))
			continue;
		if (!sum.kind || doc->others[i].number == GPUCACHE_UNKNOWN)
			sum.number = GPUCACHE_UNKNOWN;
		sum.number = gpc_bytes_add(doc->others[i].number, sum.number);
		if (sum.kind == GPC_KIND_CHANGE)
			sum.whole = gpc_bytes_add(doc->others[i].whole, sum.whole);
		doc->others[i] = sum;
	}
	doc->has_others = true;
}

void gpc_document_others_of(struct gpc_document *doc, const struct gpc_cell cells[], size_t n)
{
	struct gpc_cell all[GPC_MAX_COLUMNS] = { 0 };

	memcpy(all, cells, (n < GPC_MAX_COLUMNS ? n : GPC_MAX_COLUMNS) * sizeof *all);
	if (!doc->n_hidden)
		add_others(doc, all);
}

void gpc_document_row_of(struct gpc_document *doc, const struct gpc_cell cells[], size_t n)
{
	struct gpc_level *level = gpc_document_level(doc);
	struct gpc_cell all[GPC_MAX_COLUMNS] = { 0 };
	unsigned limit;

	if (doc->n_hidden)
		return;
	/* In every variant: a cell too few would move the others under wrong heads. */
	if (n != level->section->n_columns && level->section->n_columns)
		__builtin_trap();
	level->n_cells = n;
	memcpy(all, cells, (n < GPC_MAX_COLUMNS ? n : GPC_MAX_COLUMNS) * sizeof *all);
	limit = limit_of(doc);
	level->is_row_hidden = limit && level->n_rows >= limit;
	if (level->is_row_hidden)
		add_others(doc, all);
	else
		doc->renderer->row(doc, all);
	level->n_rows++;
}

void gpc_document_member(struct gpc_document *doc, const char *key, struct gpc_cell cell)
{
	if (!doc->n_hidden && doc->renderer->member)
		doc->renderer->member(doc, key, cell);
}

static void say(struct gpc_document *doc, enum gpc_ink ink, const char *format, va_list args)
{
	GPC_TEXT(text, SENTENCE);

	gpc_text_vadd(&text, format, args);
	if (!doc->n_hidden && doc->renderer->say)
		doc->renderer->say(doc, ink, text.buf);
}

void gpc_document_say(struct gpc_document *doc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(doc, GPC_INK_PLAIN, format, args);
	va_end(args);
}

void gpc_document_shout(struct gpc_document *doc, enum gpc_ink ink, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(doc, ink, format, args);
	va_end(args);
}

void gpc_document_fact(struct gpc_document *doc, struct gpc_cell cell, const char *format, ...)
{
	GPC_TEXT(text, SENTENCE);
	va_list args;

	va_start(args, format);
	gpc_text_vadd(&text, format, args);
	va_end(args);
	gpc_document_row(doc, cell, gpc_sentence(text.buf));
}

void gpc_document_gap(struct gpc_document *doc)
{
	doc->wants_gap |= !doc->n_hidden && !doc->is_brief;
}

static void show_others(struct gpc_document *doc)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;
	bool is_named = false;

	for (size_t i = 0; i < section->n_columns && !is_named; i++)
		if (section->columns[i].width <= 0 && section->columns[i].head) {
			doc->others[i] = gpc_name("all others");
			is_named = true;
		}
	doc->renderer->row(doc, doc->others);
	doc->has_others = false;
}

void gpc_document_close(struct gpc_document *doc)
{
	if (doc->n_hidden) {
		doc->n_hidden--;
		return;
	}
	if (doc->has_others && gpc_document_level(doc)->section->n_rows && !doc->is_brief &&
		!gpc_document_is_whole(doc))
		show_others(doc);
	doc->renderer->close(doc);
	doc->n_levels--;
}

void gpc_document_end(struct gpc_document *doc)
{
	if (doc->n_within) {
		doc->n_within--;
		return;
	}
	if (doc->renderer->end)
		doc->renderer->end(doc);
	doc->n_levels = 0;
}
