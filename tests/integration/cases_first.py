# SPDX-License-Identifier: Apache-2.0
"""The first commands of a new user: make demo, make bench, and the messages if something is missing."""
import glob
import os
import re
import shutil
import subprocess

from harness import TOP, expect, expect_equal


def case_the_demo_leaves_its_recording_where_the_report_looks(world):
    build = world.build
    result = world.run([os.path.join(TOP, "tools", "demo.sh"), build], with_us=False, LD_LIBRARY_PATH=None,
                       GPUSIM=None, GPUCACHE_OUTPUT=world.pattern)
    expect_equal("the exit status", result.status, 0)
    expect_equal("what is left beside the recording", os.listdir(world.folder), [os.path.basename(world.recording())])
    commands = re.findall(r"^(?:\$|  build/\S+)", result.out, re.M)
    expect(len(commands) >= 4, f"it does not say how to go on: {result.out[-600:]!r}")


def case_the_setup_names_what_is_missing_and_installs_nothing_unasked(world):
    bare = os.path.join(world.folder, "bin")
    os.mkdir(bare)
    for tool in ("id", "sh"):
        os.symlink(shutil.which(tool), os.path.join(bare, tool))
    with open(os.path.join(bare, "apt-get"), "w") as file:
        file.write("#!/bin/sh\necho called >>called\n")
    os.chmod(file.name, 0o755)
    for modes, packages in ((["name"], ["gcc"]), (["name", "deb", "wheel"], ["dpkg-dev", "python3"]), (["tests"], ["gcc"])):
        if "name" not in modes and os.getuid() == 0:
            continue  # as root it would install
        result = world.run([os.path.join(TOP, "tools", "setup.sh"), *modes], with_us=False, PATH=bare)
        expect_equal("the exit status", result.status, 2)
        named, = re.findall(r"apt-get install --no-install-recommends (.*)", result.err)
        expect_equal("the packages that it does not name", [name for name in packages if name not in named.split()], [])
    expect(not os.path.exists(os.path.join(world.folder, "called")), "apt-get was called")


def case_each_public_target_says_what_it_needs(_world):
    """Every target of `make help` that builds is in one of the NEEDS_ lists."""
    text = ""
    for name in ("Makefile", "tools/package/rules.mk"):
        with open(os.path.join(TOP, name)) as file:
            text += file.read()
    public = set(re.findall(r"^([a-z-]+):.*## ", text, re.M)) - {"help", "clean", "uninstall"}
    listed = set(" ".join(re.findall(r"^NEEDS_[A-Z]+ *:= (.*)$", text, re.M)).split())
    expect_equal("the targets that no list names", sorted(public - listed), [])


def case_each_row_of_the_benchmarks_has_a_target_and_a_meaning(_world):
    named, quoted = set(), set()
    for path in glob.glob(os.path.join(TOP, "tests", "bench", "bench_*.c")):
        with open(path) as file:
            text = file.read()
        quoted |= set(re.findall(r'"([a-z0-9_]+)"', text))
        named |= set(re.findall(r'(?:\w*_row|measure_\w+)\((?:&?\w+, )?"([a-z][a-z0-9_]+)"', text))
    with open(os.path.join(TOP, "tests", "bench", "rows.txt")) as file:
        rows = {line.split()[0]: line.split(None, 2) for line in file if not line.startswith("#")}
    expect(len(named) > 20, f"only {sorted(named)} were found")
    expect_equal("the rows without a line in rows.txt", sorted(named - set(rows)), [])
    expect_equal("the lines without a row", sorted(name for name in rows if name not in quoted and "replay_" not in name), [])
    expect(all(len(row) == 3 for row in rows.values()), "a row has no meaning")


def case_the_table_of_the_benchmarks_shows_what_missed_its_target(world):
    csv = "name,value,unit,baseline,ratio\nhit_pair,94,ns,9,10.4\nthreads_4,3,M/s,2.5,1.2\nlaunch_run,9,ns,1,9\n"
    command = ["awk", "-F,", "-v", f"rows={TOP}/tests/bench/rows.txt", "-f", f"{TOP}/tests/bench/table.awk"]
    done = subprocess.run(command, input=csv, capture_output=True, text=True, cwd=world.folder)
    expect_equal("the table", (done.returncode, done.stderr), (0, ""))
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    expect("10.4!" in lines["hit_pair"], lines["hit_pair"])
    expect("!" not in lines["threads_4"] + lines["launch_run"], "a target that was met is shown as missed")
    expect("not measured" in lines["hit_pair_1m"], lines["hit_pair_1m"])
    expect("2 targets met" in done.stdout and "\n1 of 2 " in done.stdout, done.stdout[-200:])
    done = subprocess.run(command, input=csv + "odd,1,x,1,1\n", capture_output=True, text=True)
    expect_equal("the exit status of an unknown row", done.returncode, 1)
