/* SPDX-License-Identifier: Apache-2.0 */
#include "model/libraries.h"
#include "names/frames.h"

#include <string.h>

#include "unit.h"

TEST(a_mapped_file_is_known_by_its_name_and_by_its_package)
{
	assert_int_equal(gpc_library_kind_of("/x/libgpucache.so"), GPC_LIBRARY_OURS);
	assert_int_equal(gpc_library_kind_of("libcudart.so.13"), GPC_LIBRARY_DRIVER);
	assert_int_equal(gpc_library_kind_of("/lib/libstdc++.so.6"), GPC_LIBRARY_SYSTEM);
	assert_int_equal(gpc_library_kind_of("/lib/libc.so.6"), GPC_LIBRARY_SYSTEM);
	assert_int_equal(gpc_library_kind_of("/usr/bin/python3.12"), GPC_LIBRARY_INTERPRETER);
	assert_int_equal(gpc_library_kind_of("/opt/py/lib/python3.12/lib-dynload/"
					     "_asyncio.cpython-312-x86_64-linux-gnu.so"),
		GPC_LIBRARY_INTERPRETER);
	assert_int_equal(gpc_library_kind_of("/x/libtorch_cuda.so"), GPC_LIBRARY_NAMED);
	assert_int_equal(gpc_library_kind_of("/v/site-packages/mine/a.so"), GPC_LIBRARY_PACKAGE);
	assert_int_equal(gpc_library_kind_of("/v/dist-packages/a.so"), GPC_LIBRARY_PROGRAM);
	assert_int_equal(gpc_library_kind_of("/opt/app/train"), GPC_LIBRARY_PROGRAM);
	assert_null(gpc_library_row_of("/opt/app/train"));
	assert_int_equal(gpc_library_kind_of("/opt/app/libmine.so"), GPC_LIBRARY_PROGRAM);
	assert_int_equal(gpc_library_kind_of("/usr/lib/x86_64-linux-gnu/libphysics.so.4"),
		GPC_LIBRARY_PACKAGE);
	assert_int_equal(gpc_library_kind_of("/lib/libphysics.so"), GPC_LIBRARY_PACKAGE);
	assert_int_equal(gpc_library_kind_of("/usr/lib64/libphysics.so"), GPC_LIBRARY_PACKAGE);
	assert_int_equal(gpc_library_kind_of("/usr/lib/app/train"), GPC_LIBRARY_PROGRAM);
	assert_int_equal(gpc_library_kind_of("/libs/libmine.so"), GPC_LIBRARY_PROGRAM);
	assert_int_equal(gpc_library_kind_of("/usr/library/libmine.so"), GPC_LIBRARY_PROGRAM);
	assert_string_equal(gpc_library_row_of("/v/site-packages/cupy/a.so")->name, "CuPy");
	assert_string_equal(gpc_library_package("/v/site-packages/mine/a.so"), "mine/a.so");
	assert_null(gpc_library_package("/v/site-packages/a.so"));
}

/* What the files of a stack, innermost first and separated by blanks, say. */
static bool keeps(const char *files)
{
	struct gpc_library_keeper keeper = { 0 };
	char text[400];
	char *rest = text;

	snprintf(text, sizeof text, "%s", files);
	for (char *file = strsep(&rest, " "); file && gpc_library_keeper_look(&keeper, file);)
		file = strsep(&rest, " ");
	return keeper.is_kept;
}

TEST(what_cuda_takes_for_a_library_is_kept_and_for_the_program_is_not)
{
	assert_true(keeps("libcuda.so.1 libcudart.so.13 libcublas.so.13 libtorch_cuda.so train"));
	assert_true(keeps("libcublasLt.so.13 libcublas.so.13 libcudnn_ops.so.9 libc10_cuda.so"));
	assert_true(keeps("libnccl.so.2 libstdc++.so.6 /v/site-packages/mine/a.so python3"));
	assert_false(keeps("libcudart.so.13 libcublas.so.13 /opt/app/train libtorch_cuda.so"));
	assert_false(keeps("libcublas.so.13 _ctypes.so libtorch_cuda.so"));
	assert_false(keeps("libcudart.so.13 libtorch_cuda.so libcublas.so.13"));
	assert_false(keeps("/opt/app/train libcublas.so.13 libtorch_cuda.so"));
	assert_false(keeps("libcublas.so.13"));
}

static bool holds(const char *file)
{
	/* What follows the file's name is not read. */
	char text[200] = "";

	strcat(strcat(text, file), "/site-packages/");
	return gpc_library_holds_python(text, strlen(file));
}

TEST(python_files_of_packages_and_of_the_standard_library_are_not_the_programs)
{
	assert_true(holds("/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py"));
	assert_true(holds("/usr/lib/python3/dist-packages/numba/core.py"));
	assert_true(holds("/usr/lib64/python3.11/threading.py"));
	assert_true(holds("<frozen runpy>"));
	assert_true(holds("<eval_with_key>.11"));
	assert_true(holds("/tmp/torchinductor_me/ab/cabc.py"));
	assert_true(holds("/venv/bin/torchrun"));
	assert_true(holds("/bin/run"));
	assert_false(holds("/venv/bin/train.py"));
	assert_false(holds("/home/me/train.py"));
	assert_false(holds("/home/me/bin"));
	assert_false(holds("train"));
	assert_false(holds("bin/x"));
	assert_false(holds("<stdin>"));
	assert_false(holds("<ipython-input-3-abc>"));
	assert_false(holds(""));
}

TEST(templates_of_cpp_and_cuda_are_not_the_programs)
{
	assert_true(gpc_library_holds_header("/usr/include/c++/12/bits/invoke.h"));
	assert_true(gpc_library_holds_header(
		"/usr/local/cuda-13.0/include/cccl/thrust/detail/vector_base.inl"));
	assert_true(gpc_library_holds_header("/usr/local/cuda-12.4/include/thrust/mr/allocator.h"));
	assert_true(gpc_library_holds_header(
		"/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"));
	assert_true(gpc_library_holds_header(
		"/usr/local/cuda/targets/x86_64-linux/include/cuda_runtime.h"));
	assert_false(gpc_library_holds_header("/home/me/include/cuda_utils.h"));
	assert_false(gpc_library_holds_header("/home/me/include/solver.hpp"));
	assert_false(gpc_library_holds_header("/home/me/thrust/main.cu"));
	assert_int_equal(gpc_frame_class_of("thrust::THRUST_300001_SM_750_NS::detail::vector_base<"
					    "float, alloc>::range_init(int)",
				 "/opt/app/train"),
		GPC_FRAME_PLUMBING);
	assert_int_equal(
		gpc_frame_class_of("cub::CUB_NS::Sort()", "/opt/app/train"), GPC_FRAME_PLUMBING);
	assert_int_equal(
		gpc_frame_class_of("cuda::step(int)", "/opt/app/train"), GPC_FRAME_PROGRAM);
}

TEST(code_that_dataclasses_generate_is_not_the_programs)
{
	assert_true(gpc_library_holds_code("<string>", 8, "__create_fn__.__init__", 22));
	assert_false(gpc_library_holds_code("<string>", 8, "__create_fn", 11));
	assert_false(gpc_library_holds_code("<string>", 8, "main", 4));
	assert_true(gpc_library_holds_code("<frozen runpy>", 14, "main", 4));
}

#define HASH "nco3g7ezf3sbwoqtvaanl4w7kwggymhomxtejlovndn2fiyh6pm"

TEST(what_torch_compile_writes_is_known_in_any_folder)
{
	assert_true(holds("/scratch/job/nc/c" HASH ".py"));
	assert_true(holds("/nc/c" HASH ".py"));
	assert_false(holds("nc/c" HASH ".py"));
	assert_false(holds("/scratch/nd/c" HASH ".py"));
	assert_false(holds("/scratch/bc/c" HASH ".py"));
	assert_false(holds("/scratch/xnc/c" HASH ".py"));
	assert_false(holds("/scratch/nc/xc" HASH ".py"));
	assert_false(holds("/scratch/nc/d" HASH ".py"));
	assert_false(holds("/scratch/nc/c" HASH ".pi"));
	assert_false(holds("/scratch/no/cno_is_a_module_of_which_the_name_is_as_long_as_that.py"));
	assert_false(holds("/scratch/no/cnois1a8module9of0which2the3name4is5as6long7as2thatx.py"));
}
