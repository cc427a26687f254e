# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --cure: programs that run out of memory.

It finds a setting for each that has one, and none for the others; the command that it prints, followed literally, runs.
"""
import json
import os
import shlex

from world import HERE, Result, tell, to_the_end, tool

TITLE = "cure"
COLUMNS = ("on", "setting", "settings run")
N_KEYS = 1

# A program of failures/, or one of cure/settings.py, the GPU, the user's settings, and the settings that are right; None: no
# setting helps.  Where no placement does, spilling to host memory may: of `evaluate`, 25 GiB, that depends on the host.
CASES = [
    ("lengths", "3000MiB", "", {"expandable"}),
    ("lengths limited", "16GiB", "limit:1GiB", {"limit", "unlimited"}),
    ("models limited", "8GiB", "limit:2GiB", {"limit", "unlimited"}),
    ("optimizer limited", "16GiB", "limit:4GiB", {"limit", "unlimited"}),
    ("optimizer", "4GiB", "", {"spill"}),
    ("batch", "4GiB", "", {"spill"}),
    ("layer", "4GiB", "", {"spill"}),
    ("evaluate", "4GiB", "", {"spill", None}),
    ("settings split", "2GiB", "", {"expandable"}),
    ("settings fraction", "4GiB", "", {"uncached"}),
    ("settings pool", "4GiB", "", {"uncached"}),
    ("settings whole", "4GiB", "", {None}),
    ("settings kept", "4GiB", "", {None}),
]


def launch(command, *options, env=None):
    return to_the_end([tool("gpucache-run"), *options, "--", *command], env=env, limit_s=1800)


def follow(answer, command, gpu):
    """What the printed command does on the simulated GPU; None if it is another command."""
    words = shlex.split(answer["command"])
    n = next(i for i, word in enumerate(words) if "=" not in word)
    rest = words[n + 2:] if words[n:n + 2] == ["gpucache-run", "--"] else words[n:]
    if rest != command:
        return None
    return launch(command, "--sim", gpu, env=dict(word.split("=", 1) for word in words[:n]))


def program_of(case):
    """The program's file, and its arguments."""
    name, _, rest = case.partition(" ")
    if name == "settings":
        return [os.path.join(HERE, "cure", "settings.py"), rest]
    return [os.path.join(HERE, "failures", f"{name}.py")]


def check(python, case, gpu, conf, right):
    command = [python, *program_of(case)]
    given = ["-c", conf] if conf else []
    made = launch(command, *given, "--cure", "--json", "--yes", "--on", gpu)
    if not made.stdout.startswith("{"):
        return tell(Result(case, [f"--cure ended with {made.returncode}: {made.stderr[-800:]}"]))
    answer = json.loads(made.stdout)
    states = {row["key"]: row["state"] for row in answer["settings"]}
    tried = sum(state in ("ran", "failed", "late", "other") for state in states.values())
    wrong = [] if answer["ran"] in right else [f"{answer['ran']} ran, of {states}"]
    if made.returncode != (answer["ran"] is None):
        wrong.append(f"status {made.returncode}")
    if answer["ran"]:
        followed = follow(answer, command, gpu)
        if not followed or followed.returncode != 0:
            wrong.append(f"{answer['command']} does not run: {followed and followed.stderr[-400:]}")
        if launch(command, *given, "--sim", gpu).returncode == 0:
            wrong.append("it runs without, too")
    return tell(Result(case, wrong, (gpu, answer["ran"] or "none", tried)))


def run(_name, python):
    only = os.environ.get("CASES", "").split()
    return [check(python, *case) for case in CASES if not only or case[0].split()[0] in only]
