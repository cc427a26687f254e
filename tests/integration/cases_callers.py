# SPDX-License-Identifier: Apache-2.0
"""Callers that have a cache of their own get whole allocations of the driver; all others are cached."""
from harness import MIB, expect, expect_equal

SIM = "memory:256MiB,context:0"


def run(world, *ops, conf="", sim=SIM, **extra):
    """Runs the program; returns how many blocks it took, MiB reserved, segments taken, and the summary."""
    result = world.run([world.program("callers"), *ops], sim=sim, GPUCACHE_CONF=f"oom_report:never,reserve:0,{conf}", **extra)
    expect_equal(f"{ops}: status and stderr", (result.status, result.err), (0, ""))
    recording = world.recording()
    calls = world.report_json("summary", recording)["devices"][0]
    text = world.report("summary", recording).out
    world.forget_recordings()
    return int(result.out), calls["peak"]["reserved_bytes"] // MIB, calls["calls"]["driver_malloc"], text


def case_a_caller_with_a_cache_gets_its_sizes_from_the_driver(world):
    ops = [f"libc10_cuda:{mib}" for mib in (2, 2, 20, 6, 30)]
    for conf in ("", "stacks:sampled"):
        taken, reserved, calls, text = run(world, *ops, conf=conf)
        expect_equal(f"{conf}: blocks, MiB, calls", (taken, reserved, calls), (5, 60, 5))
        expect("PyTorch has a cache of its own" in text, text)


def case_without_stacks_such_a_caller_is_known_after_the_next_segment(world):
    taken, reserved, calls, text = run(world, "libc10_cuda:1", "libc10_cuda:2", "libc10_cuda:6", conf="cache:auto,stacks:off")
    expect_equal("blocks, MiB, calls", (taken, reserved, calls), (3, 2 + 2 + 6, 3))
    expect("PyTorch has a cache of its own" in text, text)


def case_one_that_calls_the_driver_itself_does_too(world):
    taken, reserved, calls, text = run(world, "xla_cuda_plugin:6", "xla_cuda_plugin:2")
    expect_equal("blocks, MiB, calls", (taken, reserved, calls), (2, 8, 2))
    expect("XLA has a cache of its own" in text, text)


def case_a_caller_without_one_shares_segments_beside_it(world):
    taken, reserved, calls, text = run(world, "libplain:2", "libc10_cuda:2", "libplain:2", "libc10_cuda:4")
    expect_equal("blocks, MiB, calls", (taken, reserved, calls), (4, 20 + 2 + 4, 3))


def case_cache_on_caches_every_caller(world):
    taken, reserved, calls, text = run(world, "libc10_cuda:2", "libc10_cuda:2", "libc10_cuda:4", conf="cache:on")
    expect_equal("blocks, MiB, calls", (taken, reserved, calls), (3, 20, 1))
    expect("cache of its own" not in text, text)


def case_a_caller_that_was_told_to_have_no_cache_is_cached(world):
    for library, variable, value, is_told in (("libc10_cuda", "PYTORCH_NO_CUDA_MEMORY_CACHING", "1", True),
                                              ("xla_cuda_plugin", "XLA_PYTHON_CLIENT_ALLOCATOR", "platform", True),
                                              ("xla_cuda_plugin", "XLA_PYTHON_CLIENT_ALLOCATOR", "bfc", False)):
        taken, reserved, calls, text = run(world, f"{library}:2", f"{library}:2", **{variable: value})
        expect_equal(f"{variable}={value}: blocks, MiB, calls", (taken, reserved, calls),
                     (2, 20, 1) if is_told else (2, 4, 2))


def case_what_such_a_caller_frees_serves_its_own_size_without_the_driver(world):
    taken, reserved, calls, text = run(world, "libc10_cuda:40", "-0", "libc10_cuda:20", "libc10_cuda:40", "libplain:12")
    expect_equal("blocks, MiB, calls", (taken, reserved, calls), (4, 40 + 20 + 12, 3))


def case_what_it_frees_goes_back_before_anybody_is_refused(world):
    taken, reserved, calls, text = run(world, "libc10_cuda:200", "-0", "libc10_cuda:256")
    expect_equal("blocks, MiB", (taken, reserved), (2, 256))
    expect("would have failed" not in text, text)
    taken, reserved, calls, text = run(world, "libc10_cuda:200", "-0", "libplain:250")
    expect_equal("blocks", taken, 2)
    taken, reserved, calls, text = run(world, "libc10_cuda:200", "-0", "libc10_cuda:200", "libc10_cuda:56", "libc10_cuda:2")
    expect_equal("blocks", taken, 3)


def case_a_caller_may_come_and_go(world):
    ops = []
    for i in range(6):
        ops += [f"libplain:{2 * i + 2}", f"libc10_cuda:{2 * i + 2}", "!libc10_cuda", f"-{2 * i + 1}"]
    taken, reserved, calls, text = run(world, *ops)
    expect_equal("blocks", taken, 12)
