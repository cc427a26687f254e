#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other users of a node, hostile files, hostile names, and small machines that lack files or memory.

  run.py BUILD [CASE]...

Cases with users and machines use setpriv and unshare in private mount namespaces, which needs root; otherwise they are
skipped, and say why.  The last line is "N passed, N failed".
"""
import glob
import gzip
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bombs  # noqa: E402

VICTIM, STRANGER = 62001, 62002
MOST_MIB = 300
MOST_READ = 16 << 20
MOST_FILES = 16384  # GPC_DIRECTORY_MAX_FILES
TIMEOUT_S = 120  # only to end a hang: a busy machine may take long
MOST_CPU_S = 2  # of an idle machine; where two threads share a core it is twice as much

BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build"
REPORT = os.path.join(BUILD, "gpumem-report")
REPLAY = os.path.join(BUILD, "gpumem-replay")
RUN = os.path.join(BUILD, "gpucache-run")
TRAIN = os.path.join(BUILD, "programs", "train")


class Skipped(Exception):
    pass


class Ended:
    def __init__(self, code, out, err, cpu_s, rss_mib):
        self.code, self.out, self.err, self.cpu_s, self.rss_mib = code, out, err, cpu_s, rss_mib


def run(*words, env=None, **more):
    """Runs a command to its end, and measures it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        limits = (resource.RLIMIT_CPU, (5 * MOST_CPU_S, 5 * MOST_CPU_S))
        child = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=env,
                                 preexec_fn=lambda: resource.setrlimit(*limits), **more)
        timer = threading.Timer(TIMEOUT_S, os.kill, (child.pid, signal.SIGKILL))
        timer.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        finally:
            timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        # Read a limited part: ru_maxrss of later children includes the memory that we hold when we fork.
        return Ended(child.returncode, out.read(MOST_READ), err.read(MOST_READ), used.ru_utime + used.ru_stime, used.ru_maxrss >> 10)


def expect(condition, *said):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in said))


def expect_line(pattern, text):
    """The line that is printed, quoted in the test."""
    text = text.decode("utf-8")
    expect(re.search(pattern, text), f"no line {pattern!r} in:\n{text}")


# --- Users -----------------------------------------------------------------------------------------------------

# BUILD is at /tmp/build there, wherever this checkout is: it may be below /tmp, or in a folder that is closed to others.
FRESH = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=1777 none "$1"; mkdir "$1/build"; mount --bind "$2" "$1/build"
mount -t tmpfs -o mode=1777 none /dev/shm; mount --move "$1" /tmp
cd /tmp
export XDG_RUNTIME_DIR= TMPDIR= GPUCACHE_OUTPUT= HOME=/ GPUCACHE_CONF=
as() { uid=$1; shift; setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"; }
"""


def scene(script, **values):
    """A shell script as root with a /dev/shm and a /tmp of its own; `as UID COMMAND` runs as another."""
    if os.geteuid() != 0:
        raise Skipped("needs root, to be other users")
    if not shutil.which("setpriv") or not shutil.which("unshare"):
        raise Skipped("needs setpriv and unshare")
    values = {"v": VICTIM, "s": STRANGER, "report": "/tmp/build/gpumem-report", "run": "/tmp/build/gpucache-run",
              "train": "/tmp/build/programs/train", **values}
    script = re.sub(r"@(\w+)", lambda m: str(values[m[1]]), "as @v test -x @report || exit 99\n" + script)
    with tempfile.TemporaryDirectory() as folder:
        ended = run("unshare", "-m", "sh", "-c", FRESH + script, "sh", folder, BUILD)
    if ended.code == 99:
        raise Skipped("other users may not read what was built")
    if b"mount:" in ended.err and ended.code:
        raise Skipped(ended.err.decode().splitlines()[0])
    return ended


def names_that_others_took():
    """Both usual folders belong to a stranger; the recording is made and found all the same."""
    ended = scene("""
        as @s mkdir -m 777 /dev/shm/gpucache-@v /tmp/gpucache-@v
        as @v @run --sim 4GiB -- @train --steps 2
        ls -ld /dev/shm/gpucache-@v-* | cut -c1-10
        ls -A /dev/shm/gpucache-@v /tmp/gpucache-@v
        as @v @report list
    """)
    expect(ended.code == 0, ended.err)
    expect_line(r"(?m)^drwx------$", ended.out)
    expect_line(r"(?m)^IN +/dev/shm/gpucache-62001-[0-9a-f]{8}$", ended.out)
    expect_line(r"(?m) train$", ended.out)


def recordings_of_others():
    """A stranger's file in a shared folder that claims to be newer is skipped, counted and reported."""
    ended = scene("""
        mkdir -m 1777 /tmp/all
        as @v @run --sim 4GiB -o /tmp/all/mine.gpucache -- @train --steps 2
        as @s @run --sim 4GiB -o /tmp/all/theirs.gpucache -- @train --steps 3
        chmod 644 /tmp/all/theirs.gpucache
        as @v env GPUCACHE_OUTPUT=/tmp/all/%p.gpucache @report 2>&1
        as @v @report list /tmp/all 2>&1
    """)
    expect(ended.code == 0, ended.err)
    expect_line(r"gpumem-report: skipped 1 recording of other users \(uid 62002\); to read one, name its file", ended.out)
    expect_line(r"--steps 2", ended.out)
    expect(b"--steps 3" not in ended.out, ended.out)


def files_that_others_name():
    """A reader of a stranger's recording, even root, opens none of the files that it names."""
    ended = scene("""
        mkdir -m 1777 /tmp/all
        cp @train /tmp/all/train; chmod 755 /tmp/all/train
        as @s @run --sim 4GiB -o /tmp/all/theirs.gpucache -- /tmp/all/train --steps 3
        chmod 644 /tmp/all/theirs.gpucache
        as @v @report --at=peak /tmp/all/theirs.gpucache 2>&1
        @report --at=peak /tmp/all/theirs.gpucache 2>&1
        echo --- with; @report --at=peak --symbols /tmp/all/theirs.gpucache 2>&1
    """)
    expect(ended.code == 0, ended.err)
    without, given = ended.out.split(b"--- with")
    expect_line(r"theirs.gpucache belongs to uid 62002: no file it names is opened for symbols; --symbols opens them", without)
    expect(b"train.c" not in without and b"train.c" in given, ended.out)


def links_out_of_a_users_folder():
    """Root lists a folder of a user, and follows no link out of it."""
    ended = scene("""
        mkdir -m 1777 /tmp/all; mkdir -m 700 /tmp/own
        @run --sim 4GiB -o /tmp/own/secret.gpucache -- @train --steps 2
        as @v @run --sim 4GiB -o /tmp/all/mine.gpucache -- @train --steps 3
        as @v ln -s /tmp/own/secret.gpucache /tmp/all/link.gpucache
        @report list /tmp/all 2>&1
    """)
    expect(ended.code == 0, ended.err)
    expect_line(r"skipped 1 recording of other users \(uid 62001\)", ended.out)
    expect(b"--steps 2" not in ended.out and b"mine" not in ended.err, ended.out)


def folders_under_every_umask():
    """The mode of the folder does not depend on the umask."""
    ended = scene("""
        as @v sh -c 'umask 0777; @run --sim 4GiB -- @train --steps 2'
        ls -ld /dev/shm/gpucache-@v | cut -c1-10
        as @v @report list
    """)
    expect(ended.code == 0, ended.err)
    expect_line(r"(?m)^drwx------$", ended.out)
    expect_line(r"(?m) train$", ended.out)


# --- Hostile files ----------------------------------------------------------------------------------------------

# Each command that reads a recording and each format: a view without a row fails every_view_is_bounded.
VIEWS = ["check", "leaks", "top", "leaks --json", "summary --json", "tree --json", "html", "list", "oom", "timeline", "fit", "cure", "fit --html", "cure --html", "live --once",
         "pack -f", "diff @", *("export --format=" + name for name in (
             "pprof", "folded", "pytorch-snapshot", "perfetto", "csv", "prometheus", "openmetrics", "json"))]
UNBOUNDED = {"sweep": "reads only what gpucache-run --sweep has made", "symbols": "reads no recording", "options": "reads no recording"}

# The messages for recordings that no writer can have made.
REASONS = {
    "names": r"DAMAGED: CODES is larger than 1/8 of the file, as no writer makes it",
    "lines": r"DAMAGED: STACKS is damaged from byte 64 on, record 1 has more frames\s+than are recorded",
    "modules": r"DAMAGED: MODULES is larger than 1/8 of the file, as no writer makes it",
    "devices": r"DAMAGED: DEVICES has 46\d\d\d records; at most 16 are written",
}


def bomb(make):
    def case():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bomb.gpucache")
            with open(path, "wb") as file:
                file.write(make())
            for view in VIEWS:
                ended = run(REPORT, *view.replace("@", path).split(), path)
                expect(ended.code in (0, 3, 4), view, "ended with", ended.code, ended.err[-300:])
                expect(ended.rss_mib <= MOST_MIB, view, "took", ended.rss_mib, "MiB")
                expect(ended.cpu_s <= 2 * MOST_CPU_S, view, "took", ended.cpu_s, "s")
                # A screen goes on with what could be read.
                if make.__name__ in REASONS and not view.startswith("live"):
                    expect(ended.code == 4, view, "ended with", ended.code)
                if make.__name__ in REASONS and view == "check":
                    expect_line(REASONS[make.__name__], ended.out)
    case.__name__ = "bomb_" + make.__name__
    case.__doc__ = make.__doc__
    return case


def trees_that_are_cut():
    """JSON of a tree is limited to a number of nodes; where it left children out, it says so."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "deep.gpucache")
        deep = b"".join(bombs.stack(i, native=[(i * 24 + k) * 4096 for k in range(24)]) for i in range(1, 1001))
        with open(path, "wb") as file:
            file.write(bombs.recording({**bombs.common(30000, 1000), bombs.STACKS: (deep, 1000)}))
        device = json.loads(run(REPORT, "tree", "--json", path).out)["devices"][0]
        nodes = device["tree"]
        cut = [i for i, node in enumerate(nodes) if node["is_cut"]]
        expect(len(cut) > 200 and 16000 < len(nodes) < 18000, len(cut), len(nodes))
        expect(all(nodes[i + 1]["depth"] <= nodes[i]["depth"] for i in cut if i + 1 < len(nodes)), "a node that is cut has children")


def every_view_is_bounded():
    """Each command and format of the help is among those that the bombs go through."""
    text = run(REPORT, "--help").out.decode()
    commands = re.findall(r"(?m)^  (\w+) +\S", text.split("Commands:")[1].split("Options:")[0])
    formats = re.findall(r"^  ([a-z-]+) ", re.search(r"Formats of export:\n(.*?)\n\n", text, re.S)[1], re.M)
    for what, found, known in (("commands", commands, {view.split()[0] for view in VIEWS} | set(UNBOUNDED)),
                               ("formats", formats, {view.partition("--format=")[2] for view in VIEWS} - {""})):
        expect(len(found) > 7 and set(found) == known, f"{what} in the help or in VIEWS, not in both: {sorted(set(found) ^ known)}")
    tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    with open(os.path.join(tests, "fuzz", "target_recording.c"), encoding="utf-8") as file:
        fuzzed = re.findall(r'(?m)^\t"(\w+)(?: --format=([a-z-]+))?', file.read())
    readers = ""
    for folder in ("export", "fleet"):
        for name in glob.glob(os.path.join(tests, folder, "*.py")):
            with open(name, encoding="utf-8") as file:
                readers += file.read()
    reading = {command for command in commands if command not in UNBOUNDED}
    expect(reading <= {command for command, _ in fuzzed}, "not fuzzed:", sorted(reading - {command for command, _ in fuzzed}))
    for name in formats:
        expect(name in {fuzz for _, fuzz in fuzzed}, "a format that is not fuzzed:", name)
        expect(re.search(rf'["=]{name}[",]', readers), "a format that no test reads:", name)


def sparse_files():
    """A file of a gigabyte of holes costs no more than its data."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sparse.gpucache")
        data = bytearray(bombs.recording({**bombs.common(), bombs.STACKS: (bombs.stack(1, native=[64]), 1)}))
        # The last region but one, BLOCKS, goes on to the end of a file of 1 GiB.
        size = 1 << 30
        at = 1120 + 32 * 2
        kind, record, offset, _, _ = struct.unpack_from("<IIQQQ", data, at)
        expect(kind == bombs.BLOCKS, kind)
        struct.pack_into("<IIQQQ", data, at, kind, record, offset, size - offset, (size - offset) // record)
        struct.pack_into("<Q", data, 32, size)
        with open(path, "wb") as file:
            file.write(data)
            file.truncate(size)
        ended = run(REPORT, "summary", path)
        expect(ended.code in (0, 4) and ended.rss_mib <= MOST_MIB, ended.code, ended.rss_mib, "MiB")


def crowded_folders():
    """Of a folder with more recordings than are read, the number that is skipped is said."""
    with tempfile.TemporaryDirectory() as folder:
        first = os.path.join(folder, "0.gpucache")
        with open(first, "wb") as file:
            file.write(bombs.recording(bombs.common()))
        for i in range(1, MOST_FILES + 3):
            os.link(first, os.path.join(folder, f"{i}.gpucache"))
        for words in ("list",), ("summary",):
            ended = run(REPORT, *words, folder)
            expect_line(rf"read {MOST_FILES} recordings, the most of one call, and skipped 3", ended.err)


def packed_bombs():
    """The inflated size of a compressed file is limited, and exceeding it is reported."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.csv.gz")
        rows = b"alloc,1,1,1,1\n" * 100000
        with gzip.open(trace, "wb", compresslevel=1) as file:
            file.write(b"op,id,size,stream,time_us\n")
            for _ in range(60):
                file.write(rows)
        ended = run(REPLAY, trace)
        expect(ended.code == 4, ended.code, ended.err)
        expect_line(r"a trace has at most 16777216 rows, and 64 MiB when it is unpacked", ended.err)
        recording = os.path.join(folder, "run.gpucache.gz")
        with gzip.open(recording, "wb", compresslevel=1) as file:
            for _ in range(80):
                file.write(b"x" * (1 << 20))
        ended = run(REPORT, recording)
        expect(ended.code == 4 and ended.rss_mib <= MOST_MIB, ended.code, ended.rss_mib, "MiB", ended.err)
        expect_line(r"too large when decompressed: more than \d+ bytes", ended.err)


def leaks_with_module(folder, row):
    """What `leaks` says of one frame in the module of this row."""
    path = os.path.join(folder, "run.gpucache")
    with open(path, "wb") as file:
        file.write(bombs.recording({**bombs.common(70000, 1), bombs.MODULES: (bytes(row), 1),
                                    bombs.STACKS: (bombs.stack(1, native=[0x2000]), 1)}))
    ended = run(REPORT, "leaks", path)
    expect(ended.code == 0, ended.code, ended.err)
    return ended


def debug_links_that_wait():
    """A debug link that leads to a pipe does not block the reader."""
    if not shutil.which("objcopy") or not shutil.which("gcc"):
        raise Skipped("needs gcc and objcopy")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(["gcc", "-g", "-Wl,--build-id", "-x", "c", "-", "-o", program], check=True,
                       input=b"int main(void) { return 0; }\n")
        with open(os.path.join(folder, "program.debug"), "wb") as file:
            file.write(b"x")
        subprocess.run(["objcopy", "--strip-debug", "--add-gnu-debuglink=program.debug", program],
                       cwd=folder, check=True)
        os.unlink(os.path.join(folder, "program.debug"))
        os.mkfifo(os.path.join(folder, "program.debug"))
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, check=True).stdout.decode()
        build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", notes)[1])
        row = bytearray(bombs.module(program.encode(), 0x1000, 0x100000))
        struct.pack_into("<I", row, 4, len(build_id))
        row[32:32 + len(build_id)] = build_id
        ended = leaks_with_module(folder, row)
        expect_line(r"program\+0x2000|program", ended.out)


def special_files_as_modules():
    """F6: what a recording calls a module is opened where it is a file: a pipe with a reader to come is none, and no other build."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        row = bytearray(bombs.module(pipe.encode(), 0x1000, 0x100000))
        struct.pack_into("<I", row, 4, 20)
        row[32:52] = b"\1" * 20
        ended = leaks_with_module(folder, row)
        expect_line(r"pipe\+0x", ended.out)
        expect(b"differs" not in ended.err, ended.err)


# --- What is printed --------------------------------------------------------------------------------------------

BAD = b"a\x1b[31m\x07\xc2\x9b\xe2\x80\xae\xff"


def expect_clean(data, what):
    text = data.decode("utf-8")  # strict
    for letter in text:
        expect(letter in "\n\t" or (letter >= " " and not 0x7F <= ord(letter) <= 0x9F and
                                    not 0x202A <= ord(letter) <= 0x202E), what, "prints", repr(letter))


def names_that_control_terminals():
    """Names of files and programs are printed without control characters."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder.encode(), BAD + b".gpucache")
        frame = [bombs.FROM_PYTHON | 1 << 32]
        data = bytearray(bombs.recording({**bombs.common(8, 1), bombs.CODES: (bombs.code(1, BAD, b"/" + BAD), 1),
                                          bombs.STACKS: (bombs.stack(1, native=[64], python=frame), 1)}))
        # exe, command, job: behind boot_id, version and host.
        for at in (352, 608, 864):
            data[at:at + len(BAD)] = BAD
        with open(path, "wb") as file:
            file.write(data)
        for view in ("summary", "check", "list", "leaks", "tree"):
            target = folder.encode() if view == "list" else path
            for more in ((), ("--json",)):
                ended = run(REPORT, view, *more, target)
                expect_clean(ended.out, view)
                expect_clean(ended.err, view)
                if more and ended.out:
                    json.loads(ended.out.decode("utf-8"))
        ended = run(REPORT, b"/none/" + BAD)
        expect_line(r"gpumem-report: /none/a\?\[31m\?\?\?\?\?\?\?: there is no such file", ended.err)


# --- Small machines ---------------------------------------------------------------------------------------------

def small(prepare, line=None):
    """train on a machine that lacks something: output as without the library, and at most one line of ours."""
    plain = scene(f"{prepare}\nGPUCACHE=0 @run --sim 640MiB -- @train --steps 2")
    ended = scene(f"{prepare}\n@run --sim 640MiB -- @train --steps 2")
    expect(ended.code == plain.code and ended.out == plain.out, ended.code, plain.code, ended.out, ended.err, plain.err)
    expect(plain.code == 0, plain.err)
    lines = [text for text in ended.err.decode().splitlines() if text.startswith("gpucache:")]
    expect(len(lines) <= 1, lines)
    if line:
        expect_line(line, ended.err)


def small_shared_memory():
    """64 MiB of /dev/shm."""
    small("mount -t tmpfs -o size=64m,mode=1777 none /dev/shm")


def no_place_to_write():
    """A root that is read only, with everything below it."""
    small("mount -t tmpfs -o ro none /dev/shm; mount -o remount,ro /tmp",
          r"gpucache: no recording: no directory could be used, or it is full. The program runs on; ")


def no_proc():
    """No /proc."""
    small("mount -t tmpfs -o ro none /proc")


def no_home():
    """No HOME, no PATH to speak of, no user of that number."""
    small("unset HOME XDG_RUNTIME_DIR USER LOGNAME")


def little_address_space():
    """1 GiB of address space: a program starts as it would, and recordings are read.  (A simulated GPU needs more.)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.gpucache")
        with open(path, "wb") as file:
            file.write(bombs.recording({**bombs.common(), bombs.STACKS: (bombs.stack(1, native=[64]), 1)}))
        preload = {**os.environ, "LD_PRELOAD": os.path.join(BUILD, "libgpucache.so")}
        ended = run("sh", "-c", "ulimit -v 1048576; exec echo fine", env=preload)
        expect(ended.code == 0 and ended.out == b"fine\n" and not ended.err, ended.code, ended.err)
        trace = os.path.join(folder, "trace.csv")
        with open(trace, "w", encoding="utf-8") as file:
            file.write("op,id,size,stream,time_us\nalloc,1,1000,1,1\nfree,1,1000,1,2\n")
        for command in (f"{REPORT} summary {path}", f"{REPORT} html {path}", f"{REPORT} export --format=folded {path}",
                        f"{REPLAY} -p gpucache -p pytorch -p vmm -p none {trace}", f"{REPLAY} --smallest {trace}"):
            ended = run("sh", "-c", f"ulimit -v 1048576; exec {command}")
            expect(ended.code == 0 and not ended.err, command, ended.code, ended.err)


def other_c_libraries():
    """With musl, or too old a glibc: one line, and the program runs without us."""
    with tempfile.TemporaryDirectory() as folder:
        # A loader of that name, which is the one of this machine: what is linked with it runs.
        loader = os.path.join(folder, "ld-musl-x86_64.so.1")
        headers = subprocess.run(["readelf", "-l", TRAIN], capture_output=True, check=True).stdout.decode()
        os.symlink(re.search(r"interpreter: (\S+)\]", headers)[1], loader)
        program = os.path.join(folder, "program")
        subprocess.run(["gcc", f"-Wl,--dynamic-linker={loader}", "-x", "c", "-", "-o", program], check=True,
                       input=b'#include <stdlib.h>\nint main(void) { return getenv("LD_PRELOAD") ? 9 : 7; }\n')
        ended = run(RUN, "--sim", "4GiB", program)
        expect(ended.code == 7, ended.code, ended.err)
        expect_line(r"\Agpucache-run: \S*/program is linked with musl; gpucache needs glibc 2\.34 or later and is left out, "
                    r"the program runs on without it\n\Z", ended.err)
        with open(os.path.join(folder, "getconf"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho glibc 2.31\n")
        os.chmod(file.name, 0o755)
        ended = run(RUN, "--sim", "4GiB", "sh", "-c", "exit ${LD_PRELOAD:+9}",
                    env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
        expect(ended.code == 0, ended.code, ended.err)
        expect_line(r"\Agpucache-run: this system has glibc 2\.31; gpucache needs glibc 2\.34 or later", ended.err)


def versions_of_glibc():
    """No binary requires a symbol newer than glibc 2.34, whatever machine built it."""
    if not shutil.which("objdump"):
        raise Skipped("needs objdump")
    for name in ("libgpucache.so", "libgpucache-audit.so", "gpumem-report", "gpumem-replay"):
        table = subprocess.run(["objdump", "-T", os.path.join(BUILD, name)], capture_output=True, check=True).stdout.decode()
        versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", table)}
        expect(versions and max(versions) <= (2, 34), name, "needs", max(versions, default=None))


CASES = [names_that_others_took, recordings_of_others, files_that_others_name, links_out_of_a_users_folder,
         folders_under_every_umask, every_view_is_bounded, *map(bomb, bombs.BOMBS), trees_that_are_cut, sparse_files,
         crowded_folders, packed_bombs, debug_links_that_wait, special_files_as_modules, names_that_control_terminals, small_shared_memory, no_place_to_write, no_proc, no_home,
         little_address_space, other_c_libraries, versions_of_glibc]


def main():
    wanted = sys.argv[2:]
    n_passed = n_failed = 0
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        try:
            case()
            n_passed += 1
            print(f"ok {case.__name__}", flush=True)
        except Skipped as why:
            print(f"skip {case.__name__}: {why}", flush=True)
        except (AssertionError, UnicodeDecodeError, subprocess.CalledProcessError, ValueError) as error:
            n_failed += 1
            print(f"FAIL {case.__name__}: {str(error)[:3000]}", flush=True)
    print(f"{n_passed} passed, {n_failed} failed")
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
