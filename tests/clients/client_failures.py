# SPDX-License-Identifier: Apache-2.0
"""A program of failures/ runs out of memory: the report names cause, line and advice, and with the advice it runs."""
import os
import re
import subprocess
import tempfile

from world import HERE, simulated, tool

FIRST_LINES = 15


def simulate(python, recording, size, options, *arguments, **variables):
    return simulated([python, *arguments], size, "-o", recording, sim=options, env=variables)


def first_lines(recording):
    """What is read first, in one line; and the cause."""
    made = subprocess.run([tool("gpumem-report"), "summary", recording], capture_output=True, text=True,
                          env={**os.environ, "COLUMNS": "100"})
    text = re.sub(r"\s+", " ", " ".join(made.stdout.splitlines()[:FIRST_LINES]))
    return text, (re.findall(r"WHY (\w+)", text) or ["nothing"])[0]


def causes_of(stderr):
    """The causes that the line at the failure and the block at the end name, with how certain they are."""
    words = r"(\w+(?: \w+)?) \((\w+)\)"
    return re.findall(rf"^gpucache: out of memory on .* asked for, {words};", stderr, re.M), re.findall(rf"^WHY +{words}", stderr, re.M)


def lines_of(program):
    with open(program) as file:
        return [f"{os.path.basename(program)}:{i}" for i, line in enumerate(file, 1) if "# HERE" in line]


def follow_advice(python, recording, size, options, program, follow, text):
    """Runs the program again: "fixed" switches it, "--" leaves out what else was of the GPU, the rest are variables, "?" with the
    value that the report names."""
    variable, _, value = follow.partition("=")
    if value == "?":
        value = (re.findall(rf"{variable}=([0-9.]+)", text) or ["no value"])[0]
    return simulate(python, recording, size, "" if follow.startswith("--") else options, program,
                    *(["fixed"] if follow == "fixed" else []), **({variable: value} if value else {}))


def run(python, name, size, options, causes, advice, follow):
    """What is wrong, with what was said; the cause; and the lines that are to be named.

    A program of failures/: on how large a GPU, with what else of it, the causes that are right, what of the advice has to be
    there, and what follows it (follow_advice)."""
    program = os.path.join(HERE, "failures", f"{name}.py")
    lines, wrong = lines_of(program), []
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "run.gpucache")
        ran_out = simulate(python, recording, size, options, program)
        if ran_out.returncode == 0 or "out of memory" not in ran_out.stderr:
            wrong.append(f"it does not run out of memory:\n{ran_out.stderr[-800:]}")
        at_failure, at_end = causes_of(ran_out.stderr)
        # Of JAX the line tells of the first failure, when XLA's pool could not grow, and the block of the array's; of a retry that of
        # the first attempt.
        if at_failure and at_end and at_failure[-1] != at_end[-1] and not name.startswith(("jax_", "retry")):
            wrong.append(f"the line at the failure says {at_failure[-1]}, the block {at_end[-1]}")
        text, cause = first_lines(recording)
        if cause not in causes:
            wrong.append(f"the cause is {cause}, not {' or '.join(sorted(causes))}")
        wrong += [f"{word!r} is not in the first {FIRST_LINES} lines" for word in (*lines, advice) if word not in text]
        followed = follow_advice(python, recording, size, options, program, follow, text)
        if followed.returncode != 0:
            wrong.append(f"the advice does not help:\n{followed.stderr[-800:]}")
    return [text, *wrong] if wrong else [], cause, lines
