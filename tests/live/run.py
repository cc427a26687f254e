#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpumem-report live` in a terminal of tmux, and as text and JSON: run.py BUILD [WORD...].

No case depends on time: each polls until the expected text is on the screen.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))

from harness import TIMEOUT_S, Failed, Skip, expect, expect_equal  # noqa: E402
from runner import cases_of, run_cases  # noqa: E402


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, world, columns, rows, *arguments, **environment):
        if not shutil.which("tmux"):
            raise Skip("there is no tmux here")
        # A new server each time: the last one may still be ending.
        self.tmux = ["tmux", "-S", tempfile.mktemp(prefix="tmux", dir=world.folder), "-f", "/dev/null"]
        command = [os.path.join(world.build, "gpumem-report"), "live", "--watch=200ms", *arguments]
        words = ["env", *(f"{key}={value}" for key, value in {"LC_ALL": "C.UTF-8", **environment}.items()), *command]
        quoted = " ".join("'" + word + "'" for word in words)
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), quoted + "; echo status $?; exec sleep 1000")

    def run(self, *arguments):
        return subprocess.run([*self.tmux, *arguments], check=True, capture_output=True, text=True).stdout

    def lines(self, *arguments):
        return self.run("capture-pane", "-p", *arguments).split("\n")

    def keys(self, *names):
        self.run("send-keys", *names)

    def wait(self, pattern):
        """The lines, once one of them matches."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            lines = self.lines()
            if any(re.search(pattern, line) for line in lines):
                return lines
            if time.monotonic() > end:
                raise Failed(f"{pattern!r} never came:\n" + "\n".join(lines))
            time.sleep(0.05)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False, capture_output=True)


def start(world, *arguments):
    child, live = world.start_and_hold([world.program("train"), "--steps", "60", "--hold-at", "40", *arguments],
                                       sim="memory:4GiB,context:300MiB")
    path = next(one for one in world.recordings() if f"-{child.pid}." in one)
    return child, live, path


def case_once(world):
    """Text and JSON agree with --json of the summary."""
    child, _, path = start(world)
    for target in (path, world.folder):
        text = world.report("live", "--once", target).out
        expect(re.search(rf"^ *{child.pid} +0  alive ", text, re.M), text)
        expect("\x1b" not in text and all(len(line) <= 80 for line in text.splitlines()), text)
        root = json.loads(world.report("live", "--json", target).out)
        expect_equal("processes", [one["pid"] for one in root["processes"]], [child.pid])
        device, summary = root["processes"][0]["devices"][0], world.report_json("summary", path)["devices"][0]
        expect_equal("balance", device["balance"], summary["balance"])
        expect_equal("held", sum(row["live_bytes"] for row in device["holders"]), sum(row["live_bytes"] for row in summary["holders"]))
        expect(any(row["where"].startswith("contexts") for row in device["holders"]), device["holders"])
    expect_equal("no such process", world.report("live", "--once", "999999999", status=None).status, 3)


def case_others(world):
    """Other processes are those of NVML's list if it contains a watched process; else none are shown."""
    child, _, path = start(world)
    extra = {"LD_LIBRARY_PATH": world.library_path}

    def others(listed):
        sim = f"memory:4GiB,foreign:800MiB/{listed}/train,foreign:300MiB/999999998/blender,foreign:400MiB/999999999/Xorg"
        root = json.loads(world.report("live", "--json", path, **extra, GPUSIM=sim).out)
        return root["processes"][0]["devices"][0]["other_processes"], world.report("live", "--once", path, **extra, GPUSIM=sim).out

    rows, text = others(child.pid)
    expect_equal("the others", rows, [{"pid": 999999999, "name": "Xorg", "bytes": 400 << 20},
                                      {"pid": 999999998, "name": "blender", "bytes": 300 << 20}])
    expect("others: Xorg(999999999) 400M blender(999999998) 300M" in text, text)
    rows, text = others(999999997)
    expect_equal("those of another namespace", rows, None)
    expect("others:" not in text, text)
    without = json.loads(world.report("live", "--json", path).out)["processes"][0]["devices"][0]
    expect_equal("without NVML", without["other_processes"], None)


def case_growth(world):
    """A rising floor is growth, with an estimated end; waves, a program's start, and a single step are not."""
    for levels, growth in (("1 9 2 9 3 9 4 9", 0.5), ("5 9 5 9 5 9 5 9", 0), ("1 2 3 4 4 4 4 4", 0), ("9 8 7 6 5 4 3 2", 0),
                           ("1 1 2 2 4 4 8 8", 1), ("1 1 1 1 1 1 8 8", 0)):
        path = world.make_recording(["tests/live/make_history.c"], "history.gpucache", *levels.split())
        device = json.loads(world.report("live", "--json", path).out)["processes"][0]["devices"][0]
        expect_equal(f"growth of {levels}", device["growth_bytes_per_second"], growth * (1 << 30))
        room = device["balance"]["free_bytes"] + device["cached_bytes"] + device["pending_bytes"]
        expect_equal(f"seconds left of {levels}", device["seconds_left"], room / (growth * (1 << 30)) if growth else None)


def case_widths(world):
    """At 60, 80 and 200 columns every line fits, and a wider screen shows more."""
    child, _, path = start(world)
    for columns, head in ((60, "CACHED  PROGRAM"), (80, "CALL/s  PROGRAM"), (200, "PEAK  PROGRAM")):
        terminal = Terminal(world, columns, 24, path)
        try:
            lines = terminal.wait(rf"^ *{child.pid} .*alive")
            expect(any(head in line for line in lines), f"at {columns} columns there is no {head!r}: {lines}")
            expect(all(len(line) <= columns for line in lines), f"wider than {columns}: {lines}")
            expect(any(re.match(r"0 .*\[\|.*\]", line) for line in lines), f"no bar: {lines}")
            terminal.keys("q")
            terminal.wait("^status 0")
        finally:
            terminal.close()


def case_resize(world):
    """The screen follows the size of the window, and survives one too small for anything."""
    child, _, path = start(world)
    terminal = Terminal(world, 60, 20, path)
    try:
        terminal.wait("CACHED  PROGRAM")
        for columns, rows, head in ((150, 40, "PEAK  PROGRAM"), (80, 12, "CALL/s  PROGRAM"), (61, 8, "CACHED  PROGRAM")):
            terminal.run("resize-window", "-x", str(columns), "-y", str(rows))
            expect(all(len(line) <= columns for line in terminal.wait(head)), "wider than the window")
        terminal.run("resize-window", "-x", "10", "-y", "3")
        terminal.run("resize-window", "-x", "80", "-y", "24")
        terminal.wait(rf"^ *{child.pid} .*alive")
        terminal.keys("F10")
        terminal.wait("^status 0")
    finally:
        terminal.close()


def case_colour(world):
    """Colours if the terminal has them; none with NO_COLOR or --no-color."""
    _, _, path = start(world)
    coloured = r"\x1b\[[0-9;]*(3[0-7]|4[0-7])[;m]"
    for wanted, arguments, environment in ((True, [], {}), (False, [], {"NO_COLOR": "1"}), (False, ["--no-color"], {}),
                                           (False, [], {"TERM": "vt100"})):
        terminal = Terminal(world, 80, 24, *arguments, path, **environment)
        try:
            terminal.wait("alive")
            found = any(re.search(coloured, line) for line in terminal.lines("-e"))
            expect_equal(f"colours with {arguments} {environment}", found, wanted)
        finally:
            terminal.close()


def case_ends(world):
    """A watched process that ends or is killed stays on the screen with its state; an unknown terminal is an error."""
    first, _, _ = start(world)
    second, _, _ = start(world)
    terminal = Terminal(world, 80, 24, world.folder)
    try:
        terminal.wait("2 processes")
        second.send_signal(signal.SIGKILL)
        second.wait()
        terminal.wait(rf"^ *{second.pid} .*killed")
        terminal.wait("1 process alive")
        first.send_signal(signal.SIGKILL)
        first.wait()
        terminal.wait("0 processes alive")
        for path in world.recordings():
            os.unlink(path)
        terminal.wait(rf"^ *{second.pid} .*gone")
        terminal.keys("q")
        terminal.wait("^status 0")
    finally:
        terminal.close()
    terminal = Terminal(world, 80, 24, world.folder, TERM="no-such-terminal")
    try:
        terminal.wait("^status 2")
    finally:
        terminal.close()


def case_keys(world):
    """Help, order, filter, pause, and the line of the cursor."""
    first, _, _ = start(world)
    second, _, _ = start(world)
    terminal = Terminal(world, 110, 30, world.folder)
    try:
        terminal.wait("2 processes")
        terminal.keys("h")
        terminal.wait("any key goes back")
        terminal.keys("x")
        terminal.wait("GPU  STATE")
        terminal.keys("P")
        terminal.wait("by pid")
        terminal.keys("Down")
        terminal.wait(rf"^{max(first.pid, second.pid)}, GPU 0:")
        terminal.keys("Up")
        terminal.wait(rf"^{min(first.pid, second.pid)}, GPU 0:")
        terminal.keys("/")
        terminal.keys("-l", "no such name")
        terminal.wait("no match")
        terminal.keys("Escape")
        terminal.wait("GPU 0:")
        terminal.keys("Z")
        terminal.wait("paused")
        terminal.keys(">")
        terminal.wait("by memory")
    finally:
        terminal.close()


if __name__ == "__main__":
    sys.exit(run_cases(cases_of(globals()), sys.argv[1:]))
