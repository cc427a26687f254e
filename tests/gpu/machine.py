# SPDX-License-Identifier: Apache-2.0
"""Finds what this machine has: a working driver, CUDA's libraries, a build that runs."""
import ctypes
import datetime
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Runs in a process of its own, so that this one never has a context.
PROBE = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
status = cuda.cuInit(0)
out = {"status": status}
if status == 0:
    version, count, device, total = (ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t())
    name = ctypes.create_string_buffer(128)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda.cuDeviceGetCount(ctypes.byref(count))
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, 128, device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    out.update(cuda_version=version.value, devices=count.value, name=name.value.decode(),
               total_bytes=total.value)
print(json.dumps(out))
"""


def output_of(command, seconds=30, **kwargs):
    """The output of a command, or None if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **kwargs)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def probe_driver(library_path):
    import json
    env = dict(os.environ)
    if library_path:
        env["LD_LIBRARY_PATH"] = library_path
    text = output_of([sys.executable, "-c", PROBE], 60, env=env)
    return json.loads(text) if text else None


def find_cudart():
    """{major: folder} of CUDA runtimes: of a toolkit, or of the packages that frameworks install."""
    patterns = ["/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib"]
    for root in sys.path:
        patterns.append(os.path.join(root, "nvidia", "*", "lib"))
    patterns.append("/usr/lib/*-linux-gnu")
    found = {}
    for pattern in patterns:
        for folder in sorted(glob.glob(pattern)):
            for file in glob.glob(os.path.join(folder, "libcudart.so.*")):
                match = re.search(r"libcudart\.so\.(\d+)$", file)
                if match:
                    found.setdefault(int(match.group(1)), folder)
    return found


def find_libunwind(build):
    """Where libunwind is: the folder shipped with the build, "system", or None."""
    brought = os.path.join(build, "lib")
    if os.path.exists(os.path.join(brought, "libunwind.so.8")):
        return brought
    try:
        ctypes.CDLL("libunwind.so.8")
        return "system"
    except OSError:
        return None


def build_runs(build):
    # The report's own libraries, too, may have been brought along.
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(build, "lib")}
    return output_of([os.path.join(build, "gpumem-report"), "--version"], env=env) is not None \
        and os.path.exists(os.path.join(build, "libgpucache.so")) \
        and os.path.exists(os.path.join(build, "programs", "train"))


def provide_build(build, seconds):
    """Returns None, or why there is no build that runs on this machine."""
    if build_runs(build):
        return None
    if not shutil.which("make") or not shutil.which("gcc"):
        return f"{build} does not run here, and there is no compiler to make another"
    jobs = str(os.cpu_count() or 2)
    done = subprocess.run(["make", "-C", TOP, "-j", jobs], capture_output=True, text=True, check=False,
                          timeout=seconds)
    if done.returncode == 0 and build_runs(build):
        return None
    return f"{build} does not run here, and make failed: {done.stderr.strip()[-400:]}"


def find_commit(build):
    """The commit of the shipped build, or of this checkout."""
    try:
        with open(os.path.join(build, "release", "gpu", "commit"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return output_of(["git", "-C", TOP, "describe", "--always", "--dirty"])


def describe(probe, build):
    driver = output_of(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "gpu": probe["name"],
        "gpus": probe["devices"],
        "gpu_bytes": probe["total_bytes"],
        "cuda_of_driver": probe["cuda_version"],
        "driver": driver.splitlines()[0] if driver else None,
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "processor_cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": find_commit(build),
    }
