# SPDX-License-Identifier: Apache-2.0
"""A package into which NVIDIA's runtime is linked: one line says why it sees no simulated GPU, and its exit status is its own."""
from world import Result, simulated, tell

COLUMNS = ("said once",)
STATUS = 7

# What each does, what it says of it, and a part of the name of the library that is named.
PROGRAMS = {
    "cupy": ("""
import cupy
try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(error)
""", "cudaErrorSymbolNotFound", "cupy_backends"),
    "ctranslate2": ("""
import ctranslate2, numpy
try:
    ctranslate2.StorageView.from_array(numpy.zeros(4, numpy.float32)).to_device(ctranslate2.Device.cuda)
except RuntimeError as error:
    print(error)
""", "named symbol not found", "libctranslate2"),
}


def run(name, python):
    wrong = []
    program, error, library = PROGRAMS[name]
    for how in (["--off"], []):
        seen = simulated([python, "-c", f"{program}    raise SystemExit({STATUS})"], "4GiB", *how)
        said = [line for line in seen.stderr.splitlines() if "it cannot be simulated" in line]
        if seen.returncode != STATUS or error not in seen.stdout:
            wrong.append(f"exit status {seen.returncode}: {seen.stdout}{seen.stderr[-800:]}")
        if len(said) != 1 or library not in said[0] or "--cudart=shared" not in said[0]:
            wrong.append(f"it said {said}")
    return [tell(Result("one line, and its own exit status", wrong, ("which library, and what to do",)))]
