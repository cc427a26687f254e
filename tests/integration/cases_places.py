# SPDX-License-Identifier: Apache-2.0
"""Places for recordings that are full, closed, or traps: one line, a program unharmed, nothing written elsewhere.

Our directories have the uid in their names, so an otherwise unused user, the guest, runs into the traps; that needs
root.
"""
import contextlib
import glob
import os
import re
import resource
import shutil
import stat
import subprocess

from harness import MIB, Result, Skip, expect, expect_equal

GUEST = 61235
USUAL = f"/dev/shm/gpucache-{GUEST}"


class Guest:
    """An otherwise unused user, with copies of the tools, and a folder, `home`."""

    def __init__(self, world):
        if os.geteuid() != 0:
            raise Skip("only root can become another user")
        if not os.path.isdir("/dev/shm"):
            raise Skip("there is no /dev/shm")
        os.chmod(world.folder, 0o711)
        self.world = world
        self.home = os.path.join(world.folder, "guest")
        self.tools = os.path.join(world.folder, "tools")
        shutil.copytree(os.path.join(world.build, "simcuda"), os.path.join(self.tools, "simcuda"), symlinks=True)
        for name in ("libgpucache.so", "programs/train"):
            shutil.copy(os.path.join(world.build, name), self.tools)
        os.mkdir(self.home)
        os.chown(self.home, GUEST, GUEST)

    def run(self, with_us=True, before=None, through=(), **extra):
        """`through`: a command that becomes the guest itself and then runs the program."""
        env = self.world.environment(with_us, LD_LIBRARY_PATH=os.path.join(self.tools, "simcuda"),
                                     **{"TMPDIR": self.home, "XDG_RUNTIME_DIR": None, "GPUCACHE_OUTPUT": None, **extra})
        if with_us:
            env["LD_PRELOAD"] = os.path.join(self.tools, "libgpucache.so")
        who = {} if through else {"user": GUEST, "group": GUEST, "extra_groups": []}
        done = subprocess.run([*through, os.path.join(self.tools, "train"), "--steps", "3"], env=env, cwd=self.home,
                              check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self.world.time_limit(),
                              preexec_fn=before, **who)
        return Result(done.returncode, done.stdout, done.stderr)

    def expect_one_line(self, words, before=None, through=(), **extra):
        plain = self.run(with_us=False)
        ours = self.run(before=before, through=through, **extra)
        expect_equal("the program", (ours.status, ours.out), (plain.status, plain.out))
        lines = ours.err.splitlines()
        expect(len(lines) == 1, f"{len(lines)} lines on stderr where one was expected: {ours.err!r}")
        for word in words:
            expect(word in lines[0], f"{word!r} is not in {lines[0]!r}")

    def recordings(self):
        return sorted(os.path.join(top, name) for top, _, names in os.walk(self.home) for name in names)


def remove(path):
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


@contextlib.contextmanager
def trap():
    """Provides the usual place, and removes it afterwards, with those that have a suffix."""
    for path in [USUAL, *glob.glob(USUAL + "-*")]:
        remove(path)
    try:
        yield
    finally:
        for path in [USUAL, *glob.glob(USUAL + "-*")]:
            remove(path)


def make_own_directory(mode):
    os.mkdir(USUAL)
    os.chown(USUAL, GUEST, GUEST)
    os.chmod(USUAL, mode)


def expect_another_place(guest):
    guest.expect_one_line(["gpucache", USUAL, "instead"])
    found = guest.recordings()
    expect_equal("the number of recordings", len(found), 1)
    expect_equal("its rights", stat.S_IMODE(os.stat(os.path.dirname(found[0])).st_mode), 0o700)
    expect_equal("its state", guest.world.state(found[0]), "ended")


def case_a_usual_place_that_is_a_link_is_left_alone(world):
    guest = Guest(world)
    target = os.path.join(world.folder, "target")
    os.mkdir(target)
    os.chown(target, GUEST, GUEST)
    os.chmod(target, 0o700)
    with trap():
        os.symlink(target, USUAL)
        expect_another_place(guest)
    expect_equal("the folder behind the link", os.listdir(target), [])


def case_a_usual_place_of_another_owner_is_left_alone(world):
    guest = Guest(world)
    with trap():
        os.mkdir(USUAL)
        os.chmod(USUAL, 0o777)
        expect_another_place(guest)
        expect_equal("the other's folder", os.listdir(USUAL), [])


def case_a_closed_usual_place_of_another_owner_is_left_alone_even_by_root(world):
    """Root can open any directory, so only the owner shows whose it is.  Uses a private /dev/shm."""
    if os.geteuid() != 0:
        raise Skip("only root can open another user's closed folder")
    usual = "/dev/shm/gpucache-0"
    setup = (f"mount -t tmpfs none /dev/shm && mkdir -m 700 {usual} && chown {GUEST} {usual}")
    enter = ["unshare", "-m", "/bin/sh", "-c"]
    if subprocess.run([*enter, setup], capture_output=True, check=False).returncode != 0:
        raise Skip("no file system can be mounted here")
    env = world.environment(False, TMPDIR=world.folder, XDG_RUNTIME_DIR=None)
    preload = os.path.join(world.build, "libgpucache.so")
    script = f"{setup} && LD_PRELOAD={preload} {world.program('train')} --steps 3 && ls -A {usual} >&2"
    done = subprocess.run([*enter, script], env=env, capture_output=True, text=True, timeout=world.time_limit(), check=False)
    expect_equal("the exit status", done.returncode, 0)
    lines = done.stderr.splitlines()
    expect(len(lines) == 1 and usual in lines[0] and "instead" in lines[0], f"stderr is {done.stderr!r}")
    expect_equal("the number of recordings", len(os.listdir(os.path.join(world.folder, "gpucache-0"))), 1)


def case_a_usual_place_that_the_group_may_write_is_left_alone(world):
    guest = Guest(world)
    with trap():
        make_own_directory(0o770)
        expect_another_place(guest)
        expect_equal("the open folder", os.listdir(USUAL), [])


def case_a_file_instead_of_the_usual_place_is_left_alone(world):
    guest = Guest(world)
    with trap():
        with open(USUAL, "w", encoding="ascii") as file:
            file.write("mine\n")
        expect_another_place(guest)
        with open(USUAL, encoding="ascii") as file:
            expect_equal("the file", file.read(), "mine\n")


def case_without_any_place_the_program_runs_unrecorded(world):
    """Only root can write to /dev/shm, in a mount namespace, or to /proc."""
    guest = Guest(world)
    closed = "mount -t tmpfs -o mode=755 none /dev/shm"
    enter = ["unshare", "-m", "/bin/sh", "-c"]
    if not shutil.which("setpriv") or subprocess.run([*enter, closed], capture_output=True, check=False).returncode != 0:
        raise Skip("no file system can be mounted here")
    become = f'{closed} && exec setpriv --reuid {GUEST} --regid {GUEST} --clear-groups "$@"'
    guest.expect_one_line(["gpucache", "no recording"], through=[*enter, become, "sh"], TMPDIR="/proc")


def case_a_usual_place_that_somebody_else_took_costs_a_suffix(world):
    guest = Guest(world)
    with trap():
        os.mkdir(USUAL)
        guest.expect_one_line(["gpucache", USUAL, "instead", USUAL + "-"], TMPDIR="/proc")


def case_an_unwritable_folder_costs_one_line_and_the_usual_place_is_taken(world):
    guest = Guest(world)
    locked = os.path.join(guest.home, "locked")
    os.mkdir(locked, 0o555)
    with trap():
        guest.expect_one_line(["gpucache", locked, USUAL], GPUCACHE_OUTPUT=locked + "/rec-%p.gpucache")
        expect_equal("the number of recordings", len(os.listdir(USUAL)), 1)
    expect_equal("the locked folder", os.listdir(locked), [])


def case_every_file_system_full_costs_the_recording_only(world):
    """Shared memory and the temporary folder are one small tmpfs, in a mount namespace of its own."""
    mounts = "mount -t tmpfs -o size=64k none /dev/shm"
    enter = ["unshare", "-rm", "/bin/sh", "-c"]
    if subprocess.run([*enter, mounts], capture_output=True, check=False).returncode != 0:
        raise Skip("no small filesystem can be mounted here")
    command = [world.program("train"), "--steps", "3"]
    plain = world.run(command, with_us=False)
    env = world.environment(False, TMPDIR="/dev/shm", XDG_RUNTIME_DIR=None)
    preload = os.path.join(world.build, "libgpucache.so")
    done = subprocess.run([*enter, f"{mounts} && LD_PRELOAD={preload} exec {' '.join(command)}"], env=env,
                          capture_output=True, text=True, timeout=world.time_limit(), check=False)
    expect_equal("the program", (done.returncode, done.stdout), (plain.status, plain.out))
    expect(done.stderr.count("\n") == 1 and "no recording" in done.stderr, f"stderr is {done.stderr!r}")


def forget_usual_place(world, done):
    """Removes the recording that went to the user's own directory, as its line says."""
    for path in re.findall(r"recording to (\S+) instead", done.err):
        if not path.startswith(world.folder):
            os.unlink(path)


def expect_beside(world, name, make, words, n_recordings):
    """`make` puts something in the place of the recording: it is still there, unchanged, afterwards."""
    folder = os.path.join(world.folder, name)
    path = os.path.join(folder, "rec")
    os.mkdir(folder)
    make(path)
    before = os.lstat(path)
    plain = world.run([world.program("train"), "--steps", "3"], with_us=False)
    ours = world.run([world.program("train"), "--steps", "3"], GPUCACHE_OUTPUT=path)
    expect_equal("the program", (ours.status, ours.out), (plain.status, plain.out))
    expect(ours.err.count("\n") == 1, f"one line was expected: {ours.err!r}")
    for word in (path, *words):
        expect(word in ours.err, f"{word!r} is not in {ours.err!r}")
    forget_usual_place(world, ours)
    after = os.lstat(path)
    expect_equal(f"the {name}", (after.st_ino, after.st_mode, after.st_size), (before.st_ino, before.st_mode, before.st_size))
    expect_equal("the number of files", len(os.listdir(folder)), 1 + n_recordings)


def case_what_has_the_recordings_name_stays_as_it_is(world):
    def make_file(path):
        with open(path, "w", encoding="ascii") as file:
            file.write("mine\n")

    expect_beside(world, "file", make_file, [" exists; recording to "], 1)
    expect_beside(world, "link to nowhere", lambda path: os.symlink("/proc/nowhere", path), [" exists; recording to "], 1)
    expect_beside(world, "pipe", os.mkfifo, ["cannot be used"], 0)
    expect_beside(world, "link to a device", lambda path: os.symlink("/dev/null", path), ["cannot be used"], 0)


def case_a_folder_of_the_recordings_name_gets_the_recording(world):
    folder = os.path.join(world.folder, "rec.d")
    os.mkdir(folder)
    ours = world.run([world.program("train"), "--steps", "3"], GPUCACHE_OUTPUT=folder)
    expect_equal("the run", (ours.status, ours.err), (0, ""))
    expect_equal("the state", world.state(folder), "ended")


def case_a_device_is_not_written_to_and_gets_no_neighbour(world):
    guest = Guest(world)
    before = sorted(os.listdir("/dev"))
    with trap():
        for device in ("/dev/null", "/dev/full", "/dev/zero"):
            guest.expect_one_line(["gpucache", device, USUAL], GPUCACHE_OUTPUT=device)
    forget_usual_place(world, world.run([world.program("train"), "--steps", "3"], GPUCACHE_OUTPUT="/dev/null"))
    expect_equal("/dev", sorted(os.listdir("/dev")), before)


def case_standard_output_is_no_place_and_dev_gets_no_file_of_ours(world):
    guest = Guest(world)
    before = sorted(os.listdir("/dev"))
    there = os.path.join(world.folder, "there")
    os.symlink("/dev", there)
    with trap():
        for path in ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/77", "/proc/self/fd/1", "/dev/new/rec-%p", "//dev/rec",
                     "/dev/shm/../rec-%p", there + "/rec-%p", "/dev"):
            guest.expect_one_line(["gpucache", path, USUAL], GPUCACHE_OUTPUT=path)
            said = os.path.join(world.folder, "said")
            with open(said, "w", encoding="ascii") as file:
                env = world.environment(True, GPUCACHE_OUTPUT=path)
                done = subprocess.run([world.program("train"), "--steps", "3"], env=env, check=False, stdout=file, text=True,
                                      stderr=subprocess.PIPE, timeout=world.time_limit())
            expect(done.returncode == 0 and done.stderr.count("\n") == 1, f"root, {path}: {done.returncode}, {done.stderr!r}")
            forget_usual_place(world, Result(done.returncode, "", done.stderr))
            expect_equal(f"/dev after {path}", sorted(os.listdir("/dev")), before)


def case_a_path_with_two_dots_leads_where_it_says(world):
    os.makedirs(os.path.join(world.folder, "a", "b"))
    path = os.path.join(world.folder, "a", "b", "..", "..", "c", "rec-%p.gpucache")
    ours = world.run([world.program("train"), "--steps", "3"], GPUCACHE_OUTPUT=path)
    expect_equal("the run", (ours.status, ours.err), (0, ""))
    expect_equal("the folders", sorted(os.listdir(world.folder)), ["a", "c"])
    expect_equal("the state", world.state(os.path.join(world.folder, "c")), "ended")
    # What comes from elsewhere than the pattern cannot climb.
    world.run([world.program("train"), "--steps", "3"], SLURM_JOB_ID="../../../etc/x",
              GPUCACHE_OUTPUT=os.path.join(world.folder, "d", "%j-%p.gpucache"))
    expect_equal("the number of recordings", len(os.listdir(os.path.join(world.folder, "d"))), 1)


def limit_files(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def case_a_limit_on_file_sizes_makes_the_recording_smaller_and_sends_no_signal(world):
    guest = Guest(world)
    with trap():
        ours = guest.run(before=limit_files(3 * MIB))
        expect_equal("the run", (ours.status, ours.err), (0, ""))
        sizes = [os.stat(os.path.join(USUAL, name)).st_size for name in os.listdir(USUAL)]
        expect(len(sizes) == 1 and MIB <= sizes[0] <= 3 * MIB, f"the recordings have {sizes} bytes")


def case_a_limit_too_small_for_any_recording_costs_the_recording_only(world):
    guest = Guest(world)
    with trap():
        guest.expect_one_line(["gpucache", "no recording"], before=limit_files(65536))
        expect_equal("what is left", guest.recordings() + os.listdir(USUAL), [])


def run_in_small_memory(world, script):
    """Runs the script with a private /dev/shm of 64 MiB, as in a container; returns its output."""
    mount = "mount -t tmpfs -o size=64m,mode=1777 none /dev/shm"
    enter = ["unshare", "-rm", "/bin/sh", "-c"]
    if subprocess.run([*enter, mount], capture_output=True, check=False).returncode != 0:
        raise Skip("no small filesystem can be mounted here")
    env = world.environment(False, XDG_RUNTIME_DIR=None)
    words = {"run": f"LD_PRELOAD={world.build}/libgpucache.so {world.program('train')} >/dev/null --steps 3",
             "oom": f"LD_PRELOAD={world.build}/libgpucache.so {world.program('train')} >/dev/null 2>&1 --oom",
             "report": os.path.join(world.build, "gpumem-report")}
    done = subprocess.run([*enter, f"{mount} && {script.format(**words)}"], env=env, capture_output=True, text=True,
                          timeout=world.time_limit(), check=False)
    expect_equal("the script", (done.returncode, done.stderr), (0, ""))
    return done.stdout


def case_short_runs_leave_at_least_half_of_a_containers_shared_memory(world):
    out = run_in_small_memory(world, """
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {run} || exit 1; done
        stat -f -c '%f %b' /dev/shm
        ls /dev/shm/gpucache-0 | wc -l
        head -c 40M /dev/zero >/dev/shm/another && echo room""")
    free, blocks, n_files, room = out.split()
    expect(int(free) >= int(blocks) // 2, f"{free} of {blocks} blocks are free")
    expect_equal("recordings that are there, and room", (n_files, room), ("12", "room"))


def case_an_OOM_is_still_on_record_after_thirty_short_runs(world):
    out = run_in_small_memory(world, """
        {oom}
        test $? = 1 || exit 1
        touch -d '-1 hour' /dev/shm/gpucache-0/*
        for i in $(seq 30); do
            {run} || exit 1
            touch -d "-$((40 - i)) minutes" "$(ls -t /dev/shm/gpucache-0/* | head -1)"
        done
        {report} list
        for file in /dev/shm/gpucache-0/*; do {report} oom $file 2>/dev/null; {report} check $file; done; true""")
    expect("OUT OF MEMORY" in out or "out of memory" in out, f"the OOM recording is gone: {out[-800:]!r}")
    expect_equal("recordings that are not whole", out.count("is whole"), out.count("format 1."))
