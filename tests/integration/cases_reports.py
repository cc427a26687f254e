# SPDX-License-Identifier: Apache-2.0
"""Bugs that users reported in other shims, tried with ours.

    report                                         what went wrong there          here
    HAMi-core #215                                 names that only begin "cu"     case_hami_core_215_...
    HAMi-core #326                                 the driver looks itself up     unit/preload/test_resolve.c
    HAMi-core #279, vgpu-manager #89               the second lookup fails        case_hami_2903_hami_core_279_...
    HAMi #2903, uftrace #714, alnair #127          RTLD_NEXT finds itself         the same
    HAMi-core #174, GOTCHA #101                    private symbols of glibc       case_gotcha_101_...
    memray #212, MangoHud #1667, linuwux #31       exports what others need       case_mangohud_1667_...
    HAMi-core #52, #59                             hang in cuGetExportTable       case_hami_core_52_...
    HAMi #2641                                     hang with the loader's lock    case_hami_2641_...
    HAMi #55, #588, #1662                          processes start one by one     case_hami_1662_...
    HAMi-core #248                                 lock of a killed process       case_hami_core_248_...
    HAMi-core #199                                 fork before the start          case_hami_core_199_...
    HAMi-core #292                                 raw clone                      case_hami_core_292_...
    lupine #544                                    the child's end ends ours      case_lupine_544_...
    PaddlePaddle #78171                            child frees inherited memory   the same
    cuinterpose #360                               locks held at the fork         case_cuinterpose_360_...
    HAMi-core #333                                 NULL free argument             case_hami_core_333_...
    HAMi-core #191, #181, #81                      cuMemGetInfo lies              case_hami_core_191_...
    HAMi-core #187, vLLM #38529                    no context, another device     case_hami_core_187_...
    HAMi-core #57, #71, #233, #320, nvshare #11    versions of one name           case_nvshare_11_...
    HAMi-core free_raw                             codes for unknown pointers     case_hami_core_free_raw_...
    HAMi-core cuPointerGetAttributes               attributes made up             case_hami_core_attributes_...
    HAMi-core #313                                 outputs after a failure        case_hami_core_313_...
    HAMi-core device_overallocated                 free looks through a list      bench: hit_pair_1m
    quda #498                                      a pool swallows IPC            the cases of IPC
    HAMi #1196                                     memory nobody counts           the cases of each kind of memory
    TMS #4, MangoHud                               two interposers                cases_together.py
    UCX #6038, #7195, #7210                        functions patched in place     not tested
"""
import os
import signal
import subprocess

from cases_life import expect_life
from harness import expect, expect_equal

SIM = "memory:4GiB,devices:2"


def expect_report(world, name, *arguments, **extra):
    command = [*world.script("reports.py"), name, *arguments]
    plain = world.run(command, with_us=False, sim=SIM, **extra)
    ours = world.run(command, sim=SIM, **extra)
    expect(plain.out, f"the program said nothing, which proves nothing: {plain.err[-300:]}")
    expect_equal("the run", (ours.status, ours.out, ours.err), (plain.status, plain.out, plain.err))
    others = [line for line in ours.err.splitlines() if not line.startswith("gpusim: ")]
    expect_equal("what is said beside the simulated GPU's lines", others, [])
    expect_equal("the exit status without us", plain.status, 0)


def case_hami_core_215_names_that_begin_as_the_drivers(world):
    expect_report(world, "names", world.program("report_library.so"))


def case_hami_2903_hami_core_279_the_next_definition_again_and_again(world):
    expect_report(world, "next_definition", world.program("report_library.so"))


def symbols(world, *options):
    command = ["nm", "-D", *options, os.path.join(world.build, "libgpucache.so")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def case_gotcha_101_no_private_symbols_of_glibc(world):
    found = symbols(world, "--undefined-only")
    expect("GLIBC_2" in found, f"no versions are shown: {found[:200]!r}")
    expect("GLIBC_PRIVATE" not in found, found)


def case_mangohud_1667_memray_212_nothing_is_exported_that_others_mean(world):
    names = [line.split()[-1].split("@")[0] for line in symbols(world, "--defined-only").splitlines()]
    # Those of libc and PyTorch go on to the next one; NVTX's is asked for by name, where the user says so.  GPUCACHE_ is
    # the version of the C API.
    ours = ("dlclose", "dlsym", "_exit", "_Exit", "InitializeInjectionNvtx2")
    prefixes = ("cu", "gpucache_", "GPUCACHE_", "_ZN3c1027reportMemoryUsageToProfiler", "_ZN3c1027reportOutOfMemoryToProfiler")
    others = [name for name in names if not name.startswith(prefixes) and name not in ours]
    expect("cuMemAlloc_v2" in names and not others, f"exported besides: {others}")


def case_hami_core_52_export_tables_before_and_after_the_start(world):
    expect_report(world, "export_table")


def case_hami_2641_a_constructor_that_uses_CUDA_beside_busy_threads(world):
    for _ in range(3):
        expect_report(world, "constructor", world.program("report_library.so"))


def case_hami_1662_processes_that_start_at_once_wait_for_nobody(world):
    # One process stops while running; the others must not need anything that it holds.
    stopped, _ = world.start_and_hold([world.program("train"), "--hold-at", "3"])
    stopped.send_signal(signal.SIGSTOP)
    children = [world.start([world.program("train"), "--steps", "5"]) for _ in range(8)]
    for child in children:
        _, said = child.communicate(timeout=world.time_limit())
        expect_equal("a process", (child.returncode, said), (0, ""))
    expect_equal("the number of recordings", len(world.recordings()), 9)


def case_hami_core_248_a_killed_process_leaves_no_lock(world):
    for _ in range(3):
        killed, _ = world.start_and_hold([world.program("train"), "--hold-at", "3"])
        killed.kill()
        killed.wait()
        result = world.run([world.program("train"), "--steps", "2"])
        expect_equal("the next process", (result.status, result.err), (0, ""))


def case_hami_core_199_fork_before_the_first_call(world):
    expect_life(world, "fork-before", ["ended", "ended"])


def case_hami_core_292_raw_clone(world):
    expect_life(world, "clone-after", ["ended"])


def case_lupine_544_paddle_78171_the_end_of_a_child_ends_nothing_of_its_parent(world):
    expect_life(world, "fork-after", ["ended"])


def case_cuinterpose_360_locks_that_are_held_at_the_moment_of_a_fork(world):
    expect_life(world, "fork-busy", ["ended"])


def case_hami_core_333_null_free_argument(world):
    expect_report(world, "null_arguments")


def case_hami_core_191_free_memory_follows_the_program(world):
    expect_report(world, "memory_info")


def case_hami_core_187_vllm_38529_no_context_and_another_device(world):
    expect_report(world, "no_context")


def case_nvshare_11_hami_core_57_each_version_is_another_function(world):
    expect_report(world, "versions")


def case_hami_core_free_raw_unknown_pointers(world):
    expect_report(world, "unknown_pointers")


def case_hami_core_attributes_are_the_drivers(world):
    expect_report(world, "attributes")


def case_hami_core_313_outputs_after_a_failure(world):
    expect_report(world, "failed_outputs", GPUCACHE_CONF="oom_report:never")
