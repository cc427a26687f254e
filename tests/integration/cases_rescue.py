# SPDX-License-Identifier: Apache-2.0
"""Requests that only the ladder serves; the recording names the rung that did."""
from harness import MIB, Skip, expect, expect_equal

SIM = "memory:1GiB,context:0,clock:virtual"


def expect_rescue(world, mode, step, sim=SIM, plain=(0, "got it\n"), **extra):
    """With us the program gets its memory by this rung; without us it gets the result `plain`."""
    command = [world.program("rescue"), mode]
    alone = world.run(command, with_us=False, sim=sim)
    if alone.status == 77:
        raise Skip(f"the simulated driver has nothing for the mode {mode}")
    ours = world.run(command, sim=sim, **extra)
    expect_equal("the run without us", (alone.status, alone.out), plain)
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, "got it\n", ""))
    expect_equal("the steps that helped", world.rescued_by(), {step: 1})
    calls = world.count_calls()
    expect_equal("rescued and failed requests", (calls["rescued"], calls["oom"]), (1, 0))
    return calls


def case_room_in_freed_memory_of_another_size_is_given_back(world):
    expect_rescue(world, "cached", "return_enough_segments")


def case_what_the_driver_does_not_take_back_is_a_holder(world):
    for n_refused, view in ((2, "summary"), (30, "oom")):
        world.run([world.program("rescue"), "cached"], sim=f"{SIM},fail:cuMemFree_v2/1/999/{n_refused}")
        found = world.report_json(view)
        told = found["devices"][0] if view == "summary" else found
        where = {row["where"]: row["live_bytes"] for row in told["holders"]}
        libraries = {row["library"]: row["live_bytes"] for row in told["libraries"]}
        expect_equal(f"{view}: the holder", where["not taken back by the driver"], n_refused * 30 * MIB)
        expect_equal(f"{view}: its library", libraries["(the driver)"], n_refused * 30 * MIB)
        world.forget_recordings()


def case_small_requests_are_served_from_cached_pieces_of_any_size(world):
    for block, request in ((4 * MIB, 100000), (2 * MIB, 300000), (4 * MIB, 900000), (9 * MIB, 3 * MIB)):
        command = world.script("stripes.py") + [str(block), str(request), "2000"]
        plain = world.run(command, with_us=False, sim=SIM)
        ours = world.run(command, sim=SIM, GPUCACHE_CONF="oom_report:never")
        expect_equal("the exit status and stderr", (ours.status, ours.err), (0, ""))
        expect(int(ours.out.split()[0]) >= int(plain.out.split()[0]),
               f"blocks of {block}: {ours.out} requests of {request}, without us {plain.out}")


def case_room_in_two_freed_neighbours_is_found_by_reaping(world):
    expect_rescue(world, "neighbours", "reap_passed_fences", GPUCACHE_CONF="free_order:fence,pending_limit:1GiB")


def case_room_in_what_another_context_freed_is_given_back(world):
    expect_rescue(world, "context", "return_everything")


def case_room_behind_a_kernel_of_50_ms_is_waited_for(world):
    # Pending memory is below pending_limit, so only the ladder waits for it.
    expect_rescue(world, "pending", "wait_for_enough_fences", GPUCACHE_CONF="free_order:fence,pending_limit:1GiB")


def case_room_behind_a_kernel_is_waited_for_no_longer_than_asked_for(world):
    # The virtual clock moves only in waits, so the kernel does not end by itself.
    ours = world.run([world.program("rescue"), "pending"], sim=SIM,
                     GPUCACHE_CONF="free_order:fence,pending_limit:1GiB,oom_sync_ms:3,oom_report:never")
    expect_equal("the run", (ours.status, ours.out, ours.err), (1, "", "cudaMalloc(&ptr, size): out of memory (2)\n"))


def case_room_behind_a_barrier_needs_no_ladder(world):
    for scene in ("neighbours", "pending"):
        ours = world.run([world.program("rescue"), scene], sim=SIM)
        expect_equal(f"{scene}: the run", (ours.status, ours.out, ours.err), (0, "got it\n", ""))
        expect_equal(f"{scene}: the steps that helped", world.rescued_by(), {})
        world.forget_recordings()


def case_room_behind_a_kernel_above_pending_limit_needs_no_ladder(world):
    ours = world.run([world.program("rescue"), "pending"], sim=SIM)
    expect_equal("the run", (ours.status, ours.out, ours.err), (0, "got it\n", ""))
    expect_equal("the steps that helped", world.rescued_by(), {})


def case_room_is_given_back_beside_work_that_cannot_reach_it(world):
    """Plain cudaMalloc waits for no kernel that began after the frees; nor do we, whether it ends or waits for the host."""
    for work in ("stream", "synced", "legacy", "flag"):
        for driver in ("13000", "12040"):
            sim = f"{SIM},driver:{driver}"
            command = [world.program("beside"), work]
            plain = world.run(command, with_us=False, sim=sim)
            ours = world.run(command, sim=sim)
            expect_equal(f"{work}: the run without us", plain.out, "8 of 8, and the work is running\n")
            expect_equal(f"{work}: the run", (ours.status, ours.out, ours.err), (0, plain.out, ""))


def case_room_that_the_driver_takes_only_when_idle_is_waited_for(world):
    """A driver that frees nothing beside work costs a wait, not a failure."""
    for work in ("stream", "legacy"):
        ours = world.run([world.program("beside"), work], sim=f"{SIM},free_async:late")
        expect_equal(f"{work}: the run", (ours.status, ours.out, ours.err), (0, "8 of 8, and the work is over\n", ""))


def case_room_in_a_pool_of_the_driver_behind_work_is_waited_for(world):
    expect_rescue(world, "busy-pool", "return_everything", plain=(1, ""))


def case_room_in_a_pool_of_the_driver_is_given_back(world):
    expect_rescue(world, "pool", "return_everything", plain=(1, ""))


def case_room_that_a_graph_had_of_the_driver_is_given_back(world):
    expect_rescue(world, "graph", "return_everything", plain=(1, ""))


def case_room_that_only_the_programs_handler_can_make_is_asked_for(world):
    expect_rescue(world, "handler", "ask_handlers", plain=(1, ""))


def case_the_driver_is_asked_again_after_every_step(world):
    """The driver refuses a second request several times; no rung makes room, so other processes must have."""
    steps = ("reap_passed_fences", "return_enough_segments", "wait_for_enough_fences", "return_everything")
    for refusals, step in enumerate(steps, 1):
        sim = f"{SIM},fail:cuMemAlloc_v2/2/2/{refusals}"
        calls = expect_rescue(world, "again", step, sim=sim, plain=(1, ""))
        expect_equal("the driver's refusals", calls["driver_failed"], refusals)
        world.forget_recordings()
