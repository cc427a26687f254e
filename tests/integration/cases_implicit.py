# SPDX-License-Identifier: Apache-2.0
"""Memory that the driver takes for itself: contexts and modules, measured around the calls that cause it."""
import os
import re
import shutil

from harness import MIB, expect, expect_equal

N_STEPS = 12
MODULE = 2 * MIB
THREADS = 11  # the step in which four threads load and unload

# Other cases have contexts of size 0, so that our accounting has only the program's requests.
CONTEXTS = "memory:4GiB,context:300MiB"
OURS = ("requested_bytes", "rounding_bytes", "pending_bytes", "cached_bytes", "direct_bytes")


def run(world, steps, **extra):
    return world.run([world.program("implicit"), str(steps)], sim=CONTEXTS, **extra)


def used_of(done):
    """The names of the steps, and the device's used bytes after each."""
    expect_equal("the exit status", (done.status, done.err), (0, ""))
    return [(name, int(used)) for name, used in (line.split(": ") for line in done.out.splitlines())]


def balance_of(world):
    return world.report_json("summary")["devices"][0]["balance"]


def forget(world):
    os.unlink(world.recording())


def case_the_books_hold_contexts_and_modules_to_the_byte(world):
    """After each step, in a run of its own."""
    for steps in range(1, N_STEPS + 1):
        if steps == THREADS:
            continue
        name, used = used_of(run(world, steps))[-1]
        balance = balance_of(world)
        expect_equal(f"in the books after '{name}'", sum(balance[line] for line in OURS), used)
        forget(world)


def case_of_what_threads_load_at_once_each_is_in_the_books_whole_or_not_at_all(world):
    """Overlap is a matter of chance: several runs, without stacks, which slow the calls down."""
    for _ in range(8):
        name, used = used_of(run(world, THREADS, GPUCACHE_CONF="stacks:off"))[-1]
        expect_equal("the step", name, "use threads")
        balance = balance_of(world)
        rest = used - sum(balance[line] for line in OURS)
        expect(rest >= 0 and rest % MODULE == 0, f"{rest} bytes are not in the books")
        forget(world)


def case_a_program_takes_no_more_because_it_is_measured(world):
    plain = used_of(run(world, N_STEPS, with_us=False))
    measured = used_of(run(world, N_STEPS))
    expect_equal("what the device says", measured, plain)


def case_contexts_and_modules_are_no_leaks(world):
    run(world, 6)
    expect_equal("the bytes held", world.held_bytes(), 0)
    text = world.report("summary", world.recording()).out
    expect(" by call site" in text, "nobody holds anything")
    expect("  contexts\n" in text and "  modules\n" in text, f"they have no rows of their own: {text}")


def case_a_context_is_no_row_of_the_place_whose_call_made_it(world):
    """Nor in the list of holders of a failure, nor at the peak."""
    done = world.run([world.program("train"), "--oom"], sim="memory:1GiB,context:300MiB")
    expect("300.00 MiB   29.3 %    contexts\n" in done.err, f"the short form has no line of the context: {done.err}")
    expect_equal("lines of the context", done.err.count("contexts"), 1)
    for view in "summary", "oom", "--at=peak":
        text = world.report(view, world.recording()).out
        expect(re.search(r"300\.00 MiB +[0-9.]+ % +contexts\n", text), f"{view} has no row of the context: {text}")
    device = world.report_json("top", None, "--at=peak")["devices"][0]
    functions = {row["function"].split()[0]: row["inclusive_bytes"] for row in device["functions"]}
    expect_equal("the context, at the peak", functions["(contexts)"], 300 * MIB)
    expect_equal("the rest", functions["main"], device["live_bytes"] - 300 * MIB)


def case_the_context_is_of_who_made_it(world):
    run = world.run([world.program("libraries")], GPUSIM="memory:4GiB,context:123MiB")
    own = int(run.out.splitlines()[0].split()[1])
    rows = world.report_json("summary")["devices"][0]["libraries"]
    expect_equal("what the program itself holds",
                 [row["live_bytes"] for row in rows if row["library"] == "libraries"], [own + 123 * MIB])


def case_without_nvml_the_first_context_stays_outside_the_books(world):
    """The second context is measured by querying the first."""
    simcuda = os.path.join(world.folder, "no-nvml")
    shutil.copytree(world.library_path, simcuda, symlinks=True)
    os.unlink(os.path.join(simcuda, "libnvidia-ml.so.1"))
    world.library_path = simcuda
    done = run(world, 4)
    used = used_of(done)[-1][1]
    balance = balance_of(world)
    expect_equal("in the books", sum(balance[line] for line in OURS), used - 300 * MIB)


def case_a_module_gets_the_memory_that_the_cache_held(world):
    """Freed memory is cached; then a module needs as much as the whole cache."""
    command = [world.program("implicit"), "2"]
    run = world.run(command, GPUSIM="memory:2GiB,fail:cuModuleLoadData/1/2/1")
    expect_equal("the exit status", (run.status, run.err), (0, ""))
    expect_equal("the calls", world.count_calls()["rescued"], 1)


def case_a_module_that_finds_no_memory_is_told_as_that(world):
    run = world.run([world.program("implicit"), "2"], GPUSIM="memory:2GiB,module:3GiB")
    expect_equal("the exit status", run.status, 1)
    expect("cuModuleLoadData(&modules[0], image): 2" in run.err, f"the driver's error is not in: {run.err}")
    oom = world.report_json("oom")
    expect_equal("the kind", oom["request"]["kind"], "modules")
    text = world.report("oom", world.recording()).out
    expect("modules; the driver names no size" in text, f"not said: {text}")
