#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `list` of a job, `export --watch`, the rules and dashboards of docs/user/fleet, and tools/slurm: run.py BUILD [WORD...]."""
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))

import slurm_scripts  # noqa: E402
from harness import TIMEOUT_S, Failed, Skip, expect, expect_equal  # noqa: E402
from runner import cases_of, run_cases  # noqa: E402

GROW = 8 << 20

# The most CPU time for a list of 1,024 recordings, which a busy machine does not affect.
LIST_S = 10


def rank(world, number, *arguments, world_size=1):
    path = os.path.join(world.folder, "ranks", f"{number}.gpucache")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    world.run(world.script("train.py") + ["--steps", "12", *arguments], sim="memory:2GiB,context:100MiB", GPUCACHE_OUTPUT=path,
              GPUCACHE_CONF="oom_report:never", RANK=str(number), LOCAL_RANK="0", WORLD_SIZE=str(world_size))
    expect(os.path.exists(path), f"rank {number} left no recording")
    return path


def listed(world, *targets):
    job, = json.loads(world.report("list", "--json", *(targets or [os.path.join(world.folder, "ranks")])).out)["jobs"]
    return job


def case_first_and_odd(world):
    """The first failure with its call site, and the rank that grew, in text and JSON."""
    for number in (0, 1, 2, 4):
        rank(world, number)
    rank(world, 3, "--grow", str(GROW))
    expect_equal("first failure", listed(world)["first_failure"], None)
    found = listed(world)
    odd = found["odd_one_out"]
    expect_equal("ranks", [one["rank"] for one in found["gpus"]], [0, 1, 2, 3, 4])
    expect_equal("the odd one", (odd["rank"], odd["is_more"]), (3, True))
    expect("remember_loss" in odd["where"], odd["where"])
    peaks = sorted(one["peak_live_bytes"] for one in found["gpus"])
    expect_equal("the median", found["median_peak_live_bytes"], peaks[2])
    expect_equal("its peak", odd["peak_live_bytes"], peaks[4])
    expect_equal("the difference", odd["difference_bytes"] % GROW, 0)
    for number in (5, 6):
        rank(world, number, "--oom")
    first = listed(world)["first_failure"]
    expect_equal("who failed first", first["rank"], 5)
    oom = world.report_json("oom", os.path.join(world.folder, "ranks", "5.gpucache"))
    expect_equal("as oom --json says", (first["verdict"], first["requested_bytes"], first["failed"]),
                 (oom["verdict"]["word"], oom["request"]["requested_bytes"], oom["time"]))
    text = world.report("list", os.path.join(world.folder, "ranks")).out
    expect(re.search(r"rank 5 .*\n? *ran out of memory first", re.sub(r"\s+", " ", text)), text)
    expect("later: rank 6" in text, text)
    for one in listed(world)["gpus"]:
        peak = world.report_json("summary", one["path"])["devices"][0]["peak"]["live_bytes"]
        expect(one["peak_live_bytes"] >= peak, f"{one} has a lower peak than {peak}")


def case_odd_holds_less(world):
    """A rank that lacks a site of the others is the odd one, too; of two ranks neither is."""
    paths = [rank(world, number, "--grow", str(GROW)) for number in (0, 1, 2)] + [rank(world, 3)]
    odd = listed(world)["odd_one_out"]
    expect_equal("the odd one", (odd["rank"], odd["is_more"]), (3, False))
    expect("remember_loss" in odd["where"], odd["where"])
    expect_equal("of two", listed(world, paths[0], paths[3])["odd_one_out"], None)


def case_not_whole(world):
    """Ranks without a recording are counted; junk does not end the list."""
    for number in (0, 1):
        rank(world, number, world_size=4)
    folder = os.path.join(world.folder, "ranks")
    with open(os.path.join(folder, "junk.gpucache"), "wb") as file:
        file.write(b"junk")
    done = world.report("list", folder)
    expect("2 processes" in done.out, done.out)
    expect("the job has 4 ranks: 2 left no recording here" in done.out, done.out)
    expect("junk.gpucache" in done.out, done.out)
    done = world.report("list", os.path.join(folder, "0.gpucache"), os.path.join(folder, "junk.gpucache"), status=4)
    expect("1 process" in done.out and "junk.gpucache" in done.err, done.out + done.err)
    expect_equal("nothing there", world.report("list", world.folder + "/none", status=None).status, 3)


def case_many(world):
    """1,024 recordings of the usual size, within seconds and in memory that does not grow with them."""
    usual, failed = rank(world, 0), rank(world, 1, "--oom")
    folder = os.path.join(world.folder, "many")
    os.mkdir(folder)
    for i in range(1024):
        subprocess.run(["cp", "--sparse=always", failed if i == 700 else usual, os.path.join(folder, f"{i}.gpucache")], check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = listed(world, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    expect_equal("ranks", len(found["gpus"]), 1024)
    expect(found["first_failure"]["path"].endswith("/700.gpucache"), found["first_failure"])
    expect(found["odd_one_out"]["path"].endswith("/700.gpucache"), found["odd_one_out"])
    expect(took < LIST_S, f"it took {took:.1f} s")
    command = [os.path.join(world.build, "gpumem-report"), "list", folder]
    most = []
    for few in (16, 1024):
        # Both sets contain the recording whose symbols are read.
        files = [os.path.join(folder, f"{i}.gpucache") for i in sorted(range(1024), key=lambda i: i != 700)[:few]]
        child = subprocess.Popen([*command[:2], *files], stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(child.pid, 0)
        most.append(usage.ru_maxrss)
    # A row takes less than 1 KiB; a recording is 8 MiB.
    expect(most[1] - most[0] < 8 << 10, f"{most[0]} KiB for 16, {most[1]} KiB for 1,024")
    return f"{took:.1f} s of processor time, {most[1] >> 10} MiB"


def wait_for(world, path, pattern):
    end = time.monotonic() + TIMEOUT_S
    text = ""
    while time.monotonic() < end:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if re.search(pattern, text, re.M):
                return text
        time.sleep(0.02)
    raise Failed(f"{pattern} never came into {path}: {text[:2000]}")


def start_watch(world, *arguments, env=None):
    return subprocess.Popen([os.path.join(world.build, "gpumem-report"), "export", "--format=prometheus", "--watch=100ms", *arguments],
                            env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def samples_of(text):
    """Parses the samples; each must occur once, under the head of its family."""
    found, heads = {}, []
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            heads.append(line.split()[2])
        elif not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            expect(name not in found, f"twice: {name}")
            expect_equal("family of " + name, name.split("{")[0], heads[-1])
            found[name] = int(value)
    expect_equal("heads", len(heads), len(set(heads)))
    return found


def case_watch(world):
    """All processes in one file, whole at each moment; one that ends stays with its state; SIGTERM removes the file."""
    children = [world.start_and_hold([world.program("train"), "--steps", "9", "--hold-at", "4"],
                                     sim="memory:4GiB,context:100MiB")[0] for _ in range(2)]
    path = os.path.join(world.folder, "gpucache.prom")
    watch = start_watch(world, "-o", path, world.folder)
    try:
        wait_for(world, path, f'pid="{children[1].pid}".*state="alive"')
        for _ in range(300):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            expect(text.rstrip().split("\n")[-1].startswith("gpucache_device_total_bytes{"), "half a file was seen")
        children[0].kill()
        children[0].wait()
        samples = samples_of(wait_for(world, path, f'pid="{children[0].pid}".*state="killed"'))
        expect(any(f'pid="{children[1].pid}"' in name and 'state="alive"' in name for name in samples), "the other one is not there")
        recording = next(one for one in world.recordings() if f"-{children[0].pid}." in one)
        device = world.report_json("summary", recording)["devices"][0]
        for key in ("live_bytes", "cached_bytes", "reserved_bytes"):
            said = [value for name, value in samples.items()
                    if name.startswith(f"gpucache_{key}{{") and f'pid="{children[0].pid}"' in name]
            expect_equal(key, said, [device["now"][key]])
        watch.send_signal(signal.SIGTERM)
        expect_equal("exit status", watch.wait(TIMEOUT_S), 0)
        expect(not [name for name in os.listdir(world.folder) if "gpucache.prom" in name], os.listdir(world.folder))
    finally:
        watch.kill()
        watch.communicate()


def case_watch_many(world):
    """Of 1,000 processes the file has a bounded number, that which runs first, then those that failed; and says how many it has not."""
    child, _ = world.start_and_hold([world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    folder = os.path.join(world.folder, "ranks")
    for name, arguments in ("usual", ["--steps", "1"]), ("failed", ["--oom"]):
        program = subprocess.Popen([world.program("train"), *arguments], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   env=world.environment(True, GPUCACHE_OUTPUT=f"{folder}/{name}.gpucache"))
        program.wait()
        path = f"{folder}/{name}.gpucache"
        with open(path, "rb") as file:
            head = file.read(4096)
        at = head.index(struct.pack("<I", program.pid))
        for number in range(1000 if name == "usual" else 20):
            copy = f"{folder}/{name}-{number}.gpucache"
            subprocess.run(["cp", "--sparse=always", path, copy], check=True)
            with open(copy, "r+b") as file:
                file.seek(at)
                # Above any pid of Linux; and two of each failed one.
                file.write(struct.pack("<I", (5 << 20) + number // 2 if name == "failed" else (6 << 20) + number))
        os.unlink(path)
    os.rename(world.recording(), folder + "/alive.gpucache")
    path = os.path.join(world.folder, "many.prom")
    watch = start_watch(world, "-o", path, folder)
    try:
        samples = samples_of(wait_for(world, path, "^gpucache_processes_left_out"))
        pids = [int(re.search(r'pid="(\d+)"', name)[1]) for name in samples if name.startswith("gpucache_run_info")]
        expect_equal("processes", len(pids), 128)
        expect_equal("twice", len(set(pids)), len(pids))
        expect(child.pid in pids, "that which runs is not there")
        expect_equal("failed ones", sum(5 << 20 <= pid < 6 << 20 for pid in pids), 10)
        expect_equal("left out", samples["gpucache_processes_left_out"], 1000 + 10 + 1 - 128)
        expect(len(samples) <= 128 * 40 + 1, f"{len(samples)} series")
    finally:
        watch.kill()
        watch.communicate()
    return f"{len(samples)} series"


def case_watch_hung_up(world):
    """A watch whose terminal goes leaves no numbers that nobody keeps up to date; under nohup it goes on."""
    world.start_and_hold([world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    path = os.path.join(world.folder, "hung.prom")
    for handler in signal.SIG_DFL, signal.SIG_IGN:
        before = signal.signal(signal.SIGHUP, handler)
        watch = start_watch(world, "-o", path, world.folder)
        signal.signal(signal.SIGHUP, before)
        try:
            wait_for(world, path, 'state="alive"')
            watch.send_signal(signal.SIGHUP)
            if handler == signal.SIG_IGN:
                os.unlink(path)
                wait_for(world, path, 'state="alive"')
                watch.terminate()
            expect_equal("exit status", watch.wait(TIMEOUT_S), 0)
        finally:
            watch.kill()
            watch.communicate()
        expect(not os.path.exists(path), "the file stays")


def case_watch_without_memory(world):
    """A watch that runs out of memory removes its metrics, which would go stale."""
    world.start_and_hold([world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    starving, at = world.starving()
    path = os.path.join(world.folder, "starved.prom")
    watch = start_watch(world, "-o", path, world.folder, env=starving)
    wait_for(world, path, 'state="alive"')
    with open(at, "w", encoding="ascii"):
        pass
    expect_equal("exit status", watch.wait(TIMEOUT_S), 5)
    said = watch.communicate()[1]
    expect("memory" in said, f"it does not say why: {said!r}")
    expect(not [name for name in os.listdir(world.folder) if "starved.prom" in name], os.listdir(world.folder))


def case_watch_one(world):
    """The watch of one process ends with it, and leaves its last metrics; an unwritable file is reported."""
    child, _ = world.start_and_hold([world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    path = os.path.join(world.folder, "one.prom")
    watch = start_watch(world, "-o", path, world.recording())
    wait_for(world, path, 'state="alive"')
    child.kill()
    child.wait()
    expect_equal("exit status", watch.wait(TIMEOUT_S), 0)
    watch.communicate()
    wait_for(world, path, 'state="killed"')
    watch = start_watch(world, "-o", world.folder + "/no/such/folder.prom", world.recording())
    expect_equal("exit status", watch.wait(TIMEOUT_S), 5)
    expect("no/such/folder.prom: No such file or directory" in watch.communicate()[1], "it does not say why")
    for wrong in (["export", "--format=csv", "--watch=1s"], ["summary", "--watch=1s"], ["export", "--format=prometheus", "--watch=soon"],
                  ["summary", "--once"]):
        expect_equal(" ".join(wrong), world.report(*wrong, status=None).status, 2)


def case_names(world):
    """Rules and dashboard name only existing metrics."""
    world.run([world.program("train"), "--steps", "2"])
    known = set(re.findall(r"^# TYPE (\S+)", world.report("export", "--format=prometheus", world.recording()).out, re.M))
    for name in ("alerts.yml", "dashboard.json"):
        with open(os.path.join(TOP, "docs", "user", "fleet", name), encoding="utf-8") as file:
            text = file.read()
        named = set(re.findall(r"\bgpucache_[a-z_]+", text))
        expect(named and named <= known, f"{name} names {sorted(named - known)}, which nobody writes")
    panels = json.loads(text)["panels"]
    expect(len({panel["id"] for panel in panels}) == len(panels), "two panels have one number")


def case_rules(world):
    """promtool accepts the rules, and sees them fire."""
    if not shutil.which("promtool"):
        raise Skip("there is no promtool here; Debian's package is prometheus")
    for command in (["check", "rules", "docs/user/fleet/alerts.yml"], ["test", "rules", "tests/fleet/alerts_test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=TOP, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"promtool {' '.join(command)}: {done.stdout}{done.stderr}")


def case_scraped(world):
    """A node_exporter serves what the watch wrote, to the last sample, while the process runs."""
    exporter = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if not exporter:
        raise Skip("there is no node_exporter here; Debian's package is prometheus-node-exporter")
    textfiles = os.path.join(world.folder, "textfiles")
    os.mkdir(textfiles)
    path = os.path.join(textfiles, "gpucache.prom")
    child, _ = world.start_and_hold([world.program("train"), "--steps", "9", "--hold-at", "4"],
                                    sim="memory:4GiB,context:100MiB")
    watch = start_watch(world, "-o", path, world.recording())
    server = subprocess.Popen([exporter, "--collector.disable-defaults", "--collector.textfile", "--web.listen-address=127.0.0.1:0",
                               "--collector.textfile.directory=" + textfiles], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        written = samples_of(wait_for(world, path, f'pid="{child.pid}".*state="alive"'))
        address = next(found[1] for found in (re.search(r"address=(127\.0\.0\.1:\d+)", line) for line in server.stderr) if found)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as answer:
            page = answer.read().decode()
        expect("node_textfile_scrape_error 0" in page, "the collector refused the file")
        served = {}
        for line in page.splitlines():
            if line.startswith("gpucache_"):
                name, value = line.rsplit(" ", 1)
                family, labels = name[:-1].split("{")
                served[family, frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))] = int(float(value))
        wanted = {}
        for name, value in written.items():
            family, labels = name[:-1].split("{")
            wanted[family, frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))] = value
        # The process does not allocate now; only the age of the reading may differ.
        expect_equal("what is served", {key: value for key, value in served.items() if not key[0].endswith("seconds")},
                     {key: value for key, value in wanted.items() if not key[0].endswith("seconds")})
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
            # The labels are dcgm-exporter's, so that they join with its series.
            complaints = [line for line in (done.stdout + done.stderr).splitlines()
                          if line.startswith("gpucache_") and not line.endswith("in 'snake_case' not 'camelCase'")]
            expect(not complaints, "\n".join(complaints))
    finally:
        for one in (watch, server):
            one.kill()
            one.communicate()
    return f"{len(wanted)} samples"


if __name__ == "__main__":
    sys.exit(run_cases(cases_of(globals()) + cases_of(vars(slurm_scripts)), sys.argv[1:]))
