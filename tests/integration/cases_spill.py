# SPDX-License-Identifier: Apache-2.0
"""spill: what nothing else serves lies in host memory, and the run goes on."""
import contextlib
import json
import os
import re
import subprocess

from harness import MIB, Skip, expect, expect_equal

SMALL = "memory:256MiB,context:0"
SPILL = "spill:2GiB"
FIRST = re.compile(r"gpucache: GPU 0 is full: [\d.]+ MiB for .* spill\.c:\d+ .* went to host memory \(spill:2\.00 GiB\); "
                   r"the program goes on, slower")
LAST = re.compile(r"gpucache: spill: up to ([\d.]+) MiB lay in host memory, in (\d+) requests, since .* before the end; most for .*")
COUNTS = re.compile(r"(\d+) requests, (\d+) refused, (\d+) managed, (\d+) early, (\d+) wrong, all given back\n")


def play(world, seed, count, conf=SPILL, sim=SMALL):
    """Random programs; returns (requests, refused, managed, early, wrong) and stderr."""
    result = world.run([world.program("spill"), "random", str(seed), str(count)], sim=sim, GPUCACHE_CONF=conf)
    counts = COUNTS.fullmatch(result.out)
    expect(result.status == 0 and counts, f"status {result.status}: {result.out} {result.err}")
    return [int(count) for count in counts.groups()], result.err


def hold(world, mib, conf=SPILL, sim=SMALL, **extra):
    child = subprocess.Popen([world.program("spill"), "hold", str(mib)], env=world.environment(True, sim, GPUCACHE_CONF=conf, **extra),
                             cwd=world.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    world.children.append(child)
    return child


def case_a_training_loop_that_dies_ends_with_the_same_sums(world):
    command = [world.program("train"), "--steps", "20", "--width", "2048"]
    large = world.run(command, sim="memory:4GiB,context:0")
    expect_equal("the run on 4 GiB", (large.status, large.err), (0, ""))
    peak = world.report_json("summary")["devices"][0]["peak"]["live_bytes"]
    small = f"memory:{peak * 3 // 4},context:0"
    world.forget_recordings()
    dead = world.run(command, sim=small)
    expect(dead.status != 0, "the run fitted")
    world.forget_recordings()
    spilled = world.run(command, sim=small, GPUCACHE_CONF=SPILL)
    expect_equal("the run with spill", (spilled.status, spilled.out), (0, large.out))
    expect_equal("the rung that helped", list(world.rescued_by()), ["spill_to_host"])


def case_random_programs_keep_their_bytes_and_give_all_back(world):
    told = []
    for conf in SPILL, SPILL + ",cache:off", SPILL + ",free_order:fence", SPILL + ",vmm:auto", SPILL + ",stacks:off":
        (n, refused, managed, early, wrong), err = play(world, 1, 20, conf)
        expect_equal(f"{conf}: refused and wrong", (refused, wrong), (0, 0))
        expect(managed > n / 10, f"{conf}: only {managed} of {n} were spilled")
        # Live pieces of a segment that is cut may hold back its rest: as rarely as without spill.
        expect(early <= (0 if "cache:off" in conf else managed / 50), f"{conf}: {early} early")
        lines = err.splitlines()
        expect(len(lines) == 2, err)
        expect("stacks:off" in conf or (FIRST.fullmatch(lines[0]) and LAST.fullmatch(lines[1])), err)
        summary = world.report_json("summary")["devices"][0]
        expect_equal("spilled at the end", (summary["balance"]["spilled_bytes"], world.held_bytes()), (0, 0))
        expect_equal("what the rung served", summary["calls"]["rescued_by"]["spill_to_host"], managed)
        world.forget_recordings()
        told.append(f"{conf}: {managed} of {n}")
    return "; ".join(told)


def case_every_new_call_may_fail(world):
    for entry, code in ("cuMemAllocManaged", 2), ("cuMemAllocManaged", 999), ("cuMemAdvise", 1), ("cuDeviceGetAttribute", 1), ("cuMemFree_v2", 999):
        for nth in (1, 2, 5, 40):
            result = world.run([world.program("spill"), "random", "3", "2"], sim=f"{SMALL},fail:{entry}/{nth}/{code}", GPUCACHE_CONF=SPILL)
            if entry == "cuMemFree_v2" and result.status == 1:
                continue  # the program saw the driver's error of its own free
            counts = COUNTS.fullmatch(result.out)
            expect(result.status == 0 and counts and int(counts[5]) == 0, f"{entry}/{nth}: {result.status} {result.out} {result.err}")
            expect(int(counts[2]) <= 1, f"{entry}/{nth}: {counts[2]} refused")


def case_the_driver_says_that_it_is_managed_and_exports_nothing(world):
    result = world.run([world.program("spill"), "what", "300"], sim=SMALL, GPUCACHE_CONF=SPILL)
    expect_equal("what the driver says", result.out, "managed 1\nrange 0 1 44\nexport 1\nfree in order 0\nfree again 1\n")


def case_beside_processes_that_would_run_short_nothing_is_spilled(world):
    for held, status in ("16MiB", 0), ("17MiB", 1):
        result = world.run([world.program("spill"), "what", "300"], sim=f"{SMALL},foreign:{held}/77/other", GPUCACHE_CONF=SPILL)
        expect_equal(f"the status beside {held}", result.status, status)
        expect_equal("the reason", result.err.count("spill:2.00 GiB does not apply: other processes hold more than 1/16"), status)


@contextlib.contextmanager
def memory_group(limit):
    """A control group below that of this process, which `limit` bounds.  Needs to be root."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        paths = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    for mount, path, name in (("/sys/fs/cgroup/memory", paths.get("memory"), "memory.limit_in_bytes"), ("/sys/fs/cgroup", paths.get(""), "memory.max")):
        folder = f"{mount}{path}/gpucache-{os.getpid()}"
        if path is None:
            continue
        try:
            os.mkdir(folder)
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(str(limit))
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
            continue
        yield folder
        os.rmdir(folder)
        return
    raise Skip("no control group of memory can be made here")


def case_in_a_tight_control_group_the_program_gets_the_drivers_error(world):
    with memory_group(400 * MIB) as folder:
        command = ["sh", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$0" "$@"', world.program("spill")]
        result = world.run([*command, "hold", "1000"], sim=SMALL, GPUCACHE_CONF=SPILL)
        expect_equal("a program that needs too much", (result.status, result.out), (1, ""))
        expect("cudaMalloc(&ptr, size): out of memory (2)" in result.err, result.err)
        expect_equal("the reason", result.err.count("less than 1/8 of the memory of this host, or of its control group"), 1)
        result = world.run([*command, "what", "300"], sim=SMALL, GPUCACHE_CONF=SPILL)
        expect_equal("a program with room", (result.status, result.out[:9]), (0, "managed 1"))


def case_every_view_shows_what_is_spilled(world):
    child = hold(world, 448)
    expect_equal("the program", child.stdout.readline(), "held\n")
    live = world.report_json("live", world.recording(), "--once")["processes"][0]["devices"][0]
    expect_equal("live", live["balance"]["spilled_bytes"], 192 * MIB)
    child.communicate("\n")
    summary = world.report_json("summary")["devices"][0]
    expect_equal("the balance", summary["balance"]["spilled_bytes"], 192 * MIB)
    expect_equal("its difference", summary["balance"]["difference_bytes"], 0)
    expect_equal("the peak", summary["peak"]["spilled_bytes"], 192 * MIB)
    expect_equal("the holders", sum(row["live_bytes"] for row in summary["holders"]), 448 * MIB)
    text = world.report("summary", world.recording()).out
    expect("192.00 MiB   75.0 %  beyond it, spilled to host memory" in text, text)
    expect("and 192.00 MiB spilled to host memory" in text, text)
    metrics = world.report("export", "--format=prometheus", world.recording()).out
    for name in "gpucache_spilled_bytes", "gpucache_peak_spilled_bytes":
        expect(re.search(rf"^{name}{{.*}} {192 * MIB}$", metrics, re.M), metrics)
    page = world.report("html", world.recording(), status=None)
    fit = json.loads(world.report("fit", "--json", world.recording()).out)
    expect(all(cache["smallest_device_bytes"] >= 448 * MIB for cache in fit["caches"]), fit)
    return page.err


def case_a_failure_says_what_spilling_would_have_served(world):
    result = world.run([world.program("spill"), "hold", "448"], sim=SMALL)
    expect_equal("the run", result.status, 1)
    text = " ".join(world.report("oom", world.recording()).out.split())
    expect("or GPUCACHE_CONF=spill:auto, which goes on, slower, with what does not fit in host memory: here 64.00 MiB" in text, text)
    expect("spill:auto" in result.err, result.err)
    world.forget_recordings()
    served = world.run([world.program("spill"), "what", "448"], sim=SMALL, GPUCACHE_CONF="spill:1GiB")
    expect_equal("the run with it", served.status, 0)
