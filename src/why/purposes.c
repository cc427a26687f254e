/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over function and file names, tried from the innermost frame outwards; the first match decides. */
#include "why/purposes.h"

#include <string.h>

#include "base/bytes.h"
#include "model/libraries.h"
#include "names/short_names.h"

static bool has_any(const char *text, const char *const parts[])
{
	for (; *parts; parts++)
		if (strstr(text, *parts))
			return true;
	return false;
}

static enum gpc_purpose category_of_python(const struct gpc_frame *frame)
{
	/* Caches of keys and values, such as DynamicCache.update of transformers. */
	static const char *const caches[] = { "cache_utils", "KVCache", "kv_cache", "DynamicCache",
		"StaticCache", NULL };
	static const char *const weight_files[] = { "/nn/parameter.py", "/nn/init.py",
		"/safetensors/", "/torch/serialization.py", "/core_model_loading.py",
		"/accelerate/utils/modeling.py", NULL };
	static const char *const loaders[] = { "from_pretrained", "load_state_dict",
		"reset_parameters", NULL };
	/* Where gradients of several ranks are summed, and a function that has a backward() of its own. */
	static const char *const reducers[] = { "/torch/distributed/", "/deepspeed/", NULL };
	const char *dot = strrchr(frame->function, '.');
	const char *name = dot ? dot + 1 : frame->function;

	static const char *const movers[] = { "collate", "to_device", "prefetch", NULL };

	if (has_any(frame->file, caches) || has_any(frame->function, caches))
		return GPC_PURPOSE_CACHES;
	if (frame->is_library &&
		((has_any(frame->file, reducers) &&
			 (strstr(frame->function, "reduce") || strstr(frame->function, "grad_"))) ||
			strcmp(frame->function, "BackwardCFunction.apply") == 0))
		return GPC_PURPOSE_GRADIENTS;
	if (frame->is_library && strstr(frame->file, "/optim"))
		return GPC_PURPOSE_OPTIMIZER;
	/* Of module.py, only _call_impl() runs the model's forward(); its other functions move parameters. */
	if (frame->is_library && strstr(frame->file, "/nn/modules/module.py"))
		return strstr(frame->function, "call_impl") ? GPC_N_PURPOSES : GPC_PURPOSE_WEIGHTS;
	if (has_any(frame->file, weight_files) || has_any(name, loaders) ||
		(frame->is_library && strcmp(name, "__init__") == 0))
		return GPC_PURPOSE_WEIGHTS;
	if ((frame->is_library && strstr(frame->file, "/utils/data/")) || has_any(name, movers))
		return GPC_PURPOSE_INPUTS;
	return strncmp(name, "forward", 7) == 0 ? GPC_PURPOSE_ACTIVATIONS : GPC_N_PURPOSES;
}

static enum gpc_purpose category_of_native(const struct gpc_frame *frame)
{
	static const char *const libraries[] = { "cuBLAS", "cuDNN", "cuSOLVER", "cuSPARSE", NULL };
	const struct gpc_library_row *row =
		frame->module ? gpc_library_row_of(frame->module) : NULL;
	GPC_TEXT(name, 400);

	if (row && row->name && has_any(row->name, libraries))
		return GPC_PURPOSE_WORKSPACES;
	if (!frame->function)
		return GPC_N_PURPOSES;
	if (gpc_name_node(frame->function, &name))
		return GPC_PURPOSE_GRADIENTS;
	gpc_name_short(frame->function, &name);
	return strstr(name.buf, "Workspace") ? GPC_PURPOSE_WORKSPACES : GPC_N_PURPOSES;
}

/* True if a function is called whose name begins with `start` and has `part` after it. */
static bool is_called(const struct gpc_stack_frames *stack, const char *start, const char *part)
{
	for (size_t i = 0; i < stack->n; i++) {
		const char *function = stack->frames[i].function;

		if (function && strncmp(function, start, strlen(start)) == 0 &&
			strstr(function + strlen(start), part))
			return true;
	}
	return false;
}

/*
 * True if autograd passes an operator on to the device.  Its own function, in torch::autograd::VariableType, has no
 * exported name, but what it calls has one.
 */
static bool passes_autograd(const struct gpc_stack_frames *stack)
{
	return is_called(stack, "at::_ops::", "::redispatch");
}

/* Appends the operator that the program called, or the outermost operator if no frame is the program's. */
static void add_operator(const struct gpc_stack_frames *stack, struct gpc_text *ret_text)
{
	for (int i = stack->site; i-- > 0;)
		if (!stack->frames[i].is_python && stack->frames[i].function &&
			gpc_name_operator(stack->frames[i].function, ret_text))
			return;
}

/*
 * The category of memory for an operator that the program calls directly.  Copies to the GPU and factory functions make
 * inputs.  Any other operator makes activations if it passes autograd, else other memory.
 */
static enum gpc_purpose category_of_operator(const struct gpc_stack_frames *stack)
{
	static const char *const makers[] = { "rand", "zeros", "ones", "full", "empty", "arange",
		"linspace", "eye", "normal", "new_", "tensor", "_to_copy", "_pin_memory", NULL };
	GPC_TEXT(name, 64);

	if (is_called(stack, "at::_ops::to_dtype::", "")) /* converts data that is on the GPU */
		return GPC_PURPOSE_ACTIVATIONS;
	if (is_called(stack, "at::_ops::_to_copy", ""))
		return GPC_PURPOSE_INPUTS;
	add_operator(stack, &name);
	for (const char *const *maker = makers; *maker; maker++)
		if (strncmp(name.buf, *maker, strlen(*maker)) == 0)
			return GPC_PURPOSE_INPUTS;
	return passes_autograd(stack) ? GPC_PURPOSE_ACTIVATIONS : GPC_PURPOSE_OTHER;
}

enum gpc_purpose gpc_purpose_of(const struct gpc_stack_frames *stack)
{
	enum gpc_purpose category = GPC_N_PURPOSES;

	if (!stack)
		return GPC_PURPOSE_OTHER;
	for (size_t i = 0; i < stack->n && category == GPC_N_PURPOSES; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (!frame->is_python)
			category = category_of_native(frame);
		else if (frame->function && frame->file)
			category = category_of_python(frame);
	}
	return category == GPC_N_PURPOSES ? category_of_operator(stack) : category;
}

void gpc_purpose_rows_init(struct gpc_purpose_row rows[GPC_N_PURPOSES])
{
	for (unsigned i = 0; i < GPC_N_PURPOSES; i++)
		rows[i] = (struct gpc_purpose_row){ .purpose = (enum gpc_purpose)i };
}

void gpc_purpose_rows_add(struct gpc_purpose_row rows[GPC_N_PURPOSES], enum gpc_purpose purpose,
	const struct gpc_purpose_share *share)
{
	struct gpc_purpose_row *row = &rows[purpose];

	row->bytes = gpc_bytes_add(row->bytes, share->bytes);
	row->n_blocks = gpc_bytes_add(row->n_blocks, share->n_blocks);
	if (share->bytes > row->stack_bytes) {
		row->stack = share->stack;
		row->stack_bytes = share->bytes;
	}
}

uint64_t gpc_purpose_rows_sort(struct gpc_purpose_row rows[GPC_N_PURPOSES])
{
	uint64_t total = 0;

	for (unsigned i = 0; i < GPC_N_PURPOSES; i++) {
		struct gpc_purpose_row row = rows[i];
		unsigned at = i;

		total = gpc_bytes_add(total, row.bytes);
		for (; at > 0 && rows[at - 1].bytes < row.bytes; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
	return total;
}
