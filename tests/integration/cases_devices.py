# SPDX-License-Identifier: Apache-2.0
"""Several GPUs in one process: the figures of one exclude memory on the others."""
import os
import re
import sys

from harness import GIB, MIB, TOP, expect, expect_equal

EVERYWHERE = 64 * MIB
WEIGHTS = 1500 * MIB


# The program goes on after its failure, and ends well.
AT_ONCE = {"GPUCACHE_CONF": "oom_report:always"}


def run_out(world, mode, n_gpus, failing, **extra):
    """The short form of the failure."""
    result = world.run([*world.script("devices.py"), mode, str(n_gpus), str(failing)],
                       sim=f"memory:4GiB,context:100MiB,devices:{n_gpus}", **{**AT_ONCE, **extra})
    expect_equal("the exit status", result.status, 0)
    expect(f"OUT OF MEMORY on GPU {failing} " in result.err, f"no short form: {result.err[-600:]}")
    return result.err


def sums_of(device):
    """(held in all, by call site) of one GPU's holders."""
    sites = {}
    for row in device["holders"]:
        name = next((n for n in ("fill_cache", "load_weights", "everywhere") if re.search(rf"\b{n}[ :]", row["where"])), "other")
        sites[name] = sites.get(name, 0) + row["live_bytes"]
    return sum(row["live_bytes"] for row in device["holders"]), sites


def taken_of(balance):
    return balance["total_bytes"] - balance["free_bytes"]


def expect_own_holders(world, n_gpus, failing, **extra):
    said = run_out(world, "fill", n_gpus, failing, **extra)
    expect("fill_cache" not in said, f"the holders of another GPU: {said}")
    expect("load_weights" in said and "1.46 GiB      10 blocks" in said, f"its own holders: {said}")
    oom = world.report_json("oom")
    held, sites = sums_of(oom)
    expect_equal("what fill_cache holds there", sites.get("fill_cache", 0), 0)
    expect_equal("what load_weights holds there", sites["load_weights"], WEIGHTS)
    expect_equal("what everywhere holds there", sites["everywhere"], (failing + 1) * EVERYWHERE)
    expect(held <= taken_of(oom["balance"]), f"{held} held of {taken_of(oom['balance'])} taken")
    for device in world.report_json("summary")["devices"]:
        held, sites = sums_of(device)
        expect(held <= taken_of(device["balance"]), f"GPU {device['ordinal']}: {held} bytes held")
        wanted = "load_weights" if device["ordinal"] == failing else "fill_cache"
        expect(wanted in sites and len(sites) == 3, f"GPU {device['ordinal']}: {sites}")
        expect_equal("what everywhere holds", sites["everywhere"], (device["ordinal"] + 1) * EVERYWHERE)
    for view in ("oom", "summary"):
        text = world.report(view, world.recording()).out
        expect("load_weights" in text, text)
        expect(view == "summary" or "fill_cache" not in text, text)


def case_the_second_of_two_gpus_runs_out_and_only_its_own_holders_are_named(world):
    expect_own_holders(world, 2, 1)


def case_the_first_of_two_gpus_runs_out_and_only_its_own_holders_are_named(world):
    expect_own_holders(world, 2, 0)


def case_the_third_of_four_gpus_runs_out_and_only_its_own_holders_are_named(world):
    expect_own_holders(world, 4, 2)


def case_without_a_recording_only_the_holders_of_the_full_gpu_are_named(world):
    said = run_out(world, "fill", 2, 1, GPUCACHE_CONF="record:off,oom_report:always")
    expect("fill_cache" not in said and "load_weights" in said, said)


def case_a_leak_on_a_gpu_that_allocates_seldom_is_found(world):
    for failing in (1, 0):
        said = run_out(world, "leak", 2, failing)
        expect("remember_loss" in said and "growth (likely)" in said, said)
        report = world.report("oom", world.recording()).out
        expect("the fastest growing: +" in " ".join(report.split()), report)
        held, _ = sums_of(world.report_json("oom"))
        expect(held <= 4 * GIB, f"{held} bytes held")
        world.forget_recordings()


def case_what_grew_on_another_gpu_is_no_growth_here(world):
    for failing in (1, 0):
        said = run_out(world, "still", 2, failing)
        expect("growth" not in said and "remember_loss" not in said, said)
        report = world.report("oom", world.recording()).out
        expect("growing" not in report and "remember_loss" not in report, report)
        world.forget_recordings()


def case_each_sheet_names_its_gpu_as_nvidia_smi_does(world):
    # The program's GPUs 0 and 1 are the machine's 2 and 0.  Tried before and after the first query of NVML.
    hidden = {"CUDA_VISIBLE_DEVICES": "2,0"}
    result = world.run([*world.script("devices.py"), "fill", "2", "1"],
                       sim="memory:4GiB,context:100MiB,devices:3", **hidden, **AT_ONCE)
    expect(" on GPU 1 (physical 0, " in result.err, f"the short form's first line: {result.err[:300]}")
    recording = world.recordings()[-1]
    for view in ("summary", "leaks"):
        devices = {d["ordinal"]: d for d in world.report_json(view, recording)["devices"]}
        expect_equal("the numbers", {i: d["physical_index"] for i, d in devices.items()}, {0: 2, 1: 0})
        uuids = {i: d["uuid"][-4:] for i, d in devices.items()}
        expect_equal("the UUIDs", uuids, {0: "0003", 1: "0001"})
        text = world.report(view, recording).out
        for i, d in devices.items():
            expect(f"physical {d['physical_index']}, {d['uuid']}, 0000:0{d['physical_index'] + 1}:00.0" in text,
                   f"{view} does not name GPU {i}: {text[:2000]}")
    oom = world.report_json("oom", recording)
    expect_equal("the device of the failure", (oom["device"]["ordinal"], oom["device"]["physical_index"]), (1, 0))


def case_what_was_not_freed_is_told_gpu_by_gpu(world):
    run_out(world, "fill", 3, 2)
    recording = world.recordings()[-1]
    leaks = world.report_json("leaks", recording)
    for device in leaks["devices"]:
        groups = [group for group in leaks["groups"] if group["device"] == device["ordinal"]]
        expect_equal(f"GPU {device['ordinal']}", sum(group["live_bytes"] for group in groups),
                     device["not_freed_bytes"])
    expect_equal("the sum", sum(device["not_freed_bytes"] for device in leaks["devices"]),
                 leaks["not_freed_bytes"])
    everywhere = [group["device"] for group in leaks["groups"]
                  if any(frame["function"] == "everywhere" for frame in group["stack"])]
    expect_equal("the GPUs of one line", sorted(everywhere), [0, 1, 2])


SMALL_BLOCKS = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
for device in range(3):
    cudart.cudaSetDevice(device)
    for _ in range(400):
        cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(20000))
"""


def case_what_sampled_stacks_stand_for_is_told_gpu_by_gpu(world):
    world.run([sys.executable, "-c", SMALL_BLOCKS], sim="memory:1GiB,devices:3", GPUCACHE_CONF="stacks:sampled")
    together = world.report_json("leaks")["groups"]
    for device in range(3):
        alone = world.report_json("leaks", world.recording(), "-d", str(device))["groups"]
        expect_equal(f"GPU {device}", [group for group in together if group["device"] == device], alone)


def case_a_gpu_that_no_other_process_uses_is_named(world):
    for n_gpus, wanted in ((1, False), (3, True)):
        done = world.run([world.program("train"), "--oom"], sim=f"memory:1GiB,context:300MiB,devices:{n_gpus}",
                         GPUCACHE_CONF="oom_report:always")
        expect_equal(f"named, of {n_gpus}", "part of it on GPU 1, where no other process holds memory" in done.err, wanted)
    # What the process itself holds there is no reason to say nothing, as long as there is room.
    code = ("import ctypes; from train import load_runtime; lib = load_runtime(); p = ctypes.c_void_p()\n"
            "lib.cudaSetDevice(1), lib.cudaMalloc(ctypes.byref(p), int(__import__('sys').argv[1]) << 20), lib.cudaSetDevice(0)\n"
            "while not lib.cudaMalloc(ctypes.byref(p), 64 << 20): pass")
    for n_mib, wanted in ((300, True), (900, False)):
        done = world.run([sys.executable, "-B", "-c", code, str(n_mib)], sim="memory:1GiB,context:10MiB,devices:2",
                         PYTHONPATH=os.path.join(TOP, "tests", "programs"), GPUCACHE_CONF="oom_report:always")
        expect_equal(f"named with {n_mib} MiB there", "part of it on GPU 1, where no other process holds memory" in done.err, wanted)
