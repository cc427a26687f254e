# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --fit: the GPU that a program needs, found without one."""
import json
import os
import re
import signal
import subprocess
import time

from cases_launcher import installed, launch
from cases_stderr import full_pipe
from harness import MIB, expect, expect_equal

STEPS = ("--steps", "20")


def ask(world, *arguments, **extra):
    result = launch(world, "--fit", "--json", *arguments, **extra)
    expect(result.out.startswith("{"), f"no answer: status {result.status}, stderr {result.err[-800:]!r}")
    return result.status, json.loads(result.out)


def case_fit_names_the_size_on_which_the_program_just_runs(world):
    command = [world.program("train"), *STEPS]
    status, answer = ask(world, *command)
    expect_equal("the exit status", status, 0)
    expect_equal("the caches", [cache["cache"] for cache in answer["caches"]], ["driver", "gpucache"])
    expect_equal("the whole run", (answer["whole"], answer["stopped"], answer["steps"]), (True, False, 20))
    for cache, options in zip(answer["caches"], (("--off",), ("-c", "reserve:0"))):
        size = cache["smallest_device_bytes"]
        for bytes_, runs in (size, True), (size - 2 * MIB, False):
            result = launch(world, *options, "--sim", "h100", "--sim-options", f"memory:{bytes_}", "-o", world.pattern,
                            *command)
            expect_equal(f"{cache['cache']} runs on {bytes_} of {size} bytes", result.status == 0, runs)


def case_fit_compares_with_a_gpu_or_a_size(world):
    command = [world.program("train"), *STEPS]
    _, answer = ask(world, *command)
    size = answer["caches"][0]["smallest_device_bytes"]
    for on, status in (str(size), 0), (str(size - 1), 1), ("t4", 0):
        result = launch(world, "--fit", "--on", on, *command)
        expect_equal(f"the exit status on {on}", result.status, status)
        word = "does NOT fit" if status else "it fits"
        expect(word in result.out, f"{word!r} is not in {result.out!r}")
    status, answer = ask(world, "--on", "t4", *command)
    expect_equal("the GPU it ran as", answer["device"]["name"], "Tesla T4, simulated")
    expect_equal("what fits", (status, answer["on"]["fits"], answer["on"]["gpu"]), (0, True, "t4"))


def case_fit_tells_a_recording_of_yesterday_as_well(world):
    world.run([world.program("train"), *STEPS])
    for on, status in ("1GiB", 0), ("2MiB", 1):
        result = world.run([os.path.join(world.build, "gpumem-report"), "fit", "--on", on, world.recordings()[0]],
                           with_us=False)
        expect_equal(f"the exit status on {on}", (result.status, result.err), (status, ""))


def case_fit_of_a_run_that_ran_out_of_memory_says_that_more_is_needed(world):
    world.run([world.program("train"), "--oom"], sim="memory:1GiB")
    report = [os.path.join(world.build, "gpumem-report"), "fit"]
    for on, words, fits in (("512MiB", "it does NOT fit", False), ("1GiB", "it does NOT fit", False),
                            ("64GiB", "not known: the run ran out of memory", None)):
        result = world.run([*report, "--on", on, world.recordings()[0]], with_us=False)
        told = " ".join(result.out.split())
        for part in ("the run ran out of memory at a request for", f"run gpucache-run --fit --on {on} -- COMMAND", words,
                     "NEEDS more than 1.00 GiB: it failed there"):
            expect(result.status == 1 and part in told, f"{part!r} is not in {told}")
        for part in "smallest GPU", " left", "are missing", "still grew":
            expect(part not in told, f"{part!r} is in {told}")
        answer = json.loads(world.run([*report, "--json", "--on", on, world.recordings()[0]], with_us=False).out)
        expect_equal("what is known", (answer["on"]["fits"], answer["more_than_bytes"], answer["cut_short"]["number"] > 0),
                     (fits, 1 << 30, True))
        expect_equal("the GPUs that are named", {cache["smallest_gpu"] for cache in answer["caches"]}, {None})


def case_a_replay_of_a_run_that_ran_out_of_memory_says_so(world):
    world.run([world.program("train"), "--oom"], sim="memory:1GiB")
    replay = [os.path.join(world.build, "gpumem-replay")]
    for options, here, counts, result in ([], None, (1, 0), "ok"), (["-m", "1GiB"], "1.00 GiB", (0, 1), "as then"):
        told = world.run([*replay, *options, world.recordings()[0]], with_us=False).out
        words = r"recorded on Simulated GPU, 1\.00 GiB, where it ran out of memory; replayed with (.* GiB)\n"
        expect(re.search(words, told) and here in (None, re.search(words, told)[1]), told)
        expect(re.search(rf"^served, failed then +{counts[0]}\nfailed, as then +{counts[1]}\nresult +{result}$", told, re.M), told)
    answer = json.loads(world.run([*replay, "--json", world.recordings()[0]], with_us=False).out)["traces"][0]
    expect_equal("the recording", [answer["recording"][key] for key in ("gpu", "total_bytes", "failed")],
                 ["Simulated GPU", 1 << 30, True])
    world.forget_recordings()
    world.run([world.program("train"), "--steps", "2"])
    told = world.run([*replay, world.recordings()[0]], with_us=False).out
    expect("ran out of memory" not in told and "failed" not in told, told)


def case_fit_of_a_run_that_a_limit_ended_says_what_it_had(world):
    world.run([world.program("train"), "--oom"], sim="memory:64GiB", GPUCACHE_CONF="limit:300MiB")
    answer = json.loads(world.run([os.path.join(world.build, "gpumem-report"), "fit", "--json", "--on", "2GiB", world.recordings()[0]],
                                  with_us=False).out)
    expect(200 * MIB < answer["more_than_bytes"] < 1024 * MIB and answer["on"]["fits"] is None, f"{answer['more_than_bytes']}, {answer['on']}")


def case_fit_ends_a_program_behind_its_steps(world):
    status, answer = ask(world, "--steps", "3", world.program("train"), "--steps", "1000000000")
    expect_equal("the end", (status, answer["stopped"], answer["status"]), (0, True, 0))
    expect(answer["steps"] > 3, f"{answer['steps']} steps")


def case_fit_ends_a_program_after_its_time(world):
    status, answer = ask(world, "--time-limit", "1", world.program("train"), "--steps", "100", "--hold-at", "5")
    expect_equal("the end", (status, answer["late"], answer["stopped"]), (0, True, False))


def case_fit_ends_what_outgrows_every_GPU(world):
    grows = [world.program("train"), "--grow", str(96 * MIB), "--steps", "3000"]
    status, answer = ask(world, *grows, "--hold-at", "2500")
    expect_equal("the end", (status, answer["outgrown"], answer["caches"], answer["late"]), (1, True, [], False))
    expect(answer["growth_bytes"] > 20000 * MIB, f"{answer['growth_bytes']} bytes a quarter")
    result = launch(world, "--fit", "--on", "l4", *grows, "--hold-at", "2500")
    for words in "no GPU is large enough", "it still grew, by", "more than any GPU has", "it does NOT fit", "drop what stays":
        expect(words in result.out, f"{words!r} is not in {result.out}")
    status, answer = ask(world, *grows[:-1], "200")
    expect_equal("what ended", (status, answer["outgrown"], len(answer["caches"])), (0, False, 2))


def case_fit_answers_when_it_is_interrupted(world):
    command = ["setsid", installed(world), "--fit", "--json", world.program("train"), "--steps", "100", "--hold-at", "50"]
    child = world.start(command, with_us=False, GPUSIM=None, LD_LIBRARY_PATH=None)
    for line in child.stderr:
        if line.startswith("live bytes:"):
            break
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=world.time_limit())
    expect(out.startswith("{"), f"no answer: stderr {err[-800:]!r}")
    answer = json.loads(out)
    expect_equal("the end", (child.returncode, answer["interrupted"], answer["stopped"]), (0, True, False))
    expect_equal("the steps", answer["steps"], 50)


def left_over(world):
    return [name for name in os.listdir(world.folder) if name.startswith("gpucache-fit")]


def case_fit_leaves_nothing_when_it_is_terminated(world):
    for number in (signal.SIGTERM, signal.SIGHUP):
        command = [installed(world), "--fit", "--json", world.program("train"), "--steps", "100", "--hold-at", "50"]
        child = world.start(command, with_us=False, GPUSIM=None, LD_LIBRARY_PATH=None)
        for line in child.stderr:
            if line.startswith("live bytes:"):
                break
        child.send_signal(number)
        out, err = child.communicate(timeout=world.time_limit())
        expect(out.startswith("{"), f"no answer: stderr {err[-800:]!r}")
        expect_equal("the end", (child.returncode, json.loads(out)["interrupted"], left_over(world)), (0, True, []))


def start_fit(world, to, *arguments):
    child = subprocess.Popen([installed(world), "--fit", *arguments], cwd=world.folder, stdin=subprocess.DEVNULL,
                             stdout=to, stderr=to, env=world.environment(False, GPUSIM=None, LD_LIBRARY_PATH=None))
    world.children.append(child)
    os.close(to)
    return child


def case_fit_leaves_nothing_when_nobody_reads_on(world):
    for arguments in ["--yes", "--sweep", "SIZE=1..4", world.program("train"), *STEPS], ["/bin/true"]:
        reader, writer = os.pipe()
        os.close(reader)  # as `| head` does
        child = start_fit(world, writer, *arguments)
        expect_equal("the end", (child.wait(timeout=world.time_limit()), left_over(world)), (-signal.SIGPIPE, []))


def case_fit_is_terminated_while_its_answer_waits_for_a_reader(world):
    reader, writer = full_pipe()
    pid = os.path.join(world.folder, "pid")
    child = start_fit(world, writer, "/bin/sh", "-c", f"echo $$ > {pid}; exec {world.program('train')} >/dev/null 2>&1")
    end = time.monotonic() + world.time_limit()
    while not os.path.exists(pid) or left_over(world):
        expect(child.poll() is None and time.monotonic() < end, f"status {child.poll()}, left {left_over(world)}")
        time.sleep(0.05)
    child.terminate()
    expect_equal("the end", (child.wait(timeout=world.time_limit()), left_over(world)), (-signal.SIGTERM, []))
    os.close(reader)


def case_fit_without_memory_leaves_neither_folder_nor_program(world):
    starving, at = world.starving()
    pid = os.path.join(world.folder, "pid")
    # gpumem-report runs out of memory after the program has ended, or while it runs.
    for behind in "", f"; echo $$ > {pid}; exec sleep 100000":
        program = f"{world.program('train')} --steps 3; touch {at}{behind}"
        result = launch(world, "--fit", "/bin/sh", "-c", program, **starving)
        expect_equal("the end", (result.status, left_over(world)), (5, []))
        expect("gpumem-report: out of memory" in result.err, result.err)
        os.unlink(at)
    with open(pid, encoding="ascii") as file:
        expect(not os.path.exists(f"/proc/{file.read().strip()}"), "the program runs on")


def case_fit_says_in_one_line_what_is_wrong(world):
    program = world.program("train")
    for arguments, status, word in (
            (("--fit", "--on", "rtx9999", program), 2, "rtx9999"),
            (("--on", "rtx4090", program), 2, "--fit"),
            (("--fit", "--sim", "4GiB", program), 2, "--sim"),
            (("--fit", "--off", program), 2, "--off"),
            (("--fit", "--steps", "many", program), 2, "many"),
            (("--fit", "--sweep", "B", program), 2, "B"),
            (("--fit", "--sweep", "B=", program), 2, "B="),
            (("--fit", "--sweep", "B=3 4", program), 2, "B=3 4"),
            (("--fit", "--sweep", "B=1..2", "--sweep", "C=1..2", program), 2, "one range"),
            (("--fit", "--on", "l4,l5", "--sweep", "B=3", program), 2, "l5"),
            (("--fit", "--time-limit", "0", "--sweep", "B=3", program), 2, "--time-limit"),
            (("--yes", program), 2, "--fit"),
            (("--fit", "-o", "out.rec", program), 2, "out.rec"),
            (("--fit", "--jobs", "3", program), 2, "--jobs"),
            (("--fit", "--self-test"), 2, "no program"),
            (("--self-test", "--cdi"), 2, "--cdi"),
            (("--fit", "--cdi"), 2, "--fit"),
            (("--cure", "--cdi"), 2, "--cure"),
            (("--cure", "--self-test"), 2, "no program"),
            (("--fit", "--on", "20 MB", "--sweep", "B=3", program), 2, "20 MB"),
            (("--fit", "--on", "l4, h100", "--sweep", "B=3", program), 2, "h100"),
            (("--fit", "--sweep", "B=3..1", program), 2, "B=3..1"),
            (("--fit", "/bin/true"), 3, "took no memory of a GPU"),
            (("--fit", "/bin/false"), 3, "status 1")):
        result = launch(world, *arguments)
        expect_equal(f"the status of {arguments}", result.status, status)
        lines = result.err.splitlines()
        expect(len(lines) == 1 and word in lines[0], f"{arguments}: stderr is {result.err!r}")
    expect_equal("what is left", left_over(world), [])
