# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD_DIR: looks up every entry point of symbols.def by every door.

A door is a way to look up the driver's functions.  With gpucache preloaded, each door must find for each row of
preload/symbols.def the function of exactly that name in libgpucache.so.  The driver supports only lookups (driver.h).
The runtime libraries are ours and, with a toolkit, the real ones: a spy preloaded before gpucache logs all their
lookups until they find that the driver is not genuine.

V=1 prints each entry point.  UNHOOK=NAME removes one from a copy of the library, which must make the test fail.
Exit status 1 if a cell is wrong or empty; the last line is "N passed, N failed".
"""
import os
import sys
import tempfile

from world import OURS, Door, Log, World, read_rows

NOT_THERE = "-"


def by_flags(flags):
    return lambda rows, row: rows.find(row.base, row.since, flags)


def own_flags(version=None):
    return lambda rows, row: rows.find(row.base, version or row.since, 2 if row.is_per_thread else 0)


def nothing(rows, row):
    return None


def find_doors(world):
    plugin = world.doors("libreach.so")
    deep = {"audit": True}
    names = [row.name for row in world.rows]
    reach = world.doors("reach")
    doors = [
        Door("call", "a call of a program linked with libcuda", [world.doors("reach_linked"), "call"]),
        Door("address", "a pointer that such a program takes", [world.doors("reach_linked"), "address"]),
        Door("plugin", "a call of a plugin opened with RTLD_LOCAL", [reach, "call", plugin, "local"]),
        Door("default", "dlsym(RTLD_DEFAULT)", [reach, "default"]),
        Door("next", "dlsym(RTLD_NEXT)", [reach, "next"]),
        Door("handle", "dlsym of libcuda's handle", [reach, "handle"]),
        Door("dlvsym", "dlvsym: the driver's names have no version", [reach, "dlvsym"], nothing),
        Door("ctypes", "Python's ctypes", [sys.executable, os.path.join(world.here, "reach.py"), *names]),
        Door("v1", "cuGetProcAddress", [reach, "v1"], own_flags()),
        Door("v2", "cuGetProcAddress_v2", [reach, "v2"], own_flags()),
        Door("legacy", "the same with the flag for the legacy stream", [reach, "v2-legacy"], by_flags(1)),
        Door("thread", "the same with the flag for per-thread streams", [reach, "v2-thread"], by_flags(2)),
        Door("entry", "cudaGetDriverEntryPoint", [reach, "entry"], own_flags(13000)),
        Door("byvers", "cudaGetDriverEntryPointByVersion", [reach, "entry-version"], own_flags()),
        Door("dcall", "a call of a plugin opened with RTLD_DEEPBIND, audited", [reach, "call", plugin, "deepbind"], **deep),
        Door("ddlsym", "dlsym in such a plugin, audited", [reach, "handle", plugin, "deepbind"], **deep),
        Door("dv2", "cuGetProcAddress_v2 in such a plugin, audited", [reach, "v2", plugin, "deepbind"], own_flags(), **deep),
    ]
    toolkit = None if world.toolkit else "no CUDA toolkit"
    nvcc = toolkit or (None if os.path.exists(world.doors("runtime_nvcc")) else "no nvcc")
    return doors + [
        Door("rt", "our stand-in for libcudart.so.13", [world.doors("runtime")], spied=True),
        Door("rtstat", "the same, linked statically", [world.doors("runtime_static")], spied=True),
        Door("cudart", "the real libcudart.so.13", [world.doors("runtime")], spied=True,
             runtime=world.toolkit, skip=toolkit),
        Door("static", "the real libcudart_static.a, linked by gcc", [world.doors("runtime_real_static")],
             spied=True, skip=toolkit),
        Door("nvcc", "as nvcc links by itself", [world.doors("runtime_nvcc")], spied=True, skip=nvcc),
    ]


def enter(world, door):
    """{row name: "ours" | NOT_THERE | the fault}, and a list of other faults."""
    result = world.run(door)
    if result.returncode:
        return {}, [f"ended with {result.returncode}: {result.stderr.strip()[-300:]}"]
    if door.spied:
        log = Log(world, door, result)
        return log.cells(), log.problems()
    cells = {}
    for line in result.stdout.splitlines():
        name, place, symbol = line.split(" ")
        wanted = door.wanted(world.rows, world.rows.by_name[name])
        is_right = (place, symbol) == (OURS, wanted.name) if wanted else place != OURS
        # Correct, although the function may be another row's.
        right = "ours" if wanted and wanted.name == name else NOT_THERE
        cells[name] = right if is_right else f"{symbol} of {place}"
    return cells, []


def print_table(world, doors, table):
    numbers = {door: str(i) for i, door in enumerate(doors, 1)}
    print("Doors")
    for door in doors:
        print(f"  {numbers[door]:>2}  {door.name:8}{door.text}" + (f" (skipped: {door.skip})" if door.skip else ""))
    print("Entry points that are ours, by what they get; - a door that does not lead there; ! those that are not ours")
    print(f"{'':11}" + "".join(f"{numbers[door]:>6}" for door in doors))
    for group in dict.fromkeys(row.gets for row in world.rows):
        members = [row.name for row in world.rows if row.gets == group]
        line = f"{group:11}"
        for door in doors:
            cells = [table[door].get(name, "EMPTY") for name in members]
            ours = cells.count("ours")
            wrong = len(cells) - ours - cells.count(NOT_THERE)
            text = "skip" if door.skip else f"{ours}!{wrong}" if wrong else str(ours or "-")
            line += f"{text:>6}"
        print(line)
    if os.environ.get("V"):
        for row in world.rows:
            print(f"{row.name:40}{row.gets:9}" + " ".join(
                f"{door.name}={'skip' if door.skip else table[door].get(row.name, 'EMPTY')}" for door in doors))


def check_doors(world):
    """Returns how many doors are right, and how many are wrong."""
    doors = find_doors(world)
    table, problems = {}, {}
    for door in doors:
        table[door], problems[door] = ({}, []) if door.skip else enter(world, door)
        for row in world.rows:
            cell = table[door].get(row.name, "an empty cell")
            if not door.skip and cell not in ("ours", NOT_THERE):
                problems[door].append(f"{row.name}: {cell}")
    print_table(world, doors, table)
    for door in doors:
        for note in door.notes:
            print(f"  {door.name}: {note}")
    n_bad = 0
    for door, texts in problems.items():
        n_bad += bool(texts)
        for text in texts[:8]:
            print(f"FAIL {door.name}: {text}")
    return len([door for door in doors if not door.skip]) - n_bad, n_bad


def main():
    import odd  # which checks the doors once more, by us

    if len(sys.argv) != 2:
        sys.exit("usage: run.py BUILD_DIR")
    with tempfile.TemporaryDirectory(prefix="gpucache-doors-") as folder:
        world = World(sys.argv[1], folder, read_rows())
        if os.environ.get("UNHOOK"):
            world.unhook(os.environ["UNHOOK"])
        n_good, n_bad = check_doors(world)
        for name, case in odd.cases():
            try:
                why = case(world)
            except AssertionError as failure:
                n_bad += 1
                print(f"FAIL {name}: {failure}")
            else:
                n_good += not why
                print(f"skip {name}: {why}" if why else f"ok {name}")
    print(f"{n_good} passed, {n_bad} failed")
    sys.exit(1 if n_bad else 0)


if __name__ == "__main__":
    main()
