/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stack has labels: its call site, the site's caller, and so on.  Stacks are sorted by these labels; stacks with
 * the same first label are a row.  If that row has more than half of all bytes, for several callers, the second labels
 * make the rows, and so on up to GPC_SITES_MAX_DEPTH labels.
 */
#include "tools/gpumem-report/holders/call_sites.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/by_library.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/output/stack.h"

/* The most bytes of a label: longer ones are cut. */
#define MAX_WHERE 400

/* One stack with the labels of its call site and callers. */
struct entry {
	uint32_t stack;
	uint64_t bytes;
	uint64_t n_blocks;
	char *labels[GPC_SITES_MAX_DEPTH]; /* of the site, its caller, ...; then NULL */
	const struct gpc_frame *frames[GPC_SITES_MAX_DEPTH]; /* where there are any */
	char *via; /* the library's function that the site called; NULL: none */
};

struct entries {
	struct entry *all;
	size_t n;
	uint64_t asked_bytes; /* the sum, without contexts and modules */
};

static void entries_fini(struct entries *entries)
{
	for (size_t i = 0; i < entries->n; i++) {
		for (unsigned level = 0; level < GPC_SITES_MAX_DEPTH; level++)
			free(entries->all[i].labels[level]);
		free(entries->all[i].via);
	}
	free(entries->all);
}

/* Sets entry->labels and entry->via. */
static void label(const struct gpc_report *report, struct entry *entry, unsigned int kind)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, entry->stack);
	unsigned level = 0;
	GPC_TEXT(text, MAX_WHERE);

	/* No site requested what the driver took for itself. */
	if (kind || !stack || stack->site < 0) {
		if (kind)
			gpc_text_add(&text, "%s", gpc_kind_words(kind));
		else
			gpc_frames_site(report->frames, entry->stack, &text);
		entry->labels[0] = gpc_copy(text.buf);
		return;
	}
	gpc_frames_via(stack, &text);
	if (text.len)
		entry->via = gpc_copy(text.buf);
	for (size_t i = (size_t)stack->site; i < stack->n && level < GPC_SITES_MAX_DEPTH; i++) {
		if (level > 0 && stack->frames[i].is_library)
			continue;
		gpc_text_clear(&text);
		gpc_frame_describe_site(&stack->frames[i], &text);
		entry->frames[level] = &stack->frames[i];
		entry->labels[level++] = gpc_copy(text.buf);
	}
}

static int compare_labels(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	int order = 0;

	for (unsigned level = 0; level < GPC_SITES_MAX_DEPTH && !order; level++)
		order = compare_labels(a->labels[level], b->labels[level]);
	return order ?: GPC_ORDER(a->stack, b->stack);
}

static int compare_vias(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	return compare_labels(a->via, b->via) ?: compare_entries(left, right);
}

/* True if all of entries[first .. end) have the label of the first one. */
static bool is_common(const struct entries *entries, size_t first, size_t end, unsigned level)
{
	const char *label = entries->all[first].labels[level];
	bool is_common = label != NULL;

	for (size_t i = first; i < end; i++)
		is_common &= compare_labels(entries->all[i].labels[level], label) == 0;
	return is_common;
}

/*
 * Adds entries[first .. end), which have the same labels up to `level`, as one row: "alloc  train.c:9, via gelu <
 * remember:140 < main:200".  The callers are those that tell the row from others, else GPC_SITE_CALLERS that all have.
 */
static void add_row(struct gpc_groups *sites, const struct entries *entries, size_t first,
	size_t end, unsigned level)
{
	const struct entry *entry = &entries->all[first];
	bool has_via = entry->via != NULL;
	GPC_TEXT(text, MAX_WHERE);

	for (size_t i = first; i < end; i++)
		has_via &= compare_labels(entries->all[i].via, entry->via) == 0;
	gpc_text_add(&text, "%s", entry->labels[0]);
	if (has_via)
		gpc_text_add(&text, ", via %s", entry->via);
	for (unsigned i = 1; i < GPC_SITES_MAX_DEPTH && (i <= level || i <= GPC_SITE_CALLERS) &&
			     is_common(entries, first, end, i);
		i++)
		gpc_frame_add_caller(entry->frames[0], entry->frames[i], &text);
	for (size_t i = first; i < end; i++)
		gpc_groups_add(sites, text.buf, entries->all[i].bytes, entries->all[i].n_blocks,
			entries->all[i].stack);
}

/* Adds entries[first .. end), which have the same labels, as a row per function of a library that the site called. */
static void add_rows_by_via(struct gpc_groups *sites, const struct entries *entries, size_t first,
	size_t end, unsigned level)
{
	qsort(&entries->all[first], end - first, sizeof *entries->all, compare_vias);
	while (first < end) {
		size_t next = first;

		while (next < end &&
			compare_labels(entries->all[first].via, entries->all[next].via) == 0)
			next++;
		add_row(sites, entries, first, next, level);
		first = next;
	}
}

/*
 * Adds a row for each labels[level] of entries[first .. end), which are sorted, and whose labels before `level` are the
 * same.  A site that holds more than half of everything for several callers is a wrapper: its callers become the rows.
 */
static void add_rows(struct gpc_groups *sites, const struct entries *entries, size_t first,
	size_t end, unsigned level)
{
	while (first < end) {
		const struct entry *entry = &entries->all[first];
		bool has_callers = false;
		uint64_t bytes = 0;
		size_t next = first;

		for (; next < end; next++) {
			const struct entry *other = &entries->all[next];

			if (compare_labels(entry->labels[level], other->labels[level]) != 0)
				break;
			bytes = gpc_bytes_add(bytes, other->bytes);
			for (unsigned above = level + 1; above < GPC_SITES_MAX_DEPTH; above++)
				has_callers |= compare_labels(entry->labels[above],
						       other->labels[above]) != 0;
		}
		if (bytes <= entries->asked_bytes / 2)
			add_row(sites, entries, first, next, level);
		else if (has_callers)
			add_rows(sites, entries, first, next, level + 1);
		else
			add_rows_by_via(sites, entries, first, next, level);
		first = next;
	}
}

void gpc_sites_create(struct gpc_groups *sites, const struct gpc_report *report,
	const struct gpc_holdings *holdings)
{
	struct entries entries = { .all = gpc_new(holdings->n, sizeof *entries.all) };
	const char *refused = gpc_kind_words(GPUCACHE_KIND_REFUSED);

	*sites = (struct gpc_groups){ .rest_bytes = holdings->rest_bytes,
		.total_bytes = holdings->total_bytes };
	for (; entries.n < holdings->n; entries.n++) {
		const struct gpc_row *row = &holdings->rows[entries.n];
		struct entry *entry = &entries.all[entries.n];

		*entry = (struct entry){
			.stack = row->id, .bytes = row->bytes, .n_blocks = row->n_blocks
		};
		label(report, entry, row->kind);
		if (!row->kind)
			entries.asked_bytes = gpc_bytes_add(entries.asked_bytes, row->bytes);
	}
	qsort(entries.all, entries.n, sizeof *entries.all, compare_entries);
	add_rows(sites, &entries, 0, entries.n, 0);
	entries_fini(&entries);
	if (holdings->torch_bytes)
		gpc_groups_add(sites, gpc_framework_words(holdings->framework)->unused,
			holdings->torch_bytes, 0, 0);
	if (holdings->refused_bytes)
		gpc_groups_add(sites, refused, holdings->refused_bytes, 0, 0);
	gpc_groups_sort(sites);
}

void gpc_sites_show(const struct gpc_groups *sites, const struct gpc_report *report)
{
	const char *refused = gpc_kind_words(GPUCACHE_KIND_REFUSED);
	struct gpc_document *doc = report->doc;

	for (size_t i = 0; i < sites->n; i++) {
		const struct gpc_group *row = &sites->rows[i];
		GPC_TEXT(library, 64);

		if (row->n_blocks)
			gpc_library_name(report->recording, row->stack, &library);
		else
			gpc_text_add(
				&library, strcmp(row->name, refused) ? "PyTorch" : GPC_THE_DRIVER);
		gpc_document_row(doc,
			GPC_HOLDER_CELLS(row->bytes, sites->total_bytes, row->n_blocks),
			gpc_sentence(row->name), gpc_name(library.buf));
		if (gpc_document_is_whole(doc))
			gpc_stack_show(report, row->stack, 0);
	}
	gpc_groups_show_rest(sites, doc);
}
