# SPDX-License-Identifier: Apache-2.0
"""Runs the cases: the functions case_* of the modules cases_*.py in this folder, or those of another module.

A case gets a World of its own, in an empty folder.  Its name, with blanks for underscores, is the sentence that it
proves. It fails by raising an exception; Skip says why it cannot run here.  Its return value, if any, is printed after
its name: the figures that it saw.
"""
import ctypes
import functools
import importlib
import os
import shutil
import sys
import tempfile
import traceback

from harness import Failed, Skip, World

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000  # sched.h, sys/mount.h


@functools.cache
def own_shared_memory(build):
    """Gives this process and its children an empty /dev/shm: no other test, user or earlier run has anything in it.  Root only."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or os.path.realpath(build).startswith("/dev/shm/") or libc.unshare(CLONE_NEWNS):
        return
    libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), b"mode=1777")


def find_cases():
    here = os.path.dirname(os.path.abspath(__file__))
    for file in sorted(os.listdir(here)):
        if not (file.startswith("cases_") and file.endswith(".py")):
            continue
        module = importlib.import_module(file[:-3])
        for name, function in vars(module).items():
            if name.startswith("case_"):
                yield name[5:].replace("_", " "), function


def cases_of(namespace, prefix="case_"):
    """The cases of a module, by its globals()."""
    return [(name.removeprefix(prefix).replace("_", " "), value) for name, value in namespace.items() if name.startswith(prefix)]


def run_case(build, function, make=lambda world: world):
    """Returns ("ok" | "skip" | "FAIL", why).  The folder of a failed case is kept, and named."""
    folder = tempfile.mkdtemp(prefix="gpucache-case-")
    world = World(build, folder)
    verdict, why = "ok", ""
    try:
        why = function(make(world)) or ""
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


def run_cases(cases, arguments, make=lambda world: world):
    """Runs the cases whose names contain one of the words; `make` converts a World into their argument.  Returns the
    status."""
    if not arguments or not os.path.isdir(arguments[0]):
        sys.exit("usage: BUILD_DIR [WORD...]")
    build = os.path.abspath(arguments[0])
    own_shared_memory(build)
    words = arguments[1:]
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    for name, function in cases:
        if words and not any(word in name for word in words):
            continue
        verdict, why = run_case(build, function, make)
        count[verdict] += 1
        print(f"{verdict} {name}" + (f": {why}" if why else ""), flush=True)
    tail = f", {count['skip']} skipped" if count["skip"] else ""
    print(f"{count['ok']} passed, {count['FAIL']} failed{tail}")
    return 1 if count["FAIL"] or not count["ok"] + count["skip"] else 0


def run_shared(cases, arguments, make):
    """The same for cases that share one make(world), whose folder is removed after the last case."""
    build = os.path.abspath(arguments[0])
    own_shared_memory(build)
    folder = tempfile.mkdtemp(prefix="gpucache-shared-")
    world = World(build, folder)
    try:
        shared = make(world)
        return run_cases(cases, arguments, lambda _: shared)
    finally:
        world.end_children()
        # A browser's own children may still write there.
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(run_cases(find_cases(), sys.argv[1:]))
