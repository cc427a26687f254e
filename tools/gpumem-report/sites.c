/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/gpumem-report/json.h"

/* Call sites with long C++ names are cut to the line anyway. */
#define MAX_WHERE 400

static enum gpc_status add(struct gpc_sites *sites, struct gpc_report *report, uint32_t stack,
	uint64_t bytes, uint64_t n_blocks)
{
	char where[MAX_WHERE];
	struct gpc_text text = gpc_text_init(where, sizeof where);
	struct gpc_site *rows;

	sites->total_bytes = gpc_bytes_add(sites->total_bytes, bytes);
	sites->total_blocks += n_blocks;
	gpc_frames_site(report->frames, stack, &text);
	for (size_t i = 0; i < sites->n; i++) {
		struct gpc_site *row = &sites->rows[i];

		if (strcmp(row->where, where) != 0)
			continue;
		row->bytes = gpc_bytes_add(row->bytes, bytes);
		row->n_blocks += n_blocks;
		if (bytes > row->stack_bytes) {
			row->stack = stack;
			row->stack_bytes = bytes;
		}
		return GPC_OK;
	}
	rows = realloc(sites->rows, (sites->n + 1) * sizeof *rows);
	if (!rows)
		return GPC_NO_METADATA;
	sites->rows = rows;
	rows[sites->n] = (struct gpc_site){ .where = strdup(where),
		.bytes = bytes,
		.n_blocks = n_blocks,
		.stack = stack,
		.stack_bytes = bytes };
	if (!rows[sites->n].where)
		return GPC_NO_METADATA;
	sites->n++;
	return GPC_OK;
}

static int compare_rows(const void *left, const void *right)
{
	const struct gpc_site *a = left;
	const struct gpc_site *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return strcmp(a->where, b->where);
}

static void sort_rows(struct gpc_sites *sites)
{
	if (sites->n)
		qsort(sites->rows, sites->n, sizeof *sites->rows, compare_rows);
}

enum gpc_status gpc_sites_from_holders(struct gpc_sites *sites, struct gpc_report *report,
	const struct gpucache_holder *holders, unsigned n, uint64_t rest_bytes)
{
	enum gpc_status status = GPC_OK;

	memset(sites, 0, sizeof *sites);
	for (unsigned i = 0; i < n && status == GPC_OK; i++)
		status =
			add(sites, report, holders[i].stack, holders[i].bytes, holders[i].n_blocks);
	if (status != GPC_OK) {
		gpc_sites_fini(sites);
		return status;
	}
	sites->rest_bytes = rest_bytes;
	sites->total_bytes = gpc_bytes_add(sites->total_bytes, rest_bytes);
	sort_rows(sites);
	return GPC_OK;
}

struct live {
	uint32_t stack;
	uint64_t bytes;
};

static int compare_live(const void *left, const void *right)
{
	const struct live *a = left;
	const struct live *b = right;

	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

enum gpc_status gpc_sites_from_live(
	struct gpc_sites *sites, struct gpc_report *report, int32_t ordinal)
{
	const struct gpc_recording *rec = report->recording;
	uint64_t count = rec->regions[GPUCACHE_REGION_BLOCKS].count;
	struct live *live = calloc(count + 1, sizeof *live);
	enum gpc_status status = GPC_OK;
	struct gpucache_block block;
	size_t n = 0;

	memset(sites, 0, sizeof *sites);
	if (!live)
		return GPC_NO_METADATA;
	for (uint64_t i = 0; i < count; i++) {
		if (!gpc_recording_read_block(rec, i, &block) ||
			block.state != GPUCACHE_BLOCK_LIVE || block.kind == GPUCACHE_KIND_HOST ||
			!gpc_report_wants(report, block.device) ||
			(ordinal >= 0 && block.device != ordinal))
			continue;
		live[n++] = (struct live){ block.stack, block.requested };
	}
	qsort(live, n, sizeof *live, compare_live);
	/* One add() a stack: it looks through all rows. */
	for (size_t i = 0; i < n && status == GPC_OK;) {
		uint64_t bytes = 0;
		size_t first = i;

		for (; i < n && live[i].stack == live[first].stack; i++)
			bytes = gpc_bytes_add(bytes, live[i].bytes);
		status = add(sites, report, live[first].stack, bytes, i - first);
	}
	free(live);
	if (status != GPC_OK) {
		gpc_sites_fini(sites);
		return status;
	}
	sort_rows(sites);
	return GPC_OK;
}

void gpc_sites_fini(struct gpc_sites *sites)
{
	for (size_t i = 0; i < sites->n; i++)
		free(sites->rows[i].where);
	free(sites->rows);
	memset(sites, 0, sizeof *sites);
}

/* A call site as wide as the rest of the line; what is cut ends in "..". */
static void print_where(const struct gpc_paper *paper, const char *where, int used)
{
	int room = paper->width - used;

	if ((int)strlen(where) <= room)
		fprintf(paper->out, "%s\n", where);
	else
		fprintf(paper->out, "%.*s..\n", room - 2, where);
}

void gpc_sites_print(const struct gpc_sites *sites, struct gpc_report *report, unsigned limit)
{
	const struct gpc_paper *paper = &report->paper;
	uint64_t rest = sites->rest_bytes;
	size_t shown = sites->n < limit ? sites->n : limit;

	fprintf(paper->out, "%s%13s  %6s  %9s  %11s   where%s\n", gpc_paper_ink(paper, GPC_INK_DIM),
		"bytes", "share", "blocks", "mean", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; i < shown; i++) {
		const struct gpc_site *row = &sites->rows[i];
		int used = fprintf(paper->out, "%13s %7s  %9s  %11s   ", gpc_show_bytes(row->bytes),
			gpc_show_share(row->bytes, sites->total_bytes),
			gpc_show_count(row->n_blocks),
			gpc_show_bytes(row->n_blocks ? row->bytes / row->n_blocks : 0));

		print_where(paper, row->where, used);
	}
	for (size_t i = shown; i < sites->n; i++)
		rest = gpc_bytes_add(rest, sites->rows[i].bytes);
	if (rest)
		fprintf(paper->out, "%13s %7s  %9s  %11s   all others\n", gpc_show_bytes(rest),
			gpc_show_share(rest, sites->total_bytes), "", "");
}

struct json_object *gpc_sites_json(
	const struct gpc_sites *sites, struct gpc_report *report, unsigned limit)
{
	struct json_object *array = json_object_new_array();
	size_t shown = limit && limit < sites->n ? limit : sites->n;

	for (size_t i = 0; i < shown; i++) {
		const struct gpc_site *row = &sites->rows[i];
		struct json_object *object = json_object_new_object();

		gpc_json_text(object, "where", row->where);
		gpc_json_bytes(object, "live_bytes", row->bytes);
		gpc_json_bytes(object, "blocks", row->n_blocks);
		json_object_object_add(object, "stack", gpc_json_stack(report, row->stack));
		json_object_array_add(array, object);
	}
	return array;
}
