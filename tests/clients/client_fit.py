# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --fit: a model runs on a GPU of exactly the size that is said, and not on one 2 % smaller.

For each model and batch, for PyTorch's cache without the library, with expandable_segments, and for ours without
PyTorch's cache.  What PyTorch's cache needs without the library, it needs beside it.  Then --on is asked for what the plain runs
have shown; and --sweep for the largest batch of models on three GPUs, where each runs, and does not with one more.
"""
import json
import os

from world import HERE, Result, simulated, tell, to_the_end, tool

TITLE = "fit"
COLUMNS = ("cache", "GPU said, MiB", "2 % less")
N_KEYS = 2  # a case is named by this many cells
GPU = "h100"
PROGRAM = os.path.join(HERE, "fit", "models.py")

CASES = [(model, batch) for model in ("gpt2", "resnet", "llama", "lora") for batch in (1, 8, 64)]

# How a program comes to use a cache: options of gpucache-run, and variables.
WAYS = {
    "pytorch": (("--off",), {}),
    "expandable": (("--off",), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    "beside": ((), {}),
    "gpucache": (("-c", "reserve:0"), {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
}


def ask(python, *arguments, options=()):
    made = to_the_end([tool("gpucache-run"), "--fit", "--json", *options, "--", python, PROGRAM, *arguments], limit_s=900)
    return made.returncode, (json.loads(made.stdout) if made.stdout else {}), made.stderr


def runs_on(python, way, size, model, batch):
    """None where it runs; else why not, "memory" where that is the reason."""
    options, variables = WAYS[way]
    run = simulated([python, PROGRAM, model, str(batch)], GPU, *options, sim=f"memory:{size}", env=variables)
    if run.returncode == 0:
        return None
    return "memory" if "out of memory" in run.stderr else run.stderr[-4000:]


def check(python, model, batch, cache):
    said, way = cache["smallest_device_bytes"], cache["cache"]
    less = said * 98 // 100
    exact, smaller = (runs_on(python, way, size, model, batch) for size in (said, less))
    wrong = []
    if exact:
        wrong.append(f"on exactly {said >> 20} MiB it does not run: {exact}")
    if smaller != "memory":
        wrong.append(f"on {less >> 20} MiB, 2 % less, " + (f"it fails otherwise: {smaller}" if smaller else "it runs"))
    beside = runs_on(python, "beside", said, model, batch) if way == "pytorch" else None
    if beside:
        wrong.append(f"on exactly {said >> 20} MiB it does not run with the library: {beside}")
    cells = (way, said >> 20, "runs" if smaller is None else "does not")
    return tell(Result(f"{model}-{batch}", wrong, cells))


def check_case(python, model, batch):
    status, answer, err = ask(python, model, str(batch))
    if status != 0:
        return [tell(Result(f"{model}-{batch}", [f"--fit ended with {status}: {err[-800:]}"]))]
    return [check(python, model, batch, cache) for cache in answer["caches"]]


def check_on(python):
    """--on says what the table's GPU has left or lacks, by its exit status, too."""
    wrong = []
    for gpu, expected in ("rtx3080", 1), ("rtx4090", 0):
        status, answer, err = ask(python, "gpt2", "8", options=("--on", gpu))
        if status != expected or answer["on"]["fits"] == bool(expected):
            wrong.append(f"--on {gpu}: status {status}: {err[-300:]}")
    return tell(Result("--on", wrong))


# Models of models.py and small.py, programs of kinds.py, and the GPUs of the table that their batch is searched for.
SWEPT = [("models.py", name) for name in ("gpt2", "resnet", "llama", "lora")] + [
    ("small.py", name) for name in ("mlp", "attention", "convnet", "lstm", "words", "frozen")] + [
    ("kinds.py", name) for name in ("accumulate", "checkpoint", "diffusion", "generate")]
SWEPT_GPUS = ("rtx4060", "l4", "a100-40")
SWEPT_TO = 4096


def words_of(model, batch, file):
    return [model, *(["--batch"] if file == "kinds.py" else []), str(batch)]


def runs_with(python, program, model, gpu, batch):
    run = simulated([python, program, *words_of(model, batch, os.path.basename(program))], gpu, "--off")
    return "runs" if run.returncode == 0 else "does not" if "out of memory" in run.stderr else run.stderr[-800:]


def check_sweep(python, file, model):
    """The largest batch runs, and one more does not, by all runs of both."""
    program = os.path.join(HERE, "fit", file)
    made = to_the_end([tool("gpucache-run"), "--fit", "--json", "--yes", "--on", ",".join(SWEPT_GPUS),
                       "--sweep", f"BATCH=1..{SWEPT_TO}",
                       "--", python, program, *words_of(model, "{BATCH}", file)], limit_s=7200)
    if not made.stdout.startswith("{"):
        return [tell(Result(f"{model}-largest", [f"--sweep ended with {made.returncode}: {made.stderr[-800:]}"]))]
    results = []
    for row in json.loads(made.stdout)["largest"]:
        gpu, batch, wrong = row["gpu"], row["value"], []
        if row["end"] == "none":
            seen = ("", runs_with(python, program, model, gpu, 1))
        elif batch == SWEPT_TO:  # nothing above it was asked for
            seen = (runs_with(python, program, model, gpu, batch), "does not")
        elif row["end"] == "found":
            seen = tuple(runs_with(python, program, model, gpu, value) for value in (batch, batch + 1))
        else:
            seen = (row["end"], "")
        if seen not in (("runs", "does not"), ("", "does not")):
            wrong.append(f"with {batch} it {seen[0]}, with one more it {seen[1]}")
        results.append(tell(Result(f"{model}-{gpu}", wrong, ("largest batch", batch or "none", seen[1]))))
    return results


def run(_name, python):
    only = os.environ.get("CASES", "").split()
    results = [result for model, batch in CASES if not only or model in only or f"{model}-{batch}" in only
               for result in check_case(python, model, batch)]
    results += [result for file, model in SWEPT if not only or {model, f"{model}-largest", "sweep"} & set(only)
                for result in check_sweep(python, file, model)]
    return results + ([check_on(python)] if not only or "on" in only else [])
