# SPDX-License-Identifier: Apache-2.0
"""PyTorch on several simulated GPUs, plain and with the library: DistributedDataParallel as torchrun starts it; four ranks with a
mesh, a pipeline, messages and a checkpoint; DataParallel in one process.

Collectives give the same, as does what PyTorch counts in each rank; our books of each rank agree with that; and where one
rank runs out of memory, `gpumem-report list` says which, and the report of it names the line.
"""
import glob
import json
import os
import re
import subprocess
import tempfile

from client_torch import EXPANDABLE, NATIVE, compare_tensors, is_handles
from world import HERE, Result, report, simulated, tell, tool

TITLE = "ranks"
COLUMNS = ("backend", "allocated by", "rank", "peak in tensors, B", "peak reserved, B", "NCCL, B")
N_KEYS = 3  # a case is named by this many cells

PROGRAM = os.path.join(HERE, "programs", "train_ranks.py")
PARALLEL = os.path.join(HERE, "programs", "parallel_ranks.py")
CASES = [("nccl", NATIVE), ("nccl", EXPANDABLE), ("gloo", NATIVE)]
COLLECTIVES = [[10, 12, 14, 16], [[0, 1, 2, 3], [10, 11, 12, 13]]]
MESSAGES = [[[10 * ((rank - 1) % 4) + i for i in range(4)], [10 * other + rank for other in range(4)]] for rank in range(4)]
NCCL = 8 << 20  # src/sim/libnccl/libnccl.c


def torchrun(python, ranks, program):
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), program]


def start(python, way, folder, *arguments, options):
    return simulated([*torchrun(python, 2, PROGRAM), *arguments, folder], "8GiB", *options, sim="devices:2",
                     env={"PYTORCH_CUDA_ALLOC_CONF": way, "OMP_NUM_THREADS": "1"})


def left(folder):
    """What each rank left, in their order."""
    ranks = []
    for name in sorted(glob.glob(os.path.join(folder, "rank*.json"))):
        with open(name) as file:
            ranks.append(json.load(file))
    return ranks


def ranks_of(folder):
    """The table of the job: a row for each rank, of the GPU that it trained on."""
    job, = report("list", folder)["jobs"]
    return [row for row in job["gpus"] if row["ordinal"] == row["rank"]], job["first_failure"]


def compare_runs(backend, plain, ranks):
    """What differs between what the ranks of both runs left: all but what depends on addresses (of free blocks of one size
    PyTorch takes the lowest).  With gloo, whose threads allocate as they come, two plain runs count otherwise, too."""
    wrong = [] if len(plain) == len(ranks) == 2 else [f"{len(plain)} and {len(ranks)} ranks came to the end"]
    for number, (one, other) in enumerate(zip(plain, ranks)):
        wrong += [f"rank {number} received {rank['collectives']}" for rank in (one, other) if rank["collectives"] != COLLECTIVES]
        wrong += [f"rank {number}: {key} is {count} and {other['counted'][key]}" for key, count in one["counted"].items()
                  if count != other["counted"][key] and "inactive_split" not in key and backend != "gloo"]
    return wrong


def settled(backend, counted):
    """What no longer changes when a rank counts: a thread of gloo's may still hold a tensor."""
    return {key: value for key, value in counted.items() if backend != "gloo" or not key.startswith("alloc")
            or key.endswith((".peak", ".allocated"))}


def nccl_bytes(path, ordinal):
    """What NCCL held at the peak."""
    made = subprocess.run([tool("gpumem-report"), "summary", "--at=peak", "--json", path], capture_output=True, text=True)
    books = [row for row in json.loads(made.stdout)["devices"] if row["ordinal"] == ordinal][0]
    return sum(row["live_bytes"] for row in books["libraries"] if row["library"] == "NCCL")


def compare_rank(row, way, counted, expected_nccl):
    """What differs between a rank's recording and what PyTorch counted there."""
    books = [device for device in report("summary", row["path"])["devices"] if device["ordinal"] == row["ordinal"]][0]
    kinds = {kind["kind"]: kind["bytes"] for kind in books["balance"]["direct_kinds"]}
    held = (books["balance"]["requested_bytes"] if way == NATIVE else sum(kinds.values()) - kinds.get("contexts", 0))
    reserved, nccl = counted["reserved_bytes.all.current"], nccl_bytes(row["path"], row["ordinal"])
    wrong = compare_tensors(way, counted, books.get("torch"))
    if not is_handles(held - reserved):
        wrong.append(f"{held} bytes in our books, PyTorch counts {reserved}")
    if nccl != expected_nccl:
        wrong.append(f"NCCL held {nccl} bytes at the peak, not {expected_nccl}")
    return [f"rank {row['rank']}: {line}" for line in wrong]


def train(python, backend, way):
    with tempfile.TemporaryDirectory() as plain_folder, tempfile.TemporaryDirectory() as folder:
        runs = (start(python, way, plain_folder, backend, options=["--off"]),
                start(python, way, folder, backend, options=["-o", os.path.join(folder, "%p.gpucache")]))
        wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in runs if run.returncode]
        plain, ranks = left(plain_folder), left(folder)
        wrong = wrong or compare_runs(backend, plain, ranks)
        rows = ranks_of(folder)[0] if not wrong else []
        expected_nccl = NCCL if backend == "nccl" else 0
        if not wrong and [row["rank"] for row in rows] != [0, 1]:
            wrong.append(f"list says {rows}")
        for row, rank in zip(rows, ranks):
            wrong += compare_rank(row, way, settled(backend, rank["counted"]), expected_nccl)
    peaks = [[f"{rank['counted'][key]:,}" for rank in ranks] for key in ("allocated_bytes.all.peak", "reserved_bytes.all.peak")]
    return tell(Result("train", wrong, (backend, way, "0 and 1", *(" and ".join(peak) for peak in peaks), f"{expected_nccl:,}")))


def exhausted(python):
    """Rank 1 runs out of memory, and torchrun ends rank 0."""
    with tempfile.TemporaryDirectory() as folder, open(PROGRAM) as file:
        line = [f"train_ranks.py:{i}" for i, text in enumerate(file, 1) if "# HERE" in text][0]
        runs = [start(python, NATIVE, folder, "nccl", "exhausted", options=options)
                for options in (["--off"], ["-o", os.path.join(folder, "%p.gpucache")])]
        wrong = [f"exit status {run.returncode}, or no OutOfMemoryError:\n{run.stderr[-1500:]}" for run in runs
                 if run.returncode != 1 or "torch.OutOfMemoryError" not in run.stderr]
        rows, first = ranks_of(folder)
        shown = subprocess.run([tool("gpumem-report"), "list", folder], capture_output=True, text=True).stdout
        if len(rows) != 2 or not first or first["rank"] != 1:
            wrong.append(f"the first to fail is {first}")
        if not re.search(r"rank 1 [^:]*ran\s+out\s+of\s+memory\s+first", shown):
            wrong.append(shown)
        if "rank 1 of 2" not in runs[1].stderr or line not in runs[1].stderr:
            wrong.append(f"what stands on stderr does not name rank 1, or {line}:\n{runs[1].stderr[-3000:]}")
    return tell(Result("rank 1 runs out of memory", wrong, ("nccl", NATIVE, "1", "", "", "")))


def parallel(case, command, n_ranks):
    """The same is received and counted as without us."""
    with tempfile.TemporaryDirectory() as plain_folder, tempfile.TemporaryDirectory() as folder:
        runs = [simulated([*command, where], "8GiB", *options, sim="devices:4", env={"OMP_NUM_THREADS": "1"})
                for where, options in ((plain_folder, ["--off"]), (folder, ["-o", os.path.join(folder, "%p.gpucache")]))]
        wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in runs if run.returncode]
        plain, ours = left(plain_folder), left(folder)
        if len(plain) != n_ranks or plain != ours:
            wrong.append(f"the ranks left {ours}, without us {plain}")
        if n_ranks == 4 and [rank["received"] for rank in plain] != MESSAGES:
            wrong.append(f"without us the ranks received {[rank['received'] for rank in plain]}")
    return tell(Result(case, wrong, ("nccl", NATIVE, f"{n_ranks} of {n_ranks}", "", "", "")))


def run(_name, python):
    return [train(python, *case) for case in CASES] + [
        exhausted(python),
        parallel("mesh, pipeline, messages, checkpoint", torchrun(python, 4, PARALLEL), 4),
        parallel("DataParallel on four GPUs", [python, PARALLEL], 1)]
