# SPDX-License-Identifier: Apache-2.0
"""The views of gpumem-report divide the same bytes of one run in different ways."""
import os
import pickle
import subprocess

from harness import MIB, expect, expect_equal

SIM = "memory:2GiB,context:100MiB"


def leak(world, **extra):
    world.run([*world.script("train.py"), "--oom"], sim=SIM, **extra)
    return world.recordings()[-1]


def sum_of_roots(device):
    return sum(node["live_bytes"] for node in device["tree"] if node["depth"] == 0)


def case_tree_and_top_hold_the_bytes_of_the_holders(world):
    recording = leak(world)
    for moment in "end", "peak", "oom":
        at = f"--at={moment}"
        holders = world.report_json("summary", recording, at)["devices"][0]["holders"]
        held = sum(row["live_bytes"] for row in holders)
        tree = world.report_json("tree", recording, at)["devices"][0]
        expect_equal(f"the tree at {moment}", sum_of_roots(tree), held)
        turned = world.report_json("tree", recording, at, "--bottom-up")["devices"][0]
        expect_equal(f"the turned tree at {moment}", sum_of_roots(turned), held)
        top = world.report_json("top", recording, at)["devices"][0]
        expect_equal(f"own bytes at {moment}", sum(row["own_bytes"] for row in top["functions"]), held)
        main = max(row["inclusive_bytes"] for row in top["functions"])
        expect(main >= held * 0.9, f"nobody is above the rest at {moment}: {main} of {held}")


def case_a_node_holds_what_its_children_hold(world):
    nodes = world.report_json("tree", leak(world))["devices"][0]["tree"]
    for i, node in enumerate(nodes):
        below = 0
        for child in nodes[i + 1:]:
            if child["depth"] <= node["depth"]:
                break
            below += child["live_bytes"] if child["depth"] == node["depth"] + 1 else 0
        expect(below <= node["live_bytes"], f"{node['name']} holds less than what it calls")


def case_a_filter_takes_its_part_and_the_others_the_rest(world):
    recording = leak(world)
    groups = world.report_json("leaks", recording)["groups"]
    names = {frame["function"] for group in groups for frame in group["stack"]}
    name = next(name for name in sorted(names) if "remember" in name)
    wanted = sum(group["live_bytes"] for group in groups
                 if any(frame["function"] == name for frame in group["stack"]))
    narrowed = world.report_json("leaks", recording, f"--where={name}")
    expect_equal("what the filter takes", narrowed["not_freed_bytes"], wanted)
    expect(0 < wanted < world.held_bytes(recording), f"it takes all or nothing: {wanted}")
    expect_equal("nothing", world.report_json("leaks", recording, "--where=nobody.py")["not_freed_bytes"], 0)
    world.report("--fail-on=leak", "leaks", "--where=nobody.py", recording)
    world.report("--fail-on=leak", "leaks", f"--where={name}", recording, status=1)
    threads = world.report_json("top", recording, "--at=end")["devices"][0]["threads"]
    for row in threads:
        of_one = world.report_json("leaks", recording, f"--thread={row['thread']}")
        expect_equal("the bytes of a thread", of_one["not_freed_bytes"], row["live_bytes"])


def case_the_timeline_of_pytorch_shows_its_tensors(world):
    world.run([world.program("torch"), "tensors", "200"], sim="memory:8GiB,context:0", GPUCACHE_CONF="oom_report:never")
    device = world.report_json("summary")["devices"][0]
    lines = [line.split("|", 1)[1] for line in world.report("timeline", world.recording()).out.splitlines() if "|" in line]
    last = [line[-1] for line in lines if len(line) == max(map(len, lines))]
    drawn = device["torch"]["allocated_bytes"] / device["now"]["reserved_bytes"] * len(lines)
    expect(abs(last.count("#") - drawn) <= 1, f"{last} of {len(lines)} rows, and tensors take {drawn}")


def case_the_timeline_counts_an_expandable_segment_once(world):
    """Its pages are PyTorch's cache, as segments are: the tensor in them is no second use of the memory."""
    world.run([world.program("torch"), "pages", str(90 * MIB), "alone"], sim="memory:8GiB,context:0", GPUCACHE_CONF="oom_report:never")
    shown = world.report("timeline", world.recording()).out
    expect("at most 100.00 MiB reserved" in shown, shown)
    last = [line.split("|", 1)[1][-1] for line in shown.splitlines() if "|" in line and len(line.split("|", 1)[1]) > 1]
    expect(abs(last.count("#") - 0.9 * len(last)) <= 1 and last.count(".") >= 1, f"{last}: {shown}")


def case_streams_are_told_apart_where_a_program_names_them(world):
    ended = world.run([world.program("torch"), "streams", "10"], sim="memory:1GiB,context:100MiB")
    handles = [line for line in ended.out.splitlines() if line.startswith("0x")]
    recording = world.recording()
    rows = world.report_json("leaks", recording)["devices"][0]["streams"]
    expect_equal("the streams' bytes", [row["live_bytes"] for row in rows], [30 * MIB, 20 * MIB, 10 * MIB])
    expect_equal("their handles", [hex(row["handle"]) for row in rows[:2]], handles[::-1])
    for wanted, row in zip((*handles[::-1], "legacy"), rows):
        for name in (wanted, str(row["stream"])):
            of_one = world.report_json("leaks", recording, f"--stream={name}")
            expect_equal("the bytes of a stream", of_one["not_freed_bytes"], row["live_bytes"])
    expect_equal("of none", world.report_json("leaks", recording, "--stream=none")["not_freed_bytes"], 0)
    expect("STREAMS" in world.report("leaks", recording).out, "no table of streams")
    path = os.path.join(world.folder, "streams.pickle")
    world.report("export", "--format=pytorch-snapshot", "-o", path, recording)
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    wanted = [*(int(handle, 16) for handle in handles), 0]
    expect_equal("streams of the trace", {entry["stream"] for entry in snapshot["device_traces"][0] if entry["action"] == "alloc"},
                 set(wanted))
    expect(set(wanted) >= {segment["stream"] for segment in snapshot["segments"]} > {0}, "segments are of other streams")


def case_who_names_no_stream_hears_nothing_of_streams(world):
    recording = leak(world)
    for view in ("leaks", "top", "summary"):
        expect("STREAMS" not in world.report(view, recording).out, f"{view} tells of streams")
    rows = world.report_json("leaks", recording)["devices"][0]["streams"]
    expect_equal("the one row", [row["name"] for row in rows], ["none named"])


def case_two_runs_differ_by_what_one_of_them_leaks(world):
    world.run([*world.script("train.py"), "--oom"], sim="memory:1GiB,context:100MiB")
    world.run([*world.script("train.py"), "--oom"], sim="memory:2GiB,context:100MiB")
    first, second = sorted(world.recordings(), key=os.path.getmtime)
    diff = world.report_json("diff", first, second)["devices"][0]
    change = diff["after_bytes"] - diff["before_bytes"]
    expect(change > 900 * MIB, f"1 GiB more of a GPU held {change} B more")
    expect_equal("the rows", sum(row["after_bytes"] - row["before_bytes"] for row in diff["changes"]), change)
    expect("remember" in diff["changes"][0]["function"], f"another function: {diff['changes'][0]}")
    same = world.report_json("diff", first, first)["devices"][0]["changes"]
    expect(all(row["before_bytes"] == row["after_bytes"] for row in same), f"a run differs from itself: {same}")


def case_a_folder_says_who_failed_first(world):
    for rank in range(3):
        world.run([*world.script("train.py"), *(["--oom"] if rank == 1 else ["--steps", "2"])],
                  sim="memory:1GiB,context:100MiB", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3",
                  TORCHELASTIC_RUN_ID="job7")
    job, = world.report_json("list", world.folder)["jobs"]
    expect_equal("the ranks", [row["rank"] for row in job["gpus"]], [0, 1, 2])
    expect_equal("the first to fail", job["first_failure"]["rank"], 1)
    expect_equal("the job", job["job"], "job7")
    expect_equal("the GPU with a verdict", [bool(row["verdict"]) for row in job["gpus"]], [False, True, False])
    text = " ".join(world.report("list", world.folder).out.split())
    expect("rank 1" in text and "ran out of memory first" in text, text)


def case_a_program_without_line_numbers_is_told_how_it_gets_them(world):
    stripped = os.path.join(world.folder, "stripped")
    subprocess.run(["objcopy", "--strip-debug", world.program("train"), stripped], check=True)
    for program, is_told in (stripped, True), (world.program("train"), False):
        world.run([program, "--steps", "2"], sim=SIM)
        text = world.report(world.recordings()[-1]).out
        expect_equal(f"a note about {program}", f"no line numbers in {program}: compile it with -g" in " ".join(text.split()), is_told)
        world.forget_recordings()


def case_steps_that_freed_nothing_are_one_line(world):
    text = world.report("oom", leak(world)).out
    tried = text[text.index("TRIED"):text.index("SETUP")]
    expect("none made memory available" in tried and len(tried.splitlines()) <= 3, f"TRIED says more: {tried}")
