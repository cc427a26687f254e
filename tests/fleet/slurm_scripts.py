# SPDX-License-Identifier: Apache-2.0
"""The scripts of tools/slurm without Slurm: what its daemons would run, and answers in the place of sacct and sacctmgr."""
import json
import os
import pwd
import shutil
import stat
import subprocess
import time

from harness import TIMEOUT_S, TOP, Skip, expect, expect_equal


SLURM = os.path.join(TOP, "tools", "slurm")


def slurm_script(name, path="/nonexistent", where=SLURM, **variables):
    """Runs a script of tools/slurm as a task of job 7; with that path it can call no other program."""
    done = subprocess.run([os.path.join(where, name)], env={"PATH": path, "SLURM_JOB_ID": "7", "SLURM_JOB_UID": str(os.getuid()), **variables},
                          capture_output=True, text=True, check=False)
    expect_equal(f"{name}'s status", done.returncode, 0)
    return done


def failed_recording(world):
    world.run(world.script("train.py") + ["--steps", "12", "--oom"], sim="memory:2GiB,context:100MiB", GPUCACHE_CONF="oom_report:never",
              RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    return world.recording()


def step_folder(world, step):
    folder = os.path.join(world.folder, f"gpucache-jobs-{os.getuid()}", step)
    os.makedirs(folder)
    return folder


def make_old(path, days):
    os.utime(path, times=(time.time() - days * 86400,) * 2)


def case_slurm_costs_others_nothing(world):
    """In a job without a GPU, or where nobody asked for it, Slurm's scripts start no process and say nothing."""
    for variables in {}, {"GPUCACHE": "1"}, {"SLURM_JOB_GPUS": "0"}, {"SLURM_STEP_GPUS": "0", "GPUCACHE": "0", "GPUCACHE_PARTITIONS": "p",
                                                                     "SLURM_JOB_PARTITION": "p"}:
        for name in "taskprolog", "taskepilog":
            done = slurm_script(name, GPUCACHE_FOLDER=world.folder, **variables)
            expect_equal(f"{name} with {variables}", done.stdout + done.stderr, "")
    expect_equal("folders", os.listdir(world.folder), [])


def case_slurm_speaks_after_the_last_task(world):
    """The epilog of the last task of the node speaks, once, by Slurm's own words for how many there are."""
    failed = failed_recording(world)
    for number, (tasks, node, n_tasks) in enumerate([("1", "0", 1), ("2", "0", 2), ("2(x2),1", "1", 2), ("2(x2),1", "2", 1), ("1,3", "1", 3)]):
        shutil.copy(failed, step_folder(world, f"7.{number}.0"))
        said = [slurm_script("taskepilog", os.environ["PATH"], GPUCACHE_FOLDER=world.folder, SLURM_STEP_ID=str(number), SLURM_NODEID=node,
                             SLURM_STEP_TASKS_PER_NODE=tasks, SLURM_PROCID=str(task)).stderr.count("GPU OOM rank 0: growth")
                for task in range(n_tasks + 1)]
        expect_equal(f"{tasks} on node {node}", said, [0] * (n_tasks - 1) + [1, 0])


def case_slurm_believes_nobody_else(world):
    """A folder that somebody else made, or a link, gets no recording; with it the scripts do nothing."""
    base = os.path.join(world.folder, f"gpucache-jobs-{os.getuid()}")
    on = {"GPUCACHE_FOLDER": world.folder, "GPUCACHE": "1", "SLURM_JOB_GPUS": "0"}
    os.mkdir(os.path.join(world.folder, "elsewhere"))
    os.symlink("elsewhere", base)
    expect_equal("a link", slurm_script("taskprolog", os.environ["PATH"], **on).stdout, "")
    os.unlink(base)
    said = slurm_script("taskprolog", os.environ["PATH"], **on).stdout
    expect(f"export GPUCACHE_OUTPUT={base}/7.batch.0/%r-%p.gpucache\n" in said, said)
    if os.geteuid() == 0:
        os.chown(base, 65534, -1)
        expect_equal("another's", slurm_script("taskprolog", os.environ["PATH"], **on).stdout, "")


def case_slurm_keeps_what_it_could_not_read(world):
    """Recordings go where the report says that nothing failed; where it says nothing in time, crashes or fails, they stay."""
    tools = os.path.join(world.folder, "lib", "gpucache", "slurm")
    os.makedirs(tools)
    os.mkdir(world.folder + "/bin")
    shutil.copy(os.path.join(SLURM, "taskepilog"), tools)
    report = world.folder + "/bin/gpumem-report"
    for number, (does, stays) in enumerate([("echo '{}'", False), ("exit 3", False), ("exit 4", True), ("exit 5", True), ("kill -SEGV $$", True),
                                            ("exec sleep 60", True)]):
        with open(report, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{does}\n")
        os.chmod(report, 0o755)
        folder = step_folder(world, f"7.{number}.0")
        said = slurm_script("taskepilog", os.environ["PATH"], tools, GPUCACHE_FOLDER=world.folder, SLURM_STEP_ID=str(number)).stderr
        expect_equal(f"it stays after {does}", os.path.isdir(folder), stays)
        expect_equal(f"it says where after {does}", (folder in said, said.count("\n")), (stays, int(stays)))


def case_slurm_removes_old_steps_that_have_ended(world):
    """Folders of failed steps go three days after their verdict, not after their first file: a step may run for longer."""
    for step, days in ("5.0.0", 4), ("5.1.0", 1), ("5.2.0", None):
        folder = step_folder(world, step)
        if days:
            os.mkdir(folder + "/.said")
            make_old(folder + "/.said", days)
        make_old(folder, 9)
    shutil.copy(failed_recording(world), step_folder(world, "7.0.0"))
    slurm_script("taskepilog", os.environ["PATH"], GPUCACHE_FOLDER=world.folder, SLURM_STEP_ID="0")
    expect_equal("folders", sorted(os.listdir(world.folder + f"/gpucache-jobs-{os.getuid()}")), ["5.1.0", "5.2.0", "7.0.0"])


def case_slurm_writes_a_verdict_into_no_file_of_others(world):
    """Whatever lies in the spool, the verdict is a new file, which everybody may read."""
    spool = world.folder + "/spool"
    os.mkdir(spool)
    with open(world.folder + "/mine", "w", encoding="ascii") as file:
        file.write("precious\n")
    os.symlink("../mine", spool + "/7.0.0.node1")
    shutil.copy(failed_recording(world), step_folder(world, "7.0.0"))
    slurm_script("taskepilog", os.environ["PATH"], GPUCACHE_FOLDER=world.folder, GPUCACHE_SPOOL=spool, SLURM_STEP_ID="0", SLURMD_NODENAME="node1")
    with open(world.folder + "/mine", encoding="ascii") as file:
        expect_equal("the file behind the link", file.read(), "precious\n")
    name, = set(os.listdir(spool)) - {"7.0.0.node1"}
    with open(f"{spool}/{name}", encoding="ascii") as file:
        expect(name.startswith("7.0.0.node1.") and " GPU OOM rank 0: growth, " in file.read(), name)
    expect_equal("its mode", stat.S_IMODE(os.stat(f"{spool}/{name}").st_mode), 0o644)


# Prints fields as sacct does, of the jobs that accounting.json has and -j names.
SACCT = """#!/usr/bin/python3
import json, os, sys
options = dict(option.split("=", 1) for option in sys.argv[1:] if option.startswith("--"))
words = [word for word in sys.argv[1:] if not word.startswith("--")]
wanted = words[words.index("-j") + 1].split(",")
if len(wanted) > 1000:
    sys.exit("too many jobs")
mark = options.get("--delimiter", "|")
with open(os.path.dirname(sys.argv[0]) + "/accounting.json", encoding="ascii") as file:
    for row in json.load(file):
        if row[0] in wanted or row[1].split("_")[0] in wanted:
            sys.stdout.buffer.write((mark.join(row) + (mark if "-p" in words else "") + "\\n").encode("latin-1"))
"""
SACCTMGR = "#!/bin/sh\ncat >>\"$(dirname \"$0\")/commands\"\n"


class Accounting:
    """A spool, and rows of the accounting: number, number with the array's, user, end, partition, comment."""

    def __init__(self, world, *rows):
        self.spool, self.bin = world.folder + "/spool", world.folder + "/bin"
        os.mkdir(self.spool)
        os.mkdir(self.bin)
        for name, text in ("sacct", SACCT), ("sacctmgr", SACCTMGR), ("accounting.json", json.dumps(rows)):
            with open(f"{self.bin}/{name}", "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(file.name, 0o755)

    def put(self, name, line):
        with open(f"{self.spool}/{name}", "w", encoding="ascii") as file:
            file.write(line + "\n")

    def collect(self, *before, days=0):
        """Runs collect, some days from now; returns its status, what it says, and the commands that sacctmgr got."""
        later = f"import runpy, sys, time; now = time.time; time.time = lambda: now() + {days} * 86400; sys.argv = sys.argv[1:]; " \
                "sys.dont_write_bytecode = True; runpy.run_path(sys.argv[0], run_name='__main__')"
        done = subprocess.run([*before, "/usr/bin/python3", "-c", later, os.path.join(SLURM, "collect"), self.spool], capture_output=True, text=True,
                              check=False, env={"PATH": self.bin + ":/usr/bin:/bin"}, timeout=TIMEOUT_S)
        commands = []
        if os.path.exists(self.bin + "/commands"):
            with open(self.bin + "/commands", encoding="ascii") as file:
                commands = [line for line in file.read().splitlines() if line != "quit"]
            os.unlink(self.bin + "/commands")
        return done.returncode, done.stdout + done.stderr, commands


def me():
    return pwd.getpwuid(os.geteuid()).pw_name


def case_collect_reads_only_rows_of_the_accounting(world):
    """A comment of several lines makes no row of another job, is kept without its ends of lines, and no bytes of it stop collect."""
    evil = f"night\n12|12|{me()}|2026-01-01T00:00:00|gpu|\xff \" ' \\"
    books = Accounting(world, ["11", "11", me(), "2026-01-01T00:00:00", "gpu", evil], ["12", "12", "somebody", "2026-01-01T00:00:00", "gpu", "his"],
                       ["13", "13", me(), "Unknown", "gpu", ""], ["14", "14", me(), "2026-01-01T00:00:00", "gpu", "x" * 5000])
    for job in 11, 12, 13, 14:
        books.put(f"{job}.0.0.node1.a", f"1 GPU OOM of {job}")
    status, said, commands = books.collect()
    expect_equal("it", (status, said), (0, "2 comments\n"))
    expect_equal("commands", commands, [f'modify job where jobid=11 set comment="night12|12|{me()}|2026-01-01T00:00:00|gpu|   ; GPU OOM of 11"',
                                        f'modify job where jobid=14 set comment="{"x" * 1000}; GPU OOM of 14"'])
    expect_equal("what stays", os.listdir(books.spool), ["13.0.0.node1.a"])


def case_collect_asks_about_any_number_of_jobs(world):
    """Files of a thousand jobs that nobody knows do not keep those of real ones out; each is commented once."""
    books = Accounting(world, ["1", "1_1", me(), "2026-01-01T00:00:00", "gpu", ""], ["99999", "1_2", me(), "2026-01-01T00:00:00", "gpu", ""])
    for job in [1, *range(10000, 11000), 99999]:
        books.put(f"{job}.0.0.node1.a", f"1 GPU OOM of {job}")
    expect_equal("it", books.collect(), (0, "2 comments\n", ['modify job where jobid=1 set comment="GPU OOM of 1"',
                                                              'modify job where jobid=99999 set comment="GPU OOM of 99999"']))


def case_collect_removes_all_after_a_week(world):
    """Verdicts of jobs that the accounting does not know, folders and junk go after a week, whatever time they show; a full
    folder stays, and stops nothing."""
    books = Accounting(world)
    books.put("12.0.0.node1.a", "1 GPU OOM")
    books.put("junk", "")
    os.makedirs(books.spool + "/a/full")
    os.mkdir(books.spool + "/empty")
    os.symlink("/nowhere", books.spool + "/link")
    for name in "12.0.0.node1.a", "empty":
        make_old(f"{books.spool}/{name}", -99)
    names = sorted(os.listdir(books.spool))
    expect_equal("at first", (books.collect(days=6), sorted(os.listdir(books.spool))), ((0, "0 comments\n", []), names))
    expect_equal("after a week", (books.collect(days=8), os.listdir(books.spool)), ((0, "0 comments\n", []), ["a"]))


def case_collect_says_what_it_may_not_remove(world):
    """In a spool of somebody else's it writes the comments, and says that nothing can be removed."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root, to be somebody else")
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*other, "test", "-r", os.path.join(SLURM, "collect")], check=False).returncode:
        raise Skip("this checkout is closed to others")
    books = Accounting(world, ["12", "12", me(), "2026-01-01T00:00:00", "gpu", ""])
    books.put("12.0.0.node1.a", "1 GPU OOM")
    os.chmod(world.folder, 0o755)
    os.chmod(books.bin, 0o777)
    os.chmod(books.spool, 0o1777)
    status, said, commands = books.collect(*other)
    expect_equal("it", (status, said.splitlines()[0], len(commands)), (1, "1 comments", 1))
    expect(f"1 files in {books.spool} cannot be removed" in said, said)
