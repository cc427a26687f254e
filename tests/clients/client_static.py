# SPDX-License-Identifier: Apache-2.0
"""A package into which NVIDIA's runtime is linked: one line says why it sees no simulated GPU, and its exit status is its own."""
from world import Result, simulated, tell

COLUMNS = ("said once",)
STATUS = 7
PROGRAM = f"""
import cupy
try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(error)
    raise SystemExit({STATUS})
"""


def run(_name, python):
    wrong = []
    for how in (["--off"], []):
        seen = simulated([python, "-c", PROGRAM], "4GiB", *how)
        said = [line for line in seen.stderr.splitlines() if "it cannot be simulated" in line]
        if seen.returncode != STATUS or "cudaErrorSymbolNotFound" not in seen.stdout:
            wrong.append(f"exit status {seen.returncode}: {seen.stdout}{seen.stderr[-800:]}")
        if len(said) != 1 or "cupy_backends" not in said[0] or "--cudart=shared" not in said[0]:
            wrong.append(f"it said {said}")
    return [tell(Result("one line, and its own exit status", wrong, ("which library, and what to do",)))]
