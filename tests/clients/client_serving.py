# SPDX-License-Identifier: Apache-2.0
"""vLLM on the simulated GPU, plain and with the library: the same tokens, and the same KV cache to the token.

Without the recipe of docs/user/SERVING.md its loop is told.  Each command of that page runs, and prints what the page shows.  Where
a command fails for want of memory, the first lines that the library prints name the program's line and a setting of vLLM;
the page's next command has that setting, and runs.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from world import HERE, TOP, Result, family, simulated, tell, to_the_end, tool

COLUMNS = ("cause, or KV cache", "setting that runs")

PROGRAM = os.path.join(HERE, "programs", "serve_vllm.py")
PAGE = os.path.join(TOP, "docs", "user", "SERVING.md")
FIRST_LINES = 15
SETTINGS = {"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}

# Commands of the page that fail, by a part: the causes that are right, and a setting that the first lines have to name.
FAILS = {"MODEL=7b gpucache-run --sim 12GiB": ({"exhausted"}, 'quantization="fp8"'),
         "kv_cache_memory_bytes=9663676416": ({"impossible"}, "kv_cache_memory_bytes"),
         "gpu_memory_utilization=0.99": ({"neighbour"}, "gpu_memory_utilization=0.65 or less")}


def serve(python, *options):
    with tempfile.TemporaryDirectory() as home:  # vLLM and Triton keep caches there
        return simulated([python, PROGRAM], "h100", *options, sim="reads:one", env={**SETTINGS, "HOME": home})


def counted(run):
    """What vLLM itself says of its memory, and what it served."""
    return re.findall(r"Available KV cache memory: .*|GPU KV cache size: [\d,]+ tokens|^served .*", run.stdout, re.MULTILINE)


def serves(python):
    with tempfile.TemporaryDirectory() as folder:
        plain, ours = serve(python, "--off"), serve(python, "-o", os.path.join(folder, "%p.gpucache"))
    wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in (plain, ours) if run.returncode]
    if not wrong and (counted(plain) != counted(ours) or len(counted(ours)) != 4):
        wrong.append(f"vLLM says\n{counted(plain)}and\n{counted(ours)}")
    cache = re.findall(r"size: (.*)", ours.stdout)
    return tell(Result("serves", wrong, (cache[0] if cache else "", "")))


def line_of():
    with open(PROGRAM) as file:
        return [i for i, line in enumerate(file, 1) if "# HERE" in line][0]


def loops(python):
    """Without the recipe it waits for tokens for ever, and the line that reads their number is told."""
    with tempfile.TemporaryDirectory() as home, open(os.path.join(home, "stderr"), "w") as err:
        with subprocess.Popen([tool("gpucache-run"), "--off", "--sim", "h100", "--", python, PROGRAM], stdout=subprocess.DEVNULL,
                              stderr=err, env={**os.environ, **SETTINGS, "HOME": home}) as run:
            text, end = "", time.monotonic() + 1800
            while "results by" not in text and run.poll() is None and time.monotonic() < end:
                time.sleep(1)
                with open(err.name) as file:  # with an offset of its own
                    text = file.read()
            for member in family(run.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
    said = [line for line in text.splitlines() if "read 1000 results" in line]
    wrong = [] if said and f"{os.path.basename(PROGRAM)}:{line_of()}" in said[0] and "reads:one" in said[0] else [text[-1500:]]
    return tell(Result("loops without reads:", wrong, ("", "reads:one")))


# ---- the page ----


def commands_of(page):
    """The commands of the page's blocks, each with the lines that it shows."""
    found, inside = [], False
    with open(page) as file:
        for line in file:
            if line.startswith("```"):
                inside = not inside
            elif inside and line.startswith("$ "):
                found.append((re.sub(r"\s{2,}#.*$", "", line[2:].rstrip()), []))
            elif inside and found:
                found[-1][1].append(line.rstrip())
    return found


def plain_words(text):
    """Without what differs from run to run: numbers of processes, paths, times; and however it is wrapped."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"pid \d+|\d+\.gpucache|\S*/(?=gpumem-report|\d)", "", text)
    return re.sub(r"\s+", " ", text)


def first_lines(err):
    """The report in what the program printed, as one line."""
    lines = err.splitlines()
    start = [i for i, line in enumerate(lines) if line.startswith("gpucache:") and " - pid " in line][:1]
    return re.sub(r"\s+", " ", " ".join(lines[start[0]:start[0] + FIRST_LINES])) if start else ""


def check_report(err, causes, advice):
    text = first_lines(err)
    cause = (re.findall(r"WHY (\w+)", text) or ["nothing"])[0]
    wrong = [] if cause in causes else [f"the cause is {cause}, not {' or '.join(sorted(causes))}"]
    wrong += [f"{word!r} is not in the first {FIRST_LINES} lines: {text}" for word in (f"serve.py:{line_of()}", advice)
              if word not in text]
    return wrong, cause


def run_command(folder, exports, command, shown):
    run = to_the_end(["bash", "-c", f"cd {folder}; {exports} {command}"], {**SETTINGS, "HOME": folder, "COLUMNS": "80", "PATH":
                     f"{folder}/bin:{os.environ['PATH']}", "GPUCACHE_OUTPUT": f"{folder}/recordings/%p.gpucache"}, limit_s=1800)
    said = plain_words(run.stdout + run.stderr)
    wrong = [f"not shown: {line}" for line in shown if plain_words(line).strip() not in said]
    fails = [row for part, row in FAILS.items() if part in command and "fp8" not in command]
    cause = ""
    if fails:
        more, cause = check_report(run.stderr, *fails[0])
        wrong += more
    if (run.returncode != 0) != bool(fails):
        wrong.append(f"exit status {run.returncode}")
    if os.environ.get("SHOW"):
        print(run.stdout[-6000:], "\n".join(line for line in run.stderr.splitlines() if not line.startswith("  ")))
    return tell(Result(command, [*wrong, said[-1500:]] if wrong else [], (cause, command.rpartition(" ")[2] if "=" in
                                                                        command.rpartition(" ")[2] and not cause else "")))


def page(python, only):
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/bin")
        os.makedirs(f"{folder}/start")
        os.makedirs(f"{folder}/recordings")
        shutil.copy(PROGRAM, f"{folder}/serve.py")
        for name, to in (("python", python), ("gpucache-run", tool("gpucache-run")), ("gpumem-report", tool("gpumem-report"))):
            with open(f"{folder}/bin/{name}", "w") as file:
                file.write(f'#!/bin/sh\nexec {to} "$@"\n')
            os.chmod(file.name, 0o755)
        exports, results = "", []
        for command, shown in commands_of(PAGE):
            if command.startswith("export "):
                exports += f"{command};"
            elif not only or any(word in command for word in only):
                results.append(run_command(folder, exports, command, shown))
    return results


def run(_name, python):
    only = os.environ.get("CASES", "").split()
    results = [case(python) for case in (serves, loops) if not only or case.__name__ in only]
    return results + page(python, [word for word in only if word not in ("serves", "loops")] if only else []) if (
        not only or set(only) - {"serves", "loops"}) else results
