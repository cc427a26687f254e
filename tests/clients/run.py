#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs on the simulated GPU, each plain and with the library: run.py BUILD [CLIENT...].

A client is a set of packages of fixed versions in a virtual environment of its own, build/clients/<name>, which is made
where it is not there; where the registry is out of reach, or there is no Python for it, the client is skipped with the
reason.  Each case runs twice, with --off and with the library: both print the same, what the program counts of its
memory included, and the library's books agree with it to the byte.  The last line is "N passed, N failed".

Variables: CLIENTS_DIR, where the environments are; ONLY, the names of sets; CASES, the names of PyTorch's cases; TABLE,
where set, has docs/user/CLIENTS.md say what this run saw.
"""
import glob
import os
import shutil
import subprocess
import sys

import client_cure
import client_fit
import client_frameworks
import client_hashcat
import client_programs
import client_ranks
import client_serving
import client_spill
import client_static
import client_suites
import client_torch
import table
from world import TOP, told

NEWEST_PYTHONS = (12, 13, 11)

# client: its name, its packages, what it stands for, the minor versions of CPython that it has wheels for, best first.
CLIENTS = {
    "torch": [("torch-2.15", "torch==2.15.0 numpy==2.3.5", "CUDA 13.2", NEWEST_PYTHONS),
              ("torch-2.11", "torch==2.11.0 numpy==2.3.5", "CUDA 13.0, with which the traces were recorded", NEWEST_PYTHONS),
              ("torch-2.10", "torch==2.10.0 numpy==2.3.5", "CUDA 12.8", NEWEST_PYTHONS),
              ("torch-2.8", "torch==2.8.0 numpy==2.3.5", "CUDA 12.8", NEWEST_PYTHONS),
              ("torch-2.6", "torch==2.6.0 numpy==2.2.6", "CUDA 12.4", NEWEST_PYTHONS),
              ("torch-2.4", "torch==2.4.1 numpy==1.26.4", "CUDA 12.1", (12, 11)),
              ("torch-2.1", "torch==2.1.2 numpy==1.26.4", "CUDA 12.1, the oldest; without cuDNN and Triton", (11,))],
    "fit": [("torch-2.15", "torch==2.15.0 numpy==2.3.5", "what GPU a model needs", NEWEST_PYTHONS)],
    "spill": [("torch-2.15", "torch==2.15.0 numpy==2.3.5", "a training that needs more than the GPU has", NEWEST_PYTHONS)],
    "cure": [("torch-2.15", "torch==2.15.0 numpy==2.3.5", "which setting makes a program run", NEWEST_PYTHONS)],
    "ranks": [("torch-2.15", "torch==2.15.0 numpy==2.3.5", "torchrun and DistributedDataParallel, two processes", NEWEST_PYTHONS)],
    "transformers": [("transformers", "torch==2.15.0 numpy==2.3.5 transformers==5.23.0 accelerate==1.15.0",
                      "Hugging Face: Trainer, a KV cache", NEWEST_PYTHONS)],
    "lightning": [("lightning", "torch==2.15.0 numpy==2.3.5 lightning==2.6.6", "a trainer that calls the program back",
                   NEWEST_PYTHONS)],
    "vllm": [("vllm", "vllm==0.33.0", "a server that takes what is free for its KV cache", (12,))],
    "frameworks": [("trainers", "torch==2.15.0 numpy==2.3.5 transformers==5.23.0 accelerate==1.15.0 peft==0.21.2 trl==1.16.0 "
                    "deepspeed==0.19.8 torchao==0.18.0 torch_geometric==2.8.1 ray==2.60.0 diffusers==0.42.1 nbclient==0.11.0 ipykernel==7.4.0",
                    "trainers over PyTorch, notebooks and actors", NEWEST_PYTHONS)],
    "onnxruntime": [("onnxruntime", "onnxruntime-gpu==1.31.1 onnx==1.23.2 numpy==2.3.5", "an arena that doubles", NEWEST_PYTHONS)],
    "faiss": [("faiss", "faiss-gpu-cu12==1.14.1.post1 numpy==2.3.5", "C++ on CUDA 12's runtime, with its own account",
               NEWEST_PYTHONS)],
    "jax": [("jax", "jax[cuda12]==0.10.2", "XLA's own allocators", NEWEST_PYTHONS),
            ("jax-0.9.2", "jax[cuda12]==0.9.2", "XLA's table of functions, 0.9", NEWEST_PYTHONS),
            ("jax-0.5.3", "jax[cuda12]==0.5.3", "the same, 0.5", NEWEST_PYTHONS),
            # With a later nvcc it does not start: "argument should be a str ..., not 'NoneType'".
            ("jax-0.4.35", "jax[cuda12]==0.4.35 nvidia-cuda-nvcc-cu12==12.6.85", "the same, the oldest", NEWEST_PYTHONS)],
    "numba": [("numba", "numba-cuda[cu13]==0.30.4", "numba, with kernels compiled by NVVM", NEWEST_PYTHONS)],
    "suites": [("numba-tests", "numba-cuda[cu13]==0.30.4 numpy==2.3.5 pytest==8.4.2 filecheck==1.0.6 psutil==7.2.2",
                "numba's own tests of its driver", NEWEST_PYTHONS),
               ("pycuda-tests", "pycuda==2026.1 numpy==2.3.5 pytest==8.4.2",
                "PyCUDA, built here with nvcc, and its own tests of the driver", NEWEST_PYTHONS),
               ("torch-2.6-tests", "torch==2.6.0 numpy==2.2.6 psutil==7.2.2 expecttest==0.3.0 hypothesis==6.170.15 packaging",
                "PyTorch's own tests of memory", NEWEST_PYTHONS)],
    "static": [("cupy", "cupy-cuda13x==14.2.0", "NVIDIA's runtime linked in, which cannot be simulated", NEWEST_PYTHONS),
               ("ctranslate2", "ctranslate2==4.8.5 numpy==2.3.5", "as CuPy; faster-whisper is built on it", NEWEST_PYTHONS)],
    "cuda": [("cuda-python", "cuda-bindings==13.5.0 cuda-core==1.2.2 nvidia-cuda-nvrtc==13.5.37 numpy",
              "the driver from Python", NEWEST_PYTHONS)],
    "hashcat": [("hashcat", "hashcat==25.8.10 nvidia-cuda-nvrtc==13.0.88", "a C program on the driver API alone",
                 NEWEST_PYTHONS)],
    "monitors": [("monitors", "nvidia-ml-py==13.615.71 gpustat==1.1.1 nvitop==1.7.2",
                  "monitors that read NVML", NEWEST_PYTHONS)],
}
MODULES = {"torch": client_torch, "transformers": client_torch, "lightning": client_torch, "fit": client_fit, "cure": client_cure, "ranks": client_ranks, "spill": client_spill, "suites": client_suites, "vllm": client_serving, "frameworks": client_frameworks,
           "static": client_static, "jax": client_programs, "numba": client_programs, "cuda": client_programs,
           "hashcat": client_hashcat, "monitors": client_programs, "onnxruntime": client_programs, "faiss": client_programs}


class Skip(Exception):
    pass


def find_python(minors):
    """A Python of these minor versions that can make environments."""
    found = [shutil.which(f"python3.{minor}") for minor in minors]
    for minor in minors:
        found += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3")))
    for python in filter(None, found):
        if subprocess.run([python, "-c", "import ensurepip, venv, ctypes, sqlite3"], capture_output=True).returncode == 0:
            return python
    raise Skip(f"there is no CPython {' or '.join(f'3.{minor}' for minor in minors)} with venv")


def environment(name, packages, minors):
    """The environment's Python; made, with its packages, where it is not there."""
    folder = os.path.join(os.environ.get("CLIENTS_DIR", os.path.join(TOP, "build", "clients")), name)
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([find_python(minors), "-m", "venv", folder], check=True)
        made = subprocess.run([python, "-m", "pip", "install", "-q", "--no-cache-dir", *packages.split()],
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise Skip("pip: " + made.stderr.strip().splitlines()[-1])
        open(os.path.join(folder, "complete"), "w").close()
    return python


# Each package of a set with the version that is there: an environment that somebody gave may hold others than the set asks for.
VERSIONS = """
import importlib.metadata, re, sys
print(*(f"{name}=={importlib.metadata.version(re.match('[^=[]*', name)[0])}" for name in sys.argv[1:]))
"""


def installed(python, packages):
    names = [package.split("==")[0] for package in packages.split()]
    return subprocess.run([python, "-c", VERSIONS, *names], check=True, capture_output=True, text=True).stdout.strip()


def run_set(module, name, packages, what, minors):
    """The results of one set of packages; none where it cannot be had."""
    try:
        python = environment(name, packages, minors)
        packages = installed(python, packages)
    except (Skip, subprocess.CalledProcessError) as reason:
        print(f"skip {name}: {reason}")
        return []
    print(f"     {name}: {packages} ({what})", flush=True)
    told.clear()
    try:
        return module.run(name, python)
    finally:  # a run that is interrupted keeps what it saw
        if os.environ.get("TABLE") and told:
            table.write(getattr(module, "TITLE", name), packages, what, module.COLUMNS, getattr(module, "N_KEYS", 1), told)


def main():
    only = os.environ.get("ONLY", "").split()
    results = []
    for client in sys.argv[2:] or CLIENTS:
        if client not in CLIENTS:
            sys.exit(f"there is no client {client!r}; there are: {' '.join(CLIENTS)}")
        for row in CLIENTS[client]:
            if not only or row[0] in only:
                results += run_set(MODULES[client], *row)
    failed = sum(bool(result.wrong) for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
