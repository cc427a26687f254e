# SPDX-License-Identifier: Apache-2.0
"""XLA's table of functions is replaced where its version is known, and only for CUDA."""
import json
import sys

from harness import MIB, expect, expect_equal

LOOK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.GetPjrtApi.restype = library.own_table.restype = ctypes.c_void_p
print(library.GetPjrtApi() == library.own_table(), library.GetPjrtApi() == library.GetPjrtApi())
"""


def look(world, plugin, **extra):
    return world.run([sys.executable, "-c", LOOK, world.program(f"pjrt_tables.d/{plugin}_plugin.so")], **extra)


def case_a_known_table_of_xla_is_copied_once(world):
    result = look(world, "known/xla_cuda")
    expect_equal("its own, and always the same; stderr", (result.out, result.err), ("False True\n", ""))


def case_an_unknown_table_of_xla_is_handed_out_with_one_line(world):
    for plugin, version in (("other/xla_cuda", "1.112"), ("small/xla_cuda", "0.112")):
        result = look(world, plugin)
        expect_equal(f"{plugin}: its own, and always the same", result.out, "True True\n")
        expect(f"has version {version} of its API" in result.err and result.err.count("\n") == 1, result.err)


def case_a_table_is_left_alone_without_cuda_and_switched_off(world):
    for plugin, extra in (("known/xla_cpu", {}), ("known/xla_cuda", {"GPUCACHE": "0"})):
        result = look(world, plugin, **extra)
        expect_equal(f"{plugin} {extra}", (result.out, result.err), ("True True\n", ""))


def play(world, scene, **extra):
    """What a scene of pjrt.c said, and the sums of arrays that the recording has of each GPU."""
    plugin = world.program("pjrt_tables.d/known/xla_cuda_plugin.so")
    extra.setdefault("GPUCACHE_CONF", "oom_report:never")
    result = world.run([world.program("pjrt"), plugin, scene], sim="memory:4GiB,context:0,devices:2", **extra)
    expect_equal(f"{scene}: status and stderr", (result.status, result.err), (0, ""))
    said = dict(line.split(": ", 1) for line in result.out.splitlines())
    return said, [device.get("torch") for device in world.report_json("summary")["devices"]]


def case_arrays_are_those_that_the_plugin_has(world):
    said, (first, second) = play(world, "arrays")
    expect_equal("bytes", (first["allocated_bytes"], second), (int(said["arrays"]), None))
    expect_equal("calls", (first["allocations"], first["frees"]), (6, 4))
    expect_equal("the pool, and what is not freed", (first["reserved_bytes"], world.held_bytes()), (64 * MIB, 5 * MIB))
    tags = {tag["tag"]: tag["live_bytes"] for tag in world.report_json("summary")["devices"][0]["tags"]}
    expect_equal("ranges", tags, {"jit_step": 3 * MIB, None: 2 * MIB})
    for moment in ("peak", "end"):
        rows = json.loads(world.report("export", "--format=json", f"--at={moment}", world.recording()).out)["devices"][0]["holders"]
        pool = [row["live_bytes"] for row in rows if row.get("is_torch_cache")]
        expect_equal(f"{moment}: the pool, and arrays", (len(pool), sum(row["live_bytes"] for row in rows)), (1, 64 * MIB))
        tree = world.report("tree", f"--at={moment}", world.recording()).out
        expect("(XLA's pool, in no array)" in tree and "all others" not in tree, tree)


def case_failures_of_the_plugin_are_recorded(world):
    said, (first, _) = play(world, "failures")
    expect_equal("arrays and failures", (first["allocated_bytes"], first["failed"]), (int(said["arrays"]), 3))
    wanted = {1: (64 * MIB, None, None), 2: (3584 * MIB, "jit_refused", 3 * MIB), 3: (1024 * MIB, "jit_late", 3 * MIB)}
    for number, (size, program, temporaries) in wanted.items():
        oom = world.report_json("oom", str(number), world.recording())
        facts = oom["verdict"]["facts"]
        expect_equal(f"failure {number}", (oom["request"]["requested_bytes"], facts.get("program"), facts.get("program_temporaries")),
                     (size, program, temporaries))


def case_a_failure_is_that_of_the_program_that_needs_so_much(world):
    play(world, "blamed")
    facts = world.report_json("oom")["verdict"]["facts"]
    expect_equal("program", (facts["program"], facts["program_temporaries"]), ("jit_large", 3584 * MIB))


def case_a_program_that_was_begun_twice_at_once_ends_as_a_whole(world):
    said, (first, _) = play(world, "twice")
    expect_equal("bytes", first["allocated_bytes"], int(said["arrays"]))


def case_each_array_of_an_execution_is_sampled_by_itself(world):
    _, (first, _) = play(world, "sampled", GPUCACHE_CONF="stacks:sampled,tensors:sampled")
    expect(first["allocated_bytes"] in range(2 * MIB, 2 * MIB + 33), f"{first['allocated_bytes']} bytes in arrays")


def case_arrays_switched_off_are_not_looked_at_and_the_pool_is_a_block(world):
    said, sums = play(world, "arrays", GPUCACHE_CONF="tensors:off")
    expect_equal("asked, and sums", (said["asked"], sums), ("0", [None, None]))
    expect_equal("what is not freed", world.held_bytes(), 64 * MIB)


def case_an_array_that_is_not_ready_says_nothing_of_addresses(world):
    _, (first, _) = play(world, "unready")
    expect_equal("bytes, failures", (first["allocated_bytes"], first["failed"]), (2 * MIB, 1))


def case_an_array_that_is_not_ready_is_no_success_after_a_failure(world):
    play(world, "unsure")
    expect_equal("recovered", world.report_json("oom")["recovered"], False)


def case_memories_and_the_pool_end_with_their_client(world):
    said, (first, second) = play(world, "clients")
    expect_equal("the first GPU", [first[key] for key in ("allocations", "frees", "allocated_bytes", "reserved_bytes")],
                 [100, 100, 0, 0])
    expect_equal("the second", (second["allocated_bytes"], second["reserved_bytes"]), (int(said["arrays"]), 64 * MIB))


def case_physical_memory_is_a_pool_whatever_allocator_was_asked_for(world):
    """JAX 0.10 cuts arrays of it with "platform", too: earlier versions asked for plain memory for each array."""
    play(world, "physical", XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    for moment in ("peak", "end"):
        made = world.report("export", "--format=json", f"--at={moment}", world.recording())
        rows = json.loads(made.out)["devices"][0]["holders"]
        pool = [row["live_bytes"] for row in rows if row.get("is_torch_cache")]
        expect_equal(f"{moment}: all, and the pool in no array", (sum(row["live_bytes"] for row in rows), pool),
                     (144 * MIB, [62 * MIB]))


def case_fit_of_arrays_compares_no_cache_of_pytorch(world):
    play(world, "arrays")
    caches = [row["cache"] for row in world.report_json("fit", world.recording())["caches"]]
    expect_equal("allocators", caches, ["driver", "gpucache"])
    text = world.report("fit", world.recording()).out
    expect("POOL " in text and "XLA_PYTHON_CLIENT_MEM_FRACTION" in text, text)
