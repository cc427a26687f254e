/* SPDX-License-Identifier: Apache-2.0 */
/* Goes by the names of functions, and of files of PyTorch. */
#include "why/torch_stacks.h"

#include "names/short_names.h"
#include "why/libraries.h"

/* The file of PyTorch that calls what torch.no_grad() and torch.inference_mode() decorate. */
#define DECORATOR "/torch/utils/_contextlib.py"

/* The file that calls the functions of a torch.autograd.Function; from PyTorch 2.15 on no file does. */
#define FUNCTION "/torch/autograd/function.py"

bool gpc_torch_is_of_program(const struct gpc_frame *frame)
{
	return frame->is_python && !frame->is_library && frame->function;
}

int gpc_torch_user_of(const struct gpc_stack_frames *stack)
{
	bool is_called_back = false;
	int found = -1;

	for (size_t i = 0; i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (gpc_torch_is_of_program(frame)) {
			if (found >= 0 && !is_called_back)
				break;
			found = (int)i;
			is_called_back = false;
		} else if (frame->is_python && found >= 0) {
			if (!frame->file || !strstr(frame->file, "/torch/"))
				break;
			is_called_back |= !strstr(frame->file, DECORATOR);
		}
	}
	return found;
}

bool gpc_torch_is_decorated(const struct gpc_stack_frames *stack)
{
	return gpc_passes_library(stack, DECORATOR, NULL);
}

bool gpc_torch_is_in_function(const struct gpc_stack_frames *stack)
{
	const struct gpc_frame *site = stack->site >= 0 ? &stack->frames[stack->site] : NULL;
	const char *dot = site && site->function ? strrchr(site->function, '.') : NULL;

	if (!dot || !gpc_torch_is_of_program(site) || strcmp(dot, ".forward") != 0)
		return false;
	for (size_t i = (size_t)stack->site + 1; i < stack->n; i++)
		if (stack->frames[i].is_python)
			return gpc_torch_is_of_program(&stack->frames[i]) ||
			       gpc_is_in_library(&stack->frames[i], FUNCTION);
	return false;
}

bool gpc_torch_is_copied(const struct gpc_stack_frames *stack)
{
	for (size_t i = stack ? stack->n : 0; i-- > 0;)
		if (gpc_is_in_library(&stack->frames[i], "/copy.py"))
			return i + 1 < stack->n && gpc_torch_is_of_program(&stack->frames[i + 1]);
	return false;
}

bool gpc_torch_passes_node(const struct gpc_stack_frames *stack)
{
	GPC_TEXT(name, 64);

	for (size_t i = 0; stack && i < stack->n; i++)
		if (!stack->frames[i].is_python && stack->frames[i].function &&
			gpc_name_node(stack->frames[i].function, &name))
			return true;
	return false;
}
