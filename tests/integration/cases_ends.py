# SPDX-License-Identifier: Apache-2.0
"""Ways in which a program ends after it ran out of memory: one says why, once, and where nothing is wrong, none does."""
import os
import re
import sys

from harness import Skip, expect, expect_equal

SIM = "memory:1GiB"
ENDS = ("return", "exit", "_exit", "_Exit", "quick_exit", "abort", "assert", "terminate", "handler", "in-a-handler", "child", "after-a-child",
        "thread")
LINE = r"gpucache: out of memory on GPU 0: 100\.00 MiB asked for, \w+ \(\w+\); \S*gpumem-report oom \S+\n"


def told(text):
    """(lines at failures, blocks at the end)"""
    return len(re.findall(LINE, text)), len(re.findall(r"^WHY ", text, re.M))


def expect_told(world, way, what, *wanted, **extra):
    """Ends as without us, and tells `wanted`."""
    command = [world.program("ends"), way, what]
    plain = world.run(command, with_us=False, sim=SIM)
    if plain.status == 77:
        raise Skip("no libstdc++ here")
    ours = world.run(command, sim=SIM, **extra)
    expect_equal(f"{way} {what}: the end", (ours.status, ours.out), (plain.status, plain.out))
    expect_equal(f"{way} {what}: lines and blocks", told(ours.err), wanted)
    blocks = re.findall(r"^gpucache: OUT OF MEMORY.*?^FULL [^\n]*\n", ours.err, re.M | re.S)
    for block in blocks:
        expect(len(block) <= 2000, f"{way}: {len(block)} bytes")
        expect_equal(f"{way}: the second line begins", block.splitlines()[1][:4], "WHY ")
    world.forget_recordings()
    return ours


def case_every_end_says_once_why(world):
    for way in ENDS:
        expect_told(world, way, "fatal", 1, 1)


def case_a_death_by_a_signal_leaves_the_line_of_the_failure(world):
    expect_told(world, "trap", "fatal", 1, 0)


def case_nothing_is_said_of_a_failure_where_the_program_ends_well(world):
    for way in ENDS:
        if way not in ("abort", "assert", "terminate"):
            expect_told(world, way, "passed", 1, 0)


def case_the_report_of_a_failure_says_that_the_program_ended_well(world):
    for way, wanted in (("passed", "made no such request again, and ended with status 0"), ("fatal", "did not recover from it")):
        world.run([world.program("ends"), "return", way], sim=SIM)
        expect(f"failure 1: the program {wanted}" in world.report("oom", world.recording()).out, f"{way}: {wanted}")
        world.forget_recordings()


def case_nothing_is_said_of_a_failure_from_which_the_program_recovered(world):
    for way in ("return", "_exit", "quick_exit", "abort", "terminate", "handler"):
        expect_told(world, way, "recovered", 1, 0)
        expect_told(world, way, "less", 1, 1)


def case_who_wants_no_report_gets_none_at_any_end(world):
    for way in ENDS:
        expect_told(world, way, "fatal", 0, 0, GPUCACHE_CONF="oom_report:never")


def case_what_was_printed_at_once_is_not_printed_at_the_end(world):
    for way in ("return", "abort", "_exit", "handler"):
        expect_told(world, way, "fatal", 0, 1, GPUCACHE_CONF="oom_report:always")


def case_the_recording_knows_what_ended_the_program(world):
    for way in ("return", "_exit", "abort"):
        world.run([world.program("ends"), way], sim=SIM)
        oom = world.report_json("oom")
        expect_equal(f"{way}: recovered", oom["recovered"], False)
        world.forget_recordings()


PROBE = """
import ctypes
pointer = ctypes.c_void_p()
assert ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 34)) == 2
"""


def case_a_failure_in_a_run_that_ended_well_is_no_out_of_memory(world):
    result = world.run([sys.executable, "-c", PROBE], sim=SIM)
    expect_equal("the program", (result.status, len(result.err.splitlines())), (0, 1))
    summary = world.report("summary", world.recording(), "--fail-on=oom")
    expect_equal("the exit status", summary.status, 0)
    expect("OUT OF MEMORY" not in summary.out, summary.out)
    expect("1 failure recovered" in " ".join(summary.out.split()), summary.out)
    expect("made no such request again, and ended with status 0" in " ".join(world.report("oom", world.recording()).out.split()),
           "it is still told by its number")


FILL = """
import ctypes, os
cudart, pointer, n = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p(), 0
while cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t((3 << 20) + n % 7 * 4096)) == 0:
    n += 1
os._exit(1)
"""


def case_the_peak_is_no_less_than_what_a_failure_found(world):
    world.run([sys.executable, "-c", FILL], sim=SIM)
    held = [world.report_json("top", "--at=" + at, world.recording())["devices"][0]["live_bytes"] for at in ("peak", "oom")]
    expect_equal("held at the peak and at the failure", held[0], held[1])


WORKERS = """
import ctypes, multiprocessing, os, sys
cudart = ctypes.CDLL("libcudart.so.13")

def work():
    pointer = ctypes.c_void_p()
    while cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(100 << 20)) == 0:
        pass
    raise MemoryError

if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    worker.start()
    worker.join()
    print(worker.exitcode, flush=True)
    os._exit(1)
"""


def case_a_worker_of_multiprocessing_says_why_and_its_parent_does_not_repeat_it(world):
    script = os.path.join(world.folder, "workers.py")
    with open(script, "w", encoding="ascii") as file:
        file.write(WORKERS)
    for method in ("fork", "spawn", "forkserver"):
        ours = world.run([sys.executable, script, method], sim=SIM)
        expect_equal(f"{method}: the end", (ours.status, ours.out), (1, "1\n"))
        expect_equal(f"{method}: lines and blocks", told(ours.err), (1, 1))
        world.forget_recordings()


def case_the_command_for_the_whole_report_runs_in_any_shell(world):
    """Also where no folder of PATH has it; where one has, its name is enough."""
    for path in "/usr/bin:/bin", f"/usr/bin:/bin:{world.build}":
        done = world.run([world.program("ends"), "exit", "fatal"], sim=SIM, PATH=path)
        commands = re.findall(r"^FULL   (.*)$", done.err, re.M) + re.findall(r"; (\S+ oom \S+)$", done.err, re.M)
        expect_equal(f"commands with {path}", len(commands), 2)
        for command in commands:
            expect_equal(f"{command}: its name alone", command.startswith("gpumem-report "), world.build in path)
            text = world.run(["/bin/sh", "-c", command], with_us=False, PATH=path)
            expect(text.status == 0 and "OUT OF MEMORY" in text.out, f"{command}: {text}")
        world.forget_recordings()
