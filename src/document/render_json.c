/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, written as it comes: members on lines of their own, rows and flat arrays on one. */
#include <string.h>

#include "document/document.h"
#include "gpucache_format.h"

static void add(struct gpc_document *doc, const char *text)
{
	doc->put(doc->self, text, strlen(text));
}

void gpc_json_put_string(
	void (*put)(void *self, const char *bytes, size_t n), void *self, const char *text)
{
	put(self, "\"", 1);
	while (*text) {
		size_t plain = 0;
		GPC_TEXT(escape, 8);

		while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' &&
			text[plain] != '\\')
			plain++;
		put(self, text, plain);
		text += plain;
		if (!*text)
			break;
		if (*text == '"' || *text == '\\')
			gpc_text_add(&escape, "\\%c", *text);
		else
			gpc_text_add(&escape, "\\u%04x", (unsigned)(unsigned char)*text);
		put(self, escape.buf, escape.len);
		text++;
	}
	put(self, "\"", 1);
}

static void put_string(struct gpc_document *doc, const char *text)
{
	gpc_json_put_string(doc->put, doc->self, text);
}

static void put_time(struct gpc_document *doc, struct gpc_cell cell)
{
	GPC_TEXT(text, 32);

	gpc_cell_write(&text, cell);
	text.buf[strlen("2026-08-09")] = 'T';
	gpc_text_add(&text, "Z");
	put_string(doc, text.buf);
}

static bool is_known(struct gpc_cell cell)
{
	switch (cell.kind) {
	case GPC_KIND_BLANK:
		return false;
	case GPC_KIND_NAME:
	case GPC_KIND_SENTENCE:
		return cell.text && *cell.text;
	case GPC_KIND_TIME:
		return cell.number && cell.number != GPUCACHE_UNKNOWN;
	case GPC_KIND_SHARE:
		return cell.whole && cell.number != GPUCACHE_UNKNOWN;
	case GPC_KIND_BYTES:
	case GPC_KIND_BRIEF:
	case GPC_KIND_CHANGE:
	case GPC_KIND_COUNT:
	case GPC_KIND_NUMBER:
	case GPC_KIND_DURATION:
	case GPC_KIND_TRUTH:
		break;
	}
	return cell.number != GPUCACHE_UNKNOWN;
}

static void add_share(struct gpc_text *text, struct gpc_cell cell)
{
	unsigned n = (unsigned)(10000.0 * (double)cell.number / (double)cell.whole + 0.5);

	gpc_text_add(text, "%u.%04u", n / 10000, n % 10000);
}

static void put_cell(struct gpc_document *doc, struct gpc_cell cell)
{
	GPC_TEXT(text, 32);

	if (!is_known(cell))
		gpc_text_add(&text, "null");
	else if (cell.kind == GPC_KIND_NAME || cell.kind == GPC_KIND_SENTENCE)
		put_string(doc, cell.text);
	else if (cell.kind == GPC_KIND_TIME)
		put_time(doc, cell);
	else if (cell.kind == GPC_KIND_TRUTH)
		gpc_text_add(&text, "%s", cell.number ? "true" : "false");
	else if (cell.kind == GPC_KIND_CHANGE)
		gpc_text_add(&text, "%lld", (long long)(cell.number - cell.whole));
	else if (cell.kind == GPC_KIND_SHARE)
		add_share(&text, cell);
	else
		gpc_text_add(&text, "%llu", (unsigned long long)cell.number);
	add(doc, text.buf);
}

/* Begins a line within the first `n` levels. */
static void begin_line(struct gpc_document *doc, unsigned n)
{
	add(doc, "\n");
	for (unsigned i = 0; i < n; i++)
		if (!(doc->levels[i].section->flags & GPC_MEMBERS))
			add(doc, "  ");
}

static void end_row(struct gpc_document *doc, struct gpc_level *level)
{
	if (level->is_row_open)
		add(doc, " }");
	level->is_row_open = false;
}

/* Begins an item of the array or object: on a line of its own, but for one of a flat array. */
static void begin_item(struct gpc_document *doc, unsigned n_levels)
{
	struct gpc_level *level = &doc->levels[n_levels - 1];
	bool is_flat = level->section->flags & GPC_FLAT;

	end_row(doc, level);
	add(doc, level->n_items++ ? "," : "");
	if (!is_flat)
		begin_line(doc, n_levels);
}

static void put_key(struct gpc_document *doc, const char *key)
{
	put_string(doc, key);
	add(doc, ": ");
}

static void json_begin(struct gpc_document *doc)
{
	add(doc, "{");
}

static void json_open(struct gpc_document *doc)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;
	struct gpc_level *level = gpc_document_level(doc);

	if (section->flags & GPC_MEMBERS) {
		level->n_items = level[-1].n_items;
		return;
	}
	if (section->key && level[-1].is_row_open)
		add(doc, ", ");
	else
		begin_item(doc, doc->n_levels - 1);
	if (section->key)
		put_key(doc, section->key);
	add(doc, section->flags & GPC_OBJECT ? "{" : "[");
}

static void json_member(struct gpc_document *doc, const char *key, struct gpc_cell cell)
{
	begin_item(doc, doc->n_levels);
	put_key(doc, key);
	put_cell(doc, cell);
}

static void json_row(struct gpc_document *doc, const struct gpc_cell cells[])
{
	struct gpc_level *level = gpc_document_level(doc);
	const struct gpc_section *section = level->section;
	const char *gap = "{ ";

	if (section->flags & (GPC_OBJECT | GPC_MEMBERS))
		return;
	if (!(section->flags & GPC_FLAT))
		begin_item(doc, doc->n_levels);
	for (size_t i = 0; i < level->n_cells; i++) {
		if (section->flags & GPC_FLAT) {
			begin_item(doc, doc->n_levels);
		} else if (section->columns[i].key) {
			add(doc, gap);
			put_key(doc, section->columns[i].key);
			gap = ", ";
		} else {
			continue;
		}
		put_cell(doc, cells[i]);
	}
	level->is_row_open = !(section->flags & GPC_FLAT);
}

static void json_close(struct gpc_document *doc)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;
	struct gpc_level *level = gpc_document_level(doc);

	if (section->flags & GPC_MEMBERS) {
		level[-1].n_items = level->n_items;
		return;
	}
	end_row(doc, level);
	if (level->n_items && !(section->flags & GPC_FLAT))
		begin_line(doc, doc->n_levels - 1);
	add(doc, section->flags & GPC_OBJECT ? "}" : "]");
}

static void json_end(struct gpc_document *doc)
{
	add(doc, "\n}\n");
}

const struct gpc_renderer gpc_render_json = { .begin = json_begin,
	.open = json_open,
	.member = json_member,
	.row = json_row,
	.close = json_close,
	.end = json_end,
	.is_json = true };
