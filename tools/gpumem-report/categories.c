/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/categories.h"

#include <string.h>

#include "base/libraries.h"
#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/names.h"

enum category {
	CATEGORY_WEIGHTS,
	CATEGORY_GRADIENTS,
	CATEGORY_OPTIMIZER,
	CATEGORY_ACTIVATIONS,
	CATEGORY_INPUTS,
	CATEGORY_WORKSPACES,
	CATEGORY_OTHER,
	CATEGORY_COUNT, /* no category yet */
};

static const char *const words[] = { "weights", "gradients", "optimizer state", "activations",
	"inputs", "workspaces", "other" };

struct row {
	enum category category;
	uint64_t bytes;
	uint64_t n_blocks;
	uint32_t stack; /* the one that holds most of it */
	uint64_t stack_bytes;
};

static bool has_any(const char *text, const char *const parts[])
{
	for (; *parts; parts++)
		if (strstr(text, *parts))
			return true;
	return false;
}

static enum category category_of_python(const struct gpc_frame *frame)
{
	static const char *const weight_files[] = { "/nn/parameter.py", "/nn/init.py",
		"/safetensors/", NULL };
	static const char *const loaders[] = { "__init__", "from_pretrained", "load_state_dict",
		"reset_parameters", NULL };
	const char *dot = strrchr(frame->function, '.');
	const char *name = dot ? dot + 1 : frame->function;

	if (frame->is_library && strstr(frame->file, "/optim"))
		return CATEGORY_OPTIMIZER;
	/* Module itself calls forward, too; what else it does moves parameters. */
	if (frame->is_library && strstr(frame->file, "/nn/modules/module.py"))
		return strstr(name, "call_impl") ? CATEGORY_COUNT : CATEGORY_WEIGHTS;
	if (has_any(frame->file, weight_files) || has_any(name, loaders))
		return CATEGORY_WEIGHTS;
	if (frame->is_library && strstr(frame->file, "/utils/data/"))
		return CATEGORY_INPUTS;
	return strncmp(name, "forward", 7) == 0 ? CATEGORY_ACTIVATIONS : CATEGORY_COUNT;
}

static enum category category_of_native(const struct gpc_frame *frame)
{
	static const char *const libraries[] = { "cuBLAS", "cuDNN", "cuSOLVER", "cuSPARSE", NULL };
	const struct gpc_library_row *row =
		frame->module ? gpc_library_row_of(frame->module) : NULL;
	char buf[400];
	struct gpc_text name = gpc_text_init(buf, sizeof buf);

	if (row && row->name && has_any(row->name, libraries))
		return CATEGORY_WORKSPACES;
	if (!frame->function)
		return CATEGORY_COUNT;
	if (gpc_name_node(frame->function, &name))
		return CATEGORY_GRADIENTS;
	gpc_name_short(frame->function, &name);
	return strstr(buf, "Workspace") ? CATEGORY_WORKSPACES : CATEGORY_COUNT;
}

static bool is_called(const struct gpc_stack_frames *stack, const char *start)
{
	for (size_t i = 0; i < stack->n; i++)
		if (stack->frames[i].function &&
			strncmp(stack->frames[i].function, start, strlen(start)) == 0)
			return true;
	return false;
}

static enum category category_of(const struct gpc_stack_frames *stack)
{
	enum category category = CATEGORY_COUNT;

	for (size_t i = 0; stack && i < stack->n && category == CATEGORY_COUNT; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (!frame->is_python)
			category = category_of_native(frame);
		else if (frame->function && frame->file)
			category = category_of_python(frame);
	}
	if (category != CATEGORY_COUNT || !stack)
		return stack ? category : CATEGORY_OTHER;
	/* Right in the program: a copy to the GPU is data; what autograd looks on at is computed. */
	if (is_called(stack, "at::_ops::_to_copy"))
		return CATEGORY_INPUTS;
	return is_called(stack, "torch::autograd::VariableType::") ? CATEGORY_ACTIVATIONS
								   : CATEGORY_OTHER;
}

/* Fills rows, which hold CATEGORY_COUNT, biggest first; returns the sum of their bytes. */
static uint64_t sum_up(
	const struct gpc_holdings *holdings, const struct gpc_report *report, struct row rows[])
{
	uint64_t total = 0;

	for (unsigned i = 0; i < CATEGORY_COUNT; i++)
		rows[i] = (struct row){ .category = (enum category)i };
	for (size_t i = 0; i < holdings->n; i++) {
		const struct gpc_row *holding = &holdings->rows[i];
		struct row *row;

		if (holding->kind)
			continue;
		row = &rows[category_of(gpc_frames_find(report->frames, holding->id))];
		total = gpc_bytes_add(total, holding->bytes);
		row->bytes = gpc_bytes_add(row->bytes, holding->bytes);
		row->n_blocks += holding->n_blocks;
		if (holding->bytes > row->stack_bytes) {
			row->stack = holding->id;
			row->stack_bytes = holding->bytes;
		}
	}
	for (unsigned i = 1; i < CATEGORY_COUNT; i++)
		for (unsigned k = i; k > 0 && rows[k].bytes > rows[k - 1].bytes; k--) {
			struct row swap = rows[k];

			rows[k] = rows[k - 1];
			rows[k - 1] = swap;
		}
	return total;
}

/* The biggest holder; where there is little room its line, which says more than its name. */
static void print_biggest(const struct gpc_report *report, uint32_t stack, int room)
{
	const struct gpc_paper *paper = &report->paper;
	char where[200];
	struct gpc_text text = gpc_text_init(where, sizeof where);
	const char *place;

	gpc_frames_site(report->frames, stack, &text);
	place = (int)text.len > room ? strstr(where, "  ") : NULL;
	fprintf(paper->out, "%.*s\n", room > 0 ? room : 0,
		place && place[2] != '(' ? place + 2 : where);
}

void gpc_categories_print(const struct gpc_holdings *holdings, const struct gpc_report *report)
{
	const struct gpc_paper *paper = &report->paper;
	struct row rows[CATEGORY_COUNT];
	struct gpc_table table;
	uint64_t total;

	if (!holdings->has_torch)
		return;
	total = gpc_bytes_add(sum_up(holdings, report, rows), holdings->rest_bytes);
	if (total == holdings->rest_bytes || !gpc_table_init(&table, paper, CATEGORY_COUNT + 1))
		return;
	for (unsigned i = 0; i < CATEGORY_COUNT && rows[i].bytes; i++)
		gpc_table_add(&table, rows[i].bytes, rows[i].n_blocks);
	if (holdings->rest_bytes)
		gpc_table_add(&table, holdings->rest_bytes, 0);
	gpc_paper_section(paper, "CATEGORY", "what %s are for, and the biggest of each",
		gpc_show_bytes(total));
	gpc_table_print_head(&table, total, "category");
	for (unsigned i = 0; i < CATEGORY_COUNT && rows[i].bytes; i++) {
		int used = gpc_table_print_numbers(&table);

		used += fprintf(paper->out, "%-15s  ", words[rows[i].category]);
		print_biggest(report, rows[i].stack, paper->width - used);
	}
	gpc_table_print_rest(&table);
	gpc_table_fini(&table);
}

void gpc_categories_json(const struct gpc_holdings *holdings, const struct gpc_report *report,
	struct json_object *object)
{
	struct json_object *array = json_object_new_array();
	struct row rows[CATEGORY_COUNT];

	json_object_object_add(object, "categories", array);
	if (!holdings->has_torch)
		return;
	(void)sum_up(holdings, report, rows);
	for (unsigned i = 0; i < CATEGORY_COUNT && rows[i].bytes; i++) {
		struct json_object *row = json_object_new_object();
		char where[400];
		struct gpc_text text = gpc_text_init(where, sizeof where);

		gpc_frames_site(report->frames, rows[i].stack, &text);
		gpc_json_text(row, "category", words[rows[i].category]);
		gpc_json_bytes(row, "live_bytes", rows[i].bytes);
		gpc_json_bytes(row, "blocks", rows[i].n_blocks);
		gpc_json_text(row, "biggest", where);
		gpc_json_bytes(row, "biggest_bytes", rows[i].stack_bytes);
		json_object_array_add(array, row);
	}
}
