# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --fit of a program that sizes itself by what is free: from which size on it runs, and what a GPU leaves it."""
import json
import os
import sys

from cases_fit import left_over
from cases_launcher import launch
from harness import MIB, expect, expect_equal

WEIGHTS, LEAST, PART = 512, 100, 80  # MiB, MiB, percent of the GPU

SERVER = f"""import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
free, total, memory = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()


def load_weights():
    assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t({WEIGHTS} << 20)) == 0


def make_cache(size):
    assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
    print("cache", size)


load_weights()
cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
size = total.value * {PART} // 100 - (total.value - free.value)
if size < {LEAST} << 20:
    sys.exit("no room for the cache")
make_cache(size)
"""


def server(world, name="serve.py", text=SERVER):
    path = os.path.join(world.folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return [sys.executable, path]


def cache_on(world, memory, gpu="h100"):
    """What a run on a GPU of this size shows; 0: it does not load."""
    run = launch(world, "--off", "--sim", gpu, "--sim-options", f"memory:{memory}", *server(world))
    return int(run.out.split()[1]) if run.status == 0 else 0


def case_fit_of_a_program_that_sizes_itself_says_what_each_gpu_leaves(world):
    result = launch(world, "--fit", "--yes", "--json", "--on", "l4,600MiB,h100", *server(world))
    answer = json.loads(result.out)
    expect_equal("the end", (result.status, answer["sizes_itself"], left_over(world)), (1, True, []))
    expect("make_cache" in answer["cache"], f"the cache is {answer['cache']}")
    for row in answer["leaves"]:
        gpu = "h100" if row["gpu"] == "600MiB" else row["gpu"]
        cache = cache_on(world, row["total_bytes"], gpu)
        expect_equal(f"on {row['gpu']}", (row["runs"], row["cache_bytes"]), (cache > 0, cache))
    loads, fails = answer["loads_bytes"], answer["fails_bytes"]
    expect_equal("what runs", (cache_on(world, loads, "l4") > 0, cache_on(world, fails, "l4")), (True, 0))
    expect(loads - fails <= 32 * MIB + loads // 32, f"runs at {loads}, fails at {fails}")
    return f"runs at {loads // MIB} MiB, not at {fails // MIB}"


def case_fit_of_a_program_that_sizes_itself_says_so_in_words(world):
    once = " ".join(launch(world, "--fit", *server(world)).out.split())
    expect("it took 79.9 % of the 1.00 TiB" in once and "--fit --yes" in once, once)
    shown = " ".join(launch(world, "--fit", "--yes", "--on", "l4", *server(world)).out.split())
    for words in "of each byte that a GPU has more, its cache takes 80 %", "the cache: make_cache serve.py:11", "it failed: no room":
        expect(words in shown, f"{words!r} is not in {shown}")


def case_fit_of_a_program_that_takes_much_but_does_not_size_itself_says_so(world):
    command = server(world, text=SERVER.replace(f"total.value * {PART} // 100 - (total.value - free.value)", "200 << 30"))
    result = launch(world, "--fit", "--yes", *command)
    expect("it does not size itself" in result.out, result.out)


def case_fit_with_yes_of_another_program_is_as_without(world):
    command = [world.program("train"), "--steps", "4"]
    plain, yes = (json.loads(launch(world, "--fit", *options, "--json", "--on", "l4", *command).out) for options in ([], ["--yes"]))
    expect_equal("the answer", yes["caches"], plain["caches"])
    expect_equal("the hint", plain["may_size_itself"], False)
    several = launch(world, "--fit", "--yes", "--on", "l4,h100", *command)
    expect_equal("the status", several.status, 2)
    expect("need --sweep" in several.err, several.err)
