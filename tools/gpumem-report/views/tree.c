/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tree`: the call tree of the memory held; the bytes of a node include those of all nodes below it.
 *
 *         bytes   share    blocks  callers first
 *      1.20 GiB 100.0 %       310  main  train.py:90
 *      1.00 GiB  83.3 %       300    step  train.py:41
 *    700.00 MiB  57.0 %       100      Linear.forward
 *
 * The paths are sorted, so a node is a range of adjacent paths.  JSON has the nodes in the same order, a parent before
 * its children, with the depth of each.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/holders/call_paths.h"
#include "tools/gpumem-report/holders/filter.h"

/* Children shown per node, and the least share of the total that gets a line (1 / LEAST). */
#define DEFAULT_CHILDREN 6
#define LEAST            200

/*
 * Bounds the JSON.  After this many nodes the children of a node are left out, and its `is_cut` is true.
 */
#define MOST_NODES 16384

/* The paths rows[first .. end) share their names up to and including number `depth`. */
struct node {
	size_t first;
	size_t end;
	uint64_t bytes;
	uint64_t n_blocks;
};

struct tree {
	struct gpc_document *doc;
	const struct gpc_path *rows;
	uint64_t total_bytes;
	size_t limit; /* of children that text shows */
	size_t room;  /* rows that JSON may still have */
	struct node
		cut; /* the sum of the nodes whose children JSON leaves out; `end` counts them */
};

struct children {
	struct node *nodes; /* largest first */
	size_t n;
	struct node itself; /* paths that end at the parent */
};

static int compare_nodes(const void *left, const void *right)
{
	const struct node *a = left;
	const struct node *b = right;

	return GPC_ORDER(b->bytes, a->bytes) ?: GPC_ORDER(a->first, b->first);
}

static void count(struct node *node, const struct gpc_path *path)
{
	node->end++;
	node->bytes = gpc_bytes_add(node->bytes, path->bytes);
	node->n_blocks = gpc_bytes_add(node->n_blocks, path->n_blocks);
}

/* Groups rows[first .. end) by name number `depth`.  Paths without such a name are summed up in `itself`. */
static void find_children(struct children *children, const struct gpc_path *rows, size_t first,
	size_t end, size_t depth)
{
	*children = (struct children){ .nodes = gpc_new(end - first + 1, sizeof *children->nodes) };
	for (size_t i = first; i < end; i++) {
		struct node *last = &children->nodes[children->n ? children->n - 1 : 0];

		if (rows[i].n <= depth) {
			count(&children->itself, &rows[i]);
			continue;
		}
		if (!children->n ||
			strcmp(rows[last->first].names[depth], rows[i].names[depth]) != 0) {
			last = &children->nodes[children->n++];
			*last = (struct node){ .first = i, .end = i };
		}
		count(last, &rows[i]);
	}
	qsort(children->nodes, children->n, sizeof *children->nodes, compare_nodes);
}

/* The rows of children that text shows.  A line "(1 more)" would be no shorter than that of the last child. */
static size_t count_shown(const struct tree *tree, const struct children *children)
{
	size_t n = 0;

	if (gpc_document_is_whole(tree->doc))
		return children->n;
	while (n < children->n && n < tree->limit &&
		children->nodes[n].bytes >= tree->total_bytes / LEAST)
		n++;
	return n + 1 == children->n ? children->n : n;
}

static void show_row(const struct tree *tree, const struct node *node, size_t depth,
	const char *name, bool is_cut)
{
	struct gpc_cell cell = gpc_name(name);

	cell.depth = depth < UINT16_MAX ? depth & UINT16_MAX : UINT16_MAX;
	gpc_document_row(tree->doc, gpc_bytes(node->bytes),
		gpc_share(node->bytes, tree->total_bytes),
		gpc_count(gpc_unless_zero(node->n_blocks)), gpc_number(depth), cell,
		gpc_truth(is_cut));
}

/* Shows what text says of the children that it does not show. */
static void show_rest(
	const struct tree *tree, const struct children *children, size_t n_shown, size_t depth)
{
	struct node rest = { 0 };
	GPC_TEXT(others, 40);

	for (size_t i = n_shown; i < children->n; i++) {
		rest.bytes = gpc_bytes_add(rest.bytes, children->nodes[i].bytes);
		rest.n_blocks = gpc_bytes_add(rest.n_blocks, children->nodes[i].n_blocks);
	}
	gpc_text_add(&others, "(%zu more)", children->n - n_shown);
	if (children->n && children->itself.bytes)
		show_row(tree, &children->itself, depth, "(itself)", false);
	if (rest.bytes)
		show_row(tree, &rest, depth, others.buf, false);
}

static void show_children(struct tree *tree, const struct children *children, size_t depth)
{
	bool is_whole = gpc_document_is_whole(tree->doc);
	size_t n = count_shown(tree, children);

	for (size_t i = 0; i < n; i++) {
		const struct node *node = &children->nodes[i];
		struct children below;
		bool is_cut;

		find_children(&below, tree->rows, node->first, node->end, depth + 1);
		is_cut = is_whole && below.n > tree->room;
		tree->room -= is_cut ? 0 : below.n;
		show_row(tree, node, depth, tree->rows[node->first].names[depth], is_cut);
		if (!is_cut)
			show_children(tree, &below, depth + 1);
		free(below.nodes);
	}
	if (!is_whole)
		show_rest(tree, children, n, depth);
}

/* Reverses all paths: innermost first. */
static void turn(struct gpc_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++) {
		struct gpc_path *path = &paths->rows[i];

		for (size_t k = 0; k < path->n / 2; k++) {
			char *name = path->names[k];

			path->names[k] = path->names[path->n - 1 - k];
			path->names[path->n - 1 - k] = name;
		}
		path->site = path->n - 1 - path->site;
	}
}

static int compare_paths(const void *left, const void *right)
{
	const struct gpc_path *a = left;
	const struct gpc_path *b = right;

	int order = 0;

	for (size_t i = 0; i < a->n && i < b->n && !order; i++)
		order = strcmp(a->names[i], b->names[i]);
	return order ?: GPC_ORDER(a->n, b->n);
}

static void show_device(const struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment)
{
	const struct gpc_column columns[] = { { "live_bytes", "bytes", 12 }, { NULL, "share", 7 },
		{ "blocks", "blocks", 9 }, { "depth" },
		{ "name", report->options->is_bottom_up ? "callees first" : "callers first" },
		{ "is_cut" } };
	const struct gpc_section section = { "tree", "TREE", GPC_COLUMNS(columns) };
	struct gpc_document *doc = report->doc;
	struct children roots;
	struct gpc_paths paths;
	struct tree tree = {
		.doc = doc, .limit = doc->limit ? doc->limit : DEFAULT_CHILDREN, .room = MOST_NODES
	};
	GPC_TEXT(filters, 200);

	(void)device;
	gpc_paths_create(&paths, report, moment);
	if (report->options->is_bottom_up)
		turn(&paths);
	qsort(paths.rows, paths.n, sizeof *paths.rows, compare_paths);
	tree.rows = paths.rows;
	tree.total_bytes = paths.total_bytes;
	gpc_filter_describe(report->options, &filters);
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "GPU %d: %s live %s%s", moment->device,
		gpc_show_bytes(paths.total_bytes), gpc_moment_words(moment, report), filters.buf);
	find_children(&roots, paths.rows, 0, paths.n, 0);
	show_children(&tree, &roots, 0);
	free(roots.nodes);
	if (paths.rest_bytes && !gpc_document_is_whole(doc))
		show_row(
			&tree, &(struct node){ .bytes = paths.rest_bytes }, 0, "all others", false);
	gpc_document_close(doc);
	gpc_document_member(doc, "live_bytes", gpc_bytes(paths.total_bytes));
	gpc_document_member(doc, "not_listed_bytes", gpc_bytes(paths.rest_bytes));
	gpc_paths_fini(&paths);
}

enum gpc_exit gpc_cmd_tree(struct gpc_report *report)
{
	return gpc_moment_view(report, "tree", show_device);
}
