# SPDX-License-Identifier: Apache-2.0
"""Runs the cases: every function named case_* in the modules cases_*.py beside this file.

A case gets a World of its own, in an empty folder.  Its name, with blanks for underlines, is the
sentence that it proves.  It fails by raising; Skip says honestly why it could not be run.  What it
returns, if anything, is printed behind its name: the figures that it saw.
"""
import importlib
import os
import shutil
import sys
import tempfile
import traceback

from harness import Failed, Skip, World


def find_cases():
    here = os.path.dirname(os.path.abspath(__file__))
    for file in sorted(os.listdir(here)):
        if not (file.startswith("cases_") and file.endswith(".py")):
            continue
        module = importlib.import_module(file[:-3])
        for name, function in vars(module).items():
            if name.startswith("case_"):
                yield name[5:].replace("_", " "), function


def run_case(build, function):
    """Returns ("ok" | "skip" | "FAIL", why).  The folder of a failed case is kept, and named."""
    folder = tempfile.mkdtemp(prefix="gpucache-case-")
    world = World(build, folder)
    verdict, why = "ok", ""
    try:
        why = function(world) or ""
    except Skip as skip:
        verdict, why = "skip", str(skip)
    except Failed as failure:
        verdict, why = "FAIL", str(failure)
    except Exception:  # a fault of the case, or an answer it did not expect at all
        verdict, why = "FAIL", traceback.format_exc().strip()
    finally:
        world.end_children()
    if verdict == "FAIL":
        why += f"\n    left for a look: {folder}"
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return verdict, why


def main():
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: run.sh BUILD_DIR [WORD...]")
    build = os.path.abspath(sys.argv[1])
    words = sys.argv[2:]
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    for name, function in find_cases():
        if words and not any(word in name for word in words):
            continue
        verdict, why = run_case(build, function)
        count[verdict] += 1
        print(f"{verdict} {name}" + (f": {why}" if why else ""), flush=True)
    tail = f", {count['skip']} skipped" if count["skip"] else ""
    print(f"{count['ok']} passed, {count['FAIL']} failed{tail}")
    sys.exit(1 if count["FAIL"] or not count["ok"] else 0)


if __name__ == "__main__":
    main()
