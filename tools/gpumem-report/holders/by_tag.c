/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern of a label has a star for each number in it; labels of the same pattern become one row. */
#include "tools/gpumem-report/holders/by_tag.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "tools/gpumem-report/holders/groups.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/lib/map.h"

/* At least this many names that differ only in numbers share a row. */
#define LEAST_FOLDED 3

static size_t add_live(struct gpc_row *rows, const struct gpc_report *report, int32_t ordinal)
{
	struct gpucache_block block;
	size_t n = 0;

	for (uint64_t i = 0; gpc_report_next_live(report, ordinal, &i, &block);)
		if (gpc_recording_can_leak(&block))
			rows[n++] = (struct gpc_row){
				.id = block.tag, .bytes = block.requested, .n_blocks = 1
			};
	return n;
}

static size_t add_oom(struct gpc_row *rows, const struct gpucache_oom *oom)
{
	for (size_t i = 0; i < oom->n_tags; i++)
		rows[i] = (struct gpc_row){
			.id = oom->tags[i].tag,
			.bytes = oom->tags[i].bytes,
			.n_blocks = oom->tags[i].n_blocks,
		};
	return oom->n_tags;
}

/* Replaces numbers by stars: "step 12" becomes "step *". */
static char *pattern_of(const char *label)
{
	char *pattern = gpc_copy(label);
	char *to = pattern;

	for (const char *from = label; *from;) {
		size_t digits = strspn(from, "0123456789");

		*to++ = digits ? '*' : *from;
		from += digits ? digits : 1;
	}
	*to = '\0';
	return pattern;
}

/*
 * Adds found[0 .. n), of which each has the bytes of one tag.  is_folded: LEAST_FOLDED or more labels of one pattern
 * share a row.  A label with a star was folded by the library, and counts as LEAST_FOLDED - 1 labels.
 */
static void add_rows(struct gpc_groups *rows, const struct gpc_report *report,
	const struct gpc_row *found, size_t n, bool is_folded)
{
	char **labels = gpc_new(n, sizeof *labels);
	char **patterns = gpc_new(n, sizeof *patterns);
	struct gpc_map counts = { 0 }; /* the labels of each pattern */

	for (size_t i = 0; i < n; i++) {
		GPC_TEXT(text, GPC_LABEL_SIZE);

		gpc_recording_add_tag(report->recording, found[i].id, &text);
		labels[i] = gpc_copy(text.buf);
		patterns[i] = pattern_of(text.buf);
		*gpc_map_of(&counts, patterns[i]) += strchr(labels[i], '*') ? LEAST_FOLDED - 1 : 1;
	}
	for (size_t i = 0; i < n; i++) {
		bool is_one_of_many =
			is_folded && *gpc_map_of(&counts, patterns[i]) >= LEAST_FOLDED;

		gpc_groups_add(rows, is_one_of_many ? patterns[i] : labels[i], found[i].bytes,
			found[i].n_blocks, 0);
		free(labels[i]);
		free(patterns[i]);
	}
	gpc_map_fini(&counts);
	free(labels);
	free(patterns);
	gpc_groups_sort(rows);
}

/*
 * Makes the rows from the record of the failure; with oom NULL, from the live blocks of the device, or with ordinal -1
 * of all devices.  is_folded: folds labels as invariant 3 says.
 */
static void rows_init(struct gpc_groups *rows, const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, bool is_folded)
{
	uint64_t room =
		oom ? oom->n_tags : report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpc_row *found = gpc_new(room, sizeof *found);
	size_t n = oom ? add_oom(found, oom) : add_live(found, report, ordinal);
	bool has_tag = false;

	*rows = (struct gpc_groups){ .rest_bytes = oom ? oom->tag_rest_bytes : 0 };
	n = gpc_rows_unite(found, n);
	rows->total_bytes = rows->rest_bytes;
	for (size_t i = 0; i < n; i++) {
		rows->total_bytes = gpc_bytes_add(rows->total_bytes, found[i].bytes);
		has_tag |= found[i].id != 0;
	}
	if (has_tag)
		add_rows(rows, report, found, n, is_folded);
	free(found);
}

static const struct gpc_column columns[] = {
	GPC_HOLDER_COLUMNS, { "tag" },
	{ NULL, "range", .flags = GPC_KEEP_END }, /* the innermost range is at the end */
};
static const struct gpc_section tags = { "tags", NULL, GPC_COLUMNS(columns), 5,
	.flags = GPC_JSON_ONLY };
static const struct gpc_section patterns = { "tag_patterns", "TAGS", GPC_COLUMNS(columns), 5 };

static void show_rows(struct gpc_document *doc, const struct gpc_groups *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct gpc_group *row = &rows->rows[i];

		gpc_document_row(doc,
			GPC_HOLDER_CELLS(row->bytes, rows->total_bytes, row->n_blocks),
			gpc_name(row->name), gpc_name(row->name[0] ? row->name : "(in no range)"));
	}
	gpc_groups_show_rest(rows, doc);
}

void gpc_tag_rows_show(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, const char *moment)
{
	struct gpc_document *doc = report->doc;
	struct gpc_groups rows;

	rows_init(&rows, report, ordinal, oom, false);
	gpc_document_open(doc, &tags);
	show_rows(doc, &rows);
	gpc_document_close(doc);
	gpc_groups_fini(&rows);

	rows_init(&rows, report, ordinal, oom, true);
	gpc_document_open(doc, &patterns);
	if (rows.n)
		gpc_document_say(doc, "%s live by the program's ranges, %s",
			gpc_show_bytes(rows.total_bytes), moment);
	show_rows(doc, &rows);
	gpc_document_close(doc);
	gpc_groups_fini(&rows);
}
