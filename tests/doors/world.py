# SPDX-License-Identifier: Apache-2.0
"""The entry points to look up, and the doors."""
import os
import re
import subprocess

OURS = "libgpucache.so"
DRIVER = "libcuda.so.1"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read_table(name):
    with open(os.path.join(TOP, "preload", name), encoding="ascii") as file:
        return file.read()


# {name: (version, other name)}
RENAMED = {name: (int(since), row) for name, since, row in
           re.findall(r"^RENAMED\((\w+), (\d+), (\w+)\)", read_table("renamed.def"), re.M)}

# Functions that allocate or free device memory must be ours, whatever symbols.def says.
MEMORY = re.compile(r"cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release|Map|Unmap)\w*|"
                    r"cu(Array|Array3D|MipmappedArray)(Create|Destroy)|cu(Import|Destroy)ExternalMemory")


class Row:
    """A row of symbols.def."""

    def __init__(self, name, since, gets):
        self.name = name
        self.since = since
        self.is_per_thread = bool(re.search(r"_pt[sd][zs]$", name))
        self.base = re.sub(r"_v[234]$", "", re.sub(r"_pt[sd][zs]$", "", name))
        self.gets = gets


class Rows(list):
    def __init__(self, rows):
        super().__init__(rows)
        self.by_name = {row.name: row for row in rows}

    def find(self, base, version, flags):
        """The row that cuGetProcAddress finds; None if it is not ours."""
        since, other = RENAMED.get(base, (version + 1, base))
        base = other if version >= since else base
        found = [row for row in self if row.base == base and row.since <= version
                 and (flags & 2 or not row.is_per_thread)]
        return max(found, key=lambda row: (row.is_per_thread, row.since), default=None)


def read_rows():
    """The rows of symbols.def; BOTH stands for two, and variants begin with CUDA 7.0."""
    rows = []
    for name, variant, since, gets, gets_of_variant in re.findall(
            r"^(?:BOTH\()?HOOK\w*[(,] ?(\w+)(?:, (pt[sd][sz]))?, (\d+), (\w+)(?:, (\w+))?",
            read_table("symbols.def"), re.M):
        rows.append(Row(name, int(since), gets))
        if variant:
            rows.append(Row(f"{name}_{variant}", max(7000, int(since)), gets_of_variant))
    return Rows(rows)


class Door:
    """wanted(rows, row): the row that this door must find for `row`; None: not ours."""

    def __init__(self, name, text, command, wanted=lambda rows, row: row,
                 audit=False, spied=False, runtime=None, skip=None):
        self.name = name
        self.text = text
        self.command = command
        self.wanted = wanted
        self.audit = audit
        self.spied = spied
        self.runtime = runtime
        self.skip = skip
        self.notes = []


class World:
    def __init__(self, build, folder, rows):
        self.build = os.path.abspath(build)
        self.folder = folder
        self.rows = rows
        self.here = os.path.dirname(os.path.abspath(__file__))
        self.library = os.path.join(self.build, OURS)
        self.log = os.path.join(folder, "log")
        home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
        self.include = os.path.join(home, "include")
        found = [path for path in (os.path.join(home, "lib64"), os.path.join(home, "lib"))
                 if os.path.exists(os.path.join(path, "libcudart.so.13"))]
        # The real runtime library's folder; its static form is built into programs by the Makefile.
        self.toolkit = found[0] if found and os.path.exists(self.doors("runtime_real_static")) else None

    def doors(self, name):
        return os.path.join(self.build, "doors", name)

    def unhook(self, name):
        """Switches to a copy of the library in which this entry point has another name with the same hash.

        The loader's hash is 33 * hash + character, so adding 1 to a character and subtracting 33 from the next keeps
        it.
        """
        at = re.search("[A-Z][a-z]", name).start()
        other = name[:at] + chr(ord(name[at]) + 1) + chr(ord(name[at + 1]) - 33) + name[at + 2:]
        with open(self.library, "rb") as file:
            data = file.read()
        old, new = (b"\0" + text.encode() + b"\0" for text in (name, other))
        assert data.count(old) >= 2, f"{name} is not a name of the library"
        os.makedirs(os.path.join(self.folder, "unhooked"), exist_ok=True)
        self.library = os.path.join(self.folder, "unhooked", OURS)
        with open(self.library, "wb") as file:
            file.write(data.replace(old, new))

    def call(self, command, with_us=True, driver=None, libraries=(), preload=(), audit=False, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUCACHE", "GPUSIM", "LD_", "DOORS_"))}
        path = [driver or self.doors("driver"), *libraries, os.path.join(self.build, "simcuda")]
        env["LD_LIBRARY_PATH"] = ":".join(path)
        env["LD_PRELOAD"] = " ".join([*preload, *([self.library] if with_us else [])])
        env["GPUCACHE_OUTPUT"] = os.path.join(self.folder, "rec-%p.gpucache")
        if audit:
            env["LD_AUDIT"] = os.path.join(self.build, "libgpucache-audit.so")
        env.update(extra)
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=120, check=False)

    def run(self, door, **extra):
        if not door.spied:
            return self.call(door.command, audit=door.audit, **extra)
        if os.path.exists(self.log):
            os.unlink(self.log)
        return self.call(door.command, libraries=[door.runtime] if door.runtime else [],
                         preload=[self.doors("libspy.so")], DOORS_LOG=self.log, **extra)


class Log:
    """The lookups of a runtime library and their results, from the log of spy.c."""

    def __init__(self, world, door, result):
        self.rows = world.rows
        self.requests = []
        with open(world.log, encoding="ascii") as file:
            for line in file:
                name, version, flags, status, place, symbol = re.fullmatch(
                    r'"(.*)" (-?\d+) (\d+) (\d+) (\S+) (\S+)\n', line).groups()
                self.requests.append((name, int(version), int(flags), int(status), place, symbol))
        # The first line is the one dlsym; the last words are the program's.
        self.first = self.requests.pop(0)
        self.asked = {}
        for name, version, flags, _, place, symbol in self.requests:
            row = self.rows.find(name, version, flags)
            if row:
                self.asked[row.name] = "ours" if (place, symbol) == (OURS, row.name) else f"{symbol} of {place}"
        n_ours = sum(request[4] == OURS for request in self.requests)
        door.notes.append(f"{len(self.requests)} requests for {len({r[0] for r in self.requests})} names, "
                          f"{sum(r[2] == 2 for r in self.requests)} of them per thread; {n_ours} answers are ours; "
                          f"it ended with {result.stdout.strip()}")

    def cells(self):
        """The result of each row; "-" for rows that the library did not look up."""
        return {row.name: self.asked.get(row.name, "-") for row in self.rows}

    def problems(self):
        found = []
        if self.first[4:] != (OURS, "cuGetProcAddress_v2"):
            found.append(f"its dlsym gave {self.first[5]} of {self.first[4]}")
        for name, version, flags, status, place, symbol in self.requests:
            wanted = self.rows.find(name, version, flags)
            if (status != 0) != (name == ""):
                found.append(f'"{name}" {version} {flags} was answered with {status}')
            elif place != OURS and MEMORY.fullmatch(name):
                found.append(f'"{name}" {version} {flags} is memory, and {symbol} of {place}')
            elif not wanted and place == OURS:
                found.append(f'"{name}" {version} {flags} gave our {symbol}')
            elif wanted and (place, symbol) != (OURS, wanted.name):
                found.append(f'"{name}" {version} {flags} gave {symbol} of {place}, not our {wanted.name}')
        return found
