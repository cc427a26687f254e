# SPDX-License-Identifier: Apache-2.0
"""hashcat, a C program on the driver's API alone, which compiles its kernels with NVRTC: plain and with the library.

Both runs say the same, end alike and give each stream the same kernels and copies; in the library's books each block was
given back.  On the simulated GPU no kernel finds a password: it tries them all, and says that it found none.
"""
import glob
import os
import re
import shutil
import tempfile

from client_torch import compare_launches, streams_of
from world import Result, report, simulated, tell

COLUMNS = ("said", "peak asked for, B", "kernels, copies")

MD5_OF_HELLO = "5d41402abc4b2a76b9719d911017c592"
# How much work a kernel is given is otherwise found by timing it.
ATTACK = ["--force", "--self-test-disable", "--potfile-disable", "-n", "8", "-u", "16", "-T", "256", "-m", "0", "-a", "3",
          MD5_OF_HELLO, "?l?l?l?l?l"]

# A case: how large a GPU, the exit status, what it says.
CASES = [("all words of five letters", "4GiB", 1, "Status...........: Exhausted"),
         ("a GPU that is too small", "400MiB", 252, "Not enough allocatable device memory")]


def normal(text):
    """Without times, speeds and how much memory the host has free."""
    return re.sub(r"(Started: |Stopped: |Time\.|Speed\.|Host memory).*", "", text)


def run_hashcat(package, size, folder, *options):
    """Its own folder keeps compiled kernels: each run begins without."""
    shutil.rmtree(os.path.join(package, "kernels"), ignore_errors=True)
    program = os.path.join(package, "hashcat.bin")
    nvrtc = os.path.join(os.path.dirname(os.path.dirname(package)), "nvidia", "cu13", "lib")
    name = os.path.join(folder, "libnvrtc.so")  # the name that it opens, which the wheel has not
    if not os.path.exists(name):
        os.symlink(os.path.join(nvrtc, "libnvrtc.so.13"), name)
    return simulated([program, *ATTACK], size, *options[1:], sim=f"launches:{options[0]}.launches",
                     env={"LD_LIBRARY_PATH": f"{folder}:{nvrtc}", "HOME": folder})


def compare_books(path):
    """What was not given back; and the peak."""
    device = report("summary", path)["devices"][0]
    held = device["balance"]["requested_bytes"]
    return [f"{held} bytes are held at the end"] if held else [], device["peak"]["requested_bytes"]


def run_case(package, case, size, status, words):
    with tempfile.TemporaryDirectory() as folder:
        traces = [os.path.join(folder, name) for name in ("plain", "ours")]
        plain = run_hashcat(package, size, folder, traces[0], "--off")
        ours = run_hashcat(package, size, folder, traces[1], "-o", os.path.join(folder, "%p.gpucache"))
        wrong = [f"exit status {run.returncode}, or not {words!r}:\n{run.stdout[-800:]}{run.stderr[-800:]}"
                 for run in (plain, ours) if run.returncode != status or words not in run.stdout + run.stderr]
        if normal(plain.stdout) != normal(ours.stdout):
            wrong.append(f"printed\n{plain.stdout}and\n{ours.stdout}")
        work = streams_of(traces[1])
        wrong += compare_launches(streams_of(traces[0]), work)
        held, peak = compare_books(os.path.join(folder, f"{ours.pid}.gpucache"))
    return tell(Result(case, wrong + held, (words.split(": ")[-1], f"{peak:,}", f"{sum(map(len, work.values())):,}")))


def run(_name, python):
    package, = glob.glob(os.path.join(os.path.dirname(os.path.dirname(python)), "lib", "python3*", "site-packages", "hashcat", "hashcat"))
    os.chmod(os.path.join(package, "hashcat.bin"), 0o755)
    return [run_case(package, *case) for case in CASES]
