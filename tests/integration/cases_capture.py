# SPDX-License-Identifier: Apache-2.0
"""Stream captures of one thread while another allocates and frees."""
from harness import Failed, expect, expect_equal

# A virtual clock, and copies that take time: a replay stays in flight until a call waits for it.
SIM = "memory:4GiB,clock:virtual,copy_us:300"

WHOLE = ("captures that survived: 10 of 10\n"
         "replays that were right: 20 of 20\n"
         "wrong to the neighbour: 0\n"
         "refused to the neighbour: none\n")


def expect_survival(world, *arguments, sim=SIM):
    """All captures survive, all replays are right; and the cache was at work meanwhile."""
    # With fences more memory is pending, so there are more misses.
    for order, n_misses in (("device", 1), ("fence", 4)):
        ours = world.run([world.program("capture"), *arguments], sim=sim, GPUCACHE_CONF=f"free_order:{order}")
        expect_equal(f"the run, free_order:{order}", (ours.status, ours.out, ours.err), (0, WHOLE, ""))
        calls = world.count_calls()
        expect(calls["hit"] > 50 and calls["driver_malloc"] > n_misses,
               f"free_order:{order}: few hits, or few misses: {calls}")
        world.forget_recordings()


def run_without(world, *arguments, **extra):
    result = world.run([world.program("capture"), *arguments], sim=SIM, **extra)
    expect_equal("the exit status", result.status, 0)
    return result.out


def case_a_capture_of_mode_global_survives_a_thread_that_allocates(world):
    expect_survival(world, "global")
    plain = run_without(world, "global", with_us=False)
    expect("survived: 0 of 10" in plain, f"without us the captures survive, too: {plain}")


def case_a_capture_of_mode_global_survives_it_on_an_old_driver(world):
    # Before 12.5 no event can be recorded for a whole context: fences are synchronisations.
    expect_survival(world, "global", sim=f"{SIM},driver:12020")


def case_a_capture_of_mode_thread_local_survives_a_thread_that_allocates(world):
    expect_survival(world, "thread-local")
    expect_equal("the output without us", run_without(world, "thread-local", with_us=False), WHOLE)


def case_a_capture_of_mode_relaxed_survives_a_thread_that_allocates(world):
    expect_survival(world, "relaxed")
    expect_equal("the output without us", run_without(world, "relaxed", with_us=False), WHOLE)


def case_a_capture_may_allocate_what_its_graph_uses_and_free_what_another_uses(world):
    expect_survival(world, "relaxed", "inside")
    expect_equal("the output without us", run_without(world, "relaxed", "inside", with_us=False), WHOLE)


def case_a_capture_may_do_so_where_the_driver_refuses(world):
    expect_survival(world, "global", "inside")
    plain = run_without(world, "global", "inside", with_us=False)
    expect("survived: 0 of 10" in plain, f"without us the captures survive, too: {plain}")


def case_what_a_capture_frees_in_flight_needs_its_fence(world):
    for _ in range(10):  # the neighbour gets that block only by chance
        out = run_without(world, "relaxed", "inside", LD_PRELOAD=world.without_fences())
        if "survived: 10 of 10" in out and "right: 20 of 20" not in out:
            return
    raise Failed(f"without fences nothing went wrong: {out}")


def case_idle_memory_serves_a_larger_block_during_a_capture(world):
    """As on the plain driver, which has it free; a capture that forbids the request to the plain program is served, too."""
    for mode, plain in ("2", "asked 0 ended 0\n"), ("0", "asked 900 ended 901\n"):
        for with_us, expected in (False, plain), (True, "asked 0 ended 0\n"):
            run = world.run(world.script("capture_room.py") + [mode], sim="memory:1GiB,context:0", with_us=with_us)
            expect_equal(f"mode {mode}, with us {with_us}", (run.status, run.out, run.err), (0, expected, ""))
