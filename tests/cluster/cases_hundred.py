# SPDX-License-Identifier: Apache-2.0
"""A hundred ranks and ten thousand recordings: the odd one is found in seconds."""
import json
import os
import subprocess

from harness import MIB, expect, expect_equal

N_RANKS, ODD, AT_ONCE = 128, 77, 16
N_MANY = 10000

# As docs/user/FLEET.md says: seconds of the processor, which a busy machine affects little; and memory.
MANY_S, MANY_BYTES = 60, 128 << 20


class Ranks:
    def __init__(self, world):
        """Runs the ranks of a job, some at a time; one keeps 8 MiB a step."""
        self.world, self.folder = world, os.path.join(world.folder, "ranks")
        for first in range(0, N_RANKS, AT_ONCE):
            children = [world.start(world.script("train.py") + ["--steps", "12", *(["--grow", str(8 * MIB)] if rank == ODD else [])],
                                    sim="memory:2GiB,context:100MiB", RANK=str(rank), LOCAL_RANK=str(rank % 8), WORLD_SIZE=str(N_RANKS),
                                    TORCHELASTIC_RUN_ID="night", GPUCACHE_OUTPUT=f"{self.folder}/%r.gpucache")
                        for rank in range(first, first + AT_ONCE)]
            for child in children:
                child.communicate(timeout=world.time_limit())
                expect_equal("a rank's status", child.returncode, 0)


def listed(ranks, folder):
    """The job, and the seconds and bytes that it took."""
    child = subprocess.Popen([os.path.join(ranks.world.build, "gpumem-report"), "list", "--json", folder], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=ranks.world.environment(False))
    said = child.stdout.read()
    complaint = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    expect_equal("it ends with", (child.returncode, complaint), (0, ""))
    job, = json.loads(said)["jobs"]
    return job, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def case_ranks_of_a_job(ranks):
    """Of 128 ranks `list` names the odd one, and its line."""
    job, seconds, most = listed(ranks, ranks.folder)
    odd = job["odd_one_out"]
    expect_equal("ranks", sorted(row["rank"] for row in job["gpus"]), list(range(N_RANKS)))
    expect_equal("the odd one", (odd["rank"], odd["is_more"], odd["difference_bytes"] % (8 * MIB)), (ODD, True, 0))
    expect("remember_loss" in odd["where"] and "train.py:" in odd["where"], odd["where"])
    return f"{seconds:.2f} s of the processor, {most >> 20} MiB"


def case_ranks_of_ten_thousand_recordings(ranks):
    """The same over a folder of 10,000, within a minute and 128 MiB."""
    many = ranks.world.folder + "/many"
    os.mkdir(many)
    for number in range(N_MANY):
        rank = number if number < N_RANKS else number % ODD
        os.link(f"{ranks.folder}/{rank}.gpucache", f"{many}/{number}.gpucache")
    job, seconds, most = listed(ranks, many)
    expect_equal("recordings", len(job["gpus"]), N_MANY)
    expect_equal("the odd one", (job["odd_one_out"]["rank"], "remember_loss" in job["odd_one_out"]["where"]), (ODD, True))
    expect(seconds < MANY_S and most < MANY_BYTES, f"{seconds:.1f} s, {most >> 20} MiB")
    return f"{seconds:.2f} s of the processor, {most >> 20} MiB"
