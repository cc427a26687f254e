/* SPDX-License-Identifier: Apache-2.0 */
/* A document that is rendered into memory, and a section of functions with their bytes. */
#ifndef GPC_TESTS_UNIT_DOCUMENT_PAGE_H
#define GPC_TESTS_UNIT_DOCUMENT_PAGE_H

#include "base/bytes.h"
#include "document/document.h"
#include "gpucache_format.h"
#include "unit.h"

static char page[8192];

static void page_put(void *self, const char *bytes, size_t n)
{
	strncat(page, bytes, n);
}

static const struct gpc_column page_columns[] = {
	{ "own_bytes", "own", 12, GPC_SUMS },
	{ NULL, "share", 7, GPC_SUMS },
	{ "function", "function" },
};
static const struct gpc_section page_functions = { "functions", "TOP", GPC_COLUMNS(page_columns),
	.n_rows = 2, .n_brief = 1 };

/* A document as text of 60 columns; the test changes what it is about, and begins it. */
static struct gpc_document page_new(const struct gpc_renderer *renderer)
{
	page[0] = '\0';
	return (struct gpc_document){
		.renderer = renderer, .put = page_put, .width = 60, .indent = 9
	};
}

/* A section of one cell. */
static inline void page_tell(
	struct gpc_document *doc, const struct gpc_section *section, struct gpc_cell cell)
{
	gpc_document_open(doc, section);
	gpc_document_row(doc, cell);
	gpc_document_close(doc);
}

static inline void page_row(struct gpc_document *doc, uint64_t bytes, const char *name)
{
	gpc_document_row(doc, gpc_bytes(bytes), gpc_share(bytes, 4 * GPC_MIB), gpc_name(name));
}

/* Four functions of 1 MiB. */
static inline void page_fill(struct gpc_document *doc)
{
	static const char *const names[] = { "main", "step", "load", "save" };

	gpc_document_open(doc, &page_functions);
	gpc_document_say(doc, "GPU %d", 0);
	for (size_t i = 0; i < N_OF(names); i++)
		page_row(doc, GPC_MIB, names[i]);
	gpc_document_close(doc);
}

#endif
