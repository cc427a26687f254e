/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "why/purposes.h"

#define MODULE "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"

/* What the program's line makes by .float(), called by this function of PyTorch's module.py. */
static enum gpc_purpose of_a_copy_within(const char *function)
{
	static union {
		struct gpc_stack_frames list;
		char room[sizeof(struct gpc_stack_frames) + 3 * sizeof(struct gpc_frame)];
	} stack;
	const struct gpc_frame frames[] = {
		{ .function = "at::_ops::to_dtype::call(at::Tensor const&)",
			.module = "libtorch_cpu.so",
			.is_library = true },
		{ .function = "Recorder.hook.<locals>.fn",
			.file = "/home/me/stats.py",
			.is_python = true },
		{ .function = function, .file = MODULE, .is_python = true, .is_library = true },
	};

	memset(&stack, 0, sizeof stack);
	memcpy(stack.list.frames, frames, sizeof frames);
	stack.list.n = 3;
	gpc_frames_finish(&stack.list);
	return gpc_purpose_of(&stack.list);
}

TEST(a_hook_runs_within_a_pass_and_loads_no_weights)
{
	assert_int_equal(of_a_copy_within("Module._apply"), GPC_PURPOSE_WEIGHTS);
	assert_int_equal(of_a_copy_within("Module._call_impl"), GPC_PURPOSE_ACTIVATIONS);
	assert_int_equal(
		of_a_copy_within("Module._call_impl.<locals>.inner"), GPC_PURPOSE_ACTIVATIONS);
}
