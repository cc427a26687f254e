# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the simulated GPU, each case plain and with the library, on one release after the other.

Both print the same, what PyTorch counted and the states of its random generators included; both give each stream the same
kernels and copies in the same order; and the library's books agree with what PyTorch counted to the byte.  On the newest
release eighteen programs run out of memory as people's programs do: the report's first lines name the line and the
cause, and what they advise makes the program run; and loops that fill a GPU are told from leaks of the same shape.
"""
import collections
import itertools
import json
import os
import re
import subprocess
import tempfile

import client_failures
from world import HERE, TOP, Result, report, simulated, tell, tool

COLUMNS = ("allocated by", "tensors made", "peak in tensors, B", "peak reserved, B", "kernels, copies")
N_KEYS = 2  # a case is named by this many cells

NATIVE, EXPANDABLE, ASYNC = "backend:native", "expandable_segments:True", "backend:cudaMallocAsync"
NO_CACHE, PLUGGABLE = "PYTORCH_NO_CUDA_MEMORY_CACHING", "PLUGGABLE"

# A case of torch_cases.py, and how PyTorch allocates in it.
TORCH = [("eager", NATIVE), ("amp", NATIVE), ("amp_scaled", NATIVE), ("resnet", NATIVE), ("lstm", NATIVE),
         ("caught", NATIVE), ("exhausted", NATIVE), ("workers", NATIVE), ("checkpoint", NATIVE), ("graphs", NATIVE),
         ("compile", NATIVE), ("streams", NATIVE), ("values", NATIVE), ("host", NATIVE), ("libraries", NATIVE), ("distributed", NATIVE),
         ("lacking", NATIVE), ("profiler", NATIVE), ("devices", NATIVE), ("limited", NATIVE), ("amp", EXPANDABLE), ("streams", EXPANDABLE), ("amp", ASYNC),
         ("streams", ASYNC), ("amp", NO_CACHE), ("resnet", NO_CACHE), ("streams", NO_CACHE), ("amp", PLUGGABLE)]
# Without a CUDA runtime of the newest kind the sets differ in nothing but the wheel: a few will do.
FEW = {("amp", NATIVE), ("resnet", NATIVE), ("exhausted", NATIVE), ("graphs", NATIVE), ("compile", NATIVE),
       ("workers", NATIVE), ("streams", NATIVE), ("devices", NATIVE), ("limited", NATIVE), ("amp", EXPANDABLE),
       ("amp", ASYNC), ("amp", NO_CACHE)}
OTHERS = {"transformers": [("trainer", NATIVE), ("tokens", NATIVE), ("trainer", EXPANDABLE), ("trainer", NO_CACHE)],
          "lightning": [("lightning", NATIVE), ("lightning", NO_CACHE)]}
# The release that is tried whole, and the one that the traces were recorded with.
NEWEST, TRACED = "torch-2.15", "torch-2.11"
FAILING = {"exhausted", "limited"}
SIZED = "8GiB"  # the GPU of most cases
# GPUs by name for which the newest release has no code: they run with another.
OLD_GPUS = {"torch-2.6": ["v100"]}
# What a set goes without: cuDNN 8 is not simulated, and Triton of then looks for libcuda in ldconfig's cache only.
WITHOUT = {"transformers": {"CUDA_VISIBLE_DEVICES": "0"},  # else it splits each batch over both GPUs
           "torch-2.1": {"WITHOUT_CUDNN": "1", "WITHOUT_TRITON": "1"}}


# Arguments of client_failures.run.
FAILURES = {NEWEST: [
    ("history", "4GiB", "", {"growth"}, "loss.item()", "fixed"),
    ("evaluate", "4GiB", "", {"growth"}, "torch.no_grad()", "fixed"),
    ("batch", "8GiB", "", {"exhausted", "spike"}, "a smaller batch", "fixed"),
    ("layer", "8GiB", "", {"exhausted", "spike"}, "in parts", "fixed"),
    ("optimizer", "4GiB", "", {"exhausted"}, "an optimizer with less state", "fixed"),
    ("pictures", "2GiB", "", {"exhausted"}, "with torch.no_grad():", "fixed"),
    ("lengths", "3000MiB", "", {"fragmented"}, "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
    ("cache", "4GiB", "", {"growth"}, "bound its length", "fixed"),
    ("models", "2GiB", "", {"exhausted"}, "first move away what load_teacher", "fixed"),
    ("neighbour", "4GiB", "foreign:3GiB/4711/jupyter", {"neighbour"}, "jupyter holds 3.00 GiB: wait for it, stop it", "--"),
    ("state", "4GiB", "", {"growth"}, "output.detach()", "fixed"),
    ("metrics", "4GiB", "", {"growth"}, "again, .detach().cpu()", "fixed"),
    ("hooks", "4GiB", "", {"growth"}, "again, .detach().cpu()", "fixed"),
    ("best", "4GiB", "", {"growth"}, "drop it, or bound it", "fixed"),
    ("logits", "8GiB", "", {"exhausted", "spike"}, "in parts", "fixed"),
    ("resume", "4GiB", "", {"exhausted"}, 'map_location="cpu"', "fixed"),
    ("retry", "4GiB", "", {"growth"}, "after the `except` block", "fixed"),
    ("graphs", "4GiB", "", {"growth", "wrong"}, "one pool for all", "fixed"),
    ("pools", "4GiB", "", {"wrong"}, "drop the pool", "fixed"),
    ("joined", "4GiB", "", {"exhausted"}, "one tensor made before them", "fixed"),
    ("rounded", "4GiB", "", {"rounding"}, "roundup_power2_divisions out of PYTORCH_CUDA_ALLOC_CONF", "fixed"),
    ("pinned", "4GiB", "fail:cuMemHostAlloc/6/2/100000", {"host"}, "keep no batch of a loader", "fixed"),
    ("compiled", "2GiB", "", {"exhausted", "spike"}, "a smaller batch", "fixed"),
], "lightning": [
    ("validation", "1GiB", "", {"growth"}, "again, .detach().cpu()", "fixed"),
]}

# Loops of shapes.py that fill the GPU; of those that leak, too, the verdict is growth.
SHAPES = ["modules", "unrolled", "features", "optimizers", "averages", "tables", "replay", "dataset", "batches"]
LEAKING = [name for name in SHAPES if name != "optimizers"]

HANDLE, OLD_HANDLE = 32 << 20, 4 << 20  # src/sim/libcublas/libcublas.c, from compute capability 9.0 on, and before
NEW_GPUS = {SIZED, "h100", "h200", "b200"}


def settings(way):
    if way == NO_CACHE:
        return {NO_CACHE: "1"}
    if way == PLUGGABLE:
        return {PLUGGABLE: tool("clients/pluggable.so")}
    return {"PYTORCH_CUDA_ALLOC_CONF": way}


def launch(name, python, case, way, gpu, folder, *options):
    env = {**settings(way), **WITHOUT.get(name, {}), "TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder}
    return simulated([python, os.path.join(HERE, "torch_cases.py"), case], gpu, *options,
                     sim=f"devices:2,launches:{folder}.launches", env=env)


def streams_of(folder):
    """What each stream was given, in order: kernels with their grids, copies with their sizes."""
    found = collections.defaultdict(list)
    if os.path.exists(f"{folder}.launches"):  # else there was none
        with open(f"{folder}.launches") as file:
            for line in file:
                stream, _, what = line.rstrip().partition(" ")
                found[stream].append(what)
    return found


def compare_launches(plain, ours):
    """Where two runs part that gave the GPU other work.  Each stream by itself: their threads take turns as they like."""
    wrong = []
    for stream in sorted(plain.keys() | ours.keys()):
        for i, (a, b) in enumerate(itertools.zip_longest(plain[stream], ours[stream])):
            if a != b:
                wrong.append(f"stream {stream}, work {i}: {a}, with the library {b}")
                break
    return wrong


def normal(text):
    """Without addresses, without what depends on them (of free blocks of one size PyTorch takes the lowest), and
    without the time that Trainer says it took."""
    text = re.sub(r".*train_runtime.*", "", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return re.sub(r'"inactive_split[^,]*, ', "", text)


def compare_failure(path, counted):
    """What differs between the record of a failure and what PyTorch counted when it raised the exception."""
    torch = report("oom", path)["torch"]
    pairs = (("allocated_bytes", "allocated_bytes.all.current"), ("reserved_bytes", "reserved_bytes.all.current"))
    return [f"at the failure {ours}: {torch[ours]}, {key} was {counted[key]}" for ours, key in pairs
            if torch[ours] != counted[key]]


def is_handles(bytes_, handle=HANDLE):
    """Beside PyTorch's allocator there are the workspaces of cuBLAS's handles: one for each thread that used it."""
    return bytes_ % handle == 0 and 0 <= bytes_ <= 3 * handle


def compare_books(way, counted, cached, books, handle):
    """What differs between PyTorch's account and ours.  `cached`: PyTorch's, of the same case with its own cache."""
    kinds = {row["kind"]: row["bytes"] for row in books["balance"]["direct_kinds"]}
    direct = sum(kinds.values()) - kinds.get("contexts", 0)
    if books["moment"] != "ended":  # a request failed: the balance is of that moment
        return []
    pairs = {
        NATIVE: [("reserved", books["balance"]["requested_bytes"], counted, "reserved_bytes.all.current")],
        EXPANDABLE: [("mapped", direct, counted, "reserved_bytes.all.current")],
        ASYNC: [("in pools", direct, counted, "reserved_bytes.all.current")],
        NO_CACHE: [("peak", books["peak"]["requested_bytes"], cached, "requested_bytes.all.peak")],
        PLUGGABLE: [("peak", books["peak"]["requested_bytes"], cached, "requested_bytes.all.peak")],
    }
    return [f"{what}: {ours} bytes in our books, PyTorch counts {stats[key]}" for what, ours, stats, key in pairs[way]
            if stats and not is_handles(ours - stats[key], handle)]


def compare_tensors(way, counted, torch):
    """What differs between PyTorch's account of its tensors and what it told us one by one."""
    if way not in (NATIVE, EXPANDABLE):
        return []
    pairs = (("allocations", "allocation.all.allocated"), ("frees", "allocation.all.freed"),
             ("allocated_bytes", "allocated_bytes.all.current"), ("reserved_bytes", "reserved_bytes.all.current"),
             ("peak_allocated_bytes", "allocated_bytes.all.peak"), ("peak_reserved_bytes", "reserved_bytes.all.peak"))
    return [f"{ours}: {torch and torch[ours]} in the recording, {key} is {counted[key]}" for ours, key in pairs
            if counted.get(key) and (not torch or torch[ours] != counted[key])]


# What PyTorch's own tool does with a snapshot; segsum asserts that blocks fill their segments.
READ_SNAPSHOT = """
import pickle, sys
from torch.cuda import _memory_viz
with open(sys.argv[1], "rb") as file:
    data = pickle.load(file)
_memory_viz.segsum(data), _memory_viz.trace(data), _memory_viz.trace_plot(data), _memory_viz.segment_plot(data)
print(sum(block["requested_size"] for segment in data["segments"] for block in segment["blocks"]
          if block["state"] == "active_allocated"))
"""


def compare_snapshot(python, path, devices):
    """What differs between the exported snapshot, as PyTorch reads it, and our books."""
    snapshot = path + ".pickle"
    subprocess.run([tool("gpumem-report"), "export", "--format=pytorch-snapshot", "-o", snapshot, path],
                   check=True)
    read = subprocess.run([python, "-c", READ_SNAPSHOT, snapshot], capture_output=True, text=True)
    held = sum(row["live_bytes"] for books in devices for row in books["holders"] if row["blocks"])
    if read.returncode != 0:
        return ["the snapshot: " + read.stderr[-800:]]
    return [] if int(read.stdout) == held else [f"{held} bytes in our books, {read.stdout.strip()} in the snapshot"]


def compare_end(python, path, case, way, cached, counted, handle):
    """What differs between the recording of a run that ended well and what PyTorch counted."""
    devices = report("summary", path)["devices"]
    books = devices[0]
    wrong = []
    if way == NATIVE:
        cached[case] = counted
    for other, theirs in zip(devices[1:], counted.get("others", [])):
        wrong += compare_tensors(way, theirs, other.get("torch"))
    wrong += compare_books(way, counted, cached.get(case), books, handle)
    wrong += compare_tensors(way, counted, books.get("torch"))
    if way == NATIVE and books["moment"] == "ended":
        wrong += compare_snapshot(python, path, devices)
    return wrong


def run_case(name, python, case, way, cached, gpu=SIZED):
    with tempfile.TemporaryDirectory() as folder:
        plain_folder, our_folder = os.path.join(folder, "plain"), os.path.join(folder, "ours")
        plain = launch(name, python, case, way, gpu, plain_folder, "--off")
        ours = launch(name, python, case, way, gpu, our_folder, "-o", os.path.join(folder, "%p.gpucache"))
        work = streams_of(our_folder)
        wrong = compare_launches(streams_of(plain_folder), work)
        if plain.returncode != ours.returncode:
            wrong.append(f"exit status {plain.returncode} and {ours.returncode}")
        if case in FAILING:
            wrong += [f"{what} does not say OutOfMemoryError" for what, run in (("plain", plain), ("ours", ours))
                      if "OutOfMemoryError" not in run.stderr]
            if "case_exhausted torch_cases.py:" not in ours.stderr:
                wrong.append(f"the library did not name the line that held the memory:\n{ours.stderr[-1500:]}")
        elif plain.returncode != 0:
            wrong.append(plain.stderr[-1500:])
        if normal(plain.stdout) != normal(ours.stdout):
            wrong.append(f"printed\n{plain.stdout}and\n{ours.stdout}")
        path = os.path.join(folder, f"{ours.pid}.gpucache")
        counted = json.loads(ours.stdout.splitlines()[-1]) if not wrong else {}
        if not wrong and case in FAILING:
            wrong += compare_failure(path, counted)
        elif not wrong:
            wrong += compare_end(python, path, case, way, cached, counted, HANDLE if gpu in NEW_GPUS else OLD_HANDLE)
    numbers = [counted.get(key, 0) for key in ("allocation.all.allocated", "allocated_bytes.all.peak",
                                               "reserved_bytes.all.peak")]
    numbers.append(sum(map(len, work.values())))
    cells = tuple(f"{number:,}" for number in numbers)
    if case != "gpu":
        return tell(Result(case, wrong, (way, *cells)))
    said = ours.stdout.splitlines()[0] if ours.stdout.startswith("CUDA error") else NATIVE
    return tell(Result(f"gpu {gpu}", wrong, (said, *cells)))


def gpus(name):
    """The GPUs by name that a release is tried on: the newest on all, to the end or to what says that it has no code for it."""
    listed = subprocess.run([tool("gpucache-run"), "--sim", "list"], check=True, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in listed.splitlines()[1:]]
    return names if name == NEWEST else OLD_GPUS.get(name, [])


def failure(python, *row):
    wrong, cause, _ = client_failures.run(python, *row)
    return tell(Result(f"failure {row[0]}", wrong, (cause, "", "", "", "")))


def shape(python, name, *leak):
    """A loop that keeps nothing too long is not called growth; its leak is, and never for certain."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "run.gpucache")
        run = client_failures.simulate(python, recording, "4GiB", "", os.path.join(HERE, "shapes.py"), name, *leak)
        if run.returncode == 0 or "out of memory" not in run.stderr:
            wrong.append(f"it does not run out of memory:\n{run.stderr[-800:]}")
        text, cause = client_failures.first_lines(recording)
        if (cause == "growth") != bool(leak) or "growth (certain)" in text:
            wrong.append(text)
    return tell(Result(" ".join(("shape", name, *leak)), wrong, (cause, "", "", "", "")))


def fidelity(python):
    """The program that somebody recorded on a real GPU, under the PyTorch that recorded it."""
    traces = os.path.join(TOP, "tests", "bench", "traces")
    results = []
    for length, pattern in (("512", "training"), ("1024", "training"), ("1024", "inference")):
        trace = os.path.join(traces, f"medium_{length}_{pattern}.csv.gz")
        run = subprocess.run([tool("gpucache-run"), "--off", "--sim", "a100-80", "--", python,
                              os.path.join(HERE, "fidelity.py"), length, pattern, trace], capture_output=True, text=True)
        wrong = [run.stdout, run.stderr[-1500:]] if run.returncode else []
        results.append(tell(Result(f"fidelity {length} {pattern}", wrong, ("as recorded on a GPU", "", "", "", ""))))
        print(run.stdout, end="", flush=True)
    return results


def run(name, python):
    only = os.environ.get("CASES", "").split()
    cached = {}
    cases = OTHERS.get(name) or [row for row in TORCH if name == NEWEST or row in FEW]
    results = [run_case(name, python, case, way, cached) for case, way in cases if not only or case in only]
    if not only or "gpu" in only:
        results += [run_case(name, python, "gpu", NATIVE, cached, gpu) for gpu in gpus(name)]
    results += [failure(python, *row) for row in FAILURES.get(name, []) if not only or row[0] in only]
    if name == NEWEST:
        results += [shape(python, name) for name in SHAPES if not only or name in only]
        results += [shape(python, name, "leak") for name in LEAKING if not only or name in only]
    if name == TRACED and (not only or "fidelity" in only):
        results += fidelity(python)
    return results
