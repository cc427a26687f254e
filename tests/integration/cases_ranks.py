# SPDX-License-Identifier: Apache-2.0
"""Ranks of one job, started at once with the same pattern, and restarted: each has its own recording."""
import os
import sys

from harness import expect, expect_equal

N_RANKS = 4


def start_ranks(world, restart, n_moved, **extra):
    """Starts all ranks before waiting for any; returns the pids by rank.

    n_moved of them find their name taken, print where they record instead, and run as usual.
    """
    found_moved = 0
    children = []
    for rank in range(N_RANKS):
        torchrun = {"RANK": str(rank), "LOCAL_RANK": str(rank % 2), "WORLD_SIZE": str(N_RANKS),
                    "TORCHELASTIC_RUN_ID": "job7", "TORCHELASTIC_RESTART_COUNT": str(restart)}
        children.append(world.start([world.program("train"), "--steps", "3"], **torchrun,
                                    SLURM_PROCID="0", **extra))
    for child in children:
        _, err = child.communicate(timeout=world.time_limit())
        expect_equal("the exit status", child.returncode, 0)
        lines = err.splitlines()
        expect(all(" exists; recording to " in line for line in lines) and len(lines) <= 1, err)
        found_moved += len(lines)
    expect_equal("the number of those who found their name taken", found_moved, n_moved)
    return [child.pid for child in children]


def identities(world, folder):
    """{file name: (rank, pid, job, state)}"""
    found = {}
    for name in sorted(os.listdir(folder)):
        recording = world.report_json("summary", os.path.join(folder, name))["recording"]
        found[name] = (recording["rank"], recording["pid"], recording["job"], recording["state"])
    return found


def case_every_rank_has_its_recording_and_a_restart_keeps_the_old_ones(world):
    folder = os.path.join(world.folder, "out")
    pattern = os.path.join(folder, "%j-%r-of-%q{WORLD_SIZE}-%l.gpucache")
    first = start_ranks(world, 0, 0, GPUCACHE_OUTPUT=pattern)
    wanted = {f"job7-{rank}-of-4-{rank % 2}.gpucache": (rank, pid, "job7", "ended")
              for rank, pid in enumerate(first)}
    expect_equal("the recordings", identities(world, folder), wanted)
    again = start_ranks(world, 1, N_RANKS, GPUCACHE_OUTPUT=pattern)
    wanted.update({f"job7-{rank}-of-4-{rank % 2}.{pid}.gpucache": (rank, pid, "job7", "ended")
                   for rank, pid in enumerate(again)})
    expect_equal("the recordings after a restart", identities(world, folder), wanted)
    listed = [row for job in world.report_json("list", folder)["jobs"] for row in job["gpus"]]
    expect_equal("those that the report finds in the folder", len({row["path"] for row in listed}), 2 * N_RANKS)


def case_ranks_that_share_one_name_do_not_share_a_file(world):
    folder = os.path.join(world.folder, "out")
    pids = start_ranks(world, 0, N_RANKS - 1, GPUCACHE_OUTPUT=os.path.join(folder, "all.gpucache"))
    found = identities(world, folder)
    expect_equal("the ranks and pids", sorted(entry[:2] for entry in found.values()),
                 sorted(enumerate(pids)))
    expect_equal("the states", {entry[3] for entry in found.values()}, {"ended"})
    counted = start_ranks(world, 1, 0, GPUCACHE_OUTPUT=os.path.join(folder, "n", "%n.gpucache"))
    found = identities(world, os.path.join(folder, "n"))
    expect_equal("the names", sorted(found), [f"{i}.gpucache" for i in range(N_RANKS)])
    expect_equal("the pids", sorted(entry[1] for entry in found.values()), sorted(counted))


def run_ranks_of_which_one_runs_out(world):
    """Four ranks; 2 runs out of memory, 3 is the newest, and a worker of it that uses no GPU newer still."""
    idle = "import ctypes; ctypes.CDLL('libcudart.so.13').cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))"
    found = []
    for rank in range(N_RANKS):
        world.run([world.program("train"), "--steps", "3", *(["--oom"] if rank == 2 else [])],
                  RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(N_RANKS))
        found += [path for path in world.recordings() if path not in found]
    world.run([sys.executable, "-c", idle], RANK="3")
    # A process that only counted devices leaves no recording.
    expect_equal("the numbers of recordings", (len(found), len(world.recordings())), (N_RANKS, N_RANKS))
    return found


def case_of_a_folder_the_recording_that_ran_out_of_memory_is_shown(world):
    found = run_ranks_of_which_one_runs_out(world)
    shown = world.report("summary", world.folder)
    expect("rank 2" in shown.out and "OUT OF MEMORY" in shown.out, shown.out)
    expect(len(shown.err.splitlines()) == 1 and "of 4 recordings, 1 newer" in shown.err, shown.err)
    world.report("oom", world.folder)
    os.unlink(found[2])
    shown = world.report("summary", world.folder)
    expect("rank 3" in shown.out and "no GPU was used" not in shown.out, shown.out)


def case_a_newer_run_that_went_well_is_named(world):
    world.run([world.program("train"), "--oom"])
    failed, = world.recordings()
    expect("newest" not in world.report("summary", world.folder).err, "it is the newest")
    world.run([world.program("train"), "--steps", "3"])
    newest, = set(world.recordings()) - {failed}
    shown = world.report("summary", world.folder)
    expect("OUT OF MEMORY" in shown.out, shown.out)
    expect(shown.err.splitlines()[-1].endswith("did not fail: gpumem-report " + newest), shown.err)


def case_a_condition_is_looked_for_in_every_recording_of_a_folder_and_in_every_file(world):
    found = run_ranks_of_which_one_runs_out(world)
    failing, fine = found[2], found[0]
    world.report("--fail-on=oom", world.folder, status=1)
    world.report("--fail-on=oom", "check", fine, failing, fine, status=1)
    both = world.report("--fail-on=oom", fine, found[1])
    expect("rank 0" in both.out and "rank 1" in both.out, both.out)
    world.report("check", fine, "no-such.gpucache", status=3)
    world.report("--json", fine, failing, status=2)
    world.report("list", fine, failing)
    os.unlink(failing)
    world.report("--fail-on=oom", world.folder)
    hole = os.path.join(world.folder, "hole.gpucache")
    with open(fine, "rb") as whole, open(hole, "wb") as cut:
        cut.write(whole.read()[:100_000])
    world.report("--fail-on=oom", world.folder, status=4)


def case_a_gpu_that_is_not_there_is_an_error_of_usage(world):
    world.run([world.program("train"), "--steps", "1"], sim="memory:4GiB,context:0,devices:2")
    for view in ("summary", "leaks", "check"):
        result = world.report(view, "-d", "9", world.recording(), status=2)
        expect_equal("what is shown", result.out, "")
        expect("GPU 9" in result.err and "0 to 1" in result.err, result.err)
    expect("was not used" in world.report("-d", "1", world.recording()).out, "GPU 1 is there")
    world.report("-d", "0", world.recording())
