# SPDX-License-Identifier: Apache-2.0
"""Together with other tools in one process: preloaded libraries, sanitizers, checkers, unwinders."""
import glob
import os
import subprocess
import sys

from harness import Skip, expect, expect_equal


def library(world):
    return world.environment(True)["LD_PRELOAD"]


def expect_counted(world, command, preload, **extra):
    """Runs as without us, prints nothing of ours, and records the same as without the other tool."""
    plain = world.run(command, with_us=False, **extra)
    world.run(command, **extra)
    counts = world.count_calls()
    world.forget_recordings()
    ours = world.run(command, LD_PRELOAD=preload, **extra)
    expect_equal("the run", (ours.status, ours.out, ours.err), (plain.status, plain.out, ""))
    expect_equal("the exit status without us", plain.status, 0)
    expect_equal("the calls", world.count_calls(), counts)
    world.forget_recordings()


def case_another_library_that_interposes_dlsym_stands_behind_us(world):
    preload = f"{library(world)}:{world.program('other_dlsym.so')}"
    for door in ("dlsym", "proc"):
        expect_counted(world, [world.program("train_driver"), "--door", door], preload)
    # Its dlsym is still called.
    code = "import ctypes; print(hasattr(ctypes.CDLL(None), 'other_dlsym_answer'))"
    result = world.run([sys.executable, "-c", code], LD_PRELOAD=preload)
    expect_equal("the run", (result.status, result.out, result.err), (0, "True\n", ""))


def case_another_library_that_interposes_dlsym_stands_before_us(world):
    # It finds the next dlsym by glibc's version and so bypasses ours: the program is unharmed, but not recorded.
    preload = f"{world.program('other_dlsym.so')}:{library(world)}"
    for door in ("link", "dlsym", "proc"):
        command = [world.program("train_driver"), "--door", door]
        plain = world.run(command, with_us=False)
        ours = world.run(command, LD_PRELOAD=preload)
        expect_equal("the run", (ours.status, ours.out, ours.err), (0, plain.out, ""))


def case_another_library_that_interposes_the_exit_is_asked_before_us_and_after_us(world):
    other = world.program("other_exit.so")
    for preload in (f"{library(world)}:{other}", f"{other}:{library(world)}"):
        ours = world.run([world.program("life"), "_exit"], LD_PRELOAD=preload)
        expect_equal("the run", (ours.status, ours.out, ours.err), (4, "malloc: 0\nother\n", ""))
        expect_equal("the state of the recording", world.state(), "exited")
        world.forget_recordings()
    # Also where no CUDA is in sight.
    code = "import os; os._exit(3)"
    ours = world.run([sys.executable, "-c", code], LD_PRELOAD=f"{library(world)}:{other}")
    expect_equal("the run", (ours.status, ours.out, ours.err), (3, "other\n", ""))


def find_system_library(pattern):
    found = sorted(glob.glob(f"/usr/lib/*/{pattern}") + glob.glob(f"/usr/lib/{pattern}"))
    if not found:
        raise Skip(f"{pattern} is not installed")
    return found[0]


def case_another_malloc_is_preloaded_before_us_and_after_us(world):
    command = [world.program("train"), "--threads", "2", "--steps", "20"]
    for pattern in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
        other = find_system_library(pattern)
        for preload in (f"{other}:{library(world)}", f"{library(world)}:{other}"):
            plain = world.run(command, with_us=False)
            ours = world.run(command, LD_PRELOAD=preload)
            expect_equal(f"the run with {preload}", (ours.status, ours.out, ours.err), (0, plain.out, ""))
            expect_equal("bytes held", world.held_bytes(), 0)
            world.forget_recordings()


def sanitizer_runtime(name):
    path = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    return os.path.realpath(path)


def case_a_program_built_with_the_address_sanitizer(world):
    # It insists on being first, before any preloaded library.
    command = [world.program("train_asan"), "--steps", "20"]
    result = world.run(command)
    expect("runtime does not come first" in result.err, f"it accepted us first: {result.err[-300:]!r}")
    expect_counted(world, command, f"{sanitizer_runtime('libasan.so')}:{library(world)}", ASAN_OPTIONS=
                   "detect_leaks=0:verify_asan_link_order=0")


def case_a_program_built_with_the_thread_sanitizer(world):
    command = [world.program("train_tsan"), "--threads", "2", "--steps", "10"]
    plain = world.run(command, with_us=False)
    if plain.status:
        raise Skip(f"the thread sanitizer does not run here: {plain.err.strip()[-200:]}")
    ours = world.run(command)
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, plain.out, ""))
    expect_equal("bytes held", world.held_bytes(), 0)


def case_a_program_with_libunwind_of_its_own_walks_as_before(world):
    command = [world.program("unwinder")]
    if not os.path.exists(command[0]):
        raise Skip("libunwind's header is not installed")
    plain = world.run(command, with_us=False)
    ours = world.run(command)
    expect("as before: 1" in plain.out, f"the program cannot walk its stack: {plain.out!r}")
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, plain.out, ""))


def case_under_a_checker_of_memory_the_cache_is_off_and_says_so(world):
    command = [world.program("train"), "--steps", "5"]
    plain = world.run(command, with_us=False)
    for variable, name in (("NV_SANITIZER_INJECTION_PORT_BASE", "compute-sanitizer"), ("CUDA_MEMCHECK", "cuda-memcheck")):
        ours = world.run(command, **{variable: "49152"})
        expect_equal("the run", (ours.status, ours.out), (0, plain.out))
        expect(len(ours.err.splitlines()) == 1 and name in ours.err, f"stderr is {ours.err!r}")
        counts = world.count_calls()
        expect_equal("hits", counts["hit"], 0)
        world.forget_recordings()
        asked = world.run(command, GPUCACHE_CONF="cache:on", **{variable: "49152"})
        expect_equal("stderr where the cache was asked for", asked.err, "")
        expect(world.count_calls()["hit"] > 0, "the cache stayed off")
        world.forget_recordings()


def case_a_library_that_loads_the_driver_at_its_first_call_finds_it(world):
    """Its calls reach our functions of these names before the driver is loaded."""
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).lazy_devices(int(sys.argv[2])))"
    for extra in ({}, {"GPUCACHE": "0"}):
        run = world.run([sys.executable, "-c", code, world.program("lazy_driver.so"), "0"], **extra)
        expect_equal(f"GPUs, {extra}", (run.status, run.out, run.err), (0, "1\n", ""))
    lost = world.run([sys.executable, "-c", code, world.program("lazy_driver.so"), "1"])
    expect_equal("one that never loads it", (lost.status, int(lost.out) < 0), (0, True))
