# SPDX-License-Identifier: Apache-2.0
"""Memory freed in flight, and the cost of safety: with us, without us, and without our fences."""
import re

from harness import MIB, expect, expect_equal

# A virtual clock: time passes only in waits and by the price of calls, so no run depends on the machine.
CLOCK = "clock:virtual,costs:published"

# Before 12.5 no event can be recorded for a whole context.
OLD_DRIVER = "driver:12020"

RIGHT = "old owner: right\nnew owner: right\nnew owner: right\n"


def expect_fences_matter(world, old, new):
    command = [world.program("in_flight"), old, new]
    sim = f"memory:4GiB,{CLOCK}"
    plain = world.run(command, with_us=False, sim=sim)
    ours = world.run(command, sim=sim)
    old_driver = world.run(command, sim=f"{sim},{OLD_DRIVER}")
    without = world.run(command, sim=sim, LD_PRELOAD=world.without_fences())
    expect_equal("the run without us", (plain.status, plain.out), (0, RIGHT))
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, RIGHT, ""))
    expect_equal("the run on an old driver", (old_driver.status, old_driver.out), (0, RIGHT))
    expect_equal("the exit status without fences", without.status, 0)
    expect("old owner: wrong" in without.out and "new owner: wrong" in without.out,
           f"without fences nothing went wrong: {without.out!r}")


def case_memory_freed_in_flight_is_safe_between_non_blocking_streams(world):
    expect_fences_matter(world, "non-blocking", "non-blocking")


def case_memory_freed_in_flight_is_safe_between_blocking_streams(world):
    expect_fences_matter(world, "blocking", "blocking")


def case_memory_freed_in_flight_on_a_per_thread_default_stream_is_safe(world):
    expect_fences_matter(world, "per-thread", "non-blocking")


def case_memory_freed_in_flight_is_safe_from_and_to_the_legacy_stream(world):
    expect_fences_matter(world, "legacy", "non-blocking")
    expect_fences_matter(world, "non-blocking", "legacy")


def case_a_kernel_that_overlaps_the_one_ahead_overwrites_nothing_of_its_own_memory(world):
    """Programmatic dependent launch: a kernel may begin before the old owner's kernel in its stream has ended."""
    for arguments in ([], ["streams"]):
        command = [world.program("early"), *arguments]
        plain = world.run(command, with_us=False, sim=CLOCK)
        expect_equal("the run without us", (plain.status, plain.out.split()[-1]), (0, "9"))
        for order in ("device", "fence", "host"):
            for driver in ("", f",{OLD_DRIVER}"):
                ours = world.run(command, sim=CLOCK + driver, GPUCACHE_CONF=f"free_order:{order}")
                expect_equal(f"free_order:{order}{driver}", (ours.status, ours.out.split()[-1], ours.err), (0, "9", ""))
    without = world.run(command, sim=CLOCK, LD_PRELOAD=world.without_fences())
    expect_equal("the run without fences", (without.status, without.out), (0, "the same block, 7\n"))


def loop(world, with_us, size, **extra):
    result = world.run([world.program("loop"), str(size)], with_us=with_us, **extra)
    expect_equal("the exit status", (result.status, result.err), (0, ""))
    peak = re.search(r"^peak bytes: (\d+)$", result.out, re.M)
    total = re.search(r"^total ms: ([\d.]+)$", result.out, re.M)
    return int(peak[1]), float(total[1])


def case_a_loop_of_malloc_launch_free_is_no_worse_than_without_us(world):
    limit = 64 * MIB
    figures = f"10,000 times, pending_limit {limit // MIB} MiB"
    # Blocks that fill their segments, blocks that leave remainders, a block with its own segment.
    for size in (8 * MIB, 3 * MIB, 600 * 1024, 26 * MIB):
        for machine in ("clock:virtual", f"{CLOCK},{OLD_DRIVER}", CLOCK):
            sim = f"memory:4GiB,{machine}"
            plain_peak, plain_ms = loop(world, False, size, sim=sim)
            peak, ms = loop(world, True, size, sim=sim, GPUCACHE_CONF=f"pending_limit:{limit}")
            expect(peak <= plain_peak + limit,
                   f"{machine}, {size} bytes: {peak} reserved, {plain_peak} without us, pending_limit {limit}")
            expect(ms <= plain_ms, f"{machine}, {size} bytes: {ms} ms, {plain_ms} without us")
        figures += (f"\n    {size / MIB:.1f} MiB: {peak / MIB:.1f} MiB reserved, {ms:.0f} ms; "
                    f"without us {plain_peak / MIB:.1f} MiB, {plain_ms:.0f} ms")
    return figures


# Functions without a row in tests/programs/order.c, and why.
NOT_CALLED = {
    "a start, an end or a lookup": "cuInit cuDevicePrimaryCtxReset cuCtxCreate cuCtxAttach cuCtxDetach cuCtxDestroy "
                                   "cuGetProcAddress cuStreamEndCapture cuStreamBeginCaptureToGraph",
    "as one of the rows": "cuGraphInstantiate cuGraphInstantiateWithParams cuArray3DCreate cuMipmappedArrayCreate "
                          "cuMipmappedArrayDestroy cuModuleLoadFatBinary cuLibraryLoadData cuLibraryLoadFromFile "
                          "cuLibraryUnload "
                          "cuLaunchCooperativeKernel cuLaunchGridAsync cuMemcpy3DAsync cuMemcpy3D "
                          "cuMemcpyPeerAsync cuMemcpyPeer cuMemcpy3DPeer cuMemcpy3DPeerAsync cuMemcpy2DUnaligned "
                          "cuMemcpyBatchAsync cuMemcpy3DBatchAsync cuMemsetD2D16Async cuMemsetD2D32Async "
                          "cuMemsetD2D16 cuMemsetD2D32 cuMemcpyAtoD cuMemcpyDtoA cuMemcpyAtoA cuMemcpyAtoH cuMemcpyHtoA "
                          "cuMemcpyAtoHAsync cuMemcpyHtoAAsync",
    "the driver's own books": "cuMemPoolCreate cuMemPoolDestroy cuMemPoolImportPointer cuDeviceSetMemPool "
                              "cuMemGetDefaultMemPool cuMemGetMemPool cuMemSetMemPool cuMemMap "
                              "cuMemRetainAllocationHandle cuMemImportFromShareableHandle cuMulticastCreate",
    "needs another process, device or library": "cuImportExternalMemory cuDestroyExternalMemory "
                                                "cuMemGetHandleForAddressRange cuIpcOpenMemHandle cuIpcCloseMemHandle "
                                                "cuCtxEnablePeerAccess cuGraphicsMapResources "
                                                "cuGraphicsUnmapResources cuSignalExternalSemaphoresAsync "
                                                "cuWaitExternalSemaphoresAsync",
    "in tests/unit/runtime/test_green.c": "cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxStreamCreate",
    "not in the simulated driver": "cuMemBatchDecompressAsync cuMemDiscardAndPrefetchBatchAsync cuMemDiscardBatchAsync "
                                   "cuMemMapArrayAsync cuMemPrefetchAsync cuMemPrefetchBatchAsync "
                                   "cuStreamAttachMemAsync cuStreamBatchMemOp cuStreamWaitValue32 "
                                   "cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64",
}


def rows_of_symbols():
    with open("preload/symbols.def", encoding="utf-8") as table:
        names = re.findall(r"^(?:BOTH\()?HOOK\w*[(,] ?(\w+),", table.read(), re.M)
    return {re.sub(r"(_v\d)?(_pts[zs]|_ptds)?$", "", name) for name in names}


def case_no_call_waits_for_what_the_plain_one_does_not(world):
    """Work before a cudaFree, and an endless kernel after it: which calls hang, and which results are visible?"""
    command = [world.program("order"), "calls"]
    quiet = "oom_report:never"
    plain = world.run(command, with_us=False, sim=f"memory:4GiB,{CLOCK}")
    rows = [line.split(":")[0] for line in plain.out.splitlines()]
    missing = rows_of_symbols() - set(rows) - set(" ".join(NOT_CALLED.values()).split())
    expect_equal("entries that are in no table", sorted(missing), [])
    for order in ("device", "host"):
        for driver in ("", f",{OLD_DRIVER}"):
            ours = world.run(command, sim=f"memory:4GiB,{CLOCK}{driver}",
                             GPUCACHE_CONF=f"{quiet},free_order:{order}")
            expect_equal(f"free_order:{order}{driver}", (ours.status, ours.out, ours.err),
                         (0, plain.out, plain.err))
    fence = world.run(command, sim=f"memory:4GiB,{CLOCK}", GPUCACHE_CONF=f"{quiet},free_order:fence")
    waits = [old for old, new in zip(plain.out.splitlines(), fence.out.splitlines())
             if "running" in old and "running" not in new]
    expect_equal("what waits with fences only", (fence.status, waits), (0, []))
    return f"{len(rows)} calls"


def case_what_the_plain_free_puts_in_place_is_there(world):
    command = [world.program("order"), "data"]
    plain = world.run(command, with_us=False, sim=CLOCK)
    for order in ("device", "host"):
        for driver in ("", f",{OLD_DRIVER}"):
            ours = world.run(command, sim=CLOCK + driver, GPUCACHE_CONF=f"free_order:{order}")
            expect_equal(f"free_order:{order}{driver}", (ours.status, ours.out, ours.err), (0, plain.out, ""))
    fence = world.run(command, sim=CLOCK, GPUCACHE_CONF="free_order:fence")
    expect("0" in fence.out, f"with fences it should be too early: {fence.out}")
