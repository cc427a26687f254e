# SPDX-License-Identifier: Apache-2.0
"""For every CPython on this machine, our Python frames are those that the interpreter itself reports."""
import glob
import json
import os
import re
import subprocess
import sys

from harness import TOP, Skip, expect, expect_equal

SUPPORTED = range(9, 15)


def version_of(interpreter):
    """ "3.14", or None if that is not a working CPython with ctypes."""
    question = ("import ctypes, platform, sys\n"
                "print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])")
    try:
        done = subprocess.run([interpreter, "-c", question], stdin=subprocess.DEVNULL, timeout=60,
                              capture_output=True, text=True, check=False)
    except OSError:
        return None
    name, _, version = done.stdout.strip().partition(" ")
    return version if done.returncode == 0 and name == "CPython" else None


def find_pythons():
    """{version: interpreter}: $GPUCACHE_TEST_PYTHONS (folders), PATH, and where pyenv puts them."""
    folders = [*os.environ.get("GPUCACHE_TEST_PYTHONS", "").split(":"), *os.environ["PATH"].split(":"),
               *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin")))]
    found = {}
    for folder in filter(None, folders):
        for minor in SUPPORTED:
            path = os.path.join(folder, f"python3.{minor}")
            version = f"3.{minor}"
            if version not in found and os.path.exists(path) and version_of(path) == version:
                found[version] = path
    own = version_of(sys.executable)
    if own:
        found.setdefault(own, sys.executable)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def each_python(check):
    """Runs check(interpreter) with each; returns which versions ran, and which are missing."""
    pythons = find_pythons()
    if not pythons:
        raise Skip("there is no CPython 3.9 or later with ctypes")
    for version, interpreter in pythons.items():
        try:
            check(interpreter)
        except Exception as error:
            raise type(error)(f"{interpreter} ({version}): {error}") from error
    missing = [f"3.{minor}" for minor in SUPPORTED if f"3.{minor}" not in pythons]
    return ", ".join(pythons) + (f"; not here: {', '.join(missing)}" if missing else "")


def run(world, interpreter, *arguments):
    """Runs stacks.py; returns the leaks that it printed, and the groups of the report."""
    world.forget_recordings()
    script = os.path.join(TOP, "tests", "programs", "stacks.py")
    done = world.run([interpreter, "-B", script, *arguments])
    expect_equal("the exit status and stderr", (done.status, done.err), (0, ""))
    said = [json.loads(line) for line in done.out.splitlines()]
    return said, world.report_json("leaks")


def python_frames(group):
    """The frames as stacks.py prints them: without the frame of the requesting function."""
    frames = [(os.path.basename(frame["file"]), frame["line"], frame["function"])
              for frame in group["stack"] if frame["language"] == "python"]
    return tuple(frames[1:])


def compare(said, report):
    """Every sure leak must be reported with its frames; no leak may be invented."""
    wanted, sure, found = {}, {}, {}
    for leak in said:
        frames = tuple(tuple(frame) for frame in leak["frames"])
        wanted[frames] = wanted.get(frames, 0) + leak["bytes"]
        if leak["sure"]:
            sure[frames] = sure.get(frames, 0) + leak["bytes"]
    for group in report["groups"]:
        frames = python_frames(group)
        found[frames] = found.get(frames, 0) + group["live_bytes"]
    unknown = found.pop((), 0) - sure.pop((), 0)
    wanted.pop((), None)
    for frames, n_bytes in found.items():
        expect(frames in wanted, f"nobody was at {frames}")
        expect(sure.get(frames, 0) <= n_bytes <= wanted[frames],
               f"{n_bytes} bytes, not {wanted[frames]}, at {frames}")
    lost = [frames for frames in sure if frames not in found]
    expect(not lost, f"{len(lost)} stacks are not in the report, the first: {lost[:1]}")
    return unknown


def case_every_python_names_the_lines_that_leak(world):
    script = os.path.join(TOP, "tests", "programs", "train.py")
    with open(script, encoding="utf-8") as source:
        lines = source.read().splitlines()
    calls = {"alloc": "status = self.lib.cudaMalloc", "__init__": "self.ptr = device.alloc",
             "remember_loss": "self.history.append(", "train_step": "self.remember_loss()",
             "train": "total += self.train_step(", "main": "total = trainer.train()",
             "<module>": "    main()"}
    wanted = [("train.py", next(i for i, line in enumerate(lines, 1) if call in line), function)
              for function, call in calls.items()]

    def check(interpreter):
        world.forget_recordings()
        done = world.run([interpreter, "-B", script, "--leak", "--steps", "40", "--grow", "1000000"])
        expect_equal("the exit status and stderr", (done.status, done.err), (0, ""))
        report = world.report_json("leaks")
        expect_equal("the bytes held", report["not_freed_bytes"], 40_000_000)
        for group in report["groups"]:
            stack = group["stack"]
            expect_equal("the innermost frame", stack[0]["function"], "cudaMalloc")
            found = [(os.path.basename(frame["file"]), frame["line"], frame["function"].split(".")[-1])
                     for frame in stack if frame["language"] == "python"]
            expect_equal("the Python frames", found, wanted)
        text = world.report("leaks", world.recording()).out
        line = wanted[2][1]
        expect(re.search(rf"remember_loss\s+\S*train\.py:{line}\n", text), f"not so in the text: {text}")

    return each_python(check)


def case_every_frame_of_every_python_is_the_one_that_python_shows(world):
    foreign = os.path.join(world.build, "programs", "libforeign.so")

    def check(interpreter):
        said, report = run(world, interpreter, foreign)
        expect(len(said) > 3000, f"only {len(said)} leaks")
        expect_equal("the bytes held", report["not_freed_bytes"], sum(leak["bytes"] for leak in said))
        expect_equal("bytes without frames", compare(said, report), 0)
        expect_equal("threads that could not be read", report["recording"]["dropped_python"], 0)

    return each_python(check)


def case_no_python_shows_wrong_frames_while_it_ends(world):
    foreign = os.path.join(world.build, "programs", "libforeign.so")

    def check(interpreter):
        for _ in range(3):
            said, report = run(world, interpreter, "--shutdown", foreign)
            expect(len(said) >= 4, f"only {len(said)} leaks")
            # What the threads held in that moment has sizes of its own.
            report["groups"] = [group for group in report["groups"] if group["live_bytes"] > 100_000]
            compare(said, report)

    return each_python(check)


def case_no_python_shows_wrong_frames_with_a_second_interpreter_within(world):
    def check(interpreter):
        said, report = run(world, interpreter, "--inside")
        expect(len(said) > 200, f"only {len(said)} leaks")
        compare(said, report)

    return each_python(check)
