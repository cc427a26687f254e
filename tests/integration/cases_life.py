# SPDX-License-Identifier: Apache-2.0
"""Processes that fork, end, close and load in unusual ways behave as without us, each with its own recording."""
import os
import signal
import subprocess
import sys

from harness import Skip, expect, expect_equal

BLOCK_BYTES = 3 << 20
RUNTIME = "libcudart.so.13"


CHILDREN = """
import ctypes, multiprocessing, sys

def use():
    cudart = ctypes.CDLL("libcudart.so.13")
    pointer = ctypes.c_void_p()
    sys.exit(cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1000)))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=use) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
"""


def life(world, mode, *arguments):
    return [world.program("life"), mode, *arguments]


def expect_life(world, mode, states, *arguments, **extra):
    """Runs as without us, prints nothing of ours, and leaves whole recordings in these states."""
    plain = world.run(life(world, mode, *arguments), with_us=False, **extra)
    ours = world.run(life(world, mode, *arguments), **extra)
    expect(plain.out, "the program said nothing, which proves nothing")
    expect_equal("the run", (ours.status, ours.out, ours.err), (plain.status, plain.out, ""))
    found = sorted(world.state(recording) for recording in world.recordings())
    expect_equal("the states of the recordings", found, sorted(states))
    for recording in world.recordings():
        world.report("check", recording)


def case_a_child_of_fork_passes_and_leaves_the_parents_recording_alone(world):
    expect_life(world, "fork-after", ["ended"])
    expect_equal("bytes held", world.held_bytes(), 0)


def case_a_child_of_a_fork_before_CUDA_has_a_recording_of_its_own(world):
    expect_life(world, "fork-before", ["ended", "ended"])


def case_a_child_of_raw_clone_passes_and_leaves_the_parents_recording_alone(world):
    expect_life(world, "clone-after", ["ended"])
    expect_equal("bytes held", world.held_bytes(), 0)


def case_a_child_of_vfork_changes_nothing(world):
    expect_life(world, "vfork-after", ["ended"])


def case_forks_while_others_allocate_hang_nobody(world):
    expect_life(world, "fork-busy", ["ended"])


def case_a_spawned_CUDA_program_has_a_recording_of_its_own(world):
    expect_life(world, "spawn", ["ended", "ended"])


def case_a_program_that_becomes_another_one_has_two_recordings(world):
    # The first says that it ended without a word, as it did.
    # The process number is the same, and so would the names be.
    expect_life(world, "exec", ["ended", "killed"], GPUCACHE_OUTPUT=os.path.join(world.folder, "rec-%p-%n.gpucache"))


def case_a_thousand_threads_come_and_go(world):
    plain = world.run(life(world, "threads"), with_us=False)
    expect_equal("the plain run", plain.out, "threads: 1000\nof them failed: 0\n")
    expect_life(world, "threads", ["ended"])
    expect_equal("bytes held", world.held_bytes(), 0)


def case_destructors_after_the_driver_get_its_answers(world):
    for mode in ("destructor", "handler"):
        expect_life(world, mode, ["ended"])
        # The runtime refuses the free itself, so nobody sees which memory it was for.
        expect_equal(f"{mode}: bytes held", world.held_bytes(), BLOCK_BYTES)
        world.forget_recordings()


def case_memory_whose_free_comes_after_the_drivers_end_is_no_leak(world):
    program = [world.program("errors"), "free_after_the_end", "driver"]
    for conf in ("oom_report:auto", "cache:off", "vmm:on", "free_order:fence", "decay_ms:1"):
        ours = world.run(program, GPUCACHE_CONF=conf + ",leak_report:on")
        expect_equal(f"{conf}: the run", (ours.status, ours.out, ours.err), (0, "4\n", ""))
        expect_equal(f"{conf}: bytes held", world.held_bytes(), 0)
        world.report("--fail-on=leak", "check", world.recording())
        world.forget_recordings()


def case_ends_without_handlers_leave_a_whole_recording(world):
    ends = {"_exit": "exited", "_Exit": "exited", "_exit-in-a-handler": "exited", "quick_exit": "exited",
            "abort": "killed", "vfork-and-be-killed": "killed"}
    for mode, state in ends.items():
        expect_life(world, mode, [state])
        expect_equal(f"{mode}: bytes held", world.held_bytes(), BLOCK_BYTES)
        text = world.report("summary", world.recording()).out + world.report("leaks", world.recording()).out
        expect_equal(f"{mode}: the report speaks of a kill", "kill" in text, state == "killed")
        world.forget_recordings()


def case_a_child_that_ends_without_handlers_was_not_killed(world):
    """Children end by _exit, like those of multiprocessing."""
    expect_life(world, "_exit-of-a-child", ["ended", "exited"])
    world.forget_recordings()
    script = os.path.join(world.folder, "children.py")
    with open(script, "w", encoding="ascii") as file:
        file.write(CHILDREN)
    for method in ("fork", "spawn", "forkserver"):
        ours = world.run([sys.executable, script, method])
        expect_equal(f"{method}: the run", (ours.status, ours.out, ours.err), (0, "[0, 0]\n", ""))
        expect_equal(f"{method}: the states", [world.state(path) for path in world.recordings()],
                     ["ended" if method == "spawn" else "exited"] * 2)
        world.forget_recordings()


def case_exit_in_a_thread_is_an_end_as_any(world):
    expect_life(world, "exit-in-a-thread", ["ended"])


def case_exit_while_other_threads_allocate_hangs_and_breaks_nothing(world):
    for _ in range(5):
        expect_life(world, "exit-while-others-allocate", ["ended"])
        world.forget_recordings()


def case_a_CUDA_library_may_be_closed_and_loaded_again(world):
    expect_life(world, "library", ["ended"], RUNTIME)
    expect_equal("calls of malloc", world.count_calls()["malloc"], 3)


def case_a_program_that_loads_and_closes_us_may_call_what_it_kept(world):
    ours = world.run([world.program("unload"), os.path.join(world.build, "libgpucache.so")], LD_PRELOAD=None)
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, "before: 0\ndlclose: 0\nafter: 0\n", ""))
    expect_equal("the state of the recording", world.state(), "ended")


def case_a_recording_asked_for_by_a_relative_path_stays_where_it_began(world):
    expect_life(world, "change-directory", ["ended"], GPUCACHE_OUTPUT="rec-%p.gpucache")


def case_without_descriptors_there_is_no_recording_and_one_line(world):
    plain = world.run(life(world, "no-descriptors"), with_us=False)
    ours = world.run(life(world, "no-descriptors"))
    expect_equal("the run", (ours.status, ours.out), (plain.status, plain.out))
    expect_equal("the number of lines on stderr", len(ours.err.splitlines()), 1)
    expect_equal("the recordings", world.recordings(), [])


def case_a_program_that_closes_all_descriptors_keeps_its_recording_and_its_files(world):
    child = world.start(life(world, "descriptors"))
    for line in child.stdout:
        if line == "closed\n":
            break
        if line.startswith("bytes in a file"):
            expect_equal("the program's file", line, "bytes in a file of the program: 0\n")
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    # The mapping keeps the lock by which readers know that the process lives, even if the descriptor is closed.
    expect_equal("the state of the recording", world.state(), "alive")
    child.send_signal(signal.SIGCONT)
    rest, said = child.communicate(timeout=world.time_limit())
    expect_equal("the rest", (child.returncode, rest.count("free: 0"), said), (0, 1, ""))
    expect_equal("the state of the recording", world.state(), "ended")
    for name in os.listdir(world.folder):
        if name.startswith("own-"):
            expect_equal(f"the size of {name}", os.path.getsize(os.path.join(world.folder, name)), 0)


def case_without_proc_and_dev_shm_a_program_runs_as_ever(world):
    """In a mount namespace of its own."""
    hide = "mount -t tmpfs none /proc && mount -t tmpfs -o ro none /dev/shm"
    enter = ["unshare", "-rm", "/bin/sh", "-c"]
    if subprocess.run([*enter, hide], capture_output=True, check=False).returncode != 0:
        raise Skip("nothing can be mounted here")
    command = [world.program("train"), "--steps", "5"]
    plain = world.run(command, with_us=False)
    script = f"{hide} && LD_PRELOAD={world.environment(True)['LD_PRELOAD']} exec {' '.join(command)}"
    for output in (None, world.pattern):
        ours = world.run([*enter, script], with_us=False, GPUCACHE_OUTPUT=output)
        expect_equal("the program", (ours.status, ours.out), (plain.status, plain.out))
        expect(len(ours.err.splitlines()) <= 1, f"more than one line on stderr: {ours.err!r}")
    expect_equal("the state of the recording", world.state(), "ended")
