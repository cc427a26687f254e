# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --cure: programs that run out of memory.

It finds a setting for each that has one, and none for the others; the command that it prints, followed literally, runs.
"""
import json
import os

from world import HERE, Result, tell, to_the_end, tool

TITLE = "cure"
COLUMNS = ("on", "setting", "settings run")
N_KEYS = 1

# A program of failures/, the GPU, what else is of it, the user's settings, and the settings that are right; none: no setting helps.
CASES = [
    ("lengths", "3000MiB", "", "", {"expandable"}),
    ("lengths limited", "16GiB", "", "limit:1GiB", {"limit", "unlimited"}),
    ("models limited", "8GiB", "", "limit:2GiB", {"limit", "unlimited"}),
    ("optimizer limited", "16GiB", "", "limit:4GiB", {"limit", "unlimited"}),
    ("optimizer", "4GiB", "", "", set()),
    ("batch", "4GiB", "", "", set()),
    ("layer", "4GiB", "", "", set()),
    ("evaluate", "4GiB", "", "", set()),
]


def launch(conf, on, options, *arguments, env=None):
    return to_the_end([tool("gpucache-run"), *arguments, *(["-c", conf] if conf else []), *on,
                       *(["--sim-options", options] if options else []), "--", *env.pop("COMMAND")], env=env, limit_s=1800)


def check(python, case, gpu, options, conf, right):
    command = [python, os.path.join(HERE, "failures", f"{case.split()[0]}.py")]
    made = launch(conf, ["--on", gpu], options, "--cure", "--json", "--yes", env={"COMMAND": command})
    if not made.stdout.startswith("{"):
        return tell(Result(case, [f"--cure ended with {made.returncode}: {made.stderr[-800:]}"]))
    answer = json.loads(made.stdout)
    states = {row["key"]: row["state"] for row in answer["settings"]}
    tried = sum(state in ("ran", "failed", "late", "other") for state in states.values())
    wrong = [] if (answer["ran"] in right if right else answer["ran"] is None) else [f"{answer['ran']} ran, of {states}"]
    if made.returncode != (not right):
        wrong.append(f"status {made.returncode}")
    if answer["ran"]:
        setting = next(row["set"] for row in answer["settings"] if row["key"] == answer["ran"])
        variables = dict(word.split("=", 1) for word in setting.split())
        followed = launch("", ["--sim", gpu], options, env={**variables, "COMMAND": command})
        if followed.returncode != 0:
            wrong.append(f"with {setting} it does not run: {followed.stderr[-400:]}")
        as_it_was = launch(conf, ["--sim", gpu], options, env={"COMMAND": command})
        if as_it_was.returncode == 0:
            wrong.append("it runs without, too")
    return tell(Result(case, wrong, (gpu, answer["ran"] or "none", tried)))


def run(_name, python):
    only = os.environ.get("CASES", "").split()
    return [check(python, *case) for case in CASES if not only or case[0].split()[0] in only]
