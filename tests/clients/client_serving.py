# SPDX-License-Identifier: Apache-2.0
"""vLLM on the simulated GPU, plain and with the library: the same tokens, and the same KV cache to the token.

It runs with the recipe of docs/simulated-gpu.md; without it, its loop is told.  It fails for want of memory in three ways:
the weights, the KV cache, a neighbour.  The first lines that the library prints name the program's line and a setting of
vLLM; with that setting it runs.
"""
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time

from world import HERE, Result, family, simulated, tell, tool

COLUMNS = ("cause, or KV cache", "followed")

PROGRAM = os.path.join(HERE, "programs", "serve_vllm.py")
FIRST_LINES = 15
# The recipe: every result is 1, so that each step makes one token; and no kernel is compiled for sampling.
RECIPE = "reads:one"
SETTINGS = {"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}

# What fails: the GPU and what else is on it, variables and settings of the program, the causes that are right, a setting
# that the first lines have to name, and with which it then runs.
FAILURES = [
    ("weights", "12GiB", "", {"MODEL": "7b"}, [], {"exhausted"}, "quantization", ['quantization="fp8"']),
    ("KV cache", "8GiB", "", {}, [f"kv_cache_memory_bytes={9 << 30}"], {"impossible"}, "kv_cache_memory_bytes",
     [f"kv_cache_memory_bytes={2 << 30}"]),
    ("neighbour", "24GiB", "foreign:8GiB/4711/jupyter", {}, ["gpu_memory_utilization=0.99"], {"neighbour"},
     "gpu_memory_utilization", ["gpu_memory_utilization=0.6"]),
]


def serve(python, gpu, *options, settings=(), sim="", **variables):
    with tempfile.TemporaryDirectory() as home:  # vLLM and Triton keep caches there
        return simulated([python, PROGRAM, *settings], gpu, *options, sim=",".join(filter(None, (RECIPE, sim))),
                         env={**SETTINGS, **variables, "HOME": home})


def counted(run):
    """What vLLM itself says of its memory, and what it served."""
    return re.findall(r"Available KV cache memory: .*|GPU KV cache size: [\d,]+ tokens|^served .*", run.stdout, re.MULTILINE)


def serves(python):
    with tempfile.TemporaryDirectory() as folder:
        plain = serve(python, "h100", "--off")
        ours = serve(python, "h100", "-o", os.path.join(folder, "%p.gpucache"))
        wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in (plain, ours) if run.returncode]
        if not wrong and (counted(plain) != counted(ours) or len(counted(ours)) != 4):
            wrong.append(f"vLLM says\n{counted(plain)}and\n{counted(ours)}")
    cache = re.findall(r"size: (.*)", ours.stdout)
    return tell(Result("serves", wrong, (cache[0] if cache else "", "")))


def loops(python):
    """Without the recipe it waits for tokens for ever, and the line that reads their number is told."""
    with tempfile.TemporaryDirectory() as home, open(os.path.join(home, "stderr"), "w+") as err:
        with subprocess.Popen([tool("gpucache-run"), "--off", "--sim", "h100", "--", python, PROGRAM], stdout=subprocess.DEVNULL,
                              stderr=err, env={**os.environ, **SETTINGS, "HOME": home}) as run:
            text, end = "", time.monotonic() + 300
            while "results by" not in text and run.poll() is None and time.monotonic() < end:
                time.sleep(1)
                err.seek(0)
                text = err.read()
            for member in family(run.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
    said = [line for line in text.splitlines() if "read 1000 results" in line]
    wrong = [] if said and f"{os.path.basename(PROGRAM)}:{line_of()}" in said[0] and "reads:one" in said[0] else [text[-1500:]]
    return tell(Result("loops without the recipe", wrong, ("", "reads:one")))


def line_of():
    with open(PROGRAM) as file:
        return [i for i, line in enumerate(file, 1) if "# HERE" in line][0]


def first_lines(err):
    """The report in what the program printed, as one line."""
    lines = err.splitlines()
    start = [i for i, line in enumerate(lines) if line.startswith("gpucache:") and " - pid " in line][:1]
    return re.sub(r"\s+", " ", " ".join(lines[start[0]:start[0] + FIRST_LINES])) if start else ""


def failure(python, name, gpu, sim, variables, settings, causes, advice, follow):
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        run = serve(python, gpu, "-o", os.path.join(folder, "%p.gpucache"), settings=settings, sim=sim, **variables)
        text = first_lines(run.stderr)
        cause = (re.findall(r"WHY (\w+)", text) or ["nothing"])[0]
        if run.returncode == 0:
            wrong.append("it runs")
        if cause not in causes:
            wrong.append(f"the cause is {cause}, not {' or '.join(sorted(causes))}")
        wrong += [f"{word!r} is not in the first {FIRST_LINES} lines" for word in (f"serve_vllm.py:{line_of()}", advice)
                  if word not in text]
        followed = serve(python, gpu, settings=follow, sim=sim, **variables)
        if followed.returncode != 0:
            wrong.append(f"the advice does not help:\n{followed.stderr[-800:]}")
    return tell(Result(f"failure {name}", [text or run.stderr[-800:], *wrong] if wrong else [], (cause, ", ".join(follow))))


def run(_name, python):
    only = os.environ.get("CASES", "").split()
    cases = [("serves", lambda: serves(python)), ("loops", lambda: loops(python))]
    cases += [(row[0], lambda row=row: failure(python, *row)) for row in FAILURES]
    return [case() for name, case in cases if not only or name.split()[0] in only]
