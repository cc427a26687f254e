# SPDX-License-Identifier: Apache-2.0
"""What each client needs: where things are, and how a program is run plain and with the library."""
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# Where the programs themselves are, whether we are given build/release or build, which has links to some of it.
BUILD = os.path.dirname(os.path.realpath(os.path.join(sys.argv[1], "gpucache-run")))

Run = collections.namedtuple("Run", "pid returncode stdout stderr")

# What was run, what is wrong with it (nothing: it passed), and what there is to say, in the set's columns.
Result = collections.namedtuple("Result", "case wrong cells", defaults=((),))


def tool(name):
    return os.path.join(BUILD, name)


def simulated(command, size, *options, sim=None, env=None):
    """Runs a command on a simulated GPU; `options` are those of gpucache-run, `sim` those of the GPU."""
    command = [tool("gpucache-run"), *options, "--sim", size, *(["--sim-options", sim] if sim else []), "--", *command]
    with subprocess.Popen(command, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        out, err = process.communicate(timeout=600)
    return Run(process.pid, process.returncode, out, err)


def report(view, path):
    made = subprocess.run([tool("gpumem-report"), view, "--json", path], capture_output=True, text=True)
    return json.loads(made.stdout)


def tell(result):
    """One result, as it comes."""
    print(("FAIL " if result.wrong else "ok   ") + result.case, *result.wrong, sep="\n     ", flush=True)
    return result
