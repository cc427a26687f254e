# SPDX-License-Identifier: Apache-2.0
"""Ranks of one job, started at once with one pattern, and started again: a recording each."""
import os

from harness import expect, expect_equal

N_RANKS = 4


def start_ranks(world, restart, n_moved, **extra):
    """Starts them all before it waits for any; returns the pids by rank.

    n_moved of them find their name taken, say where they record instead, and run as well.
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
        expect(all("is there already" in line for line in lines) and len(lines) <= 1, err)
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
    wanted.update({f"job7-{rank}-of-4-{rank % 2}.gpucache.{pid}": (rank, pid, "job7", "ended")
                   for rank, pid in enumerate(again)})
    expect_equal("the recordings after a restart", identities(world, folder), wanted)


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
