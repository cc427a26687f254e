# SPDX-License-Identifier: Apache-2.0
"""Programs that find the driver like popular stacks: our accounting has their memory to the byte."""
import os
import signal
import sys

from harness import TOP, expect, expect_equal

# What the books have of a device.
LINES = ("requested", "rounding", "pending", "cached", "direct")


def stack(world, name):
    if name.endswith(".py"):
        return [sys.executable, "-B", os.path.join(TOP, "tests", "stacks", name)]
    return [os.path.join(world.build, "stacks", name)]


def look(world, name, kinds, **extra):
    """Starts the program; while it holds, returns the device's used bytes, and ours by the balance sheet."""
    extra["STACKS"] = os.path.join(world.build, "stacks")
    child, used = world.start_and_hold([*stack(world, name), *kinds], **extra)
    # Before the first allocation there is none.
    balance = world.report_json("summary")["devices"][0]["balance"] or {}
    child.send_signal(signal.SIGKILL)
    child.wait()
    world.forget_recordings()
    return used, sum(balance.get(line + "_bytes", 0) for line in LINES)


def expect_in_the_books(world, name, *kinds, **extra):
    """Compares the bytes beyond the context, which the program does not request, for each kind and for all."""
    at_start = look(world, name, [], **extra)
    for taken in [*([kind] for kind in kinds), kinds]:
        used, booked = (end - start for end, start in zip(look(world, name, taken, **extra), at_start))
        expect_equal(f"{name} {taken}: what is in the books", booked, used)
        expect(used > 0, f"{name} {taken} took nothing")


def case_memory_of_a_program_that_nvcc_linked_is_in_the_books(world):
    expect_in_the_books(world, "nvcc", "plain", "async")


def case_memory_of_PyTorch_is_in_the_books(world):
    expect_in_the_books(world, "torch.py", "plain", "async", "mapped")


def case_memory_of_a_plugin_that_looks_past_us_is_in_the_books_with_the_auditor(world):
    auditor = os.path.join(world.build, "libgpucache-audit.so")
    expect_in_the_books(world, "torch.py", "plain", "async", "mapped", DEEPBIND="1", LD_AUDIT=auditor)


def case_memory_of_XLA_is_in_the_books(world):
    expect_in_the_books(world, "xla", "plain", "async")


def case_memory_of_CuPy_is_in_the_books(world):
    expect_in_the_books(world, "cupy.py", "plain", "async")


def case_memory_of_numba_is_in_the_books(world):
    expect_in_the_books(world, "numba.py", "plain", "async")
    expect_in_the_books(world, "numba.py", "plain", "async", NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM="1")


def case_memory_of_cuda_python_is_in_the_books(world):
    expect_in_the_books(world, "cuda_python", "plain", "async", "mapped")
    expect_in_the_books(world, "cuda_python", "plain", "async", CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")


def case_memory_of_NCCL_is_in_the_books(world):
    expect_in_the_books(world, "nccl", "plain", "mapped")


def case_memory_of_vLLM_is_in_the_books(world):
    expect_in_the_books(world, "vllm.py", "plain", "mapped")


def case_memory_beside_Triton_is_in_the_books(world):
    expect_in_the_books(world, "triton", "plain", "async")


def case_memory_that_UCX_looks_at_is_in_the_books(world):
    expect_in_the_books(world, "ucx", "plain", "async", "mapped")


def case_the_stacks_run_without_us_as_well(world):
    for name in ("nvcc", "torch.py", "xla", "cupy.py", "numba.py", "cuda_python", "nccl", "vllm.py", "triton", "ucx"):
        child, used = world.start_and_hold([*stack(world, name), "plain", "async", "mapped"], with_us=False,
                                           STACKS=os.path.join(world.build, "stacks"))
        child.send_signal(signal.SIGKILL)
        child.wait()
        expect(used > 0, f"{name} took nothing")
