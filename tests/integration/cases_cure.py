# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --cure: the setting with which a program runs that ran out of memory, found by running it."""
import json
import os
import re
import shlex
import signal
import sys
import time

from cases_fit import left_over
from cases_launcher import installed, launch
from cases_wait import Terminal
from harness import TOP, expect, expect_equal, shorten


def scene(world, *arguments):
    return [world.program("scene"), *arguments]


def cure(world, *arguments, **extra):
    result = launch(world, "--cure", "--json", "--yes", *arguments, **extra)
    expect(result.out.startswith("{"), f"no answer: status {result.status}, stderr {result.err[-800:]!r}")
    expect_equal("what is left", left_over(world), [])
    answer = json.loads(result.out)
    return result.status, answer, {row["key"]: row["state"] for row in answer["settings"]}


def case_cure_raises_a_limit_and_the_command_runs_as_it_is_written(world):
    program = ["/bin/sh", "-c", 'exec "$@"', "it's", *scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000")]
    status, answer, states = cure(world, "--on", "1GiB", "-c", "limit:300MiB", "--", *program, GPUCACHE_CONF="stacks:off")
    expect_equal("the end", (status, answer["ran"]), (0, "limit"))
    expect_equal("the settings before it", (states["pages"], states["off"], states["unlimited"]), ("failed", "failed", "open"))
    row = next(row for row in answer["settings"] if row["key"] == "limit")
    limit = re.fullmatch(r"GPUCACHE_CONF=limit:(\d+)MiB", row["set"]).group(1)
    expect(row["headroom_bytes"] > 0 and row["driver_calls"] > 0, f"no price: {row}")
    expect_equal("the rows with a price", [row["key"] for row in answer["settings"] if row["headroom_bytes"] is not None], ["limit"])
    given = f"GPUCACHE_CONF=stacks:off,limit:300MiB,limit:{limit}MiB"
    expect_equal("the command", shlex.split(answer["command"]), [given, "gpucache-run", "--", *program])
    path = os.path.dirname(installed(world)) + ":" + os.environ["PATH"]
    for command, runs in (answer["command"], True), (answer["command"].replace(f",limit:{limit}MiB", ""), False):
        result = world.run(["/bin/sh", "-c", command], with_us=False, GPUSIM="memory:1GiB", PATH=path)
        expect_equal(f"{command} runs", result.status == 0, runs)


def case_cure_finds_no_setting_where_more_is_live_than_the_GPU_has(world):
    status, answer, states = cure(world, "--on", "2GiB", world.program("train"), "--oom")
    expect_equal("the end", (status, answer["ran"], answer["command"]), (1, None, None))
    tried = {key: state for key, state in states.items() if state in ("ran", "failed")}
    expect_equal("what was tried", tried, {"spill": "failed"})
    grows = answer["changes"][0]
    expect(grows["enough"] and "remember_loss" in grows["change"], f"{grows}")
    expect("remember_loss" in answer["verdict"]["try"][0]["advice"], answer["verdict"]["try"])


def case_cure_finds_the_setting_for_holes(world):
    program = scene(world, "stripes", "n=61", "block=9000", "last=260000")
    options = ["--on", "1GiB", "--sim-options", "context:300MiB"]
    status, answer, states = cure(world, *options, "--", *program)
    found = answer["ran"]
    expect(found is not None and status == 0, f"{states}")
    row = next(row for row in answer["settings"] if row["key"] == found)
    result = launch(world, "--sim", "1GiB", "--sim-options", "context:300MiB", "-c", row["set"].partition("=")[2], *program)
    expect_equal(f"it runs with {row['set']}", result.status, 0)
    return row["set"]


def case_cure_runs_the_program_itself_each_time(world):
    log = os.path.join(world.folder, "log")
    command = ["/bin/sh", "-c", f'echo "$GPUCACHE_TRIAL $(ls -A $TMPDIR | wc -l) $1 $(ls -A $1 | wc -l)" >>{log}; touch $TMPDIR/x $1/x; '
               f'exec {" ".join(scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000"))}', "-", "{OUT}"]
    _, answer, states = cure(world, "--on", "1GiB", "-c", "limit:300MiB", "--", *command)
    with open(log, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    tried = [state for state in states.values() if state in ("ran", "failed")]
    expect_equal("the runs, of which two were with the setting that helps", [(line[0], line[1], line[3]) for line in lines],
                 [(str(i + 1), "0", "0") for i in range(2 + len(tried))])
    expect_equal("their folders", len({line[2] for line in lines}), len(lines))


def case_a_setting_that_helps_one_of_two_runs_is_at_the_edge(world):
    """The first setting helps once, by chance."""
    program = " ".join(scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000"))
    train = f"{world.program('train')} --steps 3"
    command = ["/bin/sh", "-c", f"if [ $GPUCACHE_TRIAL = 2 ]; then exec {train}; else exec {program}; fi"]
    status, answer, states = cure(world, "--on", "1GiB", "-c", "limit:300MiB", "--", *command)
    expect_equal("the end", (status, answer["ran"], states["pages"], states["off"], states["limit"]), (0, "limit", "edge", "failed", "ran"))
    command[-1] = f"[ $GPUCACHE_TRIAL = 2 ] || exec {world.program('train')} --oom; exec {train}"
    shown = launch(world, "--cure", "--yes", "--on", "1GiB", "-c", "limit:300MiB", "--", *command)
    expect_equal("the end where nothing else helps", shown.status, 1)
    expect("at the edge: one of two ran" in shown.out and "RAN      with none of the settings that were tried, each time" in shown.out, shown.out)


SURVIVOR = """import ctypes, os, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
memory = (ctypes.c_void_p * 2)()


def take(i, mib):
    return cuda.cudaMalloc(ctypes.byref(memory, 8 * i), ctypes.c_size_t(mib << 20)) == 0


while True:
    assert take(0, 200)
    time.sleep(0.02)
    if not take(1, 1500) and os.environ["GPUCACHE_TRIAL"] == "1":
        sys.exit(1)
    cuda.cudaFree(ctypes.c_void_p(memory[0]))
"""


def case_a_run_that_goes_on_after_a_failure_did_not_run_out_of_memory(world):
    """It is stopped behind its steps, of which each has a request that fails."""
    path = os.path.join(world.folder, "survivor.py")
    with open(path, "w", encoding="ascii") as file:
        file.write(SURVIVOR)
    status, answer, states = cure(world, "--on", "4GiB", "-c", "limit:1000MiB", "--", sys.executable, path)
    expect_equal("the end", (status, answer["ran"], states["pages"]), (0, "pages", "ran"))


def case_cure_says_why_a_setting_was_not_applied(world):
    """Of host memory no half is free for what is asked for."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available = int(re.search(r"MemAvailable: +(\d+) kB", file.read())[1])
    command = scene(world, "cache", "n=2", "block=8192", "temp=1024", f"last={available * 3 // 4}")
    status, answer, states = cure(world, "--on", "1GiB", "--", *command)
    expect_equal("the end", (status, states["spill"]), (1, "failed"))
    refused = next(row["refused"] for row in answer["settings"] if row["key"] == "spill")
    expect(re.fullmatch(r"spill:[\d.]+ GiB does not apply: more than that would be in host memory", refused), f"{refused!r}")
    expect(all("spill" not in row["advice"] for row in answer["verdict"]["try"]), f"{answer['verdict']['try']}")
    shown = " ".join(launch(world, "--cure", "--yes", "--on", "1GiB", "--", *command).out.split())
    expect("slowly; spill:" in shown and "does not apply: more than that would be in host memory" in shown, shown)


def case_cure_says_where_there_is_nothing_to_cure(world):
    result = launch(world, "--cure", "--yes", world.program("train"), "--steps", "3")
    expect_equal("the end", (result.status, result.err), (0, ""))
    expect("it runs as it is on h100, simulated" in result.out, result.out)
    result = launch(world, "--cure", "--json", "--yes", world.program("train"), "--steps", "3")
    expect_equal("the end for programs", (result.status, result.out), (0, ""))
    expect("it runs as it is on h100, simulated" in result.err, result.err)
    result = launch(world, "--cure", "--yes", "/bin/sh", "-c", "echo no data >&2; exit 7")
    expect_equal("the end", (result.status, result.out), (3, ""))
    expect("for another reason than memory, status 7: no data" in result.err, result.err)
    result = launch(world, "--cure", "--yes", "--time-limit", "1", "/bin/sleep", "100")
    expect("did not run out of memory within 1 s" in result.err and result.status == 3, result.err)


def case_cure_goes_on_with_what_is_left_of_a_damaged_recording(world):
    program = scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000")
    damage = f'{" ".join(program)}; status=$?; for file in "$TMPDIR"/../*.gpucache; do truncate -s -65536 "$file"; done; exit $status'
    result = launch(world, "--cure", "--json", "--yes", "--on", "1GiB", "-c", "limit:300MiB", "--", "/bin/sh", "-c", damage)
    expect_equal("the end, which says that it is damaged", (result.status, json.loads(result.out)["ran"]), (4, "limit"))


def case_a_signal_at_the_question_leaves_nothing(world):
    for arguments in ("--cure",), ("--fit", "--sweep", "A=1,2"):
        for send in (lambda terminal: terminal.type("\x03"), lambda terminal: os.kill(terminal.pid, signal.SIGTERM),
                     lambda terminal: os.kill(terminal.pid, signal.SIGHUP)):
            terminal = Terminal(world, [installed(world), *arguments, "/bin/true"])
            asked = terminal.see(r"(?s)(.*)Run them\? \[y/N\] ")[1]
            expect(not any(line.isspace() or not line for line in asked.splitlines()), f"a line of nothing in {asked!r}")
            expect_equal("the folder", len(left_over(world)), 1)
            send(terminal)
            ended = None
            end = time.monotonic() + world.time_limit()
            while not ended and time.monotonic() < end:
                ended = os.waitid(os.P_PID, terminal.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                time.sleep(0.05)
            expect_equal("the end", (ended and ended.si_code, left_over(world)), (os.CLD_KILLED, []))


def kept(world, *arguments, status):
    """The recordings that -o keeps, by how many there are of each name without its number."""
    folder = os.path.join(world.folder, f"kept-{len(os.listdir(world.folder))}")
    os.mkdir(folder)
    result = launch(world, *arguments[:-1], "--yes", "-o", os.path.join(folder, "run.gpucache"), *arguments[-1])
    expect_equal(f"the end of {arguments}: {result.err}", (result.status, left_over(world)), (status, []))
    return sorted(os.listdir(folder))


def case_cure_keeps_the_recordings_that_are_asked_for_however_it_ends(world):
    train = [world.program("train"), "--steps", "3"]
    expect_equal("of a run that needs no cure", kept(world, "--cure", train, status=0), ["run.gpucache"])
    other = ["/bin/sh", "-c", f"{' '.join(train)}; exit 7"]
    expect_equal("of one that fails for another reason", kept(world, "--cure", other, status=3), ["run.gpucache"])
    stopped = ["/bin/sh", "-c", f"{' '.join(train)}; kill -TERM $(cut -d' ' -f4 /proc/$PPID/stat); exec sleep 1000"]
    expect_equal("of one that is interrupted", kept(world, "--cure", stopped, status=130), ["run.gpucache"])
    program = scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000")
    expect_equal("of several", kept(world, "--cure", "--on", "1GiB", "-c", "limit:300MiB", program, status=0),
                 ["run-2.gpucache", "run-3.gpucache", "run-4.gpucache", "run-5.gpucache", "run.gpucache"])


def case_runs_side_by_side_keep_their_recordings_under_one_name(world):
    found = kept(world, "--fit", "--jobs", "4", "--sweep", "A=1,2,3,4,5,6,7,8", [world.program("train"), "--steps", "2"], status=0)
    expect_equal("the recordings", len(found), 8)


def case_a_run_that_leaves_no_end_ends_all(world):
    lose = 'rm "$TMPDIR/../trial"; mkdir "$TMPDIR/../trial"'
    program = " ".join(scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000"))
    for arguments, command in ((("--fit", "--sweep", "A=1,2"), lose),
                               (("--cure", "--on", "1GiB", "-c", "limit:300MiB"), f"[ $GPUCACHE_TRIAL = 1 ] || {{ {lose}; }}; exec {program}"),
                               (("--cure",), lose)):
        result = launch(world, *arguments, "--yes", "/bin/sh", "-c", command)
        expect_equal("the end", (result.status, result.out, left_over(world)), (5, "", []))
        expect(len(result.err.splitlines()) == 1 and "left no end" in result.err, f"{arguments}: {result.err!r}")


def case_a_report_that_fails_is_told_as_what_it_is(world):
    """The run failed for memory, and gpumem-report has none to say so."""
    starving, at = world.starving()
    program = scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000")
    command = ["/bin/sh", "-c", f"{' '.join(program)}; status=$?; touch {at}; exit $status"]
    for arguments in ("--cure", "--on", "1GiB"), ("--fit", "--sweep", "A=1,2"):
        if os.path.exists(at):
            os.unlink(at)
        result = launch(world, *arguments, "-c", "limit:300MiB", "--yes", *command, **starving)
        expect_equal("the end", (result.status, result.out, left_over(world)), (5, "", []))
        expect("memory" in result.err and "another reason" not in result.err, f"{arguments}: {result.err!r}")


def case_cure_asks_before_it_runs_anything(world):
    mark = os.path.join(world.folder, "mark")
    result = launch(world, "--cure", "touch", mark)
    expect_equal("the end", (result.status, os.path.exists(mark), left_over(world)), (2, False, []))
    with open(os.path.join(TOP, "tools/gpumem-report/cure/settings.def"), encoding="utf-8") as file:
        n = sum(line.startswith("SETTING(") for line in file)
    expect(f"with up to {n} other settings, twice with those that help" in result.err, result.err)
    for arguments, word in ((("--cure", "--fit"), "--fit"), (("--cure", "--sim", "4GiB"), "--on"), (("--cure", "--on", "x9"), "x9"),
                            (("--cure", "--off"), "--off"), (("--cure", "--steps", "3"), "--steps"), (("--cure", "--jobs", "3"), "--jobs"),
                            (("--cure", "--jobs", "many"), "many")):
        result = launch(world, *arguments, "/bin/true")
        expect(result.status == 2 and len(result.err.splitlines()) == 1 and word in result.err, f"{arguments}: {result.err!r}")


def case_cure_reads_a_recording_of_yesterday_and_runs_nothing(world):
    report = os.path.join(world.build, "gpumem-report")
    program = scene(world, "cache", "n=30", "block=8192", "temp=1024", "last=100000")
    launch(world, "--sim", "1GiB", "-c", "limit:300MiB", "-o", world.pattern, *program)
    result = world.run([report, "cure", "--json", world.recordings()[0]], with_us=False)
    answer = json.loads(result.out)
    expect_equal("the end", (result.status, answer["ran"], {row["state"] for row in answer["settings"]}), (0, None, {"open"}))
    long = f"GPUCACHE_CONF=limit:362MiB gpucache-run -- {' '.join(f'word-{n}' for n in range(900))}"
    os.makedirs(os.path.join(world.folder, "trials", "2"))
    with open(os.path.join(world.folder, "trials", "2", "trial"), "w", encoding="utf-8") as file:
        file.write(f"setting=limit\ncommand={long}\nended=0\n")
    for options in [], ["--json"]:
        result = world.run([report, "cure", *options, f"--trials={world.folder}/trials", world.recordings()[0]], with_us=False)
        expect(long in " ".join(result.out.split()), f"not the whole command with {options}: {shorten(result.out)}")
    launch(world, "--sim", "1GiB", "-o", os.path.join(world.folder, "good.gpucache"), world.program("train"), "--steps", "3")
    result = world.run([report, "cure", os.path.join(world.folder, "good.gpucache")], with_us=False)
    expect("no request failed" in result.err and result.status == 3, result.err)
