# SPDX-License-Identifier: Apache-2.0
"""Prometheus and Alertmanager, running: the rules of docs/user/fleet fire for real leaks, and resolve."""
import json
import os
import re
import subprocess
import sys

from harness import TOP, Skip, expect, expect_equal
from page import replay

# 48 MiB each fifth of a second: 8 GiB are full in half a minute.
LEAK = """
import ctypes, time
runtime = ctypes.CDLL("libcudart.so.13")
while runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t({bytes})) == 0:
    time.sleep(0.2)
"""


def start_leak(monitoring, n_bytes=48 << 20, sim="memory:8GiB,context:100MiB"):
    return monitoring.world.start([sys.executable, "-c", LEAK.format(bytes=n_bytes)], sim=sim)


def case_alert_of_a_leak(monitoring):
    """A process that grows raises "full soon" before the GPU is full; when it has ended, the alert resolves."""
    steady, _ = monitoring.world.start_and_hold([monitoring.world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    leak = start_leak(monitoring)
    fired = monitoring.told("GpuMemoryFullSoon", leak.pid)
    expect(leak.poll() is None, "it came when the GPU was full")
    expect(f"if pid {leak.pid} keeps growing" in fired["annotations"]["summary"], fired)
    leak.kill()
    leak.wait()
    monitoring.told("GpuMemoryFullSoon", leak.pid, "resolved")
    expect(not any(one["labels"].get("pid") == str(steady.pid) for one in monitoring.alerts), monitoring.alerts)
    steady.kill()


def case_alert_of_out_of_memory(monitoring):
    """A process that ends by a failed request raises "out of memory", with the command that explains it, and it resolves."""
    failed = start_leak(monitoring, 64 << 20, "memory:1GiB,context:100MiB")
    fired = monitoring.told("GpuOutOfMemory", failed.pid)
    expect_equal("its command", fired["annotations"]["description"], f"On that host: gpumem-report oom {failed.pid}")
    said = monitoring.world.report("oom", str(failed.pid), GPUCACHE_OUTPUT=monitoring.world.pattern).out
    expect("OUT OF MEMORY" in said, f"the command does not explain it: {said}")
    monitoring.told("GpuOutOfMemory", failed.pid, "resolved")


def series(name, labels):
    """What identifies a series; Prometheus has no empty label."""
    return name, frozenset((key, value) for key, value in labels if value)


def case_alert_of_stale_metrics(monitoring):
    """While the watch writes nothing is stale, and each sample of the file is in the database under its labels."""
    steady, _ = monitoring.world.start_and_hold([monitoring.world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    path = monitoring.textfiles + "/gpucache.prom"

    def written():
        if not os.path.exists(path):
            return set()
        with open(path, encoding="utf-8") as file:
            names = [line.rsplit(" ", 1)[0] for line in file if line.startswith("gpucache_")]
        return {series(name.split("{")[0], re.findall(r'(\w+)="([^"]*)"', name)) for name in names}

    def stored(families):
        return {series(name, labels.items()) for name in families for labels, _ in monitoring.query(name)}

    def all_stored():
        found = written()
        has_process = any(("pid", str(steady.pid)) in labels for _, labels in found)
        return has_process and found <= stored({name for name, _ in found}) and found

    found = monitoring.until("each sample of the file in the database", all_stored)
    expect_equal("scrape errors", monitoring.query("node_textfile_scrape_error"), [({}, 0.0)])
    expect_equal("files", [labels["file"] for labels, _ in monitoring.query("node_textfile_mtime_seconds")], [path])
    expect(not any(one["labels"]["alertname"] == "GpucacheMetricsStale" for one in monitoring.alerts), monitoring.alerts)
    steady.kill()
    return f"{len(found)} series of {len({name for name, _ in found})} families"


# Grafana's own classes, made from its schema: what they do not keep of a dashboard is not in the schema.
GRAFANA = "grafana-foundation-sdk==1769699998!10.1.0"
KEPT = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
print(JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))
"""
# The form of a variable's query that its editor shows; the fields of annotations that are the data source's.
NOT_IN_THE_SCHEMA = {"definition", "titleFormat", "textFormat"}


def lost(before, after, at=""):
    """The fields of a document that another lacks, or has otherwise."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [one for key in before if key not in NOT_IN_THE_SCHEMA for one in lost(before[key], after.get(key), f"{at}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [one for number, pair in enumerate(zip(before, after)) for one in lost(*pair, f"{at}/{number}")]
    return [] if before == after else [f"{at}: {before!r} is {after!r}"]


def case_alert_dashboard(monitoring):
    """The dashboard is one by Grafana's schema, and each of its queries is answered."""
    with open(os.path.join(TOP, "docs", "user", "fleet", "dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    wrong = json.loads(json.dumps(dashboard))
    wrong["panels"][0]["gridpos"] = wrong["panels"][0].pop("gridPos")
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    steady, _ = monitoring.world.start_and_hold([monitoring.world.program("train"), "--steps", "9", "--hold-at", "4"], sim="memory:4GiB")
    monitoring.until("its samples", lambda: monitoring.query(f'gpucache_live_bytes{{pid="{steady.pid}"}}'))
    for query in queries:
        for variable, value in (("$__rate_interval", "1m"), ("$__interval", "1m"), ("$__range", "1m"), ("$host", ".*"), ("$gpu", ".*")):
            query = query.replace(variable, value)
        checked = subprocess.run(["promtool", "query", "instant", f"http://127.0.0.1:{monitoring.ports[1]}", query], capture_output=True, text=True,
                                 check=False)
        expect_equal(query, (checked.returncode, checked.stderr), (0, ""))
    steady.kill()
    folder = os.path.join(TOP, "build", "cluster", "grafana")
    python = folder + "/bin/python"
    if not os.path.exists(folder + ".complete"):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        made = subprocess.run([python, "-m", "pip", "install", "-q", GRAFANA], capture_output=True, text=True, check=False)
        if made.returncode:
            raise Skip("pip: " + made.stderr.strip().splitlines()[-1])
        with open(folder + ".complete", "w", encoding="ascii"):
            pass
    for document, is_right in (dashboard, True), (wrong, False):
        kept = subprocess.run([python, "-c", KEPT], input=json.dumps(document), capture_output=True, text=True, check=True).stdout
        expect_equal("what the schema lacks", (lost(document, json.loads(kept)) == []), is_right)
    return f"{len(queries)} queries"


def case_alert_transcript(monitoring):
    """docs/user/FLEET.md shows what happens."""
    failed = start_leak(monitoring, 64 << 20, "memory:1GiB,context:100MiB")
    monitoring.told("GpuOutOfMemory", failed.pid)

    def typed(command):
        words = command.split()
        if words[0] == "amtool":
            words = [words[0], f"--alertmanager.url=http://127.0.0.1:{monitoring.ports[2]}", *words[1:], f"pid={failed.pid}"]
        return subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=False, timeout=60).stdout

    replay("FLEET.md", "alerts", failed and monitoring.world.report_json("summary", monitoring.world.recordings()[-1])["recording"]["host"], typed)
