/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tree`: the call tree of the memory held; the bytes of a node include those of all nodes below it.
 *
 *         bytes   share    blocks  callers first
 *      1.20 GiB 100.0 %       310  main  train.py:90
 *      1.00 GiB  83.3 %       300    step  train.py:41
 *    700.00 MiB  57.0 %       100      Linear.forward
 *
 * The paths are sorted, so a node is a range of adjacent paths.  The children of a node add up to it,
 * as printed.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/holders/call_paths.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/output/json.h"

/* Children shown per node, and the least share of the total that gets a line (1 / LEAST). */
#define DEFAULT_CHILDREN 6
#define LEAST            200

/*
 * Bounds the JSON, in which a deep node takes thousands of bytes.  After this many nodes, `children` of a node that has
 * any is null, and the device's "cut" gives the number and the bytes of such nodes.
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
	const struct gpc_paper *paper;
	const struct gpc_path *rows;
	uint64_t total_bytes;
	size_t limit;
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

/*
 * Chooses the first n children, which get a line each, and returns n.  ret_bytes[0 .. n) are theirs, [n] those of paths
 * that end at the parent, [n + 1] those of all other children, which *ret_rest sums up.
 */
static size_t choose(const struct tree *tree, const struct children *children, uint64_t ret_bytes[],
	struct node *ret_rest)
{
	size_t n = 0;

	*ret_rest = (struct node){ 0 };
	for (size_t i = 0; i < children->n; i++) {
		const struct node *node = &children->nodes[i];

		/* A line "(1 more)" would be no shorter than that of the last child. */
		bool is_last = n == i && i + 1 == children->n;

		if (is_last ||
			(n == i && n < tree->limit && node->bytes >= tree->total_bytes / LEAST)) {
			ret_bytes[n++] = node->bytes;
		} else {
			ret_rest->bytes = gpc_bytes_add(ret_rest->bytes, node->bytes);
			ret_rest->n_blocks = gpc_bytes_add(ret_rest->n_blocks, node->n_blocks);
			ret_rest->end++;
		}
	}
	ret_bytes[n] = children->itself.bytes;
	ret_bytes[n + 1] = ret_rest->bytes;
	return n;
}

struct printed {
	struct gpc_rounded rounded;
	uint32_t share;
};

static void print_line(const struct tree *tree, struct printed numbers, uint64_t n_blocks,
	size_t depth, const char *name)
{
	const struct gpc_paper *paper = tree->paper;
	int used = fprintf(paper->out, "%12s %7s %9s  ", gpc_show_rounded(numbers.rounded),
		gpc_show_tenths(numbers.share), n_blocks ? gpc_show_count(n_blocks) : "");
	/* The indent leaves 24 columns for the name at any depth. */
	int indent = (int)(2 * depth) < paper->width - used - 24 ? (int)(2 * depth)
								 : paper->width - used - 24;
	int room = paper->width - used - indent;

	fprintf(paper->out, "%*s%.*s%s\n", indent, "", (int)strlen(name) > room ? room - 2 : room,
		name, (int)strlen(name) > room ? ".." : "");
}

/* Prints the subtree of a node: rows[first .. end), whose first `depth` names are equal. */
static void print_below(
	const struct tree *tree, size_t first, size_t end, size_t depth, struct printed parent)
{
	struct children children;
	struct gpc_rounded *rounded;
	uint32_t *shares;
	uint64_t *bytes;
	struct node rest;
	char others[40];
	size_t n;

	find_children(&children, tree->rows, first, end, depth);
	rounded = gpc_new(children.n + 2, sizeof *rounded);
	shares = gpc_new(children.n + 2, sizeof *shares);
	bytes = gpc_new(children.n + 2, sizeof *bytes);
	n = choose(tree, &children, bytes, &rest);
	gpc_rounded_parts(parent.rounded, bytes, n + 2, rounded);
	gpc_rounded_split(parent.share, bytes, n + 2, shares);
	for (size_t i = 0; i < n; i++) {
		const struct node *node = &children.nodes[i];
		struct printed numbers = { rounded[i], shares[i] };

		print_line(
			tree, numbers, node->n_blocks, depth, tree->rows[node->first].names[depth]);
		print_below(tree, node->first, node->end, depth + 1, numbers);
	}
	if (children.n && children.itself.bytes)
		print_line(tree, (struct printed){ rounded[n], shares[n] },
			children.itself.n_blocks, depth, "(itself)");
	snprintf(others, sizeof others, "(%zu more)", rest.end);
	if (rest.bytes)
		print_line(tree, (struct printed){ rounded[n + 1], shares[n + 1] }, rest.n_blocks,
			depth, others);
	free(bytes);
	free(shares);
	free(rounded);
	free(children.nodes);
}

struct json_tree {
	const struct gpc_path *rows;
	size_t room;     /* nodes that may still be written */
	struct node cut; /* the sum of the nodes whose children were left out; `end` counts them */
};

/* Returns the children of `parent`: all of them, or NULL if there is no room. */
static struct json_object *json_below(
	struct json_tree *tree, const struct node *parent, size_t depth)
{
	struct json_object *array = NULL;
	struct children children;

	find_children(&children, tree->rows, parent->first, parent->end, depth);
	if (children.n && tree->room == 0) {
		tree->cut.end++;
		tree->cut.bytes = gpc_bytes_add(tree->cut.bytes, parent->bytes);
		goto end;
	}
	tree->room -= children.n < tree->room ? children.n : tree->room;
	array = json_object_new_array();
	for (size_t i = 0; i < children.n; i++) {
		const struct node *node = &children.nodes[i];
		struct json_object *object = gpc_json_row(array);

		gpc_json_text(object, "name", tree->rows[node->first].names[depth]);
		gpc_json_bytes(object, "live_bytes", node->bytes);
		gpc_json_bytes(object, "blocks", node->n_blocks);
		json_object_object_add(object, "children", json_below(tree, node, depth + 1));
	}
end:
	free(children.nodes);
	return array;
}

static struct json_object *json_cut(const struct json_tree *tree)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "nodes", json_object_new_int64((int64_t)tree->cut.end));
	gpc_json_bytes(object, "live_bytes", tree->cut.bytes);
	return object;
}

static void print_tree(
	struct gpc_report *report, const struct gpc_paths *paths, const struct gpc_moment *moment)
{
	const struct gpc_paper *paper = &report->paper;
	bool is_turned = report->options->is_bottom_up;
	struct tree tree = { .paper = paper,
		.rows = paths->rows,
		.total_bytes = paths->total_bytes,
		.limit = gpc_report_limit(report, DEFAULT_CHILDREN) };
	const uint64_t parts[] = { paths->total_bytes - paths->rest_bytes, paths->rest_bytes };
	struct gpc_rounded rounded[2];
	uint32_t shares[2];
	GPC_TEXT(filters, 200);

	gpc_filter_describe(report->options, &filters);
	gpc_paper_section(paper, "TREE", "GPU %d: %s live %s%s", moment->device,
		gpc_show_bytes(paths->total_bytes), gpc_moment_words(moment, report), filters.buf);
	if (!paths->total_bytes)
		return;
	gpc_rounded_parts(gpc_rounded_of(paths->total_bytes), parts, 2, rounded);
	gpc_rounded_shares(paths->total_bytes, parts, 2, shares);
	fprintf(paper->out, "%s%12s %7s %9s  %s%s\n", gpc_paper_ink(paper, GPC_INK_DIM), "bytes",
		"share", "blocks", is_turned ? "callees first" : "callers first",
		gpc_paper_ink(paper, GPC_INK_PLAIN));
	print_below(&tree, 0, paths->n, 0, (struct printed){ rounded[0], shares[0] });
	if (paths->rest_bytes)
		print_line(&tree, (struct printed){ rounded[1], shares[1] }, 0, 0, "all others");
}

static void add_json(struct json_object *object, const struct gpc_report *report,
	const struct gpc_paths *paths, const struct gpc_moment *moment)
{
	const struct node root = { .end = paths->n };
	struct json_tree tree = { .rows = paths->rows, .room = MOST_NODES };

	gpc_json_text(object, "moment", gpc_moment_key(moment, report));
	gpc_json_bytes(object, "live_bytes", paths->total_bytes);
	gpc_json_bytes(object, "not_listed_bytes", paths->rest_bytes);
	json_object_object_add(object, "tree", json_below(&tree, &root, 0));
	json_object_object_add(object, "cut", tree.cut.end ? json_cut(&tree) : NULL);
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

static void show_device(struct gpc_report *report, struct json_object *object,
	const struct gpucache_device *device, const struct gpc_moment *moment)
{
	struct gpc_paths paths;

	(void)device;
	gpc_paths_create(&paths, report, moment);
	if (report->options->is_bottom_up)
		turn(&paths);
	qsort(paths.rows, paths.n, sizeof *paths.rows, compare_paths);
	if (object)
		add_json(object, report, &paths, moment);
	else
		print_tree(report, &paths, moment);
	gpc_paths_fini(&paths);
}

enum gpc_exit gpc_cmd_tree(struct gpc_report *report)
{
	return gpc_moment_view(report, "tree", show_device);
}
