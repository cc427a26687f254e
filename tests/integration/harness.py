# SPDX-License-Identifier: Apache-2.0
"""Shared by all cases: runs programs with or without gpucache, and reads their recordings."""
import glob
import json
import os
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
GIB = 1 << 30

# Only to end a hang: a program takes a second or two, or longer on a busy machine.
TIMEOUT_S = 120


class Failed(Exception):
    pass


class Skip(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


def expect_equal(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what} is {shorten(found)}, not {shorten(wanted)}")


def shorten(value):
    text = repr(value)
    return text if len(text) < 600 else text[:400] + " ... " + text[-180:]


class Result:
    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err


class World:
    """One case's folder, and the environment of the programs it runs.

    library_path is where the CUDA libraries are: those of the simulated GPU, unless told otherwise.
    """

    def __init__(self, build, folder, library_path=None, deadline=None):
        self.build = build
        self.folder = folder
        self.library_path = os.path.join(build, "simcuda") if library_path is None else library_path
        self.deadline = deadline
        self.pattern = os.path.join(folder, "rec-%p.gpucache")
        self.children = []
        self.endings = []

    def program(self, name):
        return os.path.join(self.build, "programs", name)

    def without_fences(self):
        """Our library with its fences disabled, as an example of an unsafe cache."""
        return os.path.join(self.build, "programs", "libgpucache-nofence.so")

    def script(self, name):
        return [sys.executable, "-B", os.path.join(TOP, "tests", "programs", name)]

    def environment(self, with_us, sim="memory:4GiB,context:0", **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUCACHE", "GPUSIM", "LD_"))}
        if self.library_path:
            env["LD_LIBRARY_PATH"] = self.library_path
        env["GPUSIM"] = sim
        env["TMPDIR"] = self.folder
        if with_us:
            env["LD_PRELOAD"] = os.path.join(self.build, "libgpucache.so")
            env["GPUCACHE_OUTPUT"] = self.pattern
        for key, value in extra.items():
            if value is None:
                env.pop(key, None)
            else:
                env[key] = value
        return env

    def time_limit(self):
        if self.deadline is None:
            return TIMEOUT_S
        return max(1, min(TIMEOUT_S, self.deadline - time.monotonic()))

    def until(self, what, function):
        """Asks until the answer is true, and returns it; the limit only ends a hang."""
        end = time.monotonic() + self.time_limit()
        while not (answer := function()):
            expect(time.monotonic() < end, f"never: {what}")
            time.sleep(0.02)
        return answer

    def run(self, command, with_us=True, **extra):
        """`extra` is added to the environment; None removes a variable."""
        done = subprocess.run(command, env=self.environment(with_us, **extra), cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=self.time_limit())
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, command, with_us=True, **extra):
        child = subprocess.Popen(command, env=self.environment(with_us, **extra), cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="replace")
        self.children.append(child)
        return child

    def start_and_hold(self, command, **extra):
        """Starts a program that holds in the middle of a step; returns it and its live bytes."""
        child = self.start(command, **extra)
        live = None
        for line in child.stdout:
            if line.startswith("live bytes:"):
                live = int(line.split(":")[1])
                break
        if live is None:
            raise Failed(f"the program never said what it holds: {child.stderr.read()}")
        return child, live

    def at_end(self, function):
        self.endings.append(function)

    def end_children(self):
        for ending in self.endings:
            ending()
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()

    def make_recording(self, sources, *arguments):
        """Compiles a program that writes recordings by tests/unit/format/recording_builder.h, runs it, and returns the file
        or folder that its first argument names."""
        program = os.path.join(self.folder, os.path.basename(sources[0])[:-2])
        if not os.path.exists(program):
            subprocess.run([os.environ.get("CC", "gcc"), "-std=c11", "-D_GNU_SOURCE", "-I" + TOP, "-I" + TOP + "/include", "-o", program,
                            *(os.path.join(TOP, source) for source in [*sources, "tests/unit/format/recording_builder.c"])], check=True)
        subprocess.run([program, *arguments], cwd=self.folder, check=True)
        return os.path.join(self.folder, arguments[0])

    def starving(self):
        """An environment in which allocations of gpumem-report fail once a file exists, and the path of that file."""
        shim, at = (os.path.join(self.folder, name) for name in ("starve.so", "starve"))
        subprocess.run([os.environ.get("CC", "gcc"), "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", shim,
                        os.path.join(TOP, "tests", "integration", "starve.c")], check=True)
        return {"LD_PRELOAD": shim, "STARVE_AT": at}, at

    def recordings(self):
        return sorted(glob.glob(os.path.join(self.folder, "rec-*.gpucache")))

    def recording(self):
        found = self.recordings()
        expect(len(found) == 1, f"{len(found)} recordings where one was expected: {found}")
        return found[0]

    def forget_recordings(self):
        for path in self.recordings():
            os.unlink(path)

    def report(self, *arguments, status=0, **extra):
        command = [os.path.join(self.build, "gpumem-report"), *arguments]
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=self.time_limit(),
                              env=self.environment(False, **{"LD_LIBRARY_PATH": os.path.join(self.build, "lib"), **extra}))
        if status is not None:
            expect(done.returncode == status, f"gpumem-report {' '.join(arguments)} ended with "
                   f"{done.returncode}, not {status}: {done.stderr.strip()[-400:]}")
        return Result(done.returncode, done.stdout, done.stderr)

    def report_json(self, view, recording=None, *more):
        text = self.report(view, "--json", recording or self.recording(), *more).out
        return json.loads(text)

    # What the cases ask of a recording, in one place: all that they know of the report's JSON.

    def state(self, recording=None):
        """ "alive", "ended", "exited" or "killed"."""
        return self.report_json("summary", recording)["recording"]["state"]

    def held_bytes(self, recording=None):
        """The bytes requested by the program and not freed, on all devices."""
        return self.report_json("leaks", recording)["not_freed_bytes"]

    def count_calls(self, recording=None):
        devices = self.report_json("summary", recording)["devices"]
        return {name: sum(device["calls"][name] for device in devices)
                for name in ("malloc", "free", "hit", "driver_malloc", "driver_failed", "rescued", "oom")}

    def rescued_by(self):
        """{rung: requests that it served}, without rungs that served none."""
        steps = {}
        for device in self.report_json("summary")["devices"]:
            for name, count in device["calls"]["rescued_by"].items():
                if count:
                    steps[name] = steps.get(name, 0) + count
        return steps

    def device_total_bytes(self):
        """The total bytes of device 0, from a short run."""
        self.run([self.program("train"), "--steps", "1"])
        recording = self.recordings()[-1]
        total = self.report_json("summary", recording)["devices"][0]["balance"]["total_bytes"]
        os.unlink(recording)
        return total

    def last_oom(self):
        oom = self.report_json("oom")
        lines = dict(oom["balance"])
        total = lines.pop("total_bytes")
        lines.pop("cached_largest_bytes")
        difference = lines.pop("difference_bytes")
        lines.pop("direct_kinds")
        holders = oom["holders"]
        return {
            "verdict": oom["verdict"]["word"],
            "requested": oom["request"]["requested_bytes"],
            # Unknown lines are null; their bytes are in "unattributed".
            "lines": {name: value or 0 for name, value in lines.items()},
            "total": total,
            "difference": difference,
            "top_holder": json.dumps(holders[0]) if holders else "nobody",
        }
