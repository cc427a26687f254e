/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "oom/gave_up.h"

struct stack {
	struct gpc_stack_frames list;
	struct gpc_frame frames[1];
};

static struct stack stack_of(const char *function, const char *file, bool is_library)
{
	return (struct stack){ .list = { .n = 1 },
		.frames = { { .function = function,
			.file = file,
			.line = 7,
			.is_python = true,
			.is_library = is_library } } };
}

#define WORKER "/v/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py"

TEST(a_library_that_sizes_itself_is_found_by_its_files)
{
	const struct stack started = stack_of("Worker.init_device", WORKER, true);
	const struct stack serves = stack_of("Worker.execute_model", WORKER, true);
	const struct stack own = stack_of("init_device", "/home/me/vllm/serve.py", false);

	assert_string_equal(gpc_sizer_of(&started.list)->name, "vLLM");
	assert_null(gpc_sizer_of(&serves.list));
	assert_null(gpc_sizer_of(&own.list));
	assert_null(gpc_sizer_of(NULL));
}

static void assert_says(const struct gpc_gave_up *gave_up, const char *what)
{
	GPC_TEXT(text, 1200);

	gpc_gave_up_write(gave_up, &text);
	assert_false(text.cut);
	if (!strstr(text.buf, what))
		fail_msg("%s", text.buf);
}

TEST(whose_memory_is_missing_decides_what_is_said)
{
	const struct stack stack = stack_of("Worker.init_device", WORKER, true);
	struct gpc_gave_up gave_up = { .gpu_name = "NVIDIA L4",
		.program = "python3.12",
		.site = "main serve.py:15",
		.sizer = gpc_sizer_of(&stack.list),
		.pid = 4711,
		.available = 15 * GPC_GIB,
		.total = 24 * GPC_GIB,
		.own = GPC_GIB };

	assert_says(&gave_up,
		"GAVE UP on GPU 0 (NVIDIA L4, 24.00 GiB) - pid 4711, python3.12\nWHY    n");
	assert_says(&gave_up, "8.00 GiB is held by other processes, or not");
	assert_says(&gave_up,
		"\nREAD   by main serve.py:15\nTRY    with vLLM: gpu_memory_utilization=0.62 ");
	gave_up.own = 9 * GPC_GIB;
	assert_says(&gave_up, "\nWHY    exhausted (possible)");
	assert_says(&gave_up, "9.00 GiB is held by this process");
	gave_up.available = gave_up.total;
	assert_says(&gave_up, "gpu_memory_utilization=0.99 or less");
	gave_up.available = 0;
	assert_says(&gave_up, "gpu_memory_utilization=0.00 or less");
}
