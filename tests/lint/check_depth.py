#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_depth.py FOLDER: bounds the stack that we take from a thread of the program.

FOLDER holds what gcc's -fcallgraph-info=su says of each file: the bytes of every frame, and who calls whom.  A call
through a pointer is resolved by the name that it is called by: to the functions that an initializer gives a member of
that name, else by CALLS; a name that is in neither is an error.  What others' code needs (driver, unwinder, loader) is
measured by tests/integration/cases_depth.py.

    check_depth.py -v FOLDER    also prints the deepest chains
"""
import collections
import pathlib
import re
import sys

# Bytes of our own frames from a hook down, on the stack of the program; and on our own (base/own_stack.h).
FROM_A_HOOK = 6 << 10
ON_OUR_OWN = 64 << 10

# Frames above 1 KiB on the stack of the program, and why they are there.
LARGE_BYTES = 1024
LARGE = {
    "gpc_walk_learn": "libunwind's context and cursor: the walk starts in the frame that holds them",
    "ask_unwinder": "the return addresses of a walk without rules",
    "take_walk": "the frames of a stack; a table for each thread would cost each thread as much",
    "gpc_record_peak_take": "the holders of a peak, found before the lock that stores them",
    "gpc_log": "a line",
    "add_code": "the names of a code object that is new",
    "gpc_own_folder_open": "the paths of our folder; only for the first export to another process",
    "find_random": "the same",
    "make": "the same",
    "open_parent": "the same",
}

# Names of pointers to code of others, which is bounded by what is measured.
OTHERS = """accessors_of allocate ask at_once by_abort by_assert by_exit by_index by_pci by_uuid close construct
current find_functions find_stream find_table get get_context get_first_interpreter get_main_interpreter
get_proc_info get_reg get_running_state get_save_loc get_thread_state handle hear index_of init_local is_finalizing
is_initialized lookup_in next of of_libc own process_name processes quickly raise real real_close set_policy set_size
step""".split()
# Tables and parameters that no initializer names.
TABLES = {
    "is": ("is_same",),
    "is_readable": ("is_readable",),
    "rungs": ("reap_passed_fences", "return_enough_segments", "wait_for_enough_fences", "return_everything", "ask_handlers",
              "wait_for_others"),
    "write": ("write_record",),
}
# What runs elsewhere: on a stack of ours, and, of the program's own, a handler that it gave us.
ELSEWHERE = {"gpc_own_stack_run": "function", "gpc_runtime_ask_handler": "call"}

NODE = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?(?:\\n(\d+) bytes[^"]*)?"')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)" label: "([^"]*)"')
HOOK = re.compile(r"preload/[a-z_]*\.c$")


class Program:
    """The functions: name -> bytes of the frame; edges: name -> names.  A static function's name begins with its file."""

    def __init__(self, folder, sources):
        self.frames = {}
        self.edges = collections.defaultdict(set)
        self.pointers = collections.defaultdict(set)  # calls through pointers: function -> places
        self.loops = collections.defaultdict(set)  # calls of dl_iterate_phdr: function -> files
        self.hooks = set()
        self.text = {str(path): path.read_text() for path in sources}
        for path in folder.rglob("*.ci"):
            self.read(path)
        self.named = collections.defaultdict(set)  # (file or "", name), without what the compiler appends
        for name in self.frames:
            file, _, word = name.rpartition(":")
            self.named[file, word.split(".")[0]].add(name)

    def meant(self, file, word):
        """The functions that the word means in the file."""
        return self.named.get((file, word)) or self.named.get(("", word), set())

    def of_name(self, words):
        return {name for (_, word), names in self.named.items() if word in words for name in names}

    def read(self, path):
        source = None
        for line in path.read_text().splitlines():
            if match := re.match(r'graph: \{ title: "([^"]+)"', line):
                source = match[1]
                if not pathlib.Path(source).exists():
                    return  # left by an earlier build
            elif match := NODE.match(line):
                if match[2]:
                    self.frames[match[1]] = int(match[2])
                    if HOOK.match(source) and ":" not in match[1]:
                        self.hooks.add(match[1])
            elif match := EDGE.match(line):
                if match[2] == "__indirect_call":
                    self.pointers[match[1]].add(match[3])
                else:
                    self.edges[match[1]].add(match[2])
                    if match[2] == "dl_iterate_phdr":
                        self.loops[match[1]].add(match[3].split(":")[0])

    def initialized(self):
        """member -> the functions that some initializer gives it"""
        found = collections.defaultdict(set)
        for file, text in self.text.items():
            for member, value in re.findall(r"\.(\w+) = &?(\w+)\b", text):
                if targets := self.meant(file, value):
                    found[member] |= targets
        return found

    def passed(self, parameter):
        """The functions that are passed to functions with a parameter of this name."""
        found = set()
        takers = set()
        for text in self.text.values():
            takers |= set(re.findall(r"\b(\w+)\(\s*(?:[^;{}()]|\(\*\w+\)\([^()]*\))*?(?:\(\*%s\)\(|_fn %s\b)" % (parameter, parameter), text))
        for taker in takers:
            for file, text in self.text.items():
                for arguments in re.findall(r"\b%s\(([^;{}]*)\)" % taker, text):
                    for word in re.findall(r"\b\w+\b(?!\()", arguments):
                        found |= self.meant(file, word)
        return found

    def called_as(self, place):
        """The name by which the call at FILE:LINE:COLUMN calls; None: in a table of macros, a function of the driver."""
        file, line, column = place.rsplit(":", 2)
        file = file.removeprefix("./")
        if file.endswith(".def"):
            return None
        text = self.text[file].splitlines()[int(line) - 1][int(column) - 1:]
        match = re.match(r"[^(]*?(\w+)\s*(?:\[[^]]*\])?\)?\(", text)
        return match[1] if match else f"?{text}"

    def resolve(self):
        """Adds the edges of calls through pointers.  Returns the functions with a call that leads nobody knows where."""
        initialized = self.initialized()
        unknown = {}
        for name, places in self.pointers.items():
            for place in places:
                called = self.called_as(place)
                if called is None or called in OTHERS or re.match(r"cu[A-Z]", called) or called.isupper() or \
                        self.meant(place.split(":")[0], called) or ELSEWHERE.get(name) == called:
                    continue
                targets = initialized.get(called) or self.passed(re.escape(called)) or \
                    self.of_name(TABLES.get(called, (called,)))
                self.edges[name] |= targets
                if not targets:
                    unknown[name] = f"{place}: {called}"
        # What the loader calls back.
        for name, files in self.loops.items():
            for file in files:
                for back in re.findall(r"dl_iterate_phdr\((\w+),", self.text[file]):
                    self.edges[name] |= self.meant(file, back)
        return unknown

    def deepest(self, roots):
        """(bytes, chain) of the deepest chain from the roots; a recursion counts once."""
        best = {}

        def depth(name, above):
            if name not in best:
                inner = max((depth(callee, above | {name}) for callee in self.edges[name]
                             if callee in self.frames and callee not in above), default=(0, ()))
                best[name] = (self.frames[name] + inner[0], (name, *inner[1]))
            return best[name]

        return max((depth(root, frozenset()) for root in roots), default=(0, ())), set(best)


def main():
    arguments = sys.argv[1:]
    verbose = "-v" in arguments
    folder = pathlib.Path(arguments[-1])
    sources = [*pathlib.Path("src").rglob("*.[ch]"), *pathlib.Path("preload").rglob("*.[ch]")]
    program = Program(folder, sources)
    bad = []
    sys.setrecursionlimit(10000)
    if not program.hooks:
        sys.exit(f"{folder}: no hook found; was it built by gcc?")
    unknown = program.resolve()
    own = set()
    for file, text in program.text.items():
        for name in re.findall(r"gpc_own_stack_run\((\w+),", text):
            own |= program.meant(file, name)
    for where, roots, limit in (("from a hook", program.hooks, FROM_A_HOOK), ("on our own stack", own, ON_OUR_OWN)):
        (size, chain), reached = program.deepest(roots)
        lines = "\n".join(f"    {program.frames[name]:6} {name}" for name in chain)
        if verbose or size > limit:
            print(f"{size} bytes {where}, of {limit}:\n{lines}")
        if size > limit:
            bad.append(where)
        if where != "from a hook":
            continue
        for name in sorted(reached & set(unknown)):
            bad.append(f"{name}: where does this call lead? {unknown[name]}")
        large = {re.sub(r"\..*", "", name.split(":")[-1]) for name in reached if program.frames[name] > LARGE_BYTES}
        bad += [f"{name}: a frame of more than {LARGE_BYTES} bytes on the program's stack" for name in sorted(large - set(LARGE))]
        bad += [f"{name}: no frame of more than {LARGE_BYTES} bytes any more" for name in sorted(set(LARGE) - large)]
    print("\n".join(bad))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
