# SPDX-License-Identifier: Apache-2.0
"""A library that reads how much of the GPU is free may give up by itself: no request fails, and one says why all the same."""
import os
import sys

from cases_launcher import launch
from harness import expect, expect_equal

LIBRARY = """import ctypes, os
cuda = ctypes.CDLL("libcudart.so.13")


def init_device():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 0
    assert cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0


def malloc():
    cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(int(os.environ.get("SIZE", 1 << 20))))
"""


def run(world, *lines, foreign="foreign:2GiB,", library="vllm", **extra):
    """What the last process says that calls init_device() of the library in line 2, and does what `lines` say."""
    folder = os.path.join(world.folder, "lib", "python3.12", "site-packages", library)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "worker.py"), "w", encoding="ascii") as file:
        file.write(LIBRARY)
    program = os.path.join(world.folder, "serve.py")
    with open(program, "w", encoding="ascii") as file:
        file.write("\n".join((f"import sys; from {library} import worker", "worker.init_device()", *lines, "")))
    return launch(world, "--sim", "4GiB", "--sim-options", f"{foreign}devices:1", sys.executable, program,
                  PYTHONPATH=os.path.dirname(folder), **extra)


def case_a_library_that_gives_up_beside_a_neighbour_is_told_which_part_is_free(world):
    for end in "sys.exit('too little')", "raise ValueError", "import os; os._exit(1)":
        said = " ".join(run(world, end).err.split())
        for words in ("gpucache: GAVE UP on GPU 0", "WHY neighbour (possible): no request failed",
                      "2.00 GiB is held by other processes", "serve.py:2, via", "with vLLM: gpu_memory_utilization=0.42 or less"):
            expect(words in said, f"{end}: {words!r} is not in {said}")


def case_a_library_that_gives_up_alone_is_told_what_it_holds_itself(world):
    said = " ".join(run(world, "sys.exit(1)", foreign="").err.split())
    expect("WHY exhausted (possible)" in said and "is held by this process" in said, said)


def case_nothing_is_said_of_what_a_program_has_read(world):
    for what, lines, extra in (("it ends well", ["sys.exit(0)"], {}), ("it went on", ["worker.malloc()", "sys.exit(1)"], {}),
                               ("no such library", ["sys.exit(1)"], {"library": "other"}),
                               ("oom_report:never", ["sys.exit(1)"], {"GPUCACHE_CONF": "oom_report:never"})):
        expect("GAVE UP" not in run(world, *lines, **extra).err, what)


def case_a_request_that_fails_is_told_instead(world):
    said = run(world, "worker.malloc()", "worker.init_device()", "sys.exit(1)", SIZE=str(8 << 30)).err
    expect_equal("reports", ("OUT OF MEMORY" in said, "GAVE UP" in said), (True, False))


def case_a_failure_under_a_host_that_catches_it_is_told_at_once(world):
    """A notebook's kernel does not end by it."""
    for library, n_told in (("ipykernel", 1), ("other", 0)):
        said = run(world, "worker.malloc()", "worker.malloc()", "sys.exit(0)", library=library, SIZE=str(8 << 30)).err
        expect_equal(f"reports under {library}", said.count("gpucache: OUT OF MEMORY"), n_told)
