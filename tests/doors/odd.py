# SPDX-License-Identifier: Apache-2.0
"""Odd arguments, odd drivers, and a copy of the library without one of its functions."""
import contextlib
import io
import os
import re

import run
from world import OURS, Door, Log, World


def cases():
    return [(name[5:].replace("_", " "), case) for name, case in globals().items() if name.startswith("case_")]


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def simulated(world):
    return os.path.join(world.build, "simcuda")


def expect_as_without_us(world, word, n_lines):
    """The output of odd over the simulated driver, whose functions work."""
    command = [world.doors("odd"), word]
    plain = world.call(command, with_us=False, driver=simulated(world))
    ours = world.call(command, driver=simulated(world))
    expect(plain.returncode == 0 and len(plain.stdout.splitlines()) >= n_lines, f"without us: {plain.stdout[-300:]}")
    expect((ours.returncode, ours.stderr) == (0, plain.stderr), f"ended with {ours.returncode}: {ours.stderr[-300:]}")
    wrong = [f"{b} and not {a}" for a, b in zip(plain.stdout.splitlines(), ours.stdout.splitlines()) if a != b]
    expect(not wrong and plain.stdout == ours.stdout, "; ".join(wrong[:5]))


def case_unknown_names_versions_and_flags_are_answered_as_without_us(world):
    expect_as_without_us(world, "questions", 1000)


def case_every_function_called_with_nothing_answers_as_without_us(world):
    expect_as_without_us(world, "nothing", len(world.rows))


def case_a_driver_that_is_closed_and_opened_again_is_the_same(world):
    expect_as_without_us(world, "reopened", 6)


def lookups(world, *asked, **extra):
    """The results of cuGetProcAddress_v2 for each (name, version, flags): "STATUS FUNCTION"."""
    words = [str(word) for question in asked for word in question]
    result = world.call([world.doors("odd"), "lookups", *words], **extra)
    expect(result.returncode == 0, f"ended with {result.returncode}: {result.stderr}")
    return result.stdout.splitlines()


def case_success_with_no_function_is_passed_on(world):
    found = lookups(world, ("cuMemAlloc", 13000, 0), ("cuMemFreeAsync", 12000, 2), DOORS_DRIVER="null")
    expect(found == ["0 nothing"] * 2, found)


def case_functions_newer_than_ours_pass_untouched(world):
    found = lookups(world, ("cuMemAlloc", 13000, 0), ("cuMemAlloc", 14000, 0), DOORS_DRIVER="newer")
    expect(found == ["0 cuMemAlloc_v2", "0 the driver's"], found)


def case_functions_older_than_ours_pass_untouched(world):
    for driver in ("", "trampolines", "fresh"):
        found = lookups(world, ("cuMemAlloc", 2000, 0), ("cuMemGetInfo", 3010, 0), DOORS_DRIVER=driver)
        expect(found == ["0 the driver's"] * 2, f"{driver}: {found}")


def case_a_driver_that_gives_other_pointers_is_met_by_name(world):
    """One trampoline per function, and a new one for every lookup."""
    asked = [(row.base, version, flags) for row in world.rows for flags in (0, 1, 2)
             for version in (row.since, min(row.since + 1, 13000), 13000)]
    wanted = [world.rows.find(*question) for question in asked]
    for driver in ("", "trampolines", "fresh"):
        found = lookups(world, *asked, DOORS_DRIVER=driver)
        for question, answer, row in zip(asked, found, wanted, strict=True):
            expect(answer == (f"0 {row.name}" if row else "0 the driver's"), f"{driver} {question}: {answer}")


def case_by_name_a_version_newer_than_our_table_is_the_drivers(world):
    expect(lookups(world, ("cuMemAlloc", 14000, 0), DOORS_DRIVER="fresh") == ["0 the driver's"], "fresh")
    expect(lookups(world, ("cuMemAlloc", 14000, 0), DOORS_DRIVER="trampolines") == ["0 cuMemAlloc_v2"], "the same")


def case_the_real_runtime_meets_such_a_driver_as_any_other(world):
    if not world.toolkit:
        return "no CUDA toolkit"
    for driver in ("trampolines", "fresh"):
        door = Door("static", "", [world.doors("runtime_real_static")], spied=True)
        log = Log(world, door, world.run(door, DOORS_DRIVER=driver))
        expect(not log.problems(), f"{driver}: {log.problems()[:3]}")
    return None


def case_a_driver_without_cuGetProcAddress_is_met_by_dlsym(world):
    result = world.call([world.doors("reach"), "handle"], driver=world.doors("driver_without_proc"))
    for line in result.stdout.splitlines():
        name, place, symbol = line.split(" ")
        wanted = ("nothing", "-") if name.startswith("cuGetProcAddress") else (OURS, name)
        expect((place, symbol) == wanted, f"{name}: {symbol} of {place}")
    expect(len(result.stdout.splitlines()) == len(world.rows), result.stderr)


def case_without_the_auditor_a_deepbind_plugin_passes_us_by(world):
    """A lookup that only the auditor catches; if this ever fails, the auditor is no longer needed."""
    result = world.call([world.doors("reach"), "call", world.doors("libreach.so"), "deepbind"])
    expect(OURS not in result.stdout and "libcuda.so.1" in result.stdout, result.stdout[:200])


def case_a_hook_that_is_missing_is_seen_at_every_door(world, name="cuMemAlloc_v2"):
    copy = World(world.build, world.folder, world.rows)
    copy.unhook(name)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        n_good, _ = run.check_doors(copy)
    said = text.getvalue()
    expect(n_good == 1, f"beside dlvsym, {n_good - 1} doors are right: {said[-2000:]}")
    named = set(re.findall(r'^FAIL \w+: "?(\w+)', said, re.M))
    expect(named == {name, "cuMemAlloc"}, f"{named} are named")


def case_the_rows_are_what_the_toolkits_headers_know(world):
    """Compares rows with cudaTypedefs.h: the version of each, and that we lack no variant between or after them."""
    try:
        with open(os.path.join(world.include, "cudaTypedefs.h"), encoding="ascii") as file:
            text = file.read()
    except OSError:
        return "no CUDA toolkit"
    variants = {}
    for base, since, suffix in re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_pt[sd][zs])?\)", text):
        variants.setdefault((base, bool(suffix)), set()).add(int(since))
    rows = {}
    for row in world.rows:
        rows.setdefault((row.base, row.is_per_thread), set()).add(row.since)
        known = variants.get((row.base, row.is_per_thread), set())
        expect(row.since in known, f"{row.name} is said to be of {row.since}, the header knows {known}")
    for (base, is_per_thread), ours in rows.items():
        missing = {since for since in variants[base, is_per_thread] - ours
                   if since > min(ours)}
        expect(not missing, f"{base}: ours are {ours}, there are {missing}")
        expect(is_per_thread or (base, True) not in variants or (base, True) in rows, f"{base} has no per-thread row")
    return None
