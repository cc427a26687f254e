# SPDX-License-Identifier: Apache-2.0
"""What each client needs: where things are, and how a program is run plain and with the library."""
import collections
import contextlib
import glob
import json
import os
import shutil
import signal
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


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        return error.strerror


def family(pid):
    """A process and all that descend from it."""
    stats = [(folder, read(folder + "/stat").rpartition(")")[2].split()) for folder in glob.glob("/proc/[0-9]*")]
    children = [int(os.path.basename(folder)) for folder, fields in stats if fields[1:2] == [str(pid)]]
    return [pid] + [member for child in children for member in family(child)]


def where_it_is(pid):
    """What each thread of a process waits for, and its stack if there is gdb."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    lines = [f"{pid} {read(f'/proc/{pid}/cmdline')}, user and system {fields[11:13]} ticks".replace("\0", " ")]
    lines += [f"    {read(task + '/comm')}: {read(task + '/wchan')}, {read(task + '/syscall')}"
              for task in glob.glob(f"/proc/{pid}/task/*")]
    if shutil.which("gdb"):
        lines.append(subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 30"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)
    return "\n".join(lines)


def to_the_end(command, env=None, limit_s=600):
    """Runs a command.  If it is not over in time, it is killed with all its children: the status is SIGKILL's, and stderr
    ends with where each thread was.  So one case fails, and not the table."""
    with subprocess.Popen(command, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        late = ""
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            members = family(process.pid)
            late = "\n".join([f"\nnot over in {limit_s} s:", *map(where_it_is, members)])
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            out, err = process.communicate()
    return Run(process.pid, process.returncode, out, err + late)


def simulated(command, size, *options, sim=None, env=None):
    """Runs a command on a simulated GPU; `options` are those of gpucache-run, `sim` those of the GPU."""
    return to_the_end([tool("gpucache-run"), *options, "--sim", size, *(["--sim-options", sim] if sim else []), "--", *command], env)


def report(view, path):
    made = subprocess.run([tool("gpumem-report"), view, "--json", path], capture_output=True, text=True)
    return json.loads(made.stdout)


# The results of the set that runs.
told = []


def tell(result):
    """One result, as it comes."""
    told.append(result)
    print(("FAIL " if result.wrong else "ok   ") + result.case, *result.wrong, sep="\n     ", flush=True)
    return result
