# SPDX-License-Identifier: Apache-2.0
"""A GPT whose training dies on a small GPU ends there with spill, with the same work of the GPU, the same output and the same
losses of a model beside it on the host as on a large one: with PyTorch's cache, without it, and with caches that are set."""
import os
import re
import tempfile

from world import HERE, TOP, Result, report, simulated, tell

TITLE = "spill"
COLUMNS = ("PyTorch's allocator", "spilled at most, B", "requests")

PROGRAM = [os.path.join(HERE, "programs", "train_beside.py"), os.path.join(TOP, "tests", "programs", "gpt.py"), "3"]
LARGE, SMALL = "24GiB", "4GiB"
CACHED, UNCACHED = {}, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
SPLIT, EXPANDABLE = ({"PYTORCH_CUDA_ALLOC_CONF": setting} for setting in ("max_split_size_mb:256", "expandable_segments:True"))
CASES = [("its cache", CACHED, "spill:auto"), ("no cache", UNCACHED, "spill:auto"), ("max_split_size_mb", SPLIT, "spill:auto"),
         ("its cache, cache:on", CACHED, "spill:auto,cache:on"), ("its cache, cache:off", CACHED, "spill:auto,cache:off")]


def losses(run):
    """What a run printed.  PyTorch's own peak depends on what its cache gave back: with max_split_size_mb, by 1 MiB."""
    return re.sub(r"peak \d+ MiB", "peak", run.stdout)


def train(python, size, conf, setting, folder):
    """The run, and what it gave the GPU to do."""
    launches, path = (os.path.join(folder, f"{size}.{kind}") for kind in ("launches", "gpucache"))
    for name in launches, path:
        if os.path.exists(name):
            os.unlink(name)
    run = simulated([python, *PROGRAM], size, "-o", path, sim=f"launches:{launches}", env={"GPUCACHE_CONF": conf, **setting})
    with open(launches, encoding="utf-8") as file:
        return run, file.read(), path


def case(python, name, setting, conf):
    with tempfile.TemporaryDirectory() as folder:
        large, work, _ = train(python, LARGE, "record:on", setting, folder)
        dead, _, _ = train(python, SMALL, conf.replace("spill:auto", "spill:0"), setting, folder)
        spilled, small_work, path = train(python, SMALL, conf, setting, folder)
        wrong = [f"{what} ended with {run.returncode}: {run.stderr[-800:]}" for what, run in (("24 GiB", large), ("spill", spilled))
                 if run.returncode]
        if dead.returncode == 0:
            wrong.append("it fits without spill")
        if "loss on the host" not in large.stdout or losses(large) != losses(spilled):
            wrong.append(f"printed\n{large.stdout}and\n{spilled.stdout}")
        if work != small_work:
            wrong.append("the GPU got other work")
        device = report("summary", path)["devices"][0]
        peak, n = device["peak"]["spilled_bytes"], device["calls"]["rescued_by"]["spill_to_host"]
        if not peak or spilled.stderr.count("went to host memory") != 1 or spilled.stderr.count("gpucache: spill: up to") != 1:
            wrong.append(f"{peak} bytes were spilled, and it said\n{spilled.stderr[-800:]}")
    return tell(Result(name, wrong, (name, f"{peak:,}", f"{n:,}")))


def expandable(python):
    with tempfile.TemporaryDirectory() as folder:
        run, _, _ = train(python, SMALL, "spill:auto", EXPANDABLE, folder)
    wrong = [] if run.returncode and "set expandable_segments:False" in run.stderr else [run.stderr[-800:]]
    return tell(Result("expandable segments", wrong, ("expandable segments cannot be managed, and a line says so", "", "")))


def run(_name, python):
    return [case(python, *row) for row in CASES] + [expandable(python)]
