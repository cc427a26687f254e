# SPDX-License-Identifier: Apache-2.0
"""The steps of tests/gpu/run.sh, their time limits, and the two forms of their results."""
import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import machine  # noqa: E402
import steps  # noqa: E402
from harness import Failed, Skip, World  # noqa: E402

TOP = machine.TOP


def without_places(text):
    """Removes this machine's folders from a text, because results are committed."""
    for place in (TOP, sys.prefix):
        text = text.replace(place + os.sep, "")
    return text


def as_text(value):
    return ", ".join(f"{key} {part}" for key, part in value.items()) if isinstance(value, dict) else value


class Suite:
    """The machine, the build, and what the steps found."""

    def __init__(self, options, out):
        self.options = options
        self.out = out
        self.sim = options.sim
        self.build = os.path.abspath(options.build or os.path.join(TOP, "build"))
        self.deadline = time.monotonic() + options.seconds
        self.results = []
        self.cudart = {} if self.sim else machine.find_cudart()
        self.unwind = machine.find_libunwind(self.build)

    def seconds_left(self):
        return self.deadline - time.monotonic()

    def library_path(self):
        """The folders searched before the system's: CUDA's runtime, and the shipped libraries."""
        folders = []
        if self.sim:
            folders.append(os.path.join(self.build, "simcuda"))
        elif 13 in self.cudart:
            folders.append(self.cudart[13])
        elif 12 in self.cudart:
            folders.append(self.cudart[12])
        if self.unwind not in (None, "system"):
            folders.append(self.unwind)
        return ":".join(folders)

    def run_step(self, name, limit_s, function):
        result = {"step": name, "verdict": "ok", "why": "", "data": {}}
        left = self.seconds_left()
        started = time.monotonic()
        folder = tempfile.mkdtemp(prefix="gpucache-gpu-")
        world = World(self.build, folder, self.library_path(), started + min(limit_s, left))
        try:
            if left < 5:
                # Time on a real GPU is limited; on the simulated one a lack of time is a failure.
                raise (Failed if self.sim else Skip)("no time left")
            function(self, world, result["data"])
        except Skip as skip:
            result.update(verdict="skip", why=str(skip))
        except Failed as failure:
            result.update(verdict="FAIL", why=str(failure))
        except subprocess.TimeoutExpired as late:
            result.update(verdict="FAIL", why=f"not done after {late.timeout:.0f} s: {late.cmd}")
        except Exception:  # one step must not end the others
            result.update(verdict="FAIL", why=traceback.format_exc().strip())
        finally:
            world.end_children()
            shutil.rmtree(folder, ignore_errors=True)
        result["seconds"] = round(time.monotonic() - started, 1)
        self.results.append(result)
        print(f"{result['verdict']} {name} ({result['seconds']} s)" +
              (f": {result['why']}" if result["why"] else ""), flush=True)

    def write(self, about):
        with open(os.path.join(self.out, "results.json"), "w", encoding="utf-8") as file:
            results = {"schema": "gpucache.gpu-results/1", "machine": about, "steps": self.results}
            file.write(without_places(json.dumps(results, indent=1)) + "\n")
        with open(os.path.join(self.out, "results.txt"), "w", encoding="utf-8") as file:
            for key, value in about.items():
                file.write(f"{key:17} {'unknown' if value is None else value}\n")
            file.write(f"\n{'verdict':8}{'seconds':>8}  step\n")
            for result in self.results:
                file.write(f"{result['verdict']:8}{result['seconds']:8}  {result['step']}\n")
                for line in (result["why"].splitlines() if result["why"] else []):
                    file.write(f"{'':18}{without_places(line)}\n")
                for key, value in result["data"].items():
                    file.write(f"{'':18}{key}: {without_places(str(as_text(value)))}\n")


def parse_options():
    parser = argparse.ArgumentParser(prog="run.sh")
    parser.add_argument("--sim", action="store_true", help="on the simulated GPU, to test this script")
    parser.add_argument("--build", metavar="DIR", help="the build to test (default: build/)")
    parser.add_argument("--out", metavar="DIR", help="where the results go")
    parser.add_argument("--only", metavar="WORD", action="append", default=[],
                        help="only the steps whose name has this word; may be given several times")
    parser.add_argument("--seconds", type=int, default=900, help="for everything (default: 900)")
    return parser.parse_args()


def main():
    options = parse_options()
    build = os.path.abspath(options.build or os.path.join(TOP, "build"))
    if not options.sim:
        probe = machine.probe_driver(None)
        if not probe or probe["status"] != 0:
            why = "there is no libcuda.so.1" if not probe else f"cuInit says {probe['status']}"
            print(f"no GPU here ({why}): nothing was run")
            return 0
    why = machine.provide_build(build, options.seconds)
    if why:
        print(why, file=sys.stderr)
        return 1
    if options.sim:
        probe = machine.probe_driver(os.path.join(build, "simcuda"))
        if not probe or probe["status"] != 0:
            print(f"the simulated driver does not answer: {probe}", file=sys.stderr)
            return 1
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
    place = ("build", "gpu-sim") if options.sim else ("tests", "gpu", "results")
    out = options.out or os.environ.get("OUT") or os.path.join(TOP, *place, now)
    os.makedirs(out, exist_ok=True)
    suite = Suite(options, out)
    about = machine.describe(probe, build)
    about["libunwind"] = suite.unwind
    about["cudart"] = "simulated" if suite.sim else ", ".join(map(str, sorted(suite.cudart))) or None
    # The text form carries no path: results are committed.
    if suite.unwind not in (None, "system"):
        about["libunwind"] = "brought along"
    for name, limit_s, function in steps.STEPS:
        if options.only and not any(word in name for word in options.only):
            continue
        suite.run_step(name, limit_s, function)
        suite.write(about)
    verdicts = [result["verdict"] for result in suite.results]
    print(f"results in {out}")
    print(f"{verdicts.count('ok')} passed, {verdicts.count('FAIL')} failed, {verdicts.count('skip')} skipped")
    return 1 if "FAIL" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
