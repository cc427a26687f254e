# SPDX-License-Identifier: Apache-2.0
"""The recording is what the program did: at its end, while it runs, and after SIGKILL."""
import os
import random
import re
import signal
import subprocess
import time

from harness import MIB, Skip, expect, expect_equal


def kill(child):
    child.send_signal(signal.SIGKILL)
    child.wait()


def expect_held_after_kill(world, command):
    child, live = world.start_and_hold(command)
    kill(child)
    expect_equal("what the program held", live > MIB, True)
    expect_equal("the state", world.state(), "killed")
    expect_equal("the bytes held", world.held_bytes(), live)


def case_after_kill_9_the_bytes_held_are_those_the_program_had_printed(world):
    expect_held_after_kill(world, [world.program("train"), "--hold-at", "7", "--grow", str(3 * MIB)])


def case_after_kill_9_of_a_driver_program_the_bytes_held_are_right(world):
    expect_held_after_kill(world, [world.program("train_driver"), "--hold-at", "9", "--grow", "777777"])


def case_after_kill_9_of_a_python_program_the_bytes_held_are_right(world):
    expect_held_after_kill(world, [*world.script("train.py"), "--hold-at", "4", "--grow", "1234567"])


def case_after_kill_9_at_any_moment_the_recording_can_be_read(world):
    """Many kills at random moments; a failure prints the seed."""
    seed = int(time.time())
    moments = random.Random(seed)
    for round_number in range(30):
        child = world.start([world.program("train"), "--steps", "1000000", "--threads", "2"])
        deadline = time.monotonic() + world.time_limit()
        while not world.recordings() and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(moments.uniform(0, 0.08))
        kill(child)
        child.communicate()
        where = f"seed {seed}, round {round_number}"
        recording = world.recording()
        expect_equal(f"the state ({where})", world.state(recording), "killed")
        held = world.held_bytes(recording)
        # Two trainers never hold more than this: 8 layers of 4 MiB, and activations.
        expect(0 <= held <= 2 * 8 * 6 * MIB, f"{held} bytes held ({where})")
        os.unlink(recording)


def case_a_running_program_can_be_looked_at(world):
    child, live = world.start_and_hold([world.program("train"), "--hold-at", "3"])
    expect_equal("the state", world.state(), "alive")
    expect_equal("the bytes held", world.held_bytes(), live)
    kill(child)


def case_a_forked_child_does_not_touch_its_parents_recording(world):
    child, live = world.start_and_hold([*world.script("fork.py"), "--hold"])
    expect_equal("the state after the child's end", world.state(), "alive")
    expect_equal("the bytes held", world.held_bytes(), live)
    kill(child)
    expect_equal("the state", world.state(), "killed")
    expect_equal("the bytes held", world.held_bytes(), live)


def case_after_a_clean_exit_nothing_is_held(world):
    expect_equal("the exit status", world.run([world.program("train"), "--steps", "5"]).status, 0)
    expect_equal("the state", world.state(), "ended")
    expect_equal("the bytes held", world.held_bytes(), 0)


def case_what_was_never_freed_is_named_with_its_function(world):
    size = 2 * MIB + 100
    command = [world.program("train"), "--leak", "--steps", "12", "--grow", str(size)]
    expect_equal("the exit status", world.run(command).status, 0)
    expect_equal("the bytes held", world.held_bytes(), 12 * size)
    text = world.report("leaks", world.recording()).out
    expect("remember_loss" in text, f"remember_loss is not in the report: {text}")
    expect(re.search(r"train\.c:\d+", text), f"no line of train.c is in the report: {text}")
    expect(re.search(r"^SUMMARY", text, re.M), f"there is no line SUMMARY: {text}")


def libraries_of(world):
    rows = world.report_json("summary")["devices"][0]["libraries"]
    return {row["library"]: (row["live_bytes"], row["blocks"]) for row in rows}


def case_memory_is_attributed_to_the_library_that_asked_for_it(world):
    """By a shared libcudart, by a static one of its own, by the driver; and by the program itself."""
    run = world.run([world.program("libraries")])
    expect_equal("the exit status", run.status, 0)
    wanted = {name: (int(size), int(blocks)) for name, size, blocks in
              (line.split() for line in run.out.splitlines())}
    expect_equal("the libraries", libraries_of(world), wanted)
    expect_equal("the bytes held", world.held_bytes(), sum(size for size, _ in wanted.values()))
    text = world.report("summary", world.recording()).out
    expect(re.search(r"^LIBRARY .*\n( .*\n)* .* NCCL$", text, re.M), f"no row of NCCL in: {text}")


def case_what_a_library_of_CUDA_keeps_for_a_framework_is_no_leak(world):
    run = world.run([world.program("libraries"), "3"])
    held, blocks = (int(word) for word in run.out.split()[1:])
    leaks = world.report_json("leaks")
    expect_equal("what is held", (leaks["held_by_libraries_bytes"], leaks["held_by_libraries_blocks"]), (held, blocks))
    expect_equal("what was not freed", leaks["not_freed_bytes"], held)
    expect_equal("the groups", [group["is_held_by_library"] for group in leaks["groups"]], [True])
    text = world.report("--fail-on=leak", "leaks", world.recording()).out
    expect(re.search(r"held by libraries until the process ends: no leak\n.*\n .* cuBLAS$", text, re.M), f"no row of cuBLAS in: {text}")
    expect("\nNone.\n" in text and "SUMMARY: gpumem-report: 0 bytes" in text, f"it counts as a leak: {text}")


def case_handles_that_a_loop_makes_and_those_of_the_program_itself_are_leaks(world):
    for arguments in (["200"], []):  # by a framework in a loop; by the program
        run = world.run([world.program("libraries"), *arguments])
        held = sum(int(line.split()[1]) for line in run.out.splitlines())
        leaks = world.report_json("leaks")
        expect_equal("what is held", (leaks["not_freed_bytes"], leaks["held_by_libraries_bytes"]), (held, 0))
        world.report("--fail-on=leak", "leaks", world.recording(), status=1)
        world.forget_recordings()


def run_plugins(world, *steps, **extra):
    """Runs the plug-ins one after another; they must all have been at one address."""
    run = world.run([world.program("plugins"), *steps], **extra)
    expect_equal("the exit status", run.status, 0)
    places = set(line for line in run.out.splitlines() if line.startswith("0x"))
    if len(places) != 1:
        raise Skip(f"the loader put the plug-ins at {len(places)} places")
    return run


def bytes_by_plugin(world):
    """What leaks, by the plug-in whose function it is."""
    told = {}
    for group in world.report_json("leaks")["groups"]:
        (name,) = {frame["function"] for frame in group["stack"] if (frame["function"] or "").startswith("leak_of_")}
        told[name] = told.get(name, 0) + group["live_bytes"]
    return told


def case_what_a_plugin_leaks_in_the_place_of_an_unloaded_one_is_its_own(world):
    run_plugins(world, "a:1000", "b:50000000")
    expect_equal("the leaks", bytes_by_plugin(world), {"leak_of_a": 1000, "leak_of_b": 50000000})
    expect_equal("the libraries", {name: held for name, (held, _) in libraries_of(world).items()},
                 {"a.so": 1000, "b.so": 50000000})


def case_plugins_that_come_again_keep_their_leaks_and_add_no_stacks(world):
    steps = ["a:1000", "b:20000"]
    run_plugins(world, *steps)
    once = len(world.report_json("leaks")["groups"])
    world.forget_recordings()
    run_plugins(world, *(steps * 40))
    expect_equal("the leaks", bytes_by_plugin(world), {"leak_of_a": 40 * 1000, "leak_of_b": 40 * 20000})
    expect_equal("the groups", len(world.report_json("leaks")["groups"]), once)
    expect_equal("the check", world.report("check", world.recording(), status=None).status, 0)


def case_an_unloaded_plugin_is_not_named_after_the_one_in_its_place(world):
    run = run_plugins(world, "a:400000000", "b:1000", "b:800000000", sim="memory:1GiB")
    expect("failed" in run.out, "the last request was to fail")
    expect_equal("the bytes held", bytes_by_plugin(world), {"leak_of_a": 400000000, "leak_of_b": 1000})
    for line in run.err.splitlines():
        expect(not ("381" in line and "leak_of_b" in line), f"what a holds is said of b: {line}")


def case_without_stacks_the_libraries_are_one_line_that_says_so(world):
    expect_equal("the exit status", world.run([world.program("libraries")], GPUCACHE_CONF="stacks:off").status, 0)
    (name, (held, _)), = libraries_of(world).items()
    expect_equal("the library", name, "(no stack was taken)")
    expect_equal("its bytes", held, world.held_bytes())


def case_sampled_stacks_tell_the_sums_of_all(world):
    size, steps = 100_000, 8000
    command = [world.program("train"), "--leak", "--steps", str(steps), "--grow", str(size)]
    expect_equal("the exit status", world.run(command, GPUCACHE_CONF="stacks:sampled").status, 0)
    leaks = world.report_json("leaks")
    expect_equal("the bytes held", (leaks["not_freed_bytes"], leaks["not_freed_blocks"]),
                 (steps * size, steps))
    expect_equal("the limit of sampling", leaks["recording"]["sampled_below_bytes"], MIB)
    # 763 MiB, give or take 28; seven times that is never.
    told = sum(group["live_bytes"] for group in leaks["groups"]
               if any(frame["function"] == "remember_loss" for frame in group["stack"] or ()))
    expect(abs(told - steps * size) < 200 * MIB, f"{told} bytes are told of {steps * size}")
    expect("estimates" in world.report("leaks", world.recording()).out, "nobody says it is an estimate")


def case_an_out_of_memory_is_explained_by_its_recording(world):
    world.run([world.program("train"), "--oom", "--grow", str(64 * MIB)], sim="memory:2GiB")
    oom = world.last_oom()
    expect_equal("the bytes asked for", oom["requested"], 64 * MIB)
    expect_equal("the sum of the balance", sum(oom["lines"].values()), oom["total"])
    expect_equal("the difference that the report prints", oom["difference"], 0)
    expect_equal("the device's total", oom["total"], 2048 * MIB)
    expect(oom["verdict"], "there is no verdict")
    expect("remember_loss" in oom["top_holder"], f"the biggest holder is {oom['top_holder']}")
    text = world.report("oom", world.recording()).out
    expect("OUT OF MEMORY" in text, f"the report does not say so: {text}")


def case_a_limit_is_named_as_the_reason(world):
    result = world.run([world.program("train"), "--oom"], GPUCACHE_CONF="limit:1GiB")
    expect_equal("the exit status", result.status, 1)
    expect_equal("the verdict", world.last_oom()["verdict"], "limit")


def case_a_request_beyond_the_device_is_called_impossible(world):
    world.run([world.program("train"), "--oom", "--grow", str(64 << 30)])
    expect_equal("the verdict", world.last_oom()["verdict"], "impossible")


def case_a_neighbour_that_fills_the_device_is_named(world):
    world.run([world.program("train"), "--oom", "--grow", str(64 * MIB)],
              sim="memory:4GiB,foreign:3GiB/4711/neighbour")
    text = world.report("oom", world.recording()).out
    expect(re.search(r"4711|neighbour", text), f"the neighbour is not in the report: {text}")


def case_every_view_of_a_recording_can_be_made(world):
    world.run([world.program("train"), "--oom"], sim="memory:2GiB")
    for view in ("summary", "oom", "leaks", "list", "check"):
        arguments = [view, world.folder if view == "list" else world.recording()]
        expect(world.report(*arguments).out, f"{view} printed nothing")
        world.report_json(view, arguments[1])


def case_a_report_into_a_closed_pipe_ends_quietly(world):
    world.run([world.program("train"), "--leak", "--grow", "100000"])
    report = os.path.join(world.build, "gpumem-report")
    done = subprocess.run(["/bin/sh", "-c", f"{report} leaks {world.recording()} | head -1"],
                          capture_output=True, text=True, timeout=world.time_limit(), check=False)
    expect(done.stdout.count("\n") == 1, "no first line")
    expect_equal("stderr", done.stderr, "")


def case_the_line_at_the_end_counts_what_leaks_counts(world):
    """Neither counts the memory of contexts and modules as not freed: the program could not free it."""
    done = world.run([world.program("train"), "--leak", "--grow", str(MIB), "--steps", "5"],
                     GPUCACHE_CONF="leak_report:on")
    said = re.search(r"GPU 0: (\S+ \S+) not freed when the process ended", done.err)
    expect(said, f"no line at the end: {done.err!r}")
    total = world.report("leaks", world.recording()).out.rsplit("SUMMARY", 1)[1]
    n_bytes = int(re.search(r"(\d+) bytes not freed", total).group(1))
    expect_equal("the line at the end", said.group(1), f"{n_bytes / MIB:.2f} MiB")
    rows = re.findall(r"^ +([\d.]+) MiB +\d+ +\d+ m?s +(?:\+\S+ [KM]iB)?  (.*)$", done.err, re.M)
    expect(abs(sum(float(row[0]) for row in rows) - float(said.group(1).split()[0])) < 0.005,
           f"the call sites do not add up: {done.err}")
    expect(any("train" in row[1] for row in rows), f"no call site: {rows}")
