# SPDX-License-Identifier: Apache-2.0
"""What projects test themselves with, on the simulated GPU: every test has the same outcome with the library as without.

Kernels do nothing, so tests that look at what one computed fail in both runs.  Of PyTorch's those are listed here with the
reason, and any other failure is one; it has no package with its tests: PYTORCH_TEST_CUDA names the release's
test/test_cuda.py (Debian's source of pytorch 2.6.0 has it).
"""
import collections
import glob
import os
import re
import subprocess
import tarfile
import tempfile

from world import HERE, Result, simulated, tell

COLUMNS = ("tests passed", "failed", "skipped", "why they fail")

# As many parts of numba.cuda.tests.cudadrv as it has modules; each in a process of its own, because some reset the GPU.
NUMBA = """array_attr context_stack cuda_array_slicing cuda_auto_context cuda_devicerecord cuda_driver cuda_memory cuda_ndarray
deallocations detect emm_plugins events host_alloc init inline_ptx is_fp16 linkable_code linker managed_alloc module_callbacks
nvjitlink nvrtc nvvm_driver pinned profiler reset_device runtime select_device streams""".split()

# Of PyTorch's tests those of memory and its allocators; not those that build an extension or fetch something.
MEMORY = re.compile(r"memory|alloc|oom|pinned|cudart_register|record_stream|MemPool|BlockState|expandable|check_error")
UNTRIED = {"test_cpp_memory_snapshot_pickle", "test_mempool_with_allocator", "test_memory_snapshot"}
# Those that fail on the simulated GPU alone, and why.
COMPUTED, SLEEPS = "look at what a kernel computed", "a kernel that sleeps takes no time"
PYTORCH = {
    "TestCuda.test_out_of_memory": COMPUTED,
    "TestCuda.test_set_per_process_memory_fraction": COMPUTED,
    "TestCuda.test_graph_memory_stats_and_use_result_after_destroy_graph": COMPUTED,
    "TestCudaMallocAsync.test_allocator_fuzz": COMPUTED,
    "TestBlockStateAbsorption.test_assigning_back_deleter_fns_to_tensor": COMPUTED,
    "TestCuda.test_record_stream": SLEEPS,
    "TestCuda.test_record_stream_on_shifted_view": SLEEPS,
    "TestCuda.test_caching_pinned_memory": SLEEPS,
}

# PyCUDA's tests of the driver; its others compile hundreds of kernels, and look at what they computed.
PYCUDA_VERSION = "2026.1"
PYCUDA = {f"TestDriver.test_{name}": COMPUTED for name in (
    "simple_kernel", "simple_kernel_2", "vector_types", "streamed_kernel", "gpuarray", "prepared_invocation")}
PYCUDA["test_pass_cai_array"] = COMPUTED


def outcomes(python, *names, options, program="outcomes.py"):
    """The outcome of each test, and what the run said last."""
    run = simulated([python, os.path.join(HERE, "programs", program), *names], "16GiB", *options)
    told = dict(reversed(line.split(" ", 1)) for line in run.stdout.splitlines())
    return {**told, "the run": f"exit status {run.returncode}"}, run.stderr


def compare(case, python, names, known=None, **program):
    """One result of both runs; `known` is why each test fails that may, where they are listed."""
    plain, said = outcomes(python, *names, options=["--off"], **program)
    ours, _ = outcomes(python, *names, options=[], **program)
    wrong = [f"{test}: {plain.get(test)} without the library, {ours.get(test)} with it"
             for test in sorted({**plain, **ours}) if plain.get(test) != ours.get(test)]
    counts = collections.Counter(plain.values())
    failed = {test.partition(".")[2] for test, outcome in plain.items() if outcome == "failed"}
    if not counts["ok"] + counts["failed"] + counts["skipped"]:
        wrong.append(f"no test ran:\n{said[-1500:]}")
    if known is not None:
        wrong += [f"{test} fails, and is not listed:\n{said[-1500:]}" for test in sorted(failed - set(known))]
        wrong += [f"{test} is listed as failing, and does not" for test in sorted(set(known) - failed)]
    why = "; ".join(f"{reason}: " + ", ".join(sorted(test.split(".")[-1] for test in known if known[test] == reason))
                    for reason in sorted(set(known.values()))) if known else ""
    return tell(Result(case, wrong, (counts["ok"], counts["failed"], counts["skipped"], why)))


def pytorch(python):
    """Each class of test_cuda.py in a process of its own, and so what is listed as failing: a test that fails leaves blocks."""
    path = os.environ["PYTORCH_TEST_CUDA"]
    with open(path) as file:
        found = re.findall(r"^class (\w+)|^    def (test_\w+)", file.read(), re.M)
    groups, group = {}, ""
    for name, test in found:
        group = name or group
        if test and MEMORY.search(f"{group}.{test}") and test not in UNTRIED and f"{group}.{test}" not in PYTORCH:
            groups.setdefault(group, []).append(f"{path}.{group}.{test}")
    return [compare(group, python, names, {}) for group, names in groups.items()] + [
        compare("of these, on the simulated GPU", python, [f"{path}.{test}" for test in PYTORCH], PYTORCH)]


def pycuda(python):
    """Its package has the tests at their source only; kernels are compiled once for both runs."""
    folder = os.path.join(os.path.dirname(os.path.dirname(python)), "source")
    if not glob.glob(f"{folder}/pycuda-*/test"):
        subprocess.run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=pycuda", "-d", folder,
                        f"pycuda=={PYCUDA_VERSION}"], check=True)
        with tarfile.open(f"{folder}/pycuda-{PYCUDA_VERSION}.tar.gz") as source:
            source.extractall(folder, filter="data")
    with tempfile.TemporaryDirectory() as kernels:
        os.environ["PYCUDA_CACHE_DIR"] = kernels
        return [compare("test_driver.py", python, [f"{folder}/pycuda-{PYCUDA_VERSION}/test/test_driver.py"], PYCUDA,
                        program="outcomes_pytest.py")]


def run(name, python):
    if name == "pycuda-tests":
        return pycuda(python)
    if name == "numba-tests":
        return [compare(module, python, [f"numba.cuda.tests.cudadrv.test_{module}"]) for module in NUMBA]
    if not os.path.exists(os.environ.get("PYTORCH_TEST_CUDA", "")):
        print("skip PyTorch's own tests: PYTORCH_TEST_CUDA names no test_cuda.py")
        return []
    return pytorch(python)
