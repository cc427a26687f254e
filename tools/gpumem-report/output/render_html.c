/* SPDX-License-Identifier: Apache-2.0 */
/* HTML, written as it comes: a table begins at a section's first row, and ends before a sentence or a section within. */
#include "tools/gpumem-report/output/render_html.h"

#include <string.h>

static const char before_title[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"img-src data:; style-src 'unsafe-inline'\">\n"
	"<link rel=\"icon\" href=\"data:,\">\n<title>";

static const char after_title[] =
	"</title>\n<style>\n"
	":root { background: light-dark(#f4f5f7, #12151b); color: light-dark(#1c2330, #e5e9f0); }\n"
	"body { max-width: 1100px; margin: 0 auto; padding: 12px 20px; "
	"font: 14px/1.45 system-ui, \"DejaVu Sans\", sans-serif; }\n"
	"h1 { font-size: 18px; margin: 4px 0; }\n"
	"body > section { background: light-dark(#fff, #1b2029); border: 1px solid "
	"light-dark(#dde1e7, #303846); border-radius: 8px; padding: 10px 14px; margin: 12px 0; "
	"overflow-x: auto; }\n"
	"h2 { font-size: 14px; margin: 0 0 4px; } section section { margin-top: 14px; } "
	"p { margin: 2px 0; }\n"
	"h1, h2, p, td:last-child { overflow-wrap: break-word; } .raw { white-space: pre-wrap; }\n"
	"td:not(:last-child) { white-space: nowrap; }\n"
	"table { border-collapse: collapse; margin: 6px 0; font-variant-numeric: tabular-nums; }\n"
	"th, td { padding: 3px 10px; text-align: left; vertical-align: top; "
	"border-bottom: 1px solid #8884; }\n"
	"td:last-child { min-width: 12em; } .n:last-child { min-width: 0; }\n"
	"th { opacity: .7; } .n { text-align: right; white-space: nowrap; }\n"
	".alarm { color: light-dark(#c62828, #ff7b72); } .good { color: light-dark(#23784b, "
	"#63c08f); }\n"
	"</style>\n</head>\n<body>\n";

static void put(struct gpc_document *doc, const char *text)
{
	doc->put(doc->self, text, strlen(text));
}

static void put_text(struct gpc_document *doc, const char *text)
{
	while (*text) {
		size_t plain = strcspn(text, "&<>\"");

		doc->put(doc->self, text, plain);
		text += plain;
		if (!*text)
			break;
		put(doc, *text == '&'   ? "&amp;"
			 : *text == '<' ? "&lt;"
			 : *text == '>' ? "&gt;"
					: "&quot;");
		text++;
	}
}

/* The tag, with the classes of what it holds. */
static void put_tag(struct gpc_document *doc, const char *tag, const char *class, enum gpc_ink ink)
{
	const char *colour = ink == GPC_INK_ALARM ? "alarm" : ink == GPC_INK_GREEN ? "good" : "";
	GPC_TEXT(text, 64);

	gpc_text_add(&text, "<%s", tag);
	if (*class || *colour)
		gpc_text_add(
			&text, " class=\"%s%s%s\"", class, *class && *colour ? " " : "", colour);
	gpc_text_add(&text, ">");
	put(doc, text.buf);
}

static void put_cell(
	struct gpc_document *doc, const struct gpc_column *column, struct gpc_cell cell)
{
	GPC_TEXT(text, 64);

	put_tag(doc, "td", column->width > 0 ? "n" : "", cell.ink);
	if (cell.kind == GPC_KIND_NAME || cell.kind == GPC_KIND_SENTENCE) {
		put_text(doc, cell.text ? cell.text : "");
	} else {
		if (cell.kind == GPC_KIND_TIME && doc->local_ns && cell.number)
			cell.number = doc->local_ns(cell.number);
		gpc_cell_write(&text, cell);
		put_text(doc, text.buf);
	}
	put(doc, "</td>");
}

static void put_heads(struct gpc_document *doc, const struct gpc_section *section)
{
	bool is_there = false;

	for (size_t i = 0; i < section->n_columns; i++)
		is_there |= section->columns[i].head && section->columns[i].head[0];
	if (!is_there || section->flags & GPC_BESIDE)
		return;
	put(doc, "<tr>");
	for (size_t i = 0; i < section->n_columns; i++) {
		if (!section->columns[i].head)
			continue;
		put_tag(doc, "th", section->columns[i].width > 0 ? "n" : "", GPC_INK_PLAIN);
		put_text(doc, section->columns[i].head);
		put(doc, "</th>");
	}
	put(doc, "</tr>\n");
}

static void end_table(struct gpc_document *doc, struct gpc_level *level)
{
	if (level->is_row_open)
		put(doc, "</table>\n");
	level->is_row_open = false;
}

/* Begins the sections in progress that nothing was written of: what is empty has no label.  n_items: it has begun. */
static void put_labels(struct gpc_document *doc)
{
	for (unsigned i = 0; i < doc->n_levels; i++) {
		struct gpc_level *level = &doc->levels[i];

		if (!level->section->label || level->n_items)
			continue;
		put(doc, "<section>\n<h2>");
		put_text(doc, level->section->label);
		put(doc, "</h2>\n");
		level->n_items = 1;
	}
}

/* ---- the renderer ---- */

static void html_begin(struct gpc_document *doc)
{
	const char *title = doc->title ? doc->title : "GPU memory";

	put(doc, before_title);
	put_text(doc, title);
	put(doc, after_title);
	put(doc, "<h1>");
	put_text(doc, title);
	put(doc, "</h1>\n");
}

static void html_open(struct gpc_document *doc)
{
	end_table(doc, &doc->levels[doc->n_levels - 2]);
}

static void html_say(struct gpc_document *doc, enum gpc_ink ink, const char *sentence)
{
	struct gpc_level *level = gpc_document_level(doc);

	end_table(doc, level);
	put_labels(doc);
	put_tag(doc, "p", level->section->flags & GPC_RAW ? "raw" : "", ink);
	put_text(doc, sentence);
	put(doc, "</p>\n");
}

static void html_row(struct gpc_document *doc, const struct gpc_cell cells[])
{
	struct gpc_level *level = gpc_document_level(doc);
	const struct gpc_section *section = level->section;

	if (!level->is_row_open) {
		put_labels(doc);
		put(doc, "<table>\n");
		put_heads(doc, section);
		level->is_row_open = true;
	}
	put(doc, "<tr>");
	for (size_t i = 0; i < section->n_columns; i++)
		if (section->columns[i].head)
			put_cell(doc, &section->columns[i], cells[i]);
	put(doc, "</tr>\n");
}

static void html_close(struct gpc_document *doc)
{
	struct gpc_level *level = gpc_document_level(doc);

	end_table(doc, level);
	if (level->n_items)
		put(doc, "</section>\n");
}

static void html_end(struct gpc_document *doc)
{
	put(doc, "</body>\n</html>\n");
}

const struct gpc_renderer gpc_render_html = { .begin = html_begin,
	.open = html_open,
	.say = html_say,
	.row = html_row,
	.close = html_close,
	.end = html_end };
