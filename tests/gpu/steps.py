# SPDX-License-Identifier: Apache-2.0
"""The steps run on a GPU.  Each gets the suite, a World of its own, and a dictionary for its figures."""
import os
import shutil
import signal
import sys

import errors
import steps_driver
import steps_frameworks
from exchange import exchange
from common import expect_same, need_runtime
from harness import MIB, TOP, Skip, expect, expect_equal

HERE = os.path.dirname(os.path.abspath(__file__))


def step_conformance(suite, world, data):
    program = os.path.join(suite.build, "release/tests/conformance/test_conformance_cuda")
    if not os.path.exists(program):
        raise Skip("the build has no conformance program; `make gpu` builds it")
    done = world.run([program, "libcuda.so.1"], with_us=False)
    lines = (done.out + done.err).strip().splitlines()
    data["failed"] = [line for line in lines if line.startswith("not ok")][:20]
    data["questions"] = sum(line.startswith(("ok", "not ok")) for line in lines)
    expect_equal("the exit status", done.status, 0)


def step_runtime_program(suite, world, data):
    need_runtime(suite)
    expect_same(world, [world.program("train"), "--print-live"], data, "one thread")


def step_runtime_threads(suite, world, data):
    need_runtime(suite)
    expect_same(world, [world.program("train"), "--threads", "4", "--steps", "50"], data, "four threads")


def step_driver_program(suite, world, data):
    for door in ("link", "dlsym", "proc"):
        expect_same(world, [world.program("train_driver"), "--door", door], data, door)
        os.unlink(world.recordings()[-1])


def step_python_program(suite, world, data):
    expect_same(world, world.script("train.py"), data, "train.py")


def step_python_leak(suite, world, data):
    done = world.run([*world.script("train.py"), "--leak", "--grow", "1000000", "--steps", "5"])
    expect_equal("the exit status", done.status, 0)
    text = world.report("leaks", world.recording()).out
    data["first lines"] = text.splitlines()[:12]
    expect("remember_loss" in text and "train.py:" in text, "the report does not name train.py's line")


def compile_with_nvcc(suite, world, source, program, *flags):
    if suite.sim:
        raise Skip("the real CUDA runtime does not run on the simulated driver")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise Skip("there is no nvcc")
    path = os.path.join(world.folder, program)
    done = world.run([nvcc, "-cudart", "static", *flags, "-o", path, source, "-lpthread"], with_us=False)
    expect_equal(f"nvcc's exit status ({done.err.strip()[-300:]})", done.status, 0)
    return path


def step_static_runtime(suite, world, data):
    source = os.path.join(TOP, "tests", "programs", "train.c")
    program = compile_with_nvcc(suite, world, source, "train_static", "-Xcompiler", "-D_GNU_SOURCE")
    expect_same(world, [program], data, "static runtime")


def step_reuse_race(suite, world, data):
    program = compile_with_nvcc(suite, world, os.path.join(HERE, "reuse_race.cu"), "reuse_race")
    for conf in ("cache:on", "free_order:host", "cache:off"):
        done = world.run([program], GPUCACHE_CONF=conf)
        data[conf] = f"{done.out.strip()}; {done.err.strip()}"
        expect_equal(f"the exit status with {conf}", done.status, 0)
        expect_equal(f"stdout with {conf}", done.out, "wrong words: 0\n")


def step_out_of_memory(suite, world, data):
    need_runtime(suite)
    done = world.run([world.program("train"), "--oom"], GPUCACHE_CONF="limit:2GiB")
    expect_equal("the exit status", done.status, 1)
    expect("OUT OF MEMORY" in done.err, f"the short form is missing: {done.err!r}")
    oom = world.last_oom()
    data["verdict"] = oom["verdict"]
    data["balance"] = oom["lines"]
    data["difference"] = sum(oom["lines"].values()) - oom["total"]
    with open(os.path.join(suite.out, "oom_report.txt"), "w", encoding="utf-8") as file:
        file.write(done.err.replace(world.folder + "/", ""))
        file.write("\n" + world.report("oom", world.recording()).out.replace(world.folder + "/", ""))
    expect_equal("the verdict", oom["verdict"], "limit")
    expect_equal("the difference of the balance", data["difference"], 0)


def step_device_exhausted(suite, world, data):
    need_runtime(suite)
    # Steps of 1/16 of the device: whatever its size, it is full after few steps, and nothing is written there.
    total = world.device_total_bytes()
    done = world.run([world.program("train"), "--oom", "--grow", str(total // 16)])
    expect_equal("the exit status", done.status, 1)
    oom = world.last_oom()
    data["verdict"] = oom["verdict"]
    data["balance"] = oom["lines"]
    expect(oom["verdict"] in ("growth", "exhausted", "spike"), f"the verdict is {oom['verdict']}")


def step_kill(suite, world, data):
    need_runtime(suite)
    child, live = world.start_and_hold([world.program("train"), "--hold-at", "6", "--grow", str(5 * MIB)])
    child.send_signal(signal.SIGKILL)
    child.wait()
    data["live bytes"] = live
    expect_equal("the state", world.state(), "killed")
    expect_equal("the bytes held", world.held_bytes(), live)


def step_misuse(suite, world, data):
    need_runtime(suite)
    wrong = []
    for mode in world.run([world.program("misuse"), "list"], with_us=False).out.split():
        plain = world.run([world.program("misuse"), mode], with_us=False)
        ours = world.run([world.program("misuse"), mode])
        data[mode] = "; ".join(plain.out.splitlines())
        if (plain.status, plain.out) != (ours.status, ours.out):
            wrong.append(f"{mode}: with us {ours.status}, {'; '.join(ours.out.splitlines())}")
    expect(not wrong, "\n".join(wrong))


def step_green_contexts(suite, world, data):
    """Checks our assumption about green contexts: their memory belongs to the primary context."""
    expect_same(world, world.script("green.py"), data, "green.py")


def step_errors(suite, world, data):
    need_runtime(suite)
    rows = errors.read_rows(world)
    wrong = []
    # What is only recorded goes to the driver either way; here time is short.
    for (name, api), codes in errors.ask_all(world, rows, errors.WAYS[:2]).items():
        row = next(row for row in rows if row.name == name)
        # The table has the code where we differ on purpose.
        wanted = row.cached if row.cached != row.expected else codes["plain"]
        seen = "as expected" if codes["plain"] == row.expected else f"seen: {codes['plain']}"
        data[f"{name}, {api}"] = f"expected {row.expected}, {seen}; {row.seen}"
        if codes["cache on"] != wanted:
            wrong.append(f"{name} ({api}): {codes['cache on']}, not {wanted}")
    expect(not wrong, "\n".join(wrong))


def reach(suite, world, door, with_us=True):
    """{row of symbols.def: (object, symbol)} found by this door; see tests/doors/reach.c."""
    program = os.path.join(suite.build, "release/doors/reach")
    if not os.path.exists(program):
        raise Skip("the build has no tests/doors; `make gpu` builds them")
    done = world.run([program, door], with_us=with_us)
    expect_equal(f"reach {door}: exit status ({done.err.strip()[-200:]})", done.status, 0)
    return {name: (place, symbol) for name, place, symbol in (line.split(" ") for line in done.out.splitlines())}


def step_doors(suite, world, data):
    exported = reach(suite, world, "handle", with_us=False)
    there = [name for name, (place, _) in exported.items() if place != "nothing"]
    data["functions that this driver has"] = f"{len(there)} of {len(exported)}"
    given = reach(suite, world, "v2", with_us=False)
    data["answered by cuGetProcAddress with another pointer"] = [n for n in there if given[n] != exported[n]]
    doors = ["handle", "default", "next", "v1", "v2"]
    if suite.sim or 13 in suite.cudart:
        doors.append("entry-version")
    for door in doors:
        found = reach(suite, world, door)
        wrong = [f"{name}: {found[name]}" for name in there if found[name] != ("libgpucache.so", name)]
        expect(not wrong, f"{door}: {wrong[:5]}")


def step_exchange(suite, world, data):
    """Memory between processes; above all, whether this driver refuses the handle of a block inside a segment."""
    need_runtime(suite)
    for inside in (False, True):
        for ours_exports, ours_imports in ((False, False), (False, True), (True, False), (True, True)):
            ends = ["with" if ours else "without" for ours in (ours_exports, ours_imports)]
            where = f"{'inside' if inside else 'base'}, exporter {ends[0]} us, importer {ends[1]}"
            data[where] = exchange(world, ours_exports, ours_imports, inside)
            if not (inside and ours_exports and not ours_imports):
                expect_equal(where, data[where], "right")


def step_pair_costs(suite, world, data):
    need_runtime(suite)
    for size, count, streams in ((4096, 2000, 0), (MIB, 2000, 0), (64 * MIB, 500, 0), (MIB, 2000, 4)):
        command = [world.program("pairs"), str(size), str(count), str(streams)]
        plain = world.run(command, with_us=False)
        ours = world.run(command)
        bare = world.run(command, GPUCACHE_CONF="stacks:off")
        expect_equal("the exit status", (plain.status, ours.status, bare.status), (0, 0, 0))
        figures = [run.out.split("mean_ns ")[1].split()[0] for run in (plain, ours, bare)]
        data[f"{size} bytes, {streams} streams"] = \
            "ns a pair: {} without us, {} with us, {} with us and stacks off".format(*figures)


# Name, limit in seconds, function; most important first.
STEPS = (
    ("the driver's contract holds on this GPU", 60, step_conformance),
    ("a runtime program runs as without us", 30, step_runtime_program),
    ("a threaded runtime program runs as without us", 30, step_runtime_threads),
    ("a driver program runs as without us, by each door", 30, step_driver_program),
    ("a Python program runs as without us", 30, step_python_program),
    ("a Python leak is named with file and line", 30, step_python_leak),
    ("a program with a static runtime runs as without us", 60, step_static_runtime),
    ("freed memory under a running kernel is not reused", 60, step_reuse_race),
    *steps_driver.MEMORY_STEPS,
    ("an out-of-memory under a limit is explained", 30, step_out_of_memory),
    ("an out-of-memory of the whole device is explained", 30, step_device_exhausted),
    ("after kill -9 the bytes held are those printed", 30, step_kill),
    ("every misuse gets the driver's error code", 20, step_misuse),
    ("every door of this driver leads to our functions", 60, step_doors),
    ("green contexts share the memory of their primary one", 30, step_green_contexts),
    ("two processes exchange a block or get a clear error", 60, step_exchange),
    *steps_driver.ASKING_STEPS,
    ("what a pair of cudaMalloc and cudaFree costs", 30, step_pair_costs),
    *steps_frameworks.STEPS,
    ("every row of the table of errors gets the driver's code", 120, step_errors),
)
