# SPDX-License-Identifier: Apache-2.0
"""Steps with real frameworks: equal results, memory and time, an out-of-memory."""
import json
import os
import statistics
import sys
import time

from harness import TOP, Failed, Skip, expect, expect_equal

sys.path.insert(0, os.path.join(TOP, "tests", "clients"))
from client_torch import EXPANDABLE, NATIVE, compare_tensors  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(TOP, "tests", "clients", "torch_cases.py")
OOM_LIMIT = "limit:3GiB"


def library_path(suite):
    """The environment: frameworks bring their own CUDA libraries or find the machine's, so put none before those."""
    brought = suite.unwind if suite.unwind not in (None, "system") else None
    folders = [folder for folder in (os.environ.get("LD_LIBRARY_PATH"), brought) if folder]
    return ":".join(folders) or None


def run_python(suite, world, command, with_us, **extra):
    return world.run([sys.executable, os.path.join(HERE, command[0]), *command[1:]], with_us,
                     LD_LIBRARY_PATH=library_path(suite), **extra)


def run_script(suite, world, command, with_us, **extra):
    done = run_python(suite, world, command, with_us, **extra)
    expect_equal(f"the exit status ({done.err.strip()[-400:]})", done.status, 0)
    lines = done.out.strip().splitlines()
    expect(lines, "it printed nothing")
    answer = json.loads(lines[-1])
    if "skip" in answer:
        raise Skip(answer["skip"])
    return answer


def busiest_recording(world):
    """The recording of the process that allocates, among those that a framework starts."""
    found = world.recordings()
    expect(found, "there is no recording")
    return found[0] if len(found) == 1 else max(found, key=lambda path: world.count_calls(path)["malloc"])


def compare(suite, world, data, *command, **extra):
    """Runs without us and with us; memory use goes into `data`.  Returns both outputs."""
    if suite.sim:
        raise Skip("frameworks need a real GPU")
    seconds = [time.monotonic()]
    plain = run_script(suite, world, command, False, **extra)
    seconds.append(time.monotonic())
    ours = run_script(suite, world, command, True, **extra)
    seconds.append(time.monotonic())
    data["seconds from start to end"] = "{:.1f} without us, {:.1f} with us".format(
        *(end - begin for begin, end in zip(seconds, seconds[1:])))
    for key, value in plain.items():
        if key != "losses":
            data[key] = value if value == ours[key] else f"{value} without us, {ours[key]} with us"
    if ours["ms_per_step"]:
        data["times as fast with us"] = round(plain["ms_per_step"] / ours["ms_per_step"], 3)
    recording = busiest_recording(world)
    data["calls"] = world.count_calls(recording)
    data["peak"] = world.report_json("summary", recording)["devices"][0]["peak"]
    return plain, ours


def train(suite, world, data, steps, **extra):
    plain, ours = compare(suite, world, data, "torch_train.py", str(steps), **extra)
    data["last loss"] = float.fromhex(plain["losses"][-1])
    expect_equal("the losses", ours["losses"], plain["losses"])


def step_torch(suite, world, data):
    train(suite, world, data, 100)


def step_torch_without_its_cache(suite, world, data):
    # Without us such a step takes several times as long.
    train(suite, world, data, 100, PYTORCH_NO_CUDA_MEMORY_CACHING="1")


def step_torch_on_pages(suite, world, data):
    """Memory in handles that are mapped where they are needed: the same losses, and what a step costs, with plenty and
    with little more than is live."""
    if suite.sim:
        raise Skip("frameworks need a real GPU")
    command = ["torch_train.py", "60"]
    plain = run_script(suite, world, command, False, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    confs = ["vmm:off", "vmm:auto", "vmm:on"]
    data["ms a step without us"] = plain["ms_per_step"]
    for conf in confs:
        ours = run_script(suite, world, command, True, PYTORCH_NO_CUDA_MEMORY_CACHING="1", GPUCACHE_CONF=conf)
        recording = busiest_recording(world)
        peak = world.report_json("summary", recording)["devices"][0]["peak"]
        data[conf] = {"ms a step": ours["ms_per_step"], "live": peak["live_bytes"], "reserved": peak["reserved_bytes"],
                      "calls": world.count_calls(recording)}
        expect_equal(f"the losses with {conf}", ours["losses"], plain["losses"])
        world.forget_recordings()
        if conf == "vmm:off":
            # Leave room for memory that is pending behind kernels.
            most = int(peak["live_bytes"] * 1.08) >> 20
            confs += [f"vmm:{value},limit:{most}MiB" for value in ("auto", "on", "off")]


def step_torch_expandable(suite, world, data):
    conf = "expandable_segments:True"
    train(suite, world, data, 100, PYTORCH_CUDA_ALLOC_CONF=conf, PYTORCH_ALLOC_CONF=conf)


# The configurations, timed alternately; the last two differ by the cost of recording tensors.
SPEEDS = (("without us", False, None), ("with us", True, None), ("with us, tensors:off", True, "tensors:off"))


def measure_steps(rounds, *command):
    def step(suite, world, data):
        if suite.sim:
            raise Skip("frameworks need a real GPU")
        times = {name: [] for name, _, _ in SPEEDS}
        for _ in range(rounds):
            for name, with_us, conf in SPEEDS:
                answer = run_script(suite, world, command, with_us, GPUCACHE_CONF=conf)
                times[name].append(answer["ms_per_step"])
        for name, found in times.items():
            ratio = statistics.median(found) / statistics.median(times["without us"])
            data[name] = f"{sorted(found)} ms a step, {ratio:.3f} times the median without us"
    return step


def asked_for(counted):
    """The counters that do not depend on addresses, unlike unsplit remainders below 1 MiB."""
    return {key: value for key, value in counted.items() if key.startswith(("allocation.", "requested_bytes."))}


def step_torch_cases(suite, world, data):
    """PyTorch's output and counters are the same with us, and equal our sums over tensors."""
    if suite.sim:
        raise Skip("frameworks need a real GPU")
    wrong = []
    for case in ("eager", "amp", "resnet", "graphs", "streams"):
        for way in (NATIVE, EXPANDABLE) if case in ("amp", "streams") else (NATIVE,):
            conf = {"PYTORCH_CUDA_ALLOC_CONF": way, "TORCHINDUCTOR_CACHE_DIR": world.folder}
            plain = run_python(suite, world, [CASES, case], False, **conf)
            ours = run_python(suite, world, [CASES, case], True, **conf)
            name = f"{case}, {way}"
            if (plain.status, ours.status) != (0, 0):
                wrong.append(f"{name}: exit status {plain.status} and {ours.status}: {ours.err.strip()[-300:]}")
                world.forget_recordings()
                continue
            *printed, last = plain.out.splitlines()
            *ours_printed, ours_last = ours.out.splitlines()
            counted = json.loads(ours_last)
            if (printed, asked_for(json.loads(last))) != (ours_printed, asked_for(counted)):
                wrong.append(f"{name}: printed {printed}, {last} and {ours_printed}, {ours_last}")
            books = world.report_json("summary", busiest_recording(world))["devices"][0]
            wrong += [f"{name}: {text}" for text in compare_tensors(way, counted, books.get("torch"))]
            data[name] = {key: counted[key] for key in ("allocation.all.allocated", "allocated_bytes.all.peak",
                                                        "reserved_bytes.all.peak")}
            world.forget_recordings()
    if wrong:
        raise Failed("\n".join(wrong))


def step_torch_memory(suite, world, data):
    if suite.sim:
        raise Skip("frameworks need a real GPU")
    data.update(run_script(suite, world, ["torch_memory.py"], False))
    ours = run_script(suite, world, ["torch_memory.py"], True)
    data["with us"] = {key: value for key, value in ours.items() if value != data.get(key)}


def compare_with_numpy(suite, world, data, framework, **extra):
    plain, ours = compare(suite, world, data, "frameworks.py", framework, **extra)
    expect_equal("wrong results, without us and with us", (plain["wrong"], ours["wrong"]), (0, 0))


def step_cupy(suite, world, data):
    compare_with_numpy(suite, world, data, "cupy")


def step_cupy_without_its_pool(suite, world, data):
    compare_with_numpy(suite, world, data, "cupy-without-pool")


def step_jax(suite, world, data):
    compare_with_numpy(suite, world, data, "jax", XLA_PYTHON_CLIENT_PREALLOCATE="true")


def step_jax_without_preallocation(suite, world, data):
    compare_with_numpy(suite, world, data, "jax", XLA_PYTHON_CLIENT_PREALLOCATE="false")


def step_numba(suite, world, data):
    compare_with_numpy(suite, world, data, "numba")


def run_out(*command, **extra):
    """A step that makes a framework run out of memory under a limit, and looks at what we said."""
    def step(suite, world, data):
        if suite.sim:
            raise Skip("frameworks need a real GPU")
        answer = run_script(suite, world, command, True, GPUCACHE_CONF=OOM_LIMIT, **extra)
        data.update(answer)
        expect(answer["exception"], f"there was no end to memory: {answer}")
        recording = busiest_recording(world)
        data["calls"] = world.count_calls(recording)
        for other in world.recordings():
            if other != recording:
                os.unlink(other)
        expect(data["calls"]["oom"] > 0, "we saw no out-of-memory")
        oom = json.loads(world.report("oom", "--json", recording).out)
        data["verdict"] = oom["verdict"]["word"]
        data["holder"] = oom["holders"][0]["where"] if oom["holders"] else "nobody"
        expect_equal("the verdict", data["verdict"], "limit")
    return step


STEPS = (
    ("PyTorch trains bit for bit as without us", 90, step_torch),
    ("PyTorch without its own cache trains bit for bit as without us", 120, step_torch_without_its_cache),
    ("PyTorch on pages trains bit for bit as without us", 120, step_torch_on_pages),
    ("PyTorch with expandable segments trains bit for bit as without us", 90, step_torch_expandable),
    ("PyTorch counts as we do, case by case", 180, step_torch_cases),
    ("what PyTorch's libraries take", 60, step_torch_memory),
    ("what a training step costs: a small model", 180, measure_steps(2, "torch_train.py", "310")),
    ("what a training step costs: GPT-2 small", 300, measure_steps(5, "torch_train.py", "110", "gpt2")),
    ("CuPy computes as NumPy", 45, step_cupy),
    ("CuPy without its pool computes as NumPy", 45, step_cupy_without_its_pool),
    ("JAX with preallocation computes as NumPy", 60, step_jax),
    ("JAX without preallocation computes as NumPy", 60, step_jax_without_preallocation),
    ("numba computes as NumPy", 45, step_numba),
    ("an out-of-memory of PyTorch is explained", 45, run_out("torch_train.py", "oom")),
    ("an out-of-memory of CuPy is explained", 45, run_out("frameworks.py", "cupy", "oom")),
    ("an out-of-memory of JAX is explained", 45,
     run_out("frameworks.py", "jax", "oom", XLA_PYTHON_CLIENT_PREALLOCATE="false")),
    ("an out-of-memory of numba is explained", 45, run_out("frameworks.py", "numba", "oom")),
)
