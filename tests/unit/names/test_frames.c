/* SPDX-License-Identifier: Apache-2.0 */
/* What is named as called by the program's line. */
#include "tests/unit/unit.h"

#include "tests/unit/names/made_frames.h"

#define TORCH "/v/lib/python3.12/site-packages/torch/"

/* The function named for a stack of so many frames, innermost first. */
static const char *called(const struct gpc_frame *frames, size_t n)
{
	static union {
		struct gpc_stack_frames list;
		char room[sizeof(struct gpc_stack_frames) + 8 * sizeof(struct gpc_frame)];
	} stack;

	memset(&stack, 0, sizeof stack);
	memcpy(stack.list.frames, frames, n * sizeof *frames);
	stack.list.n = n;
	gpc_frames_finish(&stack.list);
	return stack.list.via < 0 ? NULL : stack.list.frames[stack.list.via].function;
}

TEST(a_function_of_a_library_is_named_before_its_operators)
{
	const struct gpc_frame frames[] = { native("at::native::empty_cuda"),
		native("at::_ops::linear::call(at::Tensor const&)"),
		python("Linear.forward", TORCH "nn/modules/linear.py", true),
		python("Net.forward", "/home/me/net.py", false) };

	assert_string_equal(called(frames, 4), "Linear.forward");
}

TEST(an_operator_of_the_program_is_named_by_the_outermost)
{
	const struct gpc_frame frames[] = { native("at::native::empty_cuda"),
		native("at::_ops::bmm::call(at::Tensor const&)"),
		native("at::_ops::matmul::call(at::Tensor const&)"),
		native("torch::autograd::THPVariable_matmul(_object*)"),
		python("Net.forward", "/home/me/net.py", false) };

	assert_string_equal(called(frames, 5), "at::_ops::matmul::call(at::Tensor const&)");
}

/* PyTorch implements some operators in Python: the program called none of those functions. */
TEST(what_an_operator_calls_is_not_named)
{
	const struct gpc_frame frames[] = { native("at::native::empty_cuda"),
		python("register.<locals>.eager_router", TORCH "_native/registry.py", true),
		native("at::_ops::bmm::call(at::Tensor const&)"),
		native("at::_ops::matmul::call(at::Tensor const&)"),
		python("Net.forward", "/home/me/net.py", false) };
	const struct gpc_frame of_library[] = { frames[0], frames[1], frames[2],
		python("attention", TORCH "nn/functional.py", true), frames[4] };

	assert_string_equal(called(frames, 5), "at::_ops::matmul::call(at::Tensor const&)");
	assert_string_equal(called(of_library, 5), "attention");
}
