# SPDX-License-Identifier: Apache-2.0
"""Memory identified by handles: physical memory and its mappings, arrays, registered and imported memory."""
import os
import re
import struct

from harness import MIB, expect, expect_equal

# Names of include/gpucache_kinds.h, in its order.
REGION_COUNTERS = 2
DEVICE, DIRECT, HOST, RESERVED, CACHED = 12, 56, 64, 48, 40  # offsets in struct gpucache_counters
KIND_BYTES, N_KINDS = 256, 24
KINDS = ("none device pitched managed host registered array async pool graph physical physical_host context "
         "module external ipc multicast").split()
DEVICES = "memory:1GiB,devices:2,context:0"


def counters_of(recording, device=None):
    """The counters summed over all contexts, or those of one device, parsed here and not by our own reader."""
    with open(recording, "rb") as file:
        data = file.read()
    n_regions = struct.unpack_from("<I", data, 28)[0]
    for i in range(n_regions):
        kind, stride, offset, _, count = struct.unpack_from("<IIQQQ", data, 1120 + 32 * i)
        if kind == REGION_COUNTERS:
            break
    records = [data[offset + n * stride:offset + (n + 1) * stride] for n in range(count)]
    records = [record for record in records if struct.unpack_from("<Q", record)[0]
               and device in (None, struct.unpack_from("<i", record, DEVICE)[0])]
    kinds = {}
    for n, name in enumerate(KINDS):
        kinds[name] = sum(struct.unpack_from("<Q", record, KIND_BYTES + 8 * n)[0] for record in records)
    sums = {name: sum(struct.unpack_from("<Q", record, at)[0] for record in records)
            for name, at in (("direct", DIRECT), ("host", HOST), ("reserved", RESERVED), ("cached", CACHED))}
    return sums, {name: value for name, value in kinds.items() if value}


def said(result, what):
    lines = [line for line in result.out.splitlines() if line.startswith(what + ": ")]
    expect(lines, f"the program did not say '{what}': {result.out!r} {result.err!r}")
    return int(lines[-1].split(": ")[1])


def run_scene(world, program, scene, *steps, **extra):
    """Runs the command with us, reads the recording's counters, and removes the file."""
    extra.setdefault("sim", DEVICES)
    result = world.run([world.program(program), scene, *map(str, steps)], **extra)
    expect_equal(f"{program} {scene}: exit status and stderr", (result.status, result.err), (0, ""))
    recording = world.recording()
    sums, kinds = counters_of(recording)
    return result, sums, kinds, recording


def expect_books_agree_after_each_step(world, program, scene):
    n_steps = 0
    while True:
        n_steps += 1
        result, sums, kinds, recording = run_scene(world, program, scene, n_steps)
        os.unlink(recording)
        where = f"{program} {scene} after step {n_steps}"
        expect_equal(f"{where}: the device's bytes in the books", sums["direct"], said(result, "device bytes"))
        expect_equal(f"{where}: the host's bytes in the books", sums["host"], said(result, "host bytes"))
        if len(result.out.splitlines()) < n_steps + 2:
            break
    expect(n_steps > 4, f"{scene} has only {n_steps} steps")
    expect(not kinds, f"{scene} ends with {kinds}")


def expect_same_as_without_us(world, program, scenes):
    for scene in scenes:
        command = [world.program(program), scene]
        plain = world.run(command, with_us=False, sim=DEVICES)
        ours = world.run(command, sim=DEVICES, GPUCACHE_CONF="oom_report:never")
        if scene == "shown":  # a cache takes more than was asked for
            plain.out, ours.out = (re.sub(r"^device bytes: .*", "", text, flags=re.M) for text in (plain.out, ours.out))
        expect_equal(f"{program} {scene}", (ours.status, ours.out, ours.err), (plain.status, plain.out, ""))
        expect_equal(f"{program} {scene} without us", plain.status, 0)


def case_expandable_segments_are_in_the_books_after_each_step(world):
    expect_books_agree_after_each_step(world, "vmm", "expandable")


def case_physical_memory_is_in_the_books_as_long_as_anything_holds_it(world):
    expect_books_agree_after_each_step(world, "vmm", "references")


def case_physical_memory_on_the_host_is_in_the_books_of_the_host(world):
    expect_books_agree_after_each_step(world, "vmm", "host")
    _, sums, kinds, _ = run_scene(world, "vmm", "host", 1)
    expect_equal("the kinds", (sums["direct"], kinds), (0, {"physical_host": 6 * MIB}))


def case_what_the_driver_refuses_leaves_the_books_of_physical_memory_alone(world):
    expect_books_agree_after_each_step(world, "vmm", "misuse")


def case_physical_memory_needs_no_context_and_outlives_one(world):
    _, sums, kinds, recording = run_scene(world, "vmm", "contexts", 1)
    expect_equal("made without a context", (sums["direct"], kinds), (2 * MIB, {"physical": 2 * MIB}))
    os.unlink(recording)
    _, _, kinds, recording = run_scene(world, "vmm", "contexts", 4)
    expect_equal("after the context's end", kinds, {"physical": 6 * MIB})
    os.unlink(recording)
    _, _, kinds, recording = run_scene(world, "vmm", "contexts")
    expect_equal("on the second device", kinds, {"physical": 2 * MIB})
    expect_equal("by device", [counters_of(recording, device)[0]["direct"] for device in (0, 1)], [0, 2 * MIB])
    expect_equal("what is not freed", world.held_bytes(recording), 2 * MIB)


def case_physical_memory_gets_what_the_cache_holds(world):
    result, sums, kinds, _ = run_scene(world, "vmm", "after-a-cache", GPUCACHE_CONF="oom_report:never")
    expect_equal("the second one", said(result, "create too much"), 2)
    expect_equal("the cache", sums["cached"], 0)
    expect_equal("the books", kinds["physical"], said(result, "device bytes"))
    calls = world.count_calls()
    expect_equal("rescued and failed", (calls["rescued"], calls["oom"]), (1, 1))
    expect_equal("what was asked for", world.last_oom()["difference"], 0)


def case_multicast_objects_hold_no_bytes_of_ours(world):
    expect_books_agree_after_each_step(world, "vmm", "multicast")
    _, sums, kinds, _ = run_scene(world, "vmm", "multicast", 1)
    expect_equal("an object", (sums["direct"], kinds), (0, {"multicast": 4 * MIB}))


def case_virtual_memory_is_the_same_with_and_without_us(world):
    expect_same_as_without_us(world, "vmm", ("expandable", "references", "host", "misuse", "after-a-cache",
                                             "contexts", "multicast"))


def case_arrays_are_in_the_books_after_each_step(world):
    expect_books_agree_after_each_step(world, "arrays", "shapes")
    _, _, kinds, _ = run_scene(world, "arrays", "shapes", 7)
    expect_equal("the kinds", kinds, {"array": 5 * 4 * MIB - 2 * MIB - 2 * MIB})


def case_what_the_driver_refuses_leaves_the_books_of_arrays_alone(world):
    expect_books_agree_after_each_step(world, "arrays", "misuse")


def case_registered_host_memory_is_in_the_books_after_each_step(world):
    expect_books_agree_after_each_step(world, "arrays", "host")
    _, _, kinds, _ = run_scene(world, "arrays", "host", 4)
    expect_equal("the kinds", kinds, {"registered": 5 * MIB, "host": 3 * MIB})


def case_imported_memory_counts_nothing_of_ours(world):
    expect_books_agree_after_each_step(world, "arrays", "external")
    _, sums, kinds, _ = run_scene(world, "arrays", "external", 3)
    expect_equal("an import", (sums["direct"], sums["host"], kinds), (0, 0, {"external": 4 * MIB}))


def case_memory_that_others_hold_is_not_recycled(world):
    for steps in (4, 5, 6, 7):
        result, sums, _, recording = run_scene(world, "arrays", "shown", steps)
        os.unlink(recording)
        expect_equal(f"our segments after step {steps}", sums["reserved"], said(result, "device bytes"))
    # Of the two segments that which a descriptor holds went back; that with SYNC_MEMOPS is cached.
    expect_equal("what is left when both were freed", (sums["reserved"], sums["cached"]), (16 * MIB, 16 * MIB))


def case_arrays_get_what_the_cache_holds(world):
    result, sums, kinds, _ = run_scene(world, "arrays", "after-a-cache", GPUCACHE_CONF="oom_report:never")
    expect_equal("the second one", said(result, "another"), 2)
    expect_equal("the books", (sums["cached"], kinds["array"]), (0, said(result, "device bytes")))
    expect_equal("rescued", world.count_calls()["rescued"], 1)


def case_arrays_and_host_memory_are_the_same_with_and_without_us(world):
    expect_same_as_without_us(world, "arrays", ("shapes", "misuse", "host", "external", "shown", "after-a-cache"))
