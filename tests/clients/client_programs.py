# SPDX-License-Identifier: Apache-2.0
"""Programs of other packages than PyTorch, each plain and with the library: programs/use_<name>.py of the set <name>.

A program prints what it computed, runs out of memory in the line marked "# HERE", and tells in its last line what it
counts itself as held then, {"held": BYTES}.  Both runs print the same, the library's books of that moment say as much,
and what the report shows first names that line.
"""
import json
import os
import re
import subprocess
import tempfile

import client_failures
from world import HERE, Result, report, simulated, tell, tool

COLUMNS = ("held when memory ran out, B", "named")
GPU = "4GiB"

# Of JAX: arguments of client_failures.run.  With XLA's default pool, 3 GiB.
FAILURES = [
    ("jax_cache", GPU, "", {"growth"}, "drop it, bound it, or keep it on the host", "fixed"),
    ("jax_dataset", GPU, "", {"limit"}, "copy a batch at a time", "fixed"),
    ("jax_donate", GPU, "", {"limit"}, "donate_argnums", "fixed"),
    ("jax_eager", GPU, "", {"exhausted"}, "within jax.jit", "fixed"),
    ("jax_fraction", GPU, "", {"limit"}, "XLA_PYTHON_CLIENT_MEM_FRACTION=", "XLA_PYTHON_CLIENT_MEM_FRACTION=?"),
    ("jax_host", GPU, "", {"limit"}, "on the host", "fixed"),
    ("jax_jacobian", GPU, "", {"impossible"}, "jax.lax.map with batch_size", "fixed"),
    ("jax_neighbour", GPU, "foreign:3GiB/4711/jupyter", {"neighbour"}, "pid 4711 jupyter", "--"),
    ("jax_scan", GPU, "", {"impossible"}, "jax.checkpoint", "fixed"),
    ("jax_scatter", GPU, "", {"impossible"}, "jax.lax.map with batch_size", "fixed"),
    ("jax_stale", GPU, "", {"limit", "exhausted"}, "holds most", "fixed"),
]

# Of other processes on the GPU, for what looks at them.
SIM = {"monitors": "foreign:1GiB/4711/jupyter"}


def normal(text):
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def held_there(oom):
    """What the program itself had asked for: all but contexts, what libraries loaded, and cuBLAS's workspaces."""
    kinds = {row["kind"]: row["bytes"] for row in oom["balance"]["direct_kinds"]}
    own = sum(size for kind, size in kinds.items() if kind not in ("contexts", "modules"))
    workspaces = sum(row["live_bytes"] for row in oom["libraries"] if row["library"] == "cuBLAS")
    return oom["balance"]["requested_bytes"] + own - workspaces


def lines_of(program):
    with open(program) as file:
        return [f"{os.path.basename(program)}:{i}" for i, line in enumerate(file, 1) if "# HERE" in line]


def missing(path, words):
    """Those that the report of the failure does not have."""
    shown = subprocess.run([tool("gpumem-report"), "oom", "-n", "3", path], capture_output=True, text=True,
                           env={**os.environ, "COLUMNS": "100"}).stdout
    return [f"{word} is not in the report:\n{shown}" for word in words if word not in shown]


def compare(path, program, told):
    """What differs between the books and what the program told at its end; and the line that the report names."""
    lines = lines_of(program)
    ours = held_there(report("oom", path))
    wrong = [] if ours == told["held"] else [f"{ours} bytes in our books, the program counts {told['held']}"]
    return wrong + missing(path, lines), lines


def compare_pool(path, program, told):
    """No driver call fails where XLA's own pool is full; the failure is recorded with that pool, and how it gets more."""
    wrong, lines = [], lines_of(program)
    pool = report("oom", path)["torch"]["reserved_bytes"]
    if pool != told["held"]:
        wrong = [f"a pool of {pool} bytes, where XLA has {told['held']}"]
    return wrong + missing(path, lines + ["XLA_PYTHON_CLIENT_MEM_FRACTION="]), lines


def compare_moments(_path, _program, told):
    """The program has compared at each of its moments, or it would have failed."""
    return ([] if told["compared"] else ["it compared at no moment"]), [f"{told['compared']} moments"]


def failure(python, *row):
    wrong, cause, lines = client_failures.run(python, *row)
    return tell(Result(f"failure {row[0]}", wrong, (cause, ", ".join(lines))))


# Of JAX, whichever version: what runs, which program, and what is compared.
JAX = [
    ("memory and its end", "use_jax.py", compare),
    ("a pool that is full", "use_jax_pool.py", compare_pool),
    ("arrays at twenty moments", "use_jax_arrays.py", compare_moments),
]


def run(name, python):
    if not name.startswith("jax"):
        return [run_program("memory and its end", f"use_{name.replace('-', '_')}.py", compare, SIM.get(name), python)]
    only = os.environ.get("CASES", "").split()
    results = [run_program(case, program, compared, None, python) for case, program, compared in JAX
               if not only or program[:-len(".py")] in only]
    return results + [failure(python, *row) for row in FAILURES if not only or row[0] in only]


def run_program(case, program, compare, sim, python):
    program = os.path.join(HERE, "programs", program)
    with tempfile.TemporaryDirectory() as folder:
        plain, ours = (simulated([python, program], GPU, *options, sim=sim, env={"REPORT": tool("gpumem-report")})
                       for options in (["--off"], ["-o", os.path.join(folder, "%p.gpucache")]))
        wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in (plain, ours) if run.returncode]
        lines, told = [], {"held": 0}
        if not wrong and normal(plain.stdout) != normal(ours.stdout):
            wrong.append(f"printed\n{plain.stdout}and\n{ours.stdout}")
        if not wrong:
            told = json.loads(ours.stdout.splitlines()[-1])
            wrong, lines = compare(os.path.join(folder, f"{ours.pid}.gpucache"), program, told)
    return tell(Result(case, wrong, (f"{told['held']:,}", ", ".join(lines))))
