# SPDX-License-Identifier: Apache-2.0
"""Programs behave with gpucache as without it."""
import os
import re
import subprocess

from harness import MIB, Skip, expect, expect_equal


def expect_same(world, command, **extra):
    """Expects the same stdout and exit status, and nothing of ours on stderr.  Returns the run with us."""
    plain = world.run(command, with_us=False, **extra)
    ours = world.run(command, **extra)
    expect_equal("the exit status", ours.status, plain.status)
    expect_equal("stdout", ours.out, plain.out)
    expect_equal("the exit status without gpucache", plain.status, 0)
    expect(plain.out, "the program said nothing, which proves nothing")
    return ours


def expect_same_and_silent(world, command, **extra):
    ours = expect_same(world, command, **extra)
    expect_equal("stderr", ours.err, "")
    world.recording()


def case_a_training_loop_runs_as_without_us(world):
    expect_same_and_silent(world, [world.program("train"), "--print-live"])


def launches(world, with_us):
    """The work of each stream in order: a line per kernel and copy, from the log of the simulated GPU."""
    path = os.path.join(world.folder, f"launches-{with_us:d}")
    world.run([world.program("train"), "--steps", "30"], with_us=with_us, sim=f"memory:4GiB,launches:{path}")
    with open(path) as file:
        return sorted(file.read().splitlines(), key=lambda line: line.split()[0])


def case_a_training_loop_gives_the_GPU_the_same_work_as_without_us(world):
    plain = launches(world, False)
    expect(any(" copy " in line for line in plain), "no copy was seen")
    expect_equal("what the GPU was given", launches(world, True), plain)


def case_a_training_loop_on_a_slow_GPU_runs_as_without_us(world):
    # Copies take time on the device: the old owner would overwrite a block reused too early.
    command = [world.program("train"), "--steps", "30"]
    expect_same_and_silent(world, command, sim="memory:4GiB,copy_us:300")


def case_a_training_loop_on_an_old_driver_runs_as_without_us(world):
    # Before 12.5 no event can be recorded for a whole context.
    command = [world.program("train"), "--steps", "30"]
    expect_same_and_silent(world, command, sim="memory:4GiB,driver:12020")


def case_a_training_loop_of_four_threads_runs_as_without_us(world):
    expect_same_and_silent(world, [world.program("train"), "--threads", "4", "--steps", "40"])


def case_a_program_that_leaks_runs_as_without_us(world):
    command = [world.program("train"), "--leak", "--grow", str(5 * MIB + 13), "--steps", "30"]
    expect_same_and_silent(world, command)


def case_a_driver_program_linked_to_libcuda_runs_as_without_us(world):
    expect_same_and_silent(world, [world.program("train_driver"), "--door", "link"])


def case_a_driver_program_through_dlsym_runs_as_without_us(world):
    expect_same_and_silent(world, [world.program("train_driver"), "--door", "dlsym"])


def case_a_driver_program_through_cuGetProcAddress_runs_as_without_us(world):
    expect_same_and_silent(world, [world.program("train_driver"), "--door", "proc"])


def case_a_python_program_runs_as_without_us(world):
    expect_same_and_silent(world, world.script("train.py"))


def case_a_copy_by_another_context_keeps_the_memory_from_its_next_owner(world):
    # The copy takes 64 ms; the next owner's data would arrive after 1 ms.
    sim = "memory:4GiB,devices:2,clock:virtual,copy_us_per_mib:1000"
    ours = world.run(world.script("cross_copy.py"), sim=sim)
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, "arrived: 1\n", ""))


def case_a_program_that_forks_runs_as_without_us(world):
    expect_same_and_silent(world, world.script("fork.py"))


def case_a_program_with_a_host_wait_in_every_free_runs_as_without_us(world):
    expect_same_and_silent(world, [world.program("train")], GPUCACHE_CONF="free_order:host")


def case_a_program_runs_as_without_us_when_we_only_record(world):
    expect_same_and_silent(world, [world.program("train")], GPUCACHE_CONF="cache:off")


def misuse_modes(world):
    return world.run([world.program("misuse"), "list"], with_us=False).out.split()


def case_every_misuse_gets_the_error_codes_of_the_driver(world):
    modes = misuse_modes(world)
    expect(len(modes) >= 12, f"only {len(modes)} ways of misuse")
    wrong = []
    for mode in modes:
        plain = world.run([world.program("misuse"), mode], with_us=False)
        ours = world.run([world.program("misuse"), mode])
        if plain.status < 0 or (plain.status, plain.out) != (ours.status, ours.out):
            wrong.append(f"{mode}: {ours.status} {ours.out!r} with us, {plain.status} {plain.out!r} without")
    expect(not wrong, "; ".join(wrong))


def case_every_misuse_gets_the_error_codes_of_the_driver_when_we_only_record(world):
    for mode in misuse_modes(world):
        plain = world.run([world.program("misuse"), mode], with_us=False)
        ours = world.run([world.program("misuse"), mode], GPUCACHE_CONF="cache:off")
        expect_equal(f"{mode}: output", (ours.status, ours.out), (plain.status, plain.out))


def held_at_failure(result):
    lives = re.findall(r"^live bytes: (\d+)$", result.out, re.M)
    expect(lives, "the program never said what it holds")
    return int(lives[-1])


def case_out_of_memory_reaches_the_program_as_its_own_error(world):
    command = [world.program("train"), "--oom", "--print-live", "--grow", str(50 * MIB)]
    plain = world.run(command, with_us=False, sim="memory:2GiB")
    ours = world.run(command, sim="memory:2GiB")
    expect_equal("the exit status without gpucache", plain.status, 1)
    expect_equal("the exit status", ours.status, 1)
    own = re.compile(r"^cudaMalloc of \d+ bytes failed: out of memory \(2\)$", re.M)
    expect(own.search(plain.err), f"without us the program says {plain.err!r}")
    expect(own.search(ours.err), f"with us the program says {ours.err!r}")
    expect("OUT OF MEMORY" in ours.err, "the short form is missing")
    # No worse than without us, apart from the rounding of one segment of each kind.
    least = held_at_failure(plain) - 64 * MIB
    expect(held_at_failure(ours) >= least,
           f"the program got {held_at_failure(ours)} bytes with us, {held_at_failure(plain)} without")


def case_out_of_memory_is_told_in_at_most_25_lines(world):
    result = world.run([world.program("train"), "--oom"], sim="memory:2GiB")
    lines = [line for line in result.err.splitlines() if not line.startswith("cudaMalloc of")]
    expect(3 <= len(lines) <= 25, f"{len(lines)} lines on stderr")
    expect(all(ord(c) < 128 for line in lines for c in line), "stderr has characters beyond ASCII")
    expect(any("gpumem-report" in line for line in lines), "no next command to type is named")


def case_an_out_of_memory_that_only_the_ladder_avoids_stays_unseen(world):
    # The cache is full of freed memory of one size when the program asks for another.
    command = world.script("refill.py")
    plain = world.run(command, with_us=False, sim="memory:2GiB")
    ours = world.run(command, sim="memory:2GiB")
    expect_equal("the program's output without us", (plain.status, plain.out), (0, "refilled\n"))
    expect_equal("the program's output", (ours.status, ours.out, ours.err), (0, "refilled\n", ""))


def case_switched_off_we_leave_no_trace(world):
    command = [world.program("train"), "--steps", "5"]
    plain = world.run(command, with_us=False)
    ours = world.run(command, GPUCACHE="0")
    expect_equal("the run", (ours.status, ours.out, ours.err), (plain.status, plain.out, ""))
    expect_equal("the recordings", world.recordings(), [])


def case_a_program_without_CUDA_gets_no_file_and_no_word(world):
    result = world.run(["/bin/sh", "-c", "echo hello; exit 7"])
    expect_equal("the run", (result.status, result.out, result.err), (7, "hello\n", ""))
    result = world.run([world.program("misuse"), "no-cuda"])
    expect_equal("the run", (result.status, result.out, result.err), (0, "no CUDA call\n", ""))
    expect_equal("the recordings", world.recordings(), [])


def case_children_of_a_shell_are_recorded_each_for_itself(world):
    train = world.program("train")
    result = world.run(["/bin/sh", "-c", f"{train} --steps 2 && {train} --steps 3"])
    expect_equal("the exit status", result.status, 0)
    expect_equal("the number of recordings", len(world.recordings()), 2)


def case_without_a_driver_the_program_meets_its_own_error(world):
    command = [world.program("train"), "--steps", "1"]
    plain = world.run(command, with_us=False, sim="memory:4GiB,devices:0")
    ours = world.run(command, sim="memory:4GiB,devices:0")
    if plain.status == 0:
        raise Skip("the simulated driver cannot be without a device")
    expect_equal("the run", (ours.status, ours.out, ours.err), (plain.status, plain.out, plain.err))


def case_after_the_first_step_95_of_100_driver_allocations_are_gone(world):
    """Measures steps in the middle of a run: the difference between two runs that differ by N steps."""
    counts = []
    for steps in (20, 220):
        result = world.run([world.program("train"), "--steps", str(steps)])
        expect_equal("the exit status", result.status, 0)
        counts.append(world.count_calls(world.recordings()[-1]))
        subprocess.run(["rm", *world.recordings()], check=True)
    asked = counts[1]["malloc"] - counts[0]["malloc"]
    reached = counts[1]["driver_malloc"] - counts[0]["driver_malloc"]
    expect(asked >= 200 * 16, f"200 more steps made only {asked} more allocations")
    expect(reached <= asked * 5 // 100, f"{reached} of {asked} allocations still reached the driver")
    expect(counts[0]["driver_malloc"] > 0, "no driver allocation was counted at all")
