# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad environments: one line that says what to do, and a program that notices nothing."""
import os
import random
import subprocess
import sys

from harness import MIB, Skip, expect, expect_equal


def train(world, steps=3):
    return [world.program("train"), "--steps", str(steps)]


def expect_one_warning(world, words, **extra):
    """The program runs as without us; stderr is one line that contains all the words."""
    plain = world.run(train(world), with_us=False)
    ours = world.run(train(world), **extra)
    expect_equal("the program", (ours.status, ours.out), (plain.status, plain.out))
    lines = ours.err.splitlines()
    expect(len(lines) == 1, f"{len(lines)} lines on stderr where one was expected: {ours.err!r}")
    for word in words:
        expect(word in lines[0], f"{word!r} is not in {lines[0]!r}")
    return lines[0]


def case_an_unknown_option_is_named_with_the_nearest_one(world):
    expect_one_warning(world, ["gpucache", "GPUCACHE_CONF", "stakcs", '"stacks"'],
                       GPUCACHE_CONF="stakcs:all")


def case_a_bad_value_is_named_with_what_is_used_instead(world):
    expect_one_warning(world, ["gpucache", "limit", "lots"], GPUCACHE_CONF="limit:lots")


def case_a_mistake_in_the_options_stands_in_the_report(world):
    world.run(train(world), GPUCACHE_CONF="stakcs:all")
    expect("stakcs" in world.report("summary", world.recording()).out, "the summary does not tell it")


def case_strict_makes_a_mistake_fatal_at_the_start(world):
    result = world.run(train(world), GPUCACHE_CONF="strict:true,stakcs:all")
    expect(result.status not in (0, -6, -11), f"the exit status is {result.status}")
    expect_equal("stdout", result.out, "")
    expect("stakcs" in result.err, f"the option is not named: {result.err!r}")


def case_help_prints_every_option_and_ends_well(world):
    result = world.run(train(world), GPUCACHE_CONF="help:true")
    expect_equal("the exit status", result.status, 0)
    text = result.out + result.err
    for option in ("cache", "stacks", "limit", "garbage_collection_threshold", "oom_report"):
        expect(option in text, f"{option} is not in the help")
    expect("done:" not in text, "the program ran")


def case_a_folder_that_is_a_file_costs_the_recording_only(world):
    stone = os.path.join(world.folder, "stone")
    with open(stone, "w", encoding="ascii") as file:
        file.write("not a folder\n")
    expect_one_warning(world, ["gpucache", "stone"], GPUCACHE_OUTPUT=stone + "/rec-%p.gpucache")


def case_a_folder_without_the_right_to_write_costs_the_recording_only(world):
    expect_one_warning(world, ["gpucache", "/proc"], GPUCACHE_OUTPUT="/proc/self/rec-%p.gpucache")


def case_a_full_filesystem_costs_the_recording_only(world):
    """A tmpfs of 64 KiB in a mount namespace of its own; never a SIGBUS."""
    mount = os.path.join(world.folder, "small")
    os.mkdir(mount)
    test = f"mount -t tmpfs -o size=64k none {mount}"
    enter = ["unshare", "-rm", "/bin/sh", "-c"]
    if subprocess.run([*enter, test], capture_output=True, check=False).returncode != 0:
        raise Skip("no small filesystem can be mounted here")
    plain = world.run(train(world), with_us=False)
    env = world.environment(True, GPUCACHE_OUTPUT=f"{mount}/rec-%p.gpucache", LD_PRELOAD=None)
    preload = world.environment(True)["LD_PRELOAD"]
    script = f"{test} && LD_PRELOAD={preload} exec {' '.join(train(world))}"
    done = subprocess.run([*enter, script], env=env, capture_output=True, text=True, timeout=world.time_limit(), check=False)
    expect_equal("the program", (done.returncode, done.stdout), (plain.status, plain.out))
    expect_equal("the number of lines on stderr", len(done.stderr.splitlines()), 1)


def case_a_link_in_the_place_of_the_recording_is_not_followed(world):
    treasure = os.path.join(world.folder, "treasure")
    with open(treasure, "w", encoding="ascii") as file:
        file.write("precious\n")
    link = os.path.join(world.folder, "rec-link.gpucache")
    os.symlink(treasure, link)
    world.run(train(world), GPUCACHE_OUTPUT=link)
    with open(treasure, encoding="ascii") as file:
        expect_equal("the file behind the link", file.read(), "precious\n")


def good_recording(world):
    world.run([world.program("train"), "--leak", "--grow", str(MIB), "--steps", "5"])
    with open(world.recording(), "rb") as file:
        return file.read()


def expect_report_status(world, data, statuses, what):
    """gpumem-report does not crash, ends with one of these statuses, and unless that is 0, writes to stderr."""
    path = os.path.join(world.folder, "damaged.gpucache")
    with open(path, "wb") as file:
        file.write(data)
    result = world.report("summary", path, status=None)
    expect(result.status in statuses, f"{what}: status {result.status}, {result.err.strip()[-300:]}")
    if result.status:
        expect(result.err.strip(), f"{what}: status {result.status} without a word")
    return result


def case_a_recording_that_was_cut_off_is_called_damaged(world):
    data = good_recording(world)
    for size in (1, 40, 4095, 4096, 5000, len(data) // 2):
        expect_report_status(world, data[:size], (4,), f"cut to {size} bytes")


def case_what_is_no_recording_is_called_so(world):
    for what, data in (("empty", b""), ("text", b"hello\n" * 2000), ("zeros", bytes(100_000))):
        expect_report_status(world, data, (4,), what)


def case_a_recording_of_another_major_version_is_refused_by_number(world):
    data = bytearray(good_recording(world))
    data[20:22] = (77).to_bytes(2, "little")
    result = expect_report_status(world, bytes(data), (4,), "version 77")
    expect("77" in result.err, f"the version is not named: {result.err!r}")


def case_a_recording_with_random_bytes_never_crashes_the_report(world):
    data = good_recording(world)
    moments = random.Random(20260101)
    for n in range(60):
        damaged = bytearray(data)
        # Damage mostly the header and the region table, on which readers rely most.
        end = 4096 if n % 2 else len(data)
        for _ in range(moments.choice((1, 8, 200))):
            damaged[moments.randrange(end)] = moments.randrange(256)
        expect_report_status(world, bytes(damaged), (0, 4), f"damage number {n}")


def case_a_missing_recording_is_status_3(world):
    result = world.report("summary", os.path.join(world.folder, "none.gpucache"), status=3)
    expect("none.gpucache" in result.err, f"the file is not named: {result.err!r}")


def case_a_wrong_command_line_is_status_2(world):
    result = world.report("sumary", status=2)
    expect("summary" in result.err, f"the nearest view is not named: {result.err!r}")
    world.report("summary", "--no-such-option", status=2)


HOSTILE_NAMES = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.12")
code = "def leak(p):\\n runtime.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20))\\nleak(ctypes.c_void_p())\\n"
exec(compile(code, "a\\x1b[2Jb\\x7f.py", "exec"))
"""


def case_control_characters_in_a_python_name_reach_no_view(world):
    done = world.run([sys.executable, "-c", HOSTILE_NAMES])
    expect_equal("the run", (done.status, done.err), (0, ""))
    for view in ("leaks", "summary"):
        for options in ([], ["--json"]):
            text = world.report(view, *options, world.recording(), status=None).out
            expect("a?[2Jb?.py" in text, f"the name is not in {view} {options}: {text}")
            expect("\x1b" not in text and "\\u001b" not in text and "\x7f" not in text,
                   f"{view} {options} prints it: {text!r}")
