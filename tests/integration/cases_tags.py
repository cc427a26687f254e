# SPDX-License-Identifier: Apache-2.0
"""Memory by ranges that a program names: gpucache_tag_push, and NVTX in programs that do not know us."""
import os
import re
import shutil
import subprocess

from cases_launcher import launch
from harness import MIB, Skip, expect, expect_equal

# Another NVTX tool: counts the ranges and prints the number at exit.
PROFILER = r"""
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
static int n;
static int push(const char *name) { (void)name; return n++; }
__attribute__((destructor)) static void say(void) { fprintf(stderr, "profiler: %d\n", n); }
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find)
{
    const NvtxExportTableCallbacks *callbacks = find(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    return 1;
}
"""

QUIET = "oom_report:never"


def library(world):
    return os.path.join(world.build, "libgpucache.so")


def nvtx_program(world):
    program = world.program("nvtx")
    if not os.path.exists(program):
        raise Skip("no nvtx3 headers here, so the program that uses them was not built")
    return program


def by_tag(view):
    """MiB by label; None: in no range."""
    return {row["tag"]: row["live_bytes"] / MIB for row in view["tags"]}


def held(world):
    """By tag, when it ended; `summary` and `leaks` agree."""
    ended, summary = (world.report_json(view)["devices"][0] for view in ("leaks", "summary"))
    expect_equal("the tags of the summary", summary["tags"], ended["tags"])
    return by_tag(ended)


EPOCH = {"epoch/batch": 16, "epoch": 8, None: 4}


def python_ranges(world, how, **extra):
    result = world.run(world.script("tags.py") + [how], **extra)
    if result.status == 3:
        raise Skip("no nvtx package for Python here")
    expect_equal("the run", (result.status, result.err), (0, ""))
    expect_equal("MiB by tag", held(world), EPOCH)
    text = world.report("leaks", world.recording()).out
    expect("epoch/batch\n" in text and "(in no range)\n" in text, text[-600:])


def case_ranges_of_the_C_functions_are_in_the_recording(world):
    python_ranges(world, "api")


def case_ranges_of_the_nvtx_package_are_in_the_recording(world):
    python_ranges(world, "nvtx", NVTX_INJECTION64_PATH=library(world))


def case_a_failure_says_in_which_range(world):
    # The context is created inside a range, but does not count for it.
    world.run(world.script("tags.py") + ["api", str(8 << 30)], GPUCACHE_CONF=QUIET, sim="memory:4GiB,context:300MiB")
    oom = world.report_json("oom")
    expect_equal("the range of the request", oom["request"]["tag"], "epoch/batch")
    expect_equal("MiB by tag", by_tag(oom), {"epoch/batch": 16, "epoch": 8})
    text = world.report("oom", world.recording()).out
    expect("in the range epoch/batch\n" in text and "\nTAGS " in text, text)


def expect_nvtx_ranges(world):
    tags = held(world)
    steps = {name: tags.pop(name) for name in list(tags) if name and name.startswith("step ")}
    expect_equal("MiB by tag", tags, {"train": 8, "train/net:forward": 16, "net:forward": 4,
                                      "gr\u00f6\u00dfe/\u2264 \U0001f642": 32, None: 2 + 64})
    # The first steps have names of their own, the others share one.
    expect_equal("MiB of all steps", sum(steps.values()), 100)
    expect("step 1" in steps and steps.get("step *", 0) > 50, f"{sorted(steps)}")
    # The text report folds them into one row.
    rows = re.findall(r"([\d.]+) MiB .*  (step .*)", world.report("leaks", world.recording()).out)
    expect_equal("the rows of steps", rows, [("100.00", "step *")])


def case_nvtx_ranges_of_a_program_that_knows_nothing_of_us_are_in_the_recording(world):
    program = nvtx_program(world)
    result = world.run([program], NVTX_INJECTION64_PATH=library(world))
    expect_equal("the run", (result.status, result.out, result.err), (0, "levels: 0 0 0 0 -1\n", ""))
    expect_nvtx_ranges(world)


def case_the_launcher_lets_nvtx_find_us(world):
    result = launch(world, "--sim", "4GiB", "--sim-options", "context:0", "-o", world.pattern, nvtx_program(world),
                    NVTX_INJECTION64_PATH=None)
    expect_equal("the run", (result.status, result.err), (0, ""))
    expect_nvtx_ranges(world)


def case_without_the_variable_nvtx_does_nothing_and_the_rest_is_as_ever(world):
    result = world.run([nvtx_program(world)], NVTX_INJECTION64_PATH=None)
    expect_equal("the run", (result.status, result.out, result.err), (0, "levels: -2 -2 -2 -2 -2\n", ""))
    expect_equal("the tags", held(world), {})


def case_a_profiler_keeps_its_ranges(world):
    program = nvtx_program(world)
    source = os.path.join(world.folder, "profiler.c")
    profiler = os.path.join(world.folder, "profiler.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROFILER)
    headers = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    if not shutil.which("gcc") or not os.path.isdir(os.path.join(headers, "nvtx3")):
        raise Skip("no compiler or no nvtx3 headers here")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", profiler, "-isystem", headers, source], check=True)
    result = launch(world, "--sim", "4GiB", "-o", world.pattern, program, NVTX_INJECTION64_PATH=profiler)
    expect_equal("the run", (result.status, result.err), (0, "profiler: 1\n"))
    expect_equal("our tags", held(world), {})


def case_switched_off_or_not_preloaded_nvtx_finds_nothing(world):
    program = nvtx_program(world)
    plain = world.run([program], with_us=False)
    off = world.run([program], GPUCACHE="0", NVTX_INJECTION64_PATH=library(world))
    alone = world.run([program], with_us=False, NVTX_INJECTION64_PATH=library(world))
    expect_equal("switched off", (off.status, off.out, off.err), (plain.status, plain.out, plain.err))
    expect_equal("not preloaded", (alone.status, alone.err), (0, ""))
    expect_equal("the recordings", world.recordings(), [])
