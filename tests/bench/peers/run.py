#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares other allocators with ours on the same simulated driver: run.py BUILD.

Each peer is compiled against its headers, downloaded to build/peers or build/clients, and linked with the simulated
CUDA runtime.  A peer whose headers are not available is skipped, with the reason.  Pairs are medians of turns of 200
pairs; the peers alternate, so that the machine's other work affects all of them.  Traces are those of
tests/bench/traces: the peak of reserved bytes, and the smallest device on which the peer serves every request, within
0.2 %.

Variables: ROUNDS (5); CLIENTS_DIR, where check-clients keeps its environments; ONLY, names of peers; TABLE, if set,
writes the results into docs/inside/MEASUREMENTS.md.
"""
import collections
import glob
import gzip
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(TOP, "build", "peers")
CLIENTS = os.environ.get("CLIENTS_DIR", os.path.join(TOP, "build", "clients"))
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
MIB = 1 << 20
GPU = "64GiB"
RMM = "librmm-cu12==24.12.1"
PAIRS = [(10, 1), (100000, 1), (10, 4), (100000, 4)]

# By name: program, description, options of gpucache-run, environment; whether it plays traces, and whether it takes all
# memory at once.
Peer = collections.namedtuple("Peer", "program what options variables plays takes_all", defaults=(False,))
OFF = ("--off",)
PEERS = {
    "driver": Peer("cuda", "cudaMalloc of the simulated driver", OFF, {}, True),
    "c10": Peer("c10", "PyTorch's C++ allocator", OFF, {}, True),
    "c10 history": Peer("c10", "the same with its memory history", OFF, {"HISTORY": "state"}, False),
    "c10 C++ stacks": Peer("c10", "the same with C++ stacks in it", OFF, {"HISTORY": "cpp"}, False),
    "RMM pool": Peer("rmm_pool", "RMM's pool_memory_resource", OFF, {}, True),
    "RMM arena": Peer("rmm_arena", "RMM's arena_memory_resource", OFF, {}, True, True),
    "CUB": Peer("cub", "CUB's CachingDeviceAllocator", OFF, {}, True),
    "ours, no recording": Peer("driver", "cuMemAlloc", ("-c", "record:off,stacks:off"), {}, False),
    "ours, recorded": Peer("driver", "cuMemAlloc", ("-c", "stacks:off"), {}, False),
    "ours, sampled": Peer("driver", "cuMemAlloc", ("-c", "stacks:sampled"), {}, False),
    "ours, all stacks": Peer("driver", "cuMemAlloc", ("-c", "stacks:all"), {}, False),
    "ours, recorded, cudaMalloc": Peer("cuda", "cudaMalloc", ("-c", "stacks:off,reserve:0"), {}, True),
    "ours, sampled, cudaMalloc": Peer("cuda", "cudaMalloc", ("-c", "stacks:sampled"), {}, False),
    "ours, all stacks, cudaMalloc": Peer("cuda", "cudaMalloc", ("-c", "stacks:all"), {}, False),
    "c10 with ours, all stacks": Peer("c10", "PyTorch's allocator, each tensor recorded", ("-c", "stacks:all"), {}, False),
    "c10 with ours, sampled": Peer("c10", "the same, sampled", ("-c", "stacks:sampled,tensors:sampled"), {}, False),
    "c10 with ours, tensors:off": Peer("c10", "the same, segments only", ("-c", "tensors:off"), {}, False),
}

# Bars: how many times as long the first peer takes as the second, at least or at most.
BARS = [
    ("c10", "ours, recorded, cudaMalloc", "at least", 4),
    ("c10 C++ stacks", "ours, all stacks, cudaMalloc", "at least", 4),
    ("c10 with ours, all stacks", "c10", "at most", 1.8),
    ("c10 with ours, sampled", "c10", "at most", 1.2),
]


class Skip(Exception):
    pass


def torch_folder():
    found = sorted(glob.glob(os.path.join(CLIENTS, "torch-2.15", "lib", "python*", "site-packages", "torch")))
    if not found:
        raise Skip("there is no PyTorch 2.15: make check-clients CLIENTS=torch brings it")
    return found[-1]


def rmm_include():
    folder = os.path.join(FOLDER, "rmm")
    include = os.path.join(folder, "librmm", "include")
    if not os.path.isdir(include):
        made = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, RMM],
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise Skip(f"no {RMM}: " + made.stderr.strip().splitlines()[-1])
    return include


def cub_include():
    for folder in os.path.join(CUDA, "include", "cccl"), os.path.join(CUDA, "include"):
        if os.path.exists(os.path.join(folder, "cub", "util_allocator.cuh")):
            return folder
    raise Skip(f"there is no CUB in {CUDA}")


def flags(program):
    """The compiler's arguments for a program: its source, headers and libraries."""
    cuda = ["-isystem", os.path.join(CUDA, "include")]
    if program == "c10":
        torch = torch_folder()
        lib = os.path.join(torch, "lib")
        return ["c10.cc", "-std=c++20", "-isystem", f"{torch}/include", "-isystem", f"{torch}/include/torch/csrc/api/include",
                *cuda, f"-L{lib}", f"-Wl,--disable-new-dtags,-rpath,{lib}", "-lc10_cuda", "-lc10", "-Wl,--no-as-needed",
                "-ltorch_cpu", "-ltorch"]
    if program.startswith("rmm"):
        include = rmm_include()
        return ["rmm.cc", "-std=c++17", *(["-DARENA"] if program == "rmm_arena" else []),
                "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE", "-DFMT_HEADER_ONLY", "-DSPDLOG_FMT_EXTERNAL",
                *(word for part in ("", "/rapids", "/rapids/libcudacxx") for word in ("-isystem", include + part)), *cuda]
    if program == "cub":
        return ["cub.cc", "-std=c++17", "-isystem", cub_include(), *cuda]
    return [f"{program}.cc", "-std=c++17", *cuda]


def compile_peer(program):
    if not os.path.exists(os.path.join(CUDA, "include", "cuda_runtime_api.h")):
        raise Skip(f"there are no headers of CUDA in {CUDA}")
    source, *words = flags(program)
    made = subprocess.run([os.environ.get("CXX", "g++"), "-O2", os.path.join(HERE, source), "-o", os.path.join(FOLDER, program),
                           *words, "-L" + os.path.join(BUILD, "simcuda"), "-l:libcudart.so.13", "-l:libcuda.so.1", "-lpthread",
                           "-ldl"], capture_output=True, text=True)
    if made.returncode != 0:
        raise Skip("it does not compile: " + next((line for line in made.stderr.splitlines() if "error" in line), made.stderr[-200:]))


def run(peer, gpu, *arguments):
    command = [os.path.join(BUILD, "gpucache-run"), *peer.options, "-o", os.path.join(FOLDER, "%p.gpucache"), "--sim", gpu,
               "--sim-options", "context:0", "--", os.path.join(FOLDER, peer.program), *map(str, arguments)]
    made = subprocess.run(command, env={**os.environ, "RMM_DEBUG_LOG_FILE": os.devnull, **peer.variables}, capture_output=True, text=True, timeout=600)
    for path in glob.glob(os.path.join(FOLDER, "*.gpucache")):
        os.unlink(path)
    if made.returncode == 3:
        return None
    if made.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {made.returncode}: {made.stderr[-800:]}")
    return [float(line) for line in made.stdout.split()]


def measure_pairs(peers):
    """name -> (live, threads) -> ns: the median of the rounds' medians."""
    rounds = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(int(os.environ.get("ROUNDS", "5"))):
        for key in PAIRS:
            for name, peer in peers.items():
                rounds[name][key].append(statistics.median(run(peer, GPU, "pair", *key)))
    return {name: {key: statistics.median(values) for key, values in row.items()} for name, row in rounds.items()}


def find_smallest(peer, trace, peak, live):
    """The smallest device in bytes, by bisection between the live bytes and the peak, on which it is known to run."""
    low, high = live // (2 * MIB) * 2 * MIB, (int(peak) // (2 * MIB) + 1) * 2 * MIB
    while run(peer, str(high), "trace", trace) is None:
        high += high // 50 // (2 * MIB) * 2 * MIB
    while high - low > max(live // 500, 2 * MIB):
        middle = (low + high) // 2 // (2 * MIB) * 2 * MIB
        if run(peer, str(middle), "trace", trace) is None:
            low = middle
        else:
            high = middle
    return high


def live_peak(path):
    sizes, live, most = {}, 0, 0
    with open(path) as file:
        next(file)
        for line in file:
            op, name, size = line.split(",")[:3]
            if op == "alloc":
                sizes[name] = int(size)
                live += int(size)
                most = max(most, live)
            elif op == "free":
                live -= sizes.pop(name, 0)
    return most


def measure_traces(peers):
    """trace -> name -> (peak reserved, smallest device), both relative to the peak of live bytes."""
    results = {}
    for packed in sorted(glob.glob(os.path.join(TOP, "tests", "bench", "traces", "*.csv.gz"))):
        path = os.path.join(FOLDER, os.path.basename(packed)[:-3])
        with gzip.open(packed) as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target)
        live = live_peak(path)
        row = results[os.path.basename(path)[:-4]] = {}
        for name, peer in peers.items():
            if peer.plays:
                peak = run(peer, GPU, "trace", path)[0]
                smallest = find_smallest(peer, path, peak, live)
                row[name] = (min(peak, smallest if peer.takes_all else peak) / live, smallest / live)
                print(f"     {os.path.basename(path)}: {name} {row[name][0]:.3f} {row[name][1]:.3f}", flush=True)
    return results


def processor():
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found.group(1) if found else platform.machine()


def table(pairs, traces):
    yield f"{os.cpu_count()} cores of {processor()}, load {os.getloadavg()[0]:.0f}; {platform.libc_ver()[1]} glibc; PyTorch 2.15.0, {RMM}, CUB of {os.path.realpath(CUDA).rsplit('/', 1)[-1]}."
    yield ""
    yield "| ns a pair of 512 B | " + " | ".join(f"{live:,} live, {n} thread{'s' if n > 1 else ''}" for live, n in PAIRS) + " |"
    yield "| --- " * (len(PAIRS) + 1) + "|"
    for name, row in pairs.items():
        yield f"| {name} | " + " | ".join(f"{row[key]:,.0f}" for key in PAIRS) + " |"
    yield ""
    for over, under, side, bar in BARS:
        if over in pairs and under in pairs:
            ratio = pairs[over][PAIRS[0]] / pairs[under][PAIRS[0]]
            yield f"- \"{over}\" takes {ratio:.2f} times as long as \"{under}\" (bar: {side} {bar})."
    yield ""
    yield "| peak reserved and smallest device, over the live peak | " + " | ".join(traces) + " |"
    yield "| --- " * (len(traces) + 1) + "|"
    for name in next(iter(traces.values()), {}):
        yield f"| {name} | " + " | ".join("{:.3f}, {:.3f}".format(*row[name]) for row in traces.values()) + " |"


def write_table(lines):
    path = os.path.join(TOP, "docs", "inside", "MEASUREMENTS.md")
    with open(path) as file:
        text = file.read()
    begin, end = "<!-- peers -->\n", "<!-- /peers -->\n"
    head, _, rest = text.partition(begin)
    with open(path, "w") as file:
        file.write(head + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2])


def main():
    os.makedirs(FOLDER, exist_ok=True)
    only = [name for name in os.environ.get("ONLY", "").split(";") if name]
    peers, compiled = {}, {}
    for name, peer in PEERS.items():
        if only and name not in only:
            continue
        try:
            if peer.program not in compiled:
                compiled[peer.program] = None
                compile_peer(peer.program)
            if compiled[peer.program]:
                raise Skip(compiled[peer.program])
            peers[name] = peer
        except Skip as reason:
            compiled[peer.program] = str(reason)
            print(f"skip {name}: {reason}")
    lines = list(table(measure_pairs(peers), measure_traces(peers)))
    print(*lines, sep="\n")
    if os.environ.get("TABLE"):
        write_table(lines)


if __name__ == "__main__":
    main()
