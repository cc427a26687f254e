#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every format of `gpumem-report export` back as its consumer does: run.py BUILD [WORD...].

The sums read must be those of `gpumem-report --json`.  Prints a line per case; the last line counts them.
"""
import base64
import csv
import gzip
import importlib.util
import io
import itertools
import json
import os
import pickle
import pickletools
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", folder) for folder in ("integration", "html", "export")]

import browser as chromium  # noqa: E402
from harness import Skip, expect, expect_equal  # noqa: E402
from runner import cases_of, run_shared  # noqa: E402


class Export:
    """The recordings, and the output of gpumem-report for one of them."""

    def __init__(self, world):
        self.world = world
        self.made = world.make_recording(["tests/export/make_recording.c"], "made.gpucache")
        self.golden = world.make_recording(["tests/golden/make_recordings.c", "tests/golden/make_torch.c"], "runs", "foreign", "ranks")
        child, _ = world.start_and_hold([world.program("train"), "--steps", "8", "--hold-at", "4"],
                                        sim="memory:4GiB,context:300MiB")
        child.kill()
        world.end_children()
        self.killed = world.recording()

    def all(self):
        return [self.made, self.killed] + [os.path.join(self.golden, name + ".gpucache")
                                         for name in ("ended", "python", "tags", "unused")]

    def text(self, form, recording, *arguments):
        return self.world.report("export", "--format=" + form, *arguments, recording).out

    def data(self, form, recording, *arguments):
        path = os.path.join(self.world.folder, "exported")
        self.world.report("export", "--format=" + form, *arguments, "-f", "-o", path, recording)
        with open(path, "rb") as file:
            return file.read()

    def summary(self, recording):
        return self.world.report_json("summary", recording)

    def held(self, recording):
        """The live bytes at the end, by device: from `leaks`, because after a failure the summary shows the failure."""
        summary = self.summary(recording)
        if summary["verdict"]:
            return {0: self.world.held_bytes(recording)}
        # The row of PyTorch's bytes in no tensor has no blocks.
        return {device["ordinal"]: sum(row["live_bytes"] for row in device["holders"] if row["blocks"])
                for device in summary["devices"]}


# The consumers' own checks, as strict as the formats allow.

def read_folded(text):
    """Every line matches flamegraph.pl's own pattern."""
    sums = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line)
        expect(found, f"no folded stack: {line!r}")
        names = found[1].split(";")
        expect(len(names) > 1 and all(names), f"an empty name: {line!r}")
        root = re.fullmatch(r"GPU (\d+)", names[0])
        expect(root, f"the root is no GPU: {line!r}")
        sums.setdefault(int(root[1]), []).append((names[1:], int(found[2])))
    return sums


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def read_message(data):
    """The fields of a protobuf message, in order: (number, value or bytes)."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        expect(key & 7 in (0, 2), f"wire type {key & 7}")
        if key & 7 == 2:
            expect(at + value <= len(data), "a length beyond the end")
            value, at = data[at:at + value], at + value
        fields.append((key >> 3, value))
    return fields


def read_packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(value)
    return values


def read_pprof(data):
    """The checks of pprof's Profile.CheckValid; returns the samples of the last type by GPU, and all sums by type."""
    expect_equal("the magic of gzip", data[:2], b"\x1f\x8b")
    fields = read_message(gzip.decompress(data))
    every = {number: [value for n, value in fields if n == number] for number in range(1, 16)}
    strings = [value.decode() for value in every[6]]
    expect_equal("string 0", strings[0], "")
    types = [tuple(strings[value] for _, value in read_message(kind)) for kind in every[1]]
    functions = {dict(read_message(f))[1]: dict(read_message(f)) for f in every[5]}
    locations = {dict(read_message(x))[1]: dict(read_message(x)) for x in every[4]}
    expect(len(functions) == len(every[5]) and len(locations) == len(every[4]), "two of one number")
    expect(0 not in functions and 0 not in locations, "a number 0")
    expect_equal("the default", strings[every[14][0]], types[-1][0])
    sums, samples = dict.fromkeys([name for name, _ in types], 0), {}
    for sample in every[2]:
        of = {n: [value for m, value in read_message(sample) if m == n] for n in (1, 2, 3)}
        values = read_packed(of[2][0])
        expect_equal("values", len(values), len(types))
        labels = [dict(read_message(label)) for label in of[3]]
        labels = {strings[label[1]]: label[3] for label in labels}
        lines = [dict(read_message(locations[number][4])) for number in read_packed(of[1][0])]
        names = [strings[functions[line[1]][2]] for line in lines]
        expect(names and all(names), "a sample without names")
        for (name, _), value in zip(types, values):
            sums[name] += value
        if values[-1]:
            samples.setdefault(labels["gpu"], []).append((names[::-1], values[-1]))
    return samples, types, sums


def read_trace(text):
    """Chrome's trace event format, as Perfetto's JSON importer takes it."""
    root = json.loads(text)
    for event in root["traceEvents"]:
        expect(isinstance(event["name"], str) and event["name"], event)
        expect(type(event["pid"]) is int, event)
        expect(event["ph"] in "MCiX", event)
        if event["ph"] != "M":
            expect(type(event["ts"]) in (int, float) and event["ts"] > 0, event)
        if event["ph"] == "C":
            expect(event["args"] and all(type(value) is int for value in event["args"].values()), event)
        if event["ph"] == "i":
            expect(event["s"] in ("g", "p", "t") and type(event["tid"]) is int, event)
        if event["ph"] == "X":
            expect(event["dur"] >= 0 and type(event["tid"]) is int, event)
    return root["traceEvents"]


LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'


def read_metrics(text, is_open):
    """The exposition format, as strictly as promtool: {(name, labels): value}, and the types of the families."""
    expect(text.endswith("# EOF\n" if is_open else "\n"), "the end is missing")
    families, samples, family = {}, {}, None
    for line in text.splitlines()[:-1 if is_open else None]:
        meta = re.fullmatch(r"# (HELP|TYPE|UNIT) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if meta:
            words = families.setdefault(meta[2], {})
            expect(meta[1] not in words, f"twice: {line}")
            expect(family == meta[2] or len(families[meta[2]]) == 0, f"families are mixed: {line}")
            family = meta[2]
            words[meta[1]] = meta[3]
            continue
        found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(" + LABEL + "(?:," + LABEL + r")*)\} (\d+)", line)
        expect(found, f"no sample: {line!r}")
        kind = families[family]["TYPE"]
        suffix = {"counter": "_total", "info": "_info"}.get(kind, "") if is_open else ""
        expect_equal("the sample's name", found[1], family + suffix)
        expect(kind in ("counter", "gauge") + (("info",) if is_open else ()), kind)
        expect(is_open or kind != "counter" or family.endswith("_total"), family)
        labels = dict(re.findall(LABEL, found[2]))
        key = found[1], tuple(sorted(labels.items()))
        expect(key not in samples, f"twice: {key}")
        samples[key] = int(line.rsplit(" ", 1)[1])
    for name, words in families.items():
        expect("HELP" in words and "TYPE" in words, f"{name} has {words}")
        expect(name.endswith("_" + words.get("UNIT", "")) or "UNIT" not in words, f"the unit of {name}")
    return samples


# The opcodes that the unpickler of pytorch.org/memory_viz supports, as far as we write them.
OPCODES = {"PROTO", "STOP", "MARK", "EMPTY_LIST", "APPENDS", "EMPTY_DICT", "SETITEMS", "NEWFALSE", "BININT", "LONG1",
           "BINUNICODE", "LONG_BINPUT", "LONG_BINGET"}


def read_snapshot(data):
    """The rules of torch/cuda/_memory_viz.py and of the viewer; returns the samples of active blocks by device."""
    opcodes = list(pickletools.genops(data))
    expect({code.name for code, _, _ in opcodes} <= OPCODES, {code.name for code, _, _ in opcodes} - OPCODES)
    root = pickle.loads(data)
    samples = {}
    for segment in root["segments"]:
        expect(segment["device"] < len(root["device_traces"]), "a device without a trace")
        at = segment["address"]
        for block in segment["blocks"]:
            expect_equal("the next block", block["address"], at)
            at += block["size"]
            expect(block["state"] in ("active_allocated", "active_pending_free", "inactive"), block)
            check_frames(block["frames"])
            if block["state"] == "active_allocated":
                expect(block["requested_size"] <= block["size"], block)
                samples.setdefault(segment["device"], []).append((block, block["requested_size"]))
        expect_equal("the segment", at - segment["address"], segment["total_size"])
        expect_equal("allocated_size", segment["allocated_size"],
                     sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated"))
    for device, trace in enumerate(root["device_traces"]):
        replay(trace, [segment for segment in root["segments"] if segment["device"] == device])
    return root, samples


def check_frames(frames):
    for frame in frames:
        expect([type(frame[key]) for key in ("name", "filename", "line")] == [str, str, int], frame)


def replay(trace, segments):
    """Replays backwards from the segments, as the viewer does: each block must lie in a segment."""
    ranges = [(segment["address"], segment["total_size"]) for segment in segments]
    for event in reversed(trace):
        check_frames(event["frames"])
        action, size = event["action"], event["size"]
        if action == "oom":
            expect(type(event["device_free"]) is int, event)
        elif action == "segment_free":
            ranges.append((event["addr"], size))
        elif action == "segment_alloc":
            expect((event["addr"], size) in ranges, f"a segment that is not there: {event}")
            ranges.remove((event["addr"], size))
        else:
            expect(action in ("alloc", "free_requested", "free_completed"), event)
            expect(any(start <= event["addr"] and event["addr"] + size <= start + room for start, room in ranges),
                   f"outside every segment: {event}")


def sums_of(samples):
    return {device: sum(weight for _, weight in rows) for device, rows in samples.items() if rows}


def without_zeros(sums):
    return {device: value for device, value in sums.items() if value}


def expect_held(what, export, recording, samples):
    expect_equal(f"{what} of {os.path.basename(recording)}", sums_of(samples), without_zeros(export.held(recording)))


def case_a_flame_graph_of_folded_stacks_holds_every_byte(export):
    for recording in export.all():
        expect_held("folded", export, recording, read_folded(export.text("folded", recording)))
    samples = read_folded(export.text("folded", export.made))
    expect(any(path[0].endswith("\"x\">  mo,del.py:7") for path, _ in samples[0]), samples)
    expect(any(path[-1] == "(contexts)" for path, _ in samples[0]), samples)


def case_what_pytorch_caches_outside_tensors_is_a_sample_of_its_own(export):
    recording = os.path.join(export.world.folder, "torch.gpucache")
    holders = export.summary(recording)["devices"][0]["holders"]
    held = {0: sum(row["live_bytes"] for row in holders)}
    cache = [("(PyTorch's cache, in no tensor)", row["live_bytes"]) for row in holders if not row["blocks"]]
    expect_equal("rows of the cache", len(cache), 1)
    for form, read, get in (("folded", read_folded, export.text),
                            ("pprof", lambda data: read_pprof(data)[0], export.data)):
        samples = read(get(form, recording))
        expect_equal(form, sums_of(samples), held)
        expect_equal(f"{form}: the cache", [(path[-1], weight) for path, weight in samples[0] if len(path) == 1 and path[0].startswith("(Py")],
                     cache)
    rows = json.loads(export.text("json", recording))["devices"][0]["holders"]
    expect_equal("json", sum(row["live_bytes"] for row in rows), held[0])
    expect_equal("json: the cache", [row["live_bytes"] for row in rows if row["is_torch_cache"]], [cache[0][1]])


def case_the_peak_and_the_failure_are_moments_of_their_own(export):
    samples = read_folded(export.text("folded", export.made, "--at=oom"))
    expect_equal("the last failure of each GPU", sums_of(samples), {0: 11 << 20, 1: 13 << 20})
    for moment, mib in (("peak", 77 + 11), ("oom", 6 + 5)):
        samples = read_folded(export.text("folded", export.made, "--at=" + moment, "-d", "0"))
        expect_equal(moment, sums_of(samples), {0: mib << 20})
        expect_equal("the rest", samples[0][-1][0], ["(others, not listed)"])


def case_pprof_reads_what_is_held_and_what_was_ever_asked_for(export):
    for recording in export.all():
        samples, types, sums = read_pprof(export.data("pprof", recording))
        expect_held("pprof", export, recording, samples)
        expect_equal("types", types, [("alloc_objects", "count"), ("alloc_space", "bytes"),
                                      ("inuse_objects", "count"), ("inuse_space", "bytes")])
    samples, _, sums = read_pprof(export.data("pprof", export.killed))
    expect(any("main" in path and "load_weights" in path for path, _ in samples[0]), samples)
    calls = export.summary(export.killed)["devices"][0]["calls"]
    expect_equal("allocations that were ever made", sums["alloc_objects"], calls["malloc"] + 1)  # and the context
    expect(sums["alloc_space"] > sums["inuse_space"] > 0, sums)


def case_go_tool_pprof_reads_the_same(export):
    if not shutil.which("go"):
        raise Skip("there is no go here; Debian's package is golang-go")
    for recording in export.all():
        path = os.path.join(export.world.folder, "go.pb.gz")
        with open(path, "wb") as file:
            file.write(export.data("pprof", recording))
        done = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=False)
        if "no such tool" in done.stderr:
            raise Skip("go is here without its pprof")
        expect_equal("exit status", done.returncode, 0)
        text = done.stdout
        rows = re.findall(r"^ +\d+ +\d+ +\d+ +(\d+): ", text, re.M)
        expect_equal("in use", sum(map(int, rows)), sum(export.held(recording).values()))


def case_perfetto_reads_counters_failures_and_ranges(export):
    for recording in export.all():
        read_trace(export.text("perfetto", recording))
    events = read_trace(export.text("perfetto", export.made))
    counters = [event["args"] for event in events if event["ph"] == "C"]
    expect_equal("the counters", counters, [{"live": i * 11 << 20, "pending": i << 20, "reserved": i * 320 << 20,
                                             "free": (71 << 30) - (i * 320 << 20)} for i in range(4)])
    expect_equal("the failure", [(e["name"], e["tid"]) for e in events if e["ph"] == "i"],
                 [(f"OOM on GPU {gpu}: 90.00 GiB requested, recovered", 4711) for gpu in (0, 1)])
    expect_equal("the ranges", [(e["name"], e["dur"]) for e in events if e["ph"] == "X"], [
        ("train/for\"ward", 1e5)])
    points = [e["args"] for e in read_trace(export.text("perfetto", export.killed)) if e["ph"] == "C"]
    peak = export.summary(export.killed)["devices"][0]["peak"]
    expect(points and max(args["reserved"] for args in points) >= peak["reserved_bytes"], points)


def case_python_reads_the_same_holders_as_json(export):
    for recording in export.all():
        root = json.loads(export.text("json", recording))
        expect_equal("the schema", root["schema"], "gpumem.report/2")
        expect_held("json", export, recording, {
            device["ordinal"]: [(row["stack"], row["live_bytes"]) for row in device["holders"]]
            for device in root["devices"]})
    expect_equal("--json is a format", export.world.report("export", "--json", export.made).out,
                 export.text("json", export.made))
    history = json.loads(export.text("json", export.made))["devices"][0]["history"]
    expect_equal("the history", [point["reserved_bytes"] >> 20 for point in history], [0, 320, 640, 960])


def case_csv_has_the_habits_of_nvidia_smi(export):
    columns = ["pid", "gpu", "requested", "live", "reserved", "peak_live", "n_malloc", "memory.free"]
    for recording in export.all():
        text = export.text("csv,nounits", recording, "--query=" + ",".join(columns))
        rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
        summary = export.summary(recording)
        expect_equal("lines", len(rows), len(summary["devices"]))
        for row, device in zip(rows, summary["devices"]):
            expect_equal("pid", int(row["pid"]), summary["recording"]["pid"])
            expect_equal("gpu", int(row["gpu"]), device["ordinal"])
            for name in ("requested", "live", "reserved"):
                expect_equal(name, int(row[name + " [B]"]), device["now"][name + "_bytes"])
            expect_equal("peak", int(row["peak_live [B]"]), device["peak"]["live_bytes"])
            expect_equal("calls", int(row["n_malloc"]), device["calls"]["malloc"])
            free = device["balance"] and device["balance"]["free_bytes"]
            if not summary["verdict"]:
                expect_equal("free", row["memory.free [B]"], "[N/A]" if free is None else str(free))
    text = export.text("csv,noheader", export.made, "--query=name,command,rank,live")
    rows = list(csv.reader(io.StringIO(text), skipinitialspace=True))
    live = export.summary(export.made)["devices"][0]["now"]["live_bytes"]
    expect_equal("a line", rows[0], ['NVIDIA "H100" \\ 0', 'train --name "a;b" \\x', "3", f"{live} B"])
    for query, form in (("pid,colour", "csv"), ("pid", "json"), ("pid", "csv,loud")):
        export.world.report("export", "--format=" + form, "--query=" + query, export.made, status=2)


def case_prometheus_and_openmetrics_read_every_counter(export):
    for recording in export.all():
        summary = export.summary(recording)
        for form in ("prometheus", "openmetrics"):
            text = export.text(form, recording)
            samples = read_metrics(text, form == "openmetrics")
            if form == "prometheus" and shutil.which("promtool"):
                said = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False).stderr
                # The labels are dcgm-exporter's, so that they join with its series.
                complaints = [line for line in said.splitlines() if not line.endswith("in 'snake_case' not 'camelCase'")]
                expect_equal("what promtool complains of", complaints, [])
            for device in summary["devices"]:
                mine = {name: (dict(labels), value) for (name, labels), value in samples.items()
                        if dict(labels).get("gpu") == str(device["ordinal"])}
                expect_equal("UUID", mine["gpucache_live_bytes"][0]["UUID"], device["uuid"] or "")
                for prefix, suffix, group in (("", "", "now"), ("peak_", "", "peak"), ("", "_total", "calls")):
                    for key, value in device[group].items():
                        if type(value) is int and key != "last_driver_malloc":
                            expect_equal(key, mine[f"gpucache_{prefix}{key}{suffix}"][1], value)
    labels = [dict(labels) for name, labels in read_metrics(export.text("prometheus", export.made), False)
              if name == "gpucache_live_bytes"]
    expect_equal("labels", [(x["rank"], x["modelName"]) for x in labels],
                 [("3", 'NVIDIA \\"H100\\" \\\\ 0'), ("3", 'NVIDIA \\"H100\\" \\\\ 1')])


def case_memory_viz_reads_segments_with_their_blocks_and_traces(export):
    for recording in export.all():
        _, samples = read_snapshot(export.data("pytorch-snapshot", recording))
        expect_held("the snapshot", export, recording, samples)
    root, _ = read_snapshot(export.data("pytorch-snapshot", export.made))
    cells = {segment["address"] - (0x7f8 << 36): [(b["size"] >> 20, b["state"]) for b in segment["blocks"]]
             for segment in root["segments"] if segment["address"] >= 0x7f8 << 36}
    live, gap = "active_allocated", "inactive"
    expect_equal("the segments", cells, {0: [(4, live), (2, gap), (1, live), (13, gap)],
                                         20 << 20: [(2, live), (4, "active_pending_free"), (6, gap)],
                                         1 << 30: [(8, live)], 2 << 30: [(3, live)]})
    expect_equal("actions", [event["action"] for event in root["device_traces"][0]], [
        "alloc", "alloc", "free_requested", "free_completed",
        "segment_alloc", "alloc", "free_requested", "free_completed", "segment_free",
        "free_requested", "free_completed", "segment_free", "alloc", "free_requested", "free_completed", "oom"])
    expect_equal("a tag", root["device_traces"][0][1]["user_metadata"], 'train/for"ward')


def case_pytorchs_own_reader_counts_the_same_bytes(export):
    """MEMORY_VIZ names torch/cuda/_memory_viz.py if this Python has no torch."""
    torch = importlib.util.find_spec("torch")
    path = os.environ.get("MEMORY_VIZ") or (torch and os.path.join(os.path.dirname(torch.origin), "cuda", "_memory_viz.py"))
    if not path or not os.path.exists(path):
        raise Skip("there is no torch here; MEMORY_VIZ may name its torch/cuda/_memory_viz.py")
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    viz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(viz)
    for recording in export.all():
        root = pickle.loads(export.data("pytorch-snapshot", recording))
        expect_equal("allocated", sum(map(viz.calc_active, root["segments"])), sum(
            segment["allocated_size"] for segment in root["segments"]))
        expect("total_allocated" in viz.segsum(root), "it has no sum")
        n_lines = len([event for trace in root["device_traces"] for event in trace])
        expect(n_lines == 0 or viz.trace(root), "it reads no trace")
        for page in (viz.segment_plot(root), viz.trace_plot(root)):
            expect("MemoryViz" in page, "it makes no page")


def peak_of(root, device):
    """The expected maximum of the viewer: the maximum of the trace plus the bytes live before it."""
    held, before, changes = {}, 0, []
    for event in root["device_traces"][device]:
        if event["action"] == "alloc":
            held[event["addr"]] = event["size"]
            changes.append(event["size"])
        elif event["action"] == "free_completed":
            before += event["size"] if event["addr"] not in held else 0
            changes.append(-held.pop(event["addr"], event["size"]))
    before += sum(block["requested_size"] for segment in root["segments"] if segment["device"] == device
                  for block in segment["blocks"] if block["state"] == "active_allocated" and block["address"] not in held)
    return max(itertools.accumulate(changes, initial=before))


def viewer_script(folder, data):
    """A page with PyTorch's viewer, which has read `data`.  Bundles its modules into one script, without network."""
    script = "const {axisLeft, scaleLinear, zoom, zoomIdentity, brushX} = d3;\n"
    for name in ("process_alloc_data.js", "MemoryViz.js"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read().replace("'use strict';", "")
            text = re.sub(r"^export \{[^;]*;|^import [^;]*;", "", text, flags=re.M)
            script += re.sub(r"^export (?=function)", "", text, flags=re.M)
    script += f"const file = {json.dumps(base64.b64encode(data).decode())};\n"
    script += "add_local_files([{name: 'file', base64: file}], 'Active Memory Timeline');\n"
    return script + "document.documentElement.dataset.ready = 'yes';\n"


def case_pytorchs_viewer_draws_the_same_peak(export):
    """MEMORY_VIZ_JS names the folder of its MemoryViz.js, torch/utils/viz in PyTorch's repository; no package has it."""
    folder, d3 = os.environ.get("MEMORY_VIZ_JS"), "/usr/share/nodejs/d3/dist/d3.min.js"
    if not folder or not os.path.exists(d3) or not chromium.find():
        raise Skip("needs Chromium, node-d3, and MEMORY_VIZ_JS, the folder of PyTorch's MemoryViz.js")
    browser = chromium.Browser(chromium.find(), export.world.folder)
    try:
        for recording in export.all():
            data = export.data("pytorch-snapshot", recording)
            root = pickle.loads(data)
            if not any(root["device_traces"]) and not root["segments"]:
                continue  # the process never used a GPU, so the viewer has no device to show
            page = os.path.join(export.world.folder, "viewer.html")
            shutil.copy(d3, os.path.join(export.world.folder, "d3.js"))
            with open(os.path.join(export.world.folder, "viewer.js"), "w", encoding="utf-8") as file:
                file.write(viewer_script(folder, data))
            with open(page, "w", encoding="utf-8") as file:
                file.write("<!doctype html><meta charset=utf-8><body><script src=d3.js></script><script src=viewer.js></script>")
            browser.open(page)
            for device in range(len(root["device_traces"])):
                drawn = browser.run("process_alloc_data(unpickle_and_annotate(decode_base64(file)), "
                                    f"{device}, false, 1e9).max_size")
                expect_equal("the highest point", drawn, peak_of(root, device))
        expect_equal("what it complained of", browser.problems, [])
    finally:
        browser.close()


def case_only_the_gpu_that_is_wanted_is_exported(export):
    expect_equal("its bytes", sums_of(read_folded(export.text("folded", export.made, "-d", "1"))), {1: 3 << 20})


def case_wrong_words_are_refused_before_anything_is_written(export):
    for arguments, said in ((["--format=svg"], "--format needs "), ([], "export needs --format="),
                            (["--format=folded", "--at=noon"], "--at needs "),
                            (["--format=folded", export.made], "one at a time")):
        path = os.path.join(export.world.folder, "never")
        done = export.world.report("export", *arguments, "-o", path, export.made, status=2)
        expect(said in done.err, done.err)
        expect(not os.path.exists(path), "it wrote a file")
    done = export.world.report("leaks", "--format=folded", export.made, status=2)
    expect("is an option of `export`" in done.err, done.err)


if __name__ == "__main__":
    sys.exit(run_shared(cases_of(globals()), sys.argv[1:], Export))
