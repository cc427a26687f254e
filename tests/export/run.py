#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every format of `gpumem-report export`, read back as its consumer does: run.py BUILD.

The sums that are read are those of `gpumem-report --json`.  One line a case; the last line counts them.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "integration"), os.path.dirname(os.path.abspath(__file__))]

from harness import World, expect, expect_equal  # noqa: E402


class Export:
    """The recordings, and what gpumem-report says of one."""

    def __init__(self, world):
        self.world = world
        self.made = self.compile("tests/export/make_recording.c", "made.gpucache")
        self.golden = self.compile("tests/golden/make_recordings.c", "runs", "foreign")
        done = world.run([world.program("train"), "--leak", "--steps", "8"], sim="memory:4GiB,context:300MiB")
        expect(done.status == 0, done.err)
        self.leak = world.recording()

    def compile(self, source, *arguments):
        program = os.path.join(self.world.folder, os.path.basename(source)[:-2])
        subprocess.run([os.environ.get("CC", "gcc"), "-std=c11", "-D_GNU_SOURCE", "-I" + TOP, "-I" + TOP + "/include",
                        "-o", program, os.path.join(TOP, source), TOP + "/tests/unit/format/recording_builder.c"],
                       check=True)
        subprocess.run([program, *arguments], cwd=self.world.folder, check=True)
        return os.path.join(self.world.folder, arguments[0])

    def all(self):
        return [self.made, self.leak] + [os.path.join(self.golden, name + ".gpucache")
                                         for name in ("ended", "python", "tags", "unused")]

    def text(self, form, recording, *arguments):
        return self.world.report("export", "--format=" + form, *arguments, recording).out

    def data(self, form, recording, *arguments):
        path = os.path.join(self.world.folder, "exported")
        self.world.report("export", "--format=" + form, *arguments, "-f", "-o", path, recording)
        with open(path, "rb") as file:
            return file.read()

    def summary(self, recording):
        return self.world.report_json("summary", recording)

    def held(self, recording):
        """By device.  Where memory ran out the summary is of that moment, and the end is in `leaks`."""
        summary = self.summary(recording)
        if summary["verdict"]:
            return {0: self.world.held_bytes(recording)}
        return {device["ordinal"]: sum(row["live_bytes"] for row in device["holders"])
                for device in summary["devices"]}


# What each consumer does, as strictly as it may be.

def read_folded(text):
    """flamegraph.pl's own pattern; no line is left over."""
    sums = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line)
        expect(found, f"no folded stack: {line!r}")
        names = found[1].split(";")
        expect(len(names) > 1 and all(names), f"an empty name: {line!r}")
        root = re.fullmatch(r"GPU (\d+)", names[0])
        expect(root, f"the root is no GPU: {line!r}")
        sums.setdefault(int(root[1]), []).append((names[1:], int(found[2])))
    return sums


def read_speedscope(text):
    """The rules of its file-format-schema.json, for sampled profiles."""
    root = json.loads(text)
    expect_equal("$schema", root["$schema"], "https://www.speedscope.app/file-format-schema.json")
    expect(set(root) <= {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}, list(root))
    frames = root["shared"]["frames"]
    for frame in frames:
        expect(isinstance(frame["name"], str) and frame["name"], frame)
        expect(set(frame) <= {"name", "file", "line", "col"}, frame)
        expect(isinstance(frame.get("line", 1), int) and isinstance(frame.get("file", ""), str), frame)
    found = {}
    for profile in root["profiles"]:
        expect_equal("type", profile["type"], "sampled")
        expect(profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"), profile)
        expect_equal("weights", len(profile["weights"]), len(profile["samples"]))
        expect_equal("the end", profile["endValue"] - profile["startValue"], sum(profile["weights"]))
        expect(all(type(i) is int and 0 <= i < len(frames) for path in profile["samples"] for i in path), profile)
        device = int(re.match(r"GPU (\d+),", profile["name"])[1])
        found[device] = [([frames[i]["name"] for i in path], weight)
                         for path, weight in zip(profile["samples"], profile["weights"])]
    return found


def sums_of(samples):
    return {device: sum(weight for _, weight in rows) for device, rows in samples.items() if rows}


def without_zeros(sums):
    return {device: value for device, value in sums.items() if value}


def expect_held(what, export, recording, samples):
    expect_equal(f"{what} of {os.path.basename(recording)}", sums_of(samples), without_zeros(export.held(recording)))


def case_a_flame_graph_of_folded_stacks_holds_every_byte(export):
    for recording in export.all():
        expect_held("folded", export, recording, read_folded(export.text("folded", recording)))
    samples = read_folded(export.text("folded", export.made))
    expect(any("<lambda, \"x\">  mo,del.py:7" in path for path, _ in samples[0]), samples)
    expect(any(path[-1] == "(contexts)" for path, _ in samples[0]), samples)


def case_the_peak_and_the_failure_are_moments_of_their_own(export):
    for moment, mib in (("peak", 77 + 11), ("oom", 6 + 5)):
        samples = read_folded(export.text("folded", export.made, "--at=" + moment))
        expect_equal(moment, sums_of(samples), {0: mib << 20})
        expect_equal("the rest", samples[0][-1][0], ["(others, not listed)"])


def case_speedscope_reads_a_profile_of_each_gpu(export):
    for recording in export.all():
        samples = read_speedscope(export.text("speedscope", recording))
        expect_held("speedscope", export, recording, samples)
        expect_equal("its GPUs", sorted(samples), [d["ordinal"] for d in export.summary(recording)["devices"]])
    made = read_speedscope(export.text("speedscope", export.made))
    expect(any("<lambda; \"x\">  mo;del.py:7" in path for path, _ in made[0]), made)


def case_only_the_gpu_that_is_wanted_is_exported(export):
    for form, read in (("folded", read_folded), ("speedscope", read_speedscope)):
        expect_equal(form, sums_of(read(export.text(form, export.made, "-d", "1"))), {1: 3 << 20})


def case_wrong_words_are_refused_before_anything_is_written(export):
    for arguments, said in ((["--format=svg"], "--format needs "), ([], "export needs --format="),
                            (["--format=folded", "--at=noon"], "--at needs "),
                            (["--format=folded", export.made], "one at a time")):
        path = os.path.join(export.world.folder, "never")
        done = export.world.report("export", *arguments, "-o", path, export.made, status=2)
        expect(said in done.err, done.err)
        expect(not os.path.exists(path), "it wrote a file")
    done = export.world.report("leaks", "--format=folded", export.made, status=2)
    expect("are of `export`" in done.err, done.err)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = [(name, case) for name, case in globals().items() if name.startswith("case_")]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gpucache-export-") as folder:
        export = Export(World(os.path.abspath(sys.argv[1]), folder))
        for name, case in cases:
            words = name.removeprefix("case_").replace("_", " ")
            try:
                case(export)
                print("ok   " + words)
            except Exception:  # whatever a reader trips over is the export's failure
                failed += 1
                print("FAIL " + words + "\n" + traceback.format_exc())
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
