/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text: a label, then lines beside it, and tables that begin in the first column.
 *
 *	HOLDERS  120.00 GiB live by call site, when memory ran out
 *	       bytes   share    blocks  where
 *	   70.00 GiB  58.3 %     1,204  train+0x401100
 *
 * Labels and blanks are written when something follows them.
 */
#include <string.h>

#include "base/bytes.h"
#include "document/document.h"

/* What a name in a tree gets of a line at any depth. */
#define LEAST_NAME 24

/* Bytes of the first n letters of the text. */
static size_t bytes_of(const char *text, size_t n)
{
	size_t i = 0;

	while (text[i] && (n > 0 || ((unsigned char)text[i] & 0xc0) == 0x80))
		n -= ((unsigned char)text[i++] & 0xc0) != 0x80;
	return i;
}

static size_t letters_of(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* ---- a line ---- */

static bool is_full(const struct gpc_document *doc)
{
	return doc->max_lines && doc->n_lines + doc->n_reserved >= doc->max_lines;
}

static void put_blanks(struct gpc_document *doc, size_t n)
{
	doc->column += (unsigned)n;
	doc->n_blanks += (unsigned)n;
}

static void flush_blanks(struct gpc_document *doc)
{
	for (; doc->n_blanks > 0; doc->n_blanks--)
		doc->put(doc->self, " ", 1);
}

static void put_plain(struct gpc_document *doc, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		doc->put(doc->self, text[i] >= ' ' && text[i] <= '~' ? &text[i] : "?", 1);
}

static void put(struct gpc_document *doc, const char *text, size_t size)
{
	size_t room = doc->width > doc->column ? doc->width - doc->column : 0;

	if (doc->is_brief && letters_of(text, size) > room)
		size = bytes_of(text, room);
	if (is_full(doc) || size == 0)
		return;
	flush_blanks(doc);
	if (doc->is_brief)
		put_plain(doc, text, size);
	else
		doc->put(doc->self, text, size);
	doc->column += (unsigned)letters_of(text, size);
}

static void put_ink(struct gpc_document *doc, enum gpc_ink ink)
{
	static const char *const inks[GPC_INK_COUNT] = { "\033[0m", "\033[1m", "\033[2m",
		"\033[1;31m", "\033[7m", "\033[32m", "\033[33m", "\033[36m", "\033[35m" };

	if ((!doc->has_colour && !doc->set_ink) || is_full(doc))
		return;
	flush_blanks(doc);
	if (doc->set_ink)
		doc->set_ink(doc->self, ink);
	else
		doc->put(doc->self, inks[ink], strlen(inks[ink]));
}

static void end_line(struct gpc_document *doc)
{
	if (!is_full(doc)) {
		doc->put(doc->self, "\n", 1);
		doc->n_lines++;
	}
	doc->column = 0;
	doc->n_blanks = 0;
}

/* Begins a line, beside the label or in the first column.  A label that is still to be written comes first. */
static void begin_line(struct gpc_document *doc, bool is_beside)
{
	const char *label = doc->label;

	if (doc->wants_gap && doc->n_lines > 0)
		end_line(doc);
	doc->wants_gap = false;
	doc->label = NULL;
	if (label && *label) {
		put_ink(doc, GPC_INK_BOLD);
		put(doc, label, strlen(label));
		put_ink(doc, GPC_INK_PLAIN);
		if (doc->column >= doc->indent)
			put_blanks(doc, 1);
	}
	if (!is_beside && doc->column > 0)
		end_line(doc);
	if (is_beside && doc->column < doc->indent)
		put_blanks(doc, doc->indent - doc->column);
}

/* A number keeps its unit, and "via" and "<" the name after them. */
static bool may_break(const char *text, size_t at)
{
	return text[at] == ' ' && !gpc_bytes_is_unit(text + at + 1) &&
	       !(at >= 4 && memcmp(text + at - 4, " via", 4) == 0) &&
	       !(at >= 2 && memcmp(text + at - 2, " <", 2) == 0);
}

/*
 * Returns how much of the text fits into `room`: whole words, at least one.  A word that fits
 * on no line is not split, because it may be a path that the user copies; in the brief form, whose lines end, it is.
 */
static size_t take_words(const char *text, size_t room, bool is_brief)
{
	size_t most = bytes_of(text, room);
	size_t blanks = strspn(text, " ");

	if (!text[most])
		return most;
	for (size_t size = most; size > blanks; size--)
		if (may_break(text, size))
			return size;
	return is_brief ? most : blanks + strcspn(text + blanks, " ");
}

/* Writes the text from here on, and on further lines from column `hang` on; the last one is not ended. */
static void wrap(struct gpc_document *doc, const char *text, unsigned hang)
{
	while (*text) {
		size_t room = doc->width > doc->column ? doc->width - doc->column : 1;
		size_t size = take_words(text, room, doc->is_brief);
		size_t plain = size;

		while (plain > 0 && text[plain - 1] == ' ')
			plain--;
		put(doc, text, plain);
		text += size;
		text += strspn(text, " ");
		if (!*text)
			break;
		end_line(doc);
		put_blanks(doc, hang);
	}
}

/* ---- rows ---- */

/* Cuts a name to the room: its end, or with GPC_KEEP_END its beginning. */
static void put_name(struct gpc_document *doc, const char *name, size_t room, unsigned flags)
{
	size_t n = letters_of(name, strlen(name));

	if (n <= room || room < 2) {
		put(doc, name, strlen(name));
	} else if (flags & GPC_KEEP_END) {
		name += bytes_of(name, n - (room - 2));
		put(doc, "..", 2);
		put(doc, name, strlen(name));
	} else {
		put(doc, name, bytes_of(name, room - 2));
		put(doc, "..", 2);
	}
}

static void put_number(struct gpc_document *doc, struct gpc_cell cell, int width)
{
	GPC_TEXT(text, 64);
	size_t room = (size_t)(width < 0 ? -width : width);

	if (cell.kind == GPC_KIND_TIME && doc->local_ns && cell.number)
		cell.number = doc->local_ns(cell.number);
	gpc_cell_write(&text, cell);
	if (width > 0 && text.len < room)
		put_blanks(doc, room - text.len);
	put(doc, text.buf, text.len);
	if (width < 0 && text.len < room)
		put_blanks(doc, room - text.len);
}

static void put_text(
	struct gpc_document *doc, const struct gpc_column *column, const struct gpc_cell *cell)
{
	const char *text = cell->text ? cell->text : "";
	size_t room = (size_t)(column->width < 0 ? -column->width : column->width);
	size_t n = letters_of(text, strlen(text));
	size_t rest = doc->width > doc->column ? doc->width - doc->column : 0;

	if (column->width > 0 && n < room)
		put_blanks(doc, room - n);
	if (!column->width && rest > LEAST_NAME)
		put_blanks(doc,
			2 * cell->depth < rest - LEAST_NAME ? 2 * cell->depth : rest - LEAST_NAME);
	if (column->width > 0)
		put(doc, text, strlen(text));
	else if (column->width)
		put_name(doc, text, room, column->flags);
	else
		put_name(doc, text, doc->width > doc->column ? doc->width - doc->column : 0,
			column->flags);
	if (column->width < 0 && n < room)
		put_blanks(doc, room - n);
}

static bool is_shown(const struct gpc_document *doc, size_t i)
{
	const struct gpc_section *section = doc->levels[doc->n_levels - 1].section;

	return section->columns[i].head && doc->width >= section->columns[i].from;
}

static void put_cell(struct gpc_document *doc, const struct gpc_column *column,
	const struct gpc_cell *cell, enum gpc_ink of_row)
{
	bool has_ink = cell->ink && cell->ink != of_row;

	if (has_ink)
		put_ink(doc, cell->ink);
	if (cell->kind == GPC_KIND_SENTENCE)
		wrap(doc, cell->text ? cell->text : "", doc->column ? doc->column : 2);
	else if (cell->kind == GPC_KIND_NAME)
		put_text(doc, column, cell);
	else
		put_number(doc, *cell, column->width);
	if (has_ink)
		put_ink(doc, of_row);
}

static void put_cells(struct gpc_document *doc, const struct gpc_cell cells[], bool is_beside)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;
	enum gpc_ink ink = cells[0].ink;
	bool is_first = true;

	for (size_t i = 0; i < section->n_columns; i++) {
		const struct gpc_column *column = &section->columns[i];

		if (!is_shown(doc, i))
			continue;
		if (is_first)
			begin_line(doc, is_beside);
		if (is_first && ink)
			put_ink(doc, ink);
		if (!is_first && !(column->flags & GPC_TIGHT))
			put_blanks(doc, column->width > 0 ? 1 : 2);
		is_first = false;
		put_cell(doc, column, &cells[i], ink);
	}
	if (is_first)
		return;
	if (ink)
		put_ink(doc, GPC_INK_PLAIN);
	end_line(doc);
}

static void put_heads(struct gpc_document *doc)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;
	struct gpc_cell heads[GPC_MAX_COLUMNS];
	bool is_there = false;

	for (size_t i = 0; i < section->n_columns; i++) {
		heads[i] = gpc_name(section->columns[i].head);
		is_there |= is_shown(doc, i) && section->columns[i].head[0];
	}
	heads[0].ink = GPC_INK_DIM;
	if (is_there)
		put_cells(doc, heads, false);
}

/* ---- the renderer ---- */

static void text_open(struct gpc_document *doc)
{
	const struct gpc_section *section = gpc_document_level(doc)->section;

	if (!section->label)
		return;
	doc->label = section->label;
	gpc_document_level(doc)->had_gap = doc->wants_gap;
	doc->wants_gap |= !doc->is_brief && !(section->flags & GPC_JOINED);
}

static void text_say(struct gpc_document *doc, enum gpc_ink ink, const char *sentence)
{
	const struct gpc_level *level = gpc_document_level(doc);

	begin_line(doc, level->is_labelled);
	if (ink)
		put_ink(doc, ink);
	if (level->section->flags & GPC_RAW)
		put(doc, sentence, strlen(sentence));
	else
		wrap(doc, sentence,
			level->is_labelled ? doc->indent : 2 + (unsigned)strspn(sentence, " "));
	if (ink)
		put_ink(doc, GPC_INK_PLAIN);
	if (doc->column)
		end_line(doc);
}

static void text_row(struct gpc_document *doc, const struct gpc_cell cells[])
{
	const struct gpc_level *level = gpc_document_level(doc);
	bool is_beside = doc->is_brief || level->section->flags & GPC_BESIDE;

	if (level->n_rows == 0 && !is_beside)
		put_heads(doc);
	put_cells(doc, cells, is_beside && level->is_labelled);
}

static void text_close(struct gpc_document *doc)
{
	const struct gpc_level *level = gpc_document_level(doc);

	if (level->section->label && doc->label)
		doc->wants_gap = level->had_gap;
	if (level->section->label)
		doc->label = NULL;
}

const struct gpc_renderer gpc_render_text = {
	.open = text_open, .say = text_say, .row = text_row, .close = text_close
};
