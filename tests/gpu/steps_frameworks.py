# SPDX-License-Identifier: Apache-2.0
"""Steps with the frameworks of real users: the same results, what it takes and costs, an out-of-memory."""
import json
import os
import sys

from harness import Skip, expect, expect_equal

HERE = os.path.dirname(os.path.abspath(__file__))
OOM_LIMIT = "limit:3GiB"


def library_path(suite):
    """Frameworks bring their own CUDA libraries, or find the machine's; ours in front would take their place."""
    brought = suite.unwind if suite.unwind not in (None, "system") else None
    folders = [folder for folder in (os.environ.get("LD_LIBRARY_PATH"), brought) if folder]
    return ":".join(folders) or None


def run_script(suite, world, command, with_us, **extra):
    done = world.run([sys.executable, os.path.join(HERE, command[0]), *command[1:]], with_us,
                     LD_LIBRARY_PATH=library_path(suite), **extra)
    expect_equal(f"the exit status ({done.err.strip()[-400:]})", done.status, 0)
    lines = done.out.strip().splitlines()
    expect(lines, "it printed nothing")
    answer = json.loads(lines[-1])
    if "skip" in answer:
        raise Skip(answer["skip"])
    return answer


def busiest_recording(world):
    """Of the processes that a framework starts, the one that allocates."""
    expect(world.recordings(), "there is no recording")
    return max(world.recordings(), key=lambda path: world.count_calls(path)["malloc"])


def compare(suite, world, data, *command, **extra):
    """Runs without us and with us; what was used is in the data.  Returns both answers."""
    if suite.sim:
        raise Skip("frameworks need a real GPU")
    plain = run_script(suite, world, command, False, **extra)
    ours = run_script(suite, world, command, True, **extra)
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
    train(suite, world, data, 300)


def step_torch_without_its_cache(suite, world, data):
    # Without us such a step takes several times as long.
    train(suite, world, data, 200, PYTORCH_NO_CUDA_MEMORY_CACHING="1")


def step_torch_expandable(suite, world, data):
    conf = "expandable_segments:True"
    train(suite, world, data, 300, PYTORCH_CUDA_ALLOC_CONF=conf, PYTORCH_ALLOC_CONF=conf)


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
    ("PyTorch with expandable segments trains bit for bit as without us", 90, step_torch_expandable),
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
