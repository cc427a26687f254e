/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document: what a view has to say, as sections of typed rows, told once and rendered as text or as JSON.
 *
 *	static const struct gpc_column columns[] = {
 *		{ "own_bytes", "own", 12, GPC_SUMS },       key in JSON, head and width in text
 *		{ NULL, "share", 7, GPC_SUMS },             only in text
 *		{ "function", "function" },                 the rest of the line
 *	};
 *	static const struct gpc_section top = { "functions", "TOP", GPC_COLUMNS(columns), .n_rows = 12 };
 *
 *	gpc_document_open(doc, &top);
 *	gpc_document_say(doc, "GPU %d", ordinal);           TOP      GPU 0
 *	gpc_document_row(doc, gpc_bytes(own),                        own   share  function
 *		gpc_share(own, all), gpc_name(name));         700.00 MiB  57.0 %  step
 *	gpc_document_close(doc);
 *
 * Sections nest.  Within an array, a section with a key is a member of the last row, and one without is an element.
 * Nothing is stored; each call goes straight to the renderer.
 *
 * Invariants
 *   1 JSON has every row and every column with a key, numbers exactly; text has the first rows, and in one more, "all
 *     others", the sums of those that it leaves out.
 *   2 A quantity is written by gpc_cell_write and nothing else.  Text never parts a number from its unit.
 *   3 An unknown number (GPUCACHE_UNKNOWN) is null in JSON; in text bytes are "unknown", and all else is left out.
 *   4 The brief form has at most max_lines lines of at most `width` printable ASCII characters, and no colour.
 *
 * Threads   One.
 * Failure   None: `put` gets every byte, and decides what to do if it cannot write.
 * Limits    GPC_MAX_COLUMNS columns, GPC_MAX_DEPTH sections in one another.  Freestanding: no malloc, no stdio, no
 *           locale.  Text is written as it comes: whoever adds text of others has cleaned it (base/text.h).
 */
#ifndef GPC_DOCUMENT_DOCUMENT_H
#define GPC_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "gpucache_format.h"

#define GPC_MAX_COLUMNS 32u
#define GPC_MAX_DEPTH   12u

/* ---- what a view says ---- */

enum gpc_kind {
	GPC_KIND_BLANK, /* nothing; null */
	GPC_KIND_BYTES,
	GPC_KIND_BRIEF,  /* in five columns, for a screen that has only such numbers */
	GPC_KIND_CHANGE, /* of bytes, with a sign */
	GPC_KIND_COUNT,
	GPC_KIND_NUMBER,   /* that names something: no thousands */
	GPC_KIND_SHARE,    /* of number in `whole` */
	GPC_KIND_DURATION, /* ns */
	GPC_KIND_TIME,     /* ns since 1970 */
	GPC_KIND_TRUTH,
	GPC_KIND_NAME,     /* text is cut to its column */
	GPC_KIND_SENTENCE, /* text is wrapped within its column, the last one */
};

enum gpc_ink {
	GPC_INK_PLAIN,
	GPC_INK_BOLD,
	GPC_INK_DIM,
	GPC_INK_ALARM,
	GPC_INK_CHOSEN, /* the row of a cursor */
	GPC_INK_GREEN,
	GPC_INK_YELLOW,
	GPC_INK_CYAN,
	GPC_INK_MAGENTA,
	GPC_INK_COUNT,
};

struct gpc_cell {
	enum gpc_kind kind : 8;
	enum gpc_ink ink : 8; /* that of the first cell is its row's */
	unsigned depth : 16;  /* of a name in a tree */
	uint64_t number;
	uint64_t whole;
	const char *text; /* NULL or empty: null in JSON */
};

static inline struct gpc_cell gpc_blank(void)
{
	return (struct gpc_cell){ 0 };
}

#define GPC_CELL_OF(name, type, what, member)                                        \
	static inline struct gpc_cell gpc_##name(type value)                         \
	{                                                                            \
		return (struct gpc_cell){ .kind = GPC_KIND_##what, member = value }; \
	}
GPC_CELL_OF(bytes, uint64_t, BYTES, .number)
GPC_CELL_OF(brief, uint64_t, BRIEF, .number)
GPC_CELL_OF(count, uint64_t, COUNT, .number)
GPC_CELL_OF(number, uint64_t, NUMBER, .number)
GPC_CELL_OF(duration, uint64_t, DURATION, .number)
GPC_CELL_OF(time, uint64_t, TIME, .number)
GPC_CELL_OF(truth, bool, TRUTH, .number)
GPC_CELL_OF(name, const char *, NAME, .text)
GPC_CELL_OF(sentence, const char *, SENTENCE, .text)
#undef GPC_CELL_OF

static inline struct gpc_cell gpc_share(uint64_t part, uint64_t whole)
{
	return (struct gpc_cell){ .kind = GPC_KIND_SHARE, .number = part, .whole = whole };
}

/* From `before` to `after`. */
static inline struct gpc_cell gpc_change(uint64_t before, uint64_t after)
{
	return (struct gpc_cell){ .kind = GPC_KIND_CHANGE, .number = after, .whole = before };
}

static inline struct gpc_cell gpc_signed(int64_t change)
{
	return change < 0 ? gpc_change(-(uint64_t)change, 0) : gpc_change(0, (uint64_t)change);
}

/* For cells: a number that is unknown where it is 0, and one that is where it is negative. */
static inline uint64_t gpc_unless_zero(uint64_t n)
{
	return n ? n : GPUCACHE_UNKNOWN;
}

static inline uint64_t gpc_unless_negative(int64_t n)
{
	return n < 0 ? GPUCACHE_UNKNOWN : (uint64_t)n;
}

/* Of a column.  SUMS: "all others" has its sum, or nothing if a cell of it is unknown. */
#define GPC_SUMS     0x1u
#define GPC_KEEP_END 0x2u /* a long name loses its beginning */
#define GPC_TIGHT    0x4u /* without a gap before it */

struct gpc_column {
	const char *key;  /* in JSON; NULL: only in text */
	const char *head; /* in text; NULL: only in JSON; "" for a column without */
	/* As printf's: negative aligns left, and cuts; 0: the rest of the line. */
	int width;
	unsigned flags;
	unsigned from; /* narrower text leaves the column out */
};

#define GPC_COLUMNS(columns) columns, sizeof(columns) / sizeof(columns)[0]

/* Of a section.  In JSON it is an array of rows, unless it is ... */
#define GPC_OBJECT    0x01u /* an object: it has members, and its rows are only in text */
#define GPC_MEMBERS   0x02u /* part of the object around it */
#define GPC_FLAT      0x04u /* an array of cells */
#define GPC_BESIDE    0x08u /* in text, rows stand beside the label */
#define GPC_JOINED    0x10u /* in text, no empty line above */
#define GPC_JSON_ONLY 0x20u
#define GPC_TEXT_ONLY 0x40u
#define GPC_RAW       0x80u /* in text, sentences are not wrapped */

struct gpc_section {
	const char *key;
	const char *label; /* NULL: lines begin in the first column */
	const struct gpc_column *columns;
	size_t n_columns;
	unsigned n_rows;  /* in text; 0: all */
	unsigned n_brief; /* rows in the brief form; 0: left out there */
	unsigned flags;
};

struct gpc_document;

/* Within a document that has begun, the members of a further one are members of the object in progress. */
void gpc_document_begin(struct gpc_document *doc);
/* The section must live until gpc_document_close. */
void gpc_document_open(struct gpc_document *doc, const struct gpc_section *section);

/*
 * Open an object, and a flat array, that only JSON has, and sentences beside a label, which only text has.  To be closed
 * in the same block.  A flat array needs no columns.
 */
#define gpc_document_open_object(doc, name) \
	gpc_document_open(                  \
		doc, &(const struct gpc_section){ name, .flags = GPC_OBJECT | GPC_JSON_ONLY })
#define gpc_document_open_flat(doc, name) \
	gpc_document_open(                \
		doc, &(const struct gpc_section){ name, .flags = GPC_FLAT | GPC_JSON_ONLY })

#define gpc_document_open_text(doc, name) \
	gpc_document_open(doc, &(const struct gpc_section){ NULL, name, .flags = GPC_TEXT_ONLY })

/* A row, a cell for each column of the section. */
#define gpc_document_row(doc, ...)                                         \
	gpc_document_row_of(doc, (const struct gpc_cell[]){ __VA_ARGS__ }, \
		sizeof((const struct gpc_cell[]){ __VA_ARGS__ }) / sizeof(struct gpc_cell))
void gpc_document_row_of(struct gpc_document *doc, const struct gpc_cell cells[], size_t n);

/* Adds the cells to the row "all others", which follows the section's last row; JSON does not have them. */
void gpc_document_others_of(struct gpc_document *doc, const struct gpc_cell cells[], size_t n);
#define gpc_document_others(doc, ...)                                         \
	gpc_document_others_of(doc, (const struct gpc_cell[]){ __VA_ARGS__ }, \
		sizeof((const struct gpc_cell[]){ __VA_ARGS__ }) / sizeof(struct gpc_cell))

/* A member of the object in progress, only in JSON. */
void gpc_document_member(struct gpc_document *doc, const char *key, struct gpc_cell cell);

/* A row of a cell and a sentence, of at most 1 KiB. */
void gpc_document_fact(struct gpc_document *doc, struct gpc_cell cell, const char *format, ...)
	__attribute__((format(__printf__, 3, 4)));

/* A line of text, at most 1 KiB; wrapped.  JSON does not have it. */
void gpc_document_say(struct gpc_document *doc, const char *format, ...)
	__attribute__((format(__printf__, 2, 3)));
void gpc_document_shout(struct gpc_document *doc, enum gpc_ink ink, const char *format, ...)
	__attribute__((format(__printf__, 3, 4)));

/* In text, an empty line above the next line. */
void gpc_document_gap(struct gpc_document *doc);

void gpc_document_close(struct gpc_document *doc);
void gpc_document_end(struct gpc_document *doc);

/* True if every row is wanted, as in JSON; a view that chooses rows asks for it. */
bool gpc_document_is_whole(const struct gpc_document *doc);

/* Appends the quantity as all text has it: "1.50 GiB", "1,024", "12 min 03 s", "99.6 %". */
void gpc_cell_write(struct gpc_text *text, struct gpc_cell cell);

/* ---- who renders it ---- */

/* begin, member, say and end may be NULL. */
struct gpc_renderer {
	void (*begin)(struct gpc_document *doc);
	void (*open)(struct gpc_document *doc);
	void (*member)(struct gpc_document *doc, const char *key, struct gpc_cell cell);
	void (*say)(struct gpc_document *doc, enum gpc_ink ink, const char *sentence);
	void (*row)(struct gpc_document *doc, const struct gpc_cell cells[]);
	void (*close)(struct gpc_document *doc);
	void (*end)(struct gpc_document *doc);
	bool is_json;
};

extern const struct gpc_renderer gpc_render_text;
extern const struct gpc_renderer gpc_render_json;

struct gpc_level {
	const struct gpc_section *section;
	uint64_t n_rows;
	size_t n_cells;     /* of the last row */
	uint64_t n_items;   /* in JSON, of the array or object; in HTML, of its labels */
	bool is_row_open;   /* in JSON, for sections that are its members; in HTML, its table */
	bool is_row_hidden; /* the last one */
	bool is_labelled;
	bool had_gap; /* before it was opened */
};

struct gpc_document {
	const struct gpc_renderer *renderer;
	void (*put)(void *self, const char *bytes, size_t n);
	void *self;
	unsigned limit;    /* rows of a table; 0: each section's own */
	const char *title; /* of HTML, read when the document begins; NULL: none */

	/* of text */
	uint64_t (*local_ns)(uint64_t realtime_ns); /* NULL: times are in UTC */
	unsigned width;
	unsigned indent; /* of what stands beside labels */
	bool has_colour;
	void (*set_ink)(
		void *self, enum gpc_ink ink); /* NULL: by escape sequences, if has_colour */
	bool is_brief;
	unsigned max_lines;  /* 0: any number */
	unsigned n_reserved; /* of them, for what is still to come */

	/* of the document and the renderer, zero at first */
	struct gpc_level levels[GPC_MAX_DEPTH];
	unsigned n_levels;
	unsigned n_within; /* documents that began within this one */
	unsigned n_hidden; /* sections in one another that are left out */
	struct gpc_cell others[GPC_MAX_COLUMNS];
	bool has_others;
	const char *label; /* not yet written */
	bool wants_gap;
	unsigned n_lines;
	unsigned column;
	unsigned n_blanks; /* of them, not yet written: a line has none at its end */
};

/* Writes the text as a JSON string. */
void gpc_json_put_string(
	void (*put)(void *self, const char *bytes, size_t n), void *self, const char *text);

/* For renderers: the section in progress. */
struct gpc_level *gpc_document_level(struct gpc_document *doc);

#endif
