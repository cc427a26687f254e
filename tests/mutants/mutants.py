#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants.py FILE...: lists changes of one line that no unit test of the file detects.

Each mutant is one change of one line: a comparison, a constant off by one, a statement removed, a condition negated,
+ for -, && for ||, another return value.  It is made in a copy of the tree (build/mutants); there the
tests of the file are built and run: tests/unit/FOLDER/test_FILE and test_FILE_*, and those that TESTS names (tests/model/test_reuse).
A mutant that builds, differs in its machine code, and passes them all is listed with its place.

LIMIT=N tries N of all, chosen by SEED (default 1).  Exit status 0, 2 where the tests cannot be built or fail unchanged.
"""
import fcntl
import filecmp
import glob
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPY = os.path.join(TOP, "build", "mutants")
VARIANT = "release"
SHORTEST_S = 5  # a test is given so long, or ten times what it took unchanged

# A comment, a string or a character: nothing in it is changed.
DEAD = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.S)

# Patterns, and their replacements.
TOKENS = [
    (re.compile(r"(?<= )(<|>|<=|>=|==|!=)(?= )"),
     {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="]}),
    (re.compile(r"(?<= )(&&|\|\|)(?= |$)"), {"&&": ["||"], "||": ["&&"]}),
    (re.compile(r"(?<= )(\+|-|\+=|-=)(?= )"), {"+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="]}),
    (re.compile(r"(\+\+|--)"), {"++": ["--"], "--": ["++"]}),
    (re.compile(r"\b(true|false)\b"), {"true": ["false"], "false": ["true"]}),
]
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.*)(\)(?: \{)?)$")
RETURN = re.compile(r"^(\s*return )([^;]+)(;)$")
STATEMENT = re.compile(r"^\t+(?!return\b|goto\b|break;|continue;|case\b|#)([^;]*[)\w\]];|[^;]*(?:\+\+|--);)$")
DECLARATION = re.compile(r"^\t+(?:const |static |struct |enum |unsigned |_Atomic)*\w+ \**\w+(?:\[.*\])?(?: =.*)?;$")
ENDS_BEFORE = re.compile(r"(^\s*|[;{}:]|\belse|\))$")  # a statement may begin after such a line


def masked(text):
    """The text with comments and strings blanked, of the same length."""
    return DEAD.sub(lambda dead: re.sub(r"[^\n]", "\0", dead.group()), text)


def mutants_of(path, text):
    """[(path, line number, what, the new line)] of one file."""
    lines, code = text.split("\n"), masked(text).split("\n")
    found = []
    for i, line in enumerate(lines):
        new = []
        if not code[i].strip() or code[i].startswith(("#include", "#if", "#e", "/*", " *")):
            continue
        for pattern, others in TOKENS:
            for hit in pattern.finditer(code[i]):
                new += [(line[:hit.start()] + other + line[hit.end():]) for other in others[hit.group()]]
        new += [line[:hit.start()] + str(int(hit.group()) + 1) + line[hit.end():] for hit in NUMBER.finditer(code[i])]
        hit = CONDITION.match(line)
        if hit and hit.group(2).count("(") == hit.group(2).count(")"):
            new.append(f"{hit.group(1)}!({hit.group(2)}){hit.group(3)}")
        hit = RETURN.match(line)
        if hit and not code[i].count("\0"):
            new += [f"{hit.group(1)}{value}{hit.group(3)}" for value in "01" if hit.group(2) != value]
        if (STATEMENT.match(line) and not DECLARATION.match(line) and i and ENDS_BEFORE.search(code[i - 1].strip("\0 \t"))):
            new.append(re.match(r"\t*", line).group() + ";")
        seen = {line}
        for changed in new:
            if changed not in seen:
                seen.add(changed)
                found.append((path, i, line, changed))
    return found


def copy_tree():
    """Copies all files that git tracks or would add; only changed ones, so that builds are incremental."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, check=True, capture_output=True, text=True)
    for name in [*listed.stdout.splitlines(), "config.mak"]:
        source, target = os.path.join(TOP, name), os.path.join(COPY, name)
        if not os.path.isfile(source) or (os.path.isfile(target) and filecmp.cmp(source, target, shallow=False)):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)


def make(targets):
    command = ["make", "--no-print-directory", "-s", f"-j{os.cpu_count()}", f"VARIANT={VARIANT}", "WERROR=0", *targets]
    return subprocess.run(command, cwd=COPY, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def built(name):
    return os.path.join("build", VARIANT, name)


def machine_code(path):
    """A digest of the file's object without debug information."""
    stripped = os.path.join(COPY, "build", "stripped.o")
    subprocess.run(["objcopy", "--strip-debug", os.path.join(COPY, built(path[:-2] + ".o")), stripped], check=True)
    with open(stripped, "rb") as file:
        return file.read()


def limit_child():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def private(command):
    """The command with private /tmp and /dev/shm if possible, because tests that die leave files."""
    enter = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "/bin/sh", "-c",
             # The copy may be below one of them.
             "mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm && mkdir -p \"$PWD\" && mount -c --bind . \"$PWD\" && exec \"$@\"",
             "sh"]
    if private.is_possible is None:
        done = subprocess.run([*enter, "true"], cwd=COPY, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        private.is_possible = done.returncode == 0
    return [*enter, *command] if private.is_possible else command


private.is_possible = None


def passes(test, seconds):
    with subprocess.Popen(private([os.path.join(COPY, built(test))]), cwd=COPY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, preexec_fn=limit_child) as child:
        try:
            return child.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)  # its children, too
            except ProcessLookupError:
                pass


def tests_of(path):
    own = os.path.join("tests", "unit", os.path.basename(os.path.dirname(path)), "test_" + os.path.basename(path)[:-2])
    found = glob.glob(own + ".c", root_dir=TOP) + sorted(glob.glob(own + "_*.c", root_dir=TOP))
    return [test[:-2] for test in found] + os.environ.get("TESTS", "").split()


def stop(why):
    sys.exit(f"mutants: {why}")


def prepare(path):
    """Builds and runs the file's tests unchanged; {test: seconds it may take}."""
    tests = tests_of(path)
    if not tests:
        stop(f"{path} has no test; name one: TESTS=tests/unit/...")
    os.utime(os.path.join(COPY, path))  # its object may be of a mutant, where a run was ended
    done = make([built(test) for test in tests] + ["simcuda"])
    if done.returncode:
        stop(f"the tests of {path} do not build:\n{done.stderr}")
    limits = {}
    for test in tests:
        start = time.monotonic()
        if not passes(test, 300):
            stop(f"{test} fails on the unchanged {path}")
        limits[test] = max(SHORTEST_S, 10 * (time.monotonic() - start))
    return limits


def outcome(mutant, limits, code):
    """"noticed", "unnoticed", "same" (machine code), or "unbuilt"."""
    path, number, _, changed = mutant
    target = os.path.join(COPY, path)
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read()
    lines = text.split("\n")
    lines[number] = changed
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        if make([built(path[:-2] + ".o")]).returncode:
            return "unbuilt"
        if machine_code(path) == code:
            return "same"
        if make([built(test) for test in limits]).returncode:
            return "unbuilt"
        return "unnoticed" if all(passes(test, seconds) for test, seconds in limits.items()) else "noticed"
    finally:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)


def say_progress(n_done, n_all, counts):
    line = f"{n_done}/{n_all} mutants: " + ", ".join(f"{n} {what}" for what, n in counts.items())
    if sys.stderr.isatty():
        print(f"\r{line} ", end="\n" if n_done == n_all else "", file=sys.stderr, flush=True)
    elif n_done % 25 == 0 or n_done == n_all:
        print(line, file=sys.stderr, flush=True)


def main():
    if len(sys.argv) < 2:
        stop("make mutants FILES=\"src/alloc/fence.c ...\"")
    paths = [os.path.relpath(os.path.abspath(path), TOP) for path in sys.argv[1:]]
    os.makedirs(COPY, exist_ok=True)
    alone = os.open(os.path.join(COPY, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stop(f"another run is at work in {COPY}")
    copy_tree()
    limits, codes, mutants = {}, {}, []
    for path in paths:
        limits[path] = prepare(path)
        codes[path] = machine_code(path)
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            mutants += mutants_of(path, file.read())
    n_most = int(os.environ.get("LIMIT") or len(mutants))
    if n_most < len(mutants):
        chosen = random.Random(int(os.environ.get("SEED") or 1)).sample(range(len(mutants)), n_most)
        mutants = [mutants[i] for i in sorted(chosen)]
    counts = {"noticed": 0, "unnoticed": 0, "same": 0, "unbuilt": 0}
    survivors = []
    for n_done, mutant in enumerate(mutants, 1):
        what = outcome(mutant, limits[mutant[0]], codes[mutant[0]])
        counts[what] += 1
        if what == "unnoticed":
            survivors.append(mutant)
        say_progress(n_done, len(mutants), counts)
    for path, number, line, changed in survivors:
        print(f"{path}:{number + 1}: {line.strip()}\n{' ' * len(f'{path}:{number + 1}')}> {changed.strip()}")
    print(f"{len(survivors)} of {len(mutants)} not noticed")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
