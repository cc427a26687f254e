#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `gpumem-report html`: run.py BUILD [--browser].

Without a browser: the file is self-contained, contains the output of --json verbatim, and survives hostile names.  With
--browser, opens it in headless Chromium, clicks and reads: each number must be that of --json.  Prints a line per case;
the last line counts them.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "integration"), os.path.dirname(os.path.abspath(__file__))]

import browser as chromium  # noqa: E402
import chart  # noqa: E402
from chart import OURS, ROW, check_failures, levels_of  # noqa: E402
from harness import expect, expect_equal  # noqa: E402
from runner import cases_of, run_shared  # noqa: E402

# The most seconds to open a page of a million events; retried on a busy machine.
OPEN_S = 2.0
TRIES = 5


class Pages:
    """The recordings, and the output of gpumem-report for each."""

    def __init__(self, world):
        self.world = world
        self.browser = None
        self.made = world.make_recording(["tests/export/make_recording.c"], "made.gpucache")
        golden = world.make_recording(["tests/golden/make_recordings.c", "tests/golden/make_torch.c"], "runs", "foreign", "ranks")
        self.torch = {name: os.path.join(world.folder, name + ".gpucache") for name in ("torch", "torch_oom", "torch_use", "torch_kept", "torch_results")}
        self.golden = {name: os.path.join(golden, name + ".gpucache") for name in ("ended", "python", "tags", "unused", "oom")
                       if os.path.exists(os.path.join(golden, name + ".gpucache"))}

    def record(self, name, command, sim, status=None, **extra):
        path = os.path.join(self.world.folder, name + ".gpucache")
        done = self.world.run(command, sim=sim, GPUCACHE_OUTPUT=path, **extra)
        expect(status is None or done.status == status, f"{command} ended with {done.status}: {done.err}")
        expect(os.path.exists(path), f"{command} left no recording: {done.err}")
        return path

    def page(self, *recordings):
        path = os.path.join(self.world.folder, "page.html")
        self.world.report("html", "-f", "-o", path, *recordings)
        return path

    def data(self, *recordings):
        with open(self.page(*recordings), encoding="utf-8") as file:
            text = file.read()
        found = re.search(r'<script id="data" type="application/json">\n(.*?)</script>', text, re.S)
        expect(found, "the page holds no data")
        return text, json.loads(found[1])

    def summary(self, recording):
        return self.world.report_json("summary", recording)


def at_moment(data, device, row):
    """The bytes held by stack at a row of the ring, summed as the page does."""
    end = device["moments"]["rows"][ROW * row + 3]
    sums = {}
    for stack, n_bytes, n_blocks in zip(*[iter(device["moments"]["deltas"][:3 * end])] * 3):
        old = sums.get(stack, (0, 0))
        sums[stack] = (old[0] + n_bytes, old[1] + n_blocks)
    return {stack: pair for stack, pair in sums.items() if pair != (0, 0)}


# Without a browser.

def case_stands_alone(pages):
    """The page loads nothing, and contains the output of --json verbatim."""
    text, data = pages.data(pages.made)
    expect(not re.search(r"""(src|href)=["'](?!data:)""", text), "the page loads something")
    expect("default-src 'none'" in text, "the page may load something")
    expect_equal("schema", data["schema"], "gpumem.html/1")
    expect_equal("the summary", data["runs"][0]["summary"], pages.summary(pages.made))
    for oom in data["runs"][0]["ooms"]:
        said = json.loads(pages.world.report("oom", str(oom["number"]), "--json", pages.made).out)
        expect_equal(f"failure {oom['number']}", oom, said)
    for name in ("summary", "ooms", "frames", "stacks", "tags", "devices"):
        expect(name in data["runs"][0], f"no {name}")


def case_colours_have_one_meaning(pages):
    with open(pages.page(pages.made), encoding="utf-8") as file:
        text = file.read()
    themes = re.findall(r"(?:^:root|^\[data-theme=\"dark\"\]) \{(.*?)^\}", text, re.S | re.M)
    expect_equal("themes", len(themes), 2)
    for theme in themes:
        names = re.findall(r"(--[\w-]+):", theme)
        expect_equal("colours that are defined again", sorted({name for name in names if names.count(name) > 1}), [])


def case_hostile_names(pages):
    """Names that end a script, or open a comment, stay names."""
    path = os.path.join(pages.world.folder, "hostile.gpucache")
    with open(pages.made, "rb") as file:
        content = bytearray(file.read())
    command = content.find(b"\0" * 64, 4096)
    expect(command > 0, "no room")
    text, before = pages.data(pages.made)
    name = before["runs"][0]["summary"]["devices"][0]["name"].encode()
    at = content.find(name)
    evil = b"</script><!--<script>\xff"
    content[at:at + 64] = evil + b"\0" * (64 - len(evil))
    with open(path, "wb") as file:
        file.write(content)
    with open(pages.page(path), encoding="utf-8", errors="replace") as file:
        text = file.read()
    expect_equal("ends of scripts", text.count("</script"), 3)
    found = re.search(r'<script id="data" type="application/json">\n(.*?)</script>', text, re.S)
    expect(json.loads(found[1])["runs"][0]["summary"]["devices"][0]["name"].startswith("</script><!--"), "the name is another")
    expect("<" not in found[1], "the data has a tag")


def case_end_is_end(pages):
    """The sum of all deltas is the memory live at the end, by stack; heap and segments add up."""
    path = pages.record("train", [pages.world.program("train"), "--steps", "8"], "memory:4GiB,context:300MiB")
    sampled = pages.record("sampled", [pages.world.program("train"), "--steps", "8"], "memory:4GiB,context:300MiB",
                           GPUCACHE_CONF="stacks:sampled")
    oomed = pages.record("oomed", pages.world.script("train.py") + ["--oom"], "memory:2GiB,context:100MiB")
    for recording in (path, sampled, oomed):
        _, data = pages.data(recording)
        for device in data["runs"][0]["devices"]:
            held = at_moment(data, device, len(device["moments"]["rows"]) // ROW - 1)
            flat = device["end"]["holders"]
            wanted = {flat[i]: (flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)}
            expect_equal("held after the last event", held, wanted)
            for heap in device["heaps"]:
                check_heap(heap)
            expect_equal("the last heap", device["heaps"][-1]["kind"], "end")


def check_heap(heap):
    at = 0
    for segment in heap["segments"]:
        sums = [0] * len(segment["bytes"])
        while at < segment["end"]:
            size, _, state = heap["cells"][5 * at:5 * at + 3]
            sums[state] += size
            at += 1
        expect_equal(f"cells of {segment['address']}", sum(sums), segment["size"])
        expect_equal(f"bytes of {segment['address']}", sum(segment["bytes"]), segment["size"])
        if not heap["merged"]:
            expect_equal(f"states of {segment['address']}", sums, segment["bytes"])
    expect_equal("cells", at, len(heap["cells"]) // 5)


def case_heap_at_the_failure(pages):
    """The heap at a failure is that of a program that ended there, whatever came after."""
    shapes = []
    for words, kind in (["--stop"], "end"), ([], "oom"), (["--reset"], "oom"):
        path = pages.record("comb", pages.world.script("comb.py") + words, "memory:2GiB,context:100MiB", status=1)
        device = pages.data(path)[1]["runs"][0]["devices"][0]
        expect_equal("heaps", [heap["kind"] for heap in device["heaps"]], ["peak", "oom", "end"])
        heap = next(heap for heap in device["heaps"] if heap["kind"] == kind)
        check_heap(heap)
        live = device["cell_words"].index("live")
        cells = list(zip(*[iter(heap["cells"])] * 5))
        shapes.append(([segment["size"] for segment in heap["segments"]], [segment["bytes"][live] for segment in heap["segments"]],
                       [segment["n_pins"] for segment in heap["segments"]], [cell[:2] for cell in cells if cell[2] == live]))
    expect_equal("the heap at the failure", shapes[1], shapes[0])
    expect_equal("the heap at the failure, before a reset", shapes[2], shapes[0])
    expect(len(shapes[0][3]) >= 70, f"{len(shapes[0][3])} blocks live at the failure")


def case_segments_of_torch(pages):
    """An arena shows its tensors, the gaps between them, and who pins it."""
    _, data = pages.data(pages.made)
    run = data["runs"][0]
    heap = run["devices"][0]["heaps"][-1]
    check_heap(heap)
    in_no_tensor = run["devices"][0]["cell_words"].index("PyTorch's cache, in no tensor")
    with_gap = [segment for segment in heap["segments"] if segment["bytes"][in_no_tensor]]
    expect_equal("segments with a gap", len(with_gap), 1)
    expect_equal("the gap", with_gap[0]["bytes"][in_no_tensor], 15 << 20)
    expect_equal("pins", with_gap[0]["n_pins"], 2)


def purposes_of(data, device, moment):
    return {word: n for word, n in zip(device["purpose_words"], moment["purposes"]) if n}


def categories_of(sheet):
    return {row["category"]: row["live_bytes"] for row in sheet["categories"]}


def case_purposes(pages):
    """What the memory is for is what --json says, at the end, the peak and each failure; its sums over time end there."""
    n_known = 0
    for path in (pages.made, *pages.torch.values()):
        _, data = pages.data(path)
        run = data["runs"][0]
        device = run["devices"][0]
        at_end = json.loads(pages.world.report("summary", "--json", "--at=end", path).out)["devices"][0]
        expect_equal("at the end", purposes_of(data, device, device["end"]), categories_of(at_end))
        if "peak" in device:
            at_peak = json.loads(pages.world.report("summary", "--json", "--at=peak", path).out)["devices"][0]
            expect_equal("at the peak", purposes_of(data, device, device["peak"]), categories_of(at_peak))
        for oom, said in zip(device["ooms"], reversed(run["ooms"])):
            expect_equal("at a failure", purposes_of(data, device, oom), categories_of(said))
        levels = levels_of(device)
        expect_equal("two levels for each moment", len(levels), 2 * len(device["moments"]["rows"]) // ROW)
        expect(all(sum(level.purposes) <= level.live for level in levels), "more is for something than is live")
        if levels and device["purpose_words"]:
            expect_equal("the last level", levels[-1].purposes, device["end"]["purposes"])
            n_known += any(levels[-1].purposes)
        if path == pages.torch["torch"]:
            activations = [level.purposes[device["purpose_words"].index("activations")] >> 20 for level in levels]
            expect_equal("activations, that came and went", activations[::2], [100, 1000, 100, 100, 100, 800])
    expect(n_known > 0, "no recording has levels of purposes")


def case_several(pages):
    """A folder gives one page of all its recordings, despite damaged ones and other files."""
    folder = os.path.join(pages.world.folder, "several")
    os.mkdir(folder)
    for i, path in enumerate([pages.made, *pages.golden.values()]):
        shutil.copy(path, os.path.join(folder, f"{i}.gpucache"))
    with open(os.path.join(folder, "junk.gpucache"), "wb") as file:
        file.write(b"junk")
    out = os.path.join(pages.world.folder, "several.html")
    pages.world.report("html", "-f", "-o", out, folder, status=4)
    with open(out, encoding="utf-8") as file:
        found = re.search(r'<script id="data" type="application/json">\n(.*?)</script>', file.read(), re.S)
    expect_equal("runs", len(json.loads(found[1])["runs"]), 1 + len(pages.golden))


def case_without_d3(pages):
    """Built without D3, the command says what is missing, and nothing else changes."""
    build, parts = os.path.dirname(os.path.realpath(pages.world.build + "/gpumem-report")), os.path.join(pages.world.folder, "no-d3")
    subprocess.run(["make", "-s", "-C", TOP, "D3=", "B=" + parts, "O=" + parts, parts + "/html/embed.o"], check=True, capture_output=True,
                   env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")})
    sources = sorted(glob.glob("**/*.c", root_dir=os.path.join(TOP, "tools", "gpumem-report"), recursive=True))
    objects = [os.path.join(build, "tools", "gpumem-report", name[:-2] + ".o") for name in sources]
    program = os.path.join(parts, "gpumem-report")
    subprocess.run([os.environ.get("CC", "gcc"), "-o", program, *objects, parts + "/html/embed.o",
                    *(f"{build}/lib{name}.a" for name in ("replay", "sim", "format", "core")),
                    "-ldw", "-lelf", "-ljson-c", "-lz", "-lncursesw", "-ltinfo", "-lpthread", "-ldl"], check=True)
    done = subprocess.run([program, "html", "-o", parts + "/page.html", "-f", pages.made], capture_output=True, text=True, check=False)
    expect_equal("exit status", done.returncode, 2)
    expect("built without D3" in done.stderr, done.stderr)
    expect_equal("summary", subprocess.run([program, pages.made], capture_output=True, check=False).returncode, 0)


# With a browser.

def read_holders(page):
    return [tuple(row) for row in page.run(
        "[...document.querySelectorAll('#holders tr[data-where]')].map(row => [row.dataset.where, Number(row.dataset.bytes)])")]


def wanted_holders(rows):
    return [(row["where"], row["live_bytes"]) for row in rows]


def read_balance(page):
    return page.run("Object.fromEntries([...document.querySelectorAll('#balance tr[data-line]')]"
                    ".map(row => [row.dataset.line, Number(row.querySelector('[data-bytes]').dataset.bytes)]))")


def check_moment(page, summary, name):
    """The page shows the moment of the summary: table, flame graph, balance."""
    device = summary["devices"][0]
    held = sum(row["live_bytes"] for row in device["holders"])
    expect_equal(f"{name}: holders", sorted(read_holders(page)), sorted(wanted_holders(device["holders"])))
    expect_equal(f"{name}: sum of them", page.run("Number(document.getElementById('moment-bytes').dataset.bytes)"), held)
    expect_equal(f"{name}: flame graph", page.run("Number(document.getElementById('flame').dataset.bytes)"), held)
    for line, n_bytes in read_balance(page).items():
        expect_equal(f"{name}: balance {line}", n_bytes, device["balance"][line])


def open_page(pages, *recordings, width=1200, theme="light"):
    page = pages.browser
    page.size(width, 900, theme)
    page.open(pages.page(*recordings))
    return page


def press(page, selector):
    box = page.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{ block: 'center' }});"
                   " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
    page.click(*box)


def browser_case_oom(pages):
    """It opens at the failure: verdict, holders and balance are those of --json; peak and end are a click away."""
    recording = pages.record("oom", pages.world.script("train.py") + ["--oom"], "memory:2GiB,context:100MiB")
    page, summary = open_page(pages, recording), pages.summary(recording)
    expect_equal("verdict", page.run("document.querySelector('[data-verdict]').dataset.verdict"), summary["verdict"]["word"])
    advice = json.loads(pages.world.report("oom", "--json", recording).out)["verdict"]["try"][0]["advice"]
    expect(advice in page.run("document.getElementById('verdict').textContent"), "the advice is not on the page")
    check_moment(page, summary, "failure")
    heap_title = "document.getElementById('heap-title').textContent"
    expect("at the failure" in page.run(heap_title), page.run(heap_title))
    check_opening(page, summary)
    press(page, "#moments [data-kind=peak]")
    expect("at the peak" in page.run(heap_title), page.run(heap_title))
    peak = json.loads(pages.world.report("export", "--format=json", "--at=peak", recording).out)["devices"][0]
    expect_equal("at the peak", page.run("Number(document.getElementById('moment-bytes').dataset.bytes)"),
                 sum(row["live_bytes"] for row in peak["holders"]))
    press(page, "#moments [data-kind=end]")
    expect("at the end" in page.run(heap_title), page.run(heap_title))
    expect_equal("at the end", page.run("Number(document.getElementById('moment-bytes').dataset.bytes)"),
                 sum(row["live_bytes"] for row in
                     json.loads(pages.world.report("export", "--format=json", recording).out)["devices"][0]["holders"]))


def browser_case_opening(pages):
    """A failure that nothing grew to opens at its last steps."""
    recording = pages.record("comb", pages.world.script("comb.py"), "memory:2GiB,context:100MiB", status=1)
    page = open_page(pages, recording)
    expect(page.run("oomView(state.view.run, state.moment.oom.number).verdict.word") != "growth", "it grew")
    check_opening(page, pages.summary(recording))


def check_opening(page, summary):
    """A page of a failed run shows its last steps, or all that grew, and at the failure the balance."""
    oom = page.run("oomView(state.view.run, state.moment.oom.number)")
    point = page.run("state.view.points.filter(point => point.t <= state.moment.t).pop()")
    expect_equal("reserved at the failure", point["reserved"], sum(oom["balance"][line] for line in OURS))
    expect_equal("sampled", point["isSampled"], False)
    first, failed, last = page.run("[state.zoom[0], state.moment.t, state.zoom[1]]")
    n_before, n_shown = page.run(f"[0, {first}].map(t => state.view.rows.filter(row => row.t >= t && row.t <= {failed}).length)")
    is_whole = oom["verdict"]["word"] == "growth"
    expect((n_shown == n_before if is_whole else 0 < n_shown < n_before) and first < failed <= last, f"{n_shown} of {n_before} moments are shown")
    shown = page.run("document.querySelector('header').textContent")
    for words in (summary["recording"]["command"], summary["recording"]["started"][:10]):
        expect(words in shown, f"{words} is not in {shown}")
    press(page, "[data-do=reset]")
    expect_equal("the whole run", page.run("state.zoom"), None)


def browser_case_axis(pages):
    """The times of an axis have one unit, and a gap says how much later it goes on; a process has its program's name."""
    code = ("import time; from train import Device; d = Device()\n"
            "for i in range(60): d.alloc(1 << 20), time.sleep(1.2 if i == 30 else 0.004)")
    recording = pages.record("axis", [sys.executable, "-B", "-c", code], "memory:2GiB,context:100MiB", PYTHONPATH=os.path.join(TOP, "tests", "programs"))
    page = open_page(pages, recording, pages.made)
    page.run("selectView(state.view.run.summary.recording.pid === 4242 ? views[0] : views.find(view => view.rows.length > 50))")
    for zoom in ("null", "[state.view.rows[0].t, state.view.rows[20].t]", "[state.view.rows[5].t, state.view.rows[6].t]"):
        page.run(f"setZoom({zoom})")
        labels = page.run("[...document.querySelectorAll('#timeline .axis ~ .axis .tick text')].map(one => one.textContent)")
        expect_equal(f"units of {labels}", len({label.split()[-1] for label in labels}), 1)
        expect_equal("labels that are said twice", len(labels), len(set(labels)))
    for last in ("59e9", "119e9", "4e12", "2e14"):
        labels = page.run(f"(() => {{ const x = makeTimeScale([0, {last}], 60, 1100); const times = timeTicks(x); return times.ticks.map(times.show); }})()")
        expect(4 <= len(labels) == len(set(labels)), f"{last}: {labels}")
    drawn = page.run("thin(d3.range(4000).map(t => ({ t, live: t % 2 ? 1 : 9 })), d3.scaleLinear([0, 4000], [0, 800])).map(point => [point.px, point.live])")
    expect_equal("waves shorter than pixels", {live for px, live in drawn if px % 16 == 0 and px < 784}, {9, 1})
    expect(len(drawn) <= 2 * 800 / 16, f"{len(drawn)} points")
    page.run("setZoom(null)")
    expect("later" in page.run("document.querySelector('#timeline .gap').textContent"), "a gap says nothing")
    expect(all(" pid " in name for name in page.run("views.map(view => view.name)")), "no program in a tab")


def browser_case_one_cache(pages):
    """What is kept from the start on is not cached; PyTorch's cache has one colour and one name on the page."""
    code = ("import time; from train import Device; d = Device()\n"
            "for i in range(8): d.alloc(256 << 20), time.sleep(0.03)")
    recording = pages.record("slow", [sys.executable, "-B", "-c", code], "memory:8GiB,context:100MiB", PYTHONPATH=os.path.join(TOP, "tests", "programs"))
    page = open_page(pages, recording)
    expect_equal("bytes in a cache", page.run("d3.max(state.view.points, point => point.reserved - point.live)"), 0)
    expect("cache" not in page.run("document.getElementById('legend').textContent"), "the legend has a cache")
    if not os.path.exists(pages.world.program("torch")):
        return "no C++ compiler: without PyTorch's cache"
    torch = pages.record("tensors", [pages.world.program("torch"), "tensors", "50"], "memory:1GiB", status=0)
    check_failures(*(lambda data: (data, data["runs"][0]["devices"][0]))(pages.data(torch)[1]))
    page.open(pages.page(torch))
    name = page.run("state.view.cacheName")
    for part in ("heap-legend", "flame-legend", "holders", "balance"):
        expect(name in page.run(f"document.getElementById('{part}').textContent"), f"{part} does not name it")
    colours = page.run("[...document.querySelectorAll('.legend span, #balance td')].filter(one => one.textContent === state.view.cacheName)"
                       ".map(one => getComputedStyle(one.querySelector('i, .swatch')).backgroundColor)")
    expect(len(colours) >= 3 and len(set(colours)) == 1, f"its colours are {colours}")
    return ""


def browser_case_two_gpus(pages):
    """Each GPU has its own view; the one that failed is shown first."""
    recording = pages.record("two", pages.world.script("devices.py") + ["leak", "2", "1"], "memory:1GiB,devices:2,context:50MiB")
    page, summary = open_page(pages, recording), pages.summary(recording)
    of_gpu = {device["ordinal"]: {"devices": [device]} for device in summary["devices"]}
    check_moment(page, of_gpu[1], "GPU 1")
    page.key("[", "[")
    page.key("e", "e")
    check_moment(page, of_gpu[0], "GPU 0")
    n_failed = len(page.run("DATA.runs[0].devices[1].ooms"))
    expect_equal("marks of the other GPU's failures", page.run("document.querySelectorAll('#timeline .mark-other').length"), n_failed)
    press(page, "#moments [data-kind=other]")
    expect_equal("the other GPU's failure", page.run("[state.view.device.ordinal, state.moment.kind]"), [1, "oom"])
    page.key("[", "[")
    peaks = page.run("[...document.querySelectorAll('#ranks td[data-bytes]')].map(cell => Number(cell.dataset.bytes))")
    data = page.run("DATA.runs[0].devices.map(device => device.peak.live)")
    expect_equal("peaks of the GPUs", peaks, data)


def browser_case_clicks(pages):
    """A click on the timeline is a moment, and its holders add up to what was asked for then; dragging zooms; keys work."""
    recording = pages.record("clicks", [pages.world.program("train"), "--steps", "20"], "memory:4GiB,context:300MiB")
    page = open_page(pages, recording)
    left, top, width, height = page.run("(() => { const b = document.getElementById('timeline').getBoundingClientRect();"
                                        " return [b.x, b.y, b.width, b.height]; })()")
    seen = set()
    for part in (0.2, 0.4, 0.6, 0.8):
        page.click(left + part * width, top + height / 2)
        moment = page.run("({ t: state.moment.t, index: state.moment.index, bytes: Number(document.getElementById('moment-bytes')"
                          ".dataset.bytes), sum: state.moment.holders().reduce((sum, one) => sum + one.bytes, 0), live: state.moment.live })")
        expect_equal("sum of the holders", moment["bytes"], moment["sum"])
        expect(moment["live"] is None or moment["bytes"] <= moment["live"], f"more was asked for than was live: {moment}")
        expect_equal("table", sum(n for _, n in read_holders(page)), moment["bytes"])
        seen.add(moment["t"])
    expect(len(seen) > 1, "each click is the same moment")
    page.key("ArrowLeft")
    expect_equal("the moment before", page.run("state.moment.index"), moment["index"] - 1)
    page.drag(left + 0.3 * width, top + height / 2, left + 0.5 * width)
    expect(page.run("state.zoom !== null"), "dragging does not zoom")
    page.key("0", "0")
    expect(page.run("state.zoom === null"), "the key 0 does not show the whole run")
    press(page, "#flame g:last-of-type rect")
    expect(page.run("flame.focus !== flame.root"), "a click into the flame graph does nothing")
    press(page, "#segments tbody tr")
    expect("inned by" in page.run("document.getElementById('segment').textContent"), "a segment does not say what pins it")
    page.key("/", "/")
    page.run("(() => { const s = document.getElementById('search'); s.value = 'no such name'; s.dispatchEvent(new Event('input')); })()")
    expect_equal("rows of an unknown name", read_holders(page), [])
    page.key("Escape")
    expect(read_holders(page), "Escape does not end the search")
    page.key("d", "d")
    expect_equal("theme", page.run("document.documentElement.dataset.theme"), "dark")


def browser_case_purposes(pages):
    """Weights, activations and all else are layers of the timeline; the table has them of the moment; colours are explained."""
    page = open_page(pages, pages.torch["torch_use"])
    words = page.run("state.view.words.filter((word, i) => state.moment.purposes[i])")
    expect(words, "nothing is for anything")
    rows = page.run("Object.fromEntries([...document.querySelectorAll('#tags tr[data-purpose]')].map(row => [row.dataset.purpose,"
                    " Number(row.querySelector('[data-bytes]').dataset.bytes)]))")
    expect_equal("table", rows, page.run("Object.fromEntries(state.view.words.map((word, i) => [word, state.moment.purposes[i]]).filter(row => row[1]))"))
    page.open(pages.page(pages.torch["torch"]))
    drawn = page.run("layersUsed(state.view).map(i => [i, document.querySelector(`#timeline .purpose-${i}`).getBBox().height > 0])")
    expect(drawn and all(is_drawn for _, is_drawn in drawn), f"layers: {drawn}")
    legend = page.run("document.getElementById('legend').textContent")
    expect(all(page.run(f"state.view.words[{i}]") in legend for i, _ in drawn), legend)
    expect("contexts" in page.run("document.getElementById('flame-legend').textContent"), "the flame graph has no legend")


def browser_case_idle(pages):
    """Time in which nothing happens is short, a moment stays under the pointer, and a button draws all time alike."""
    code = ("import ctypes, time; from train import load_runtime; lib = load_runtime(); p = ctypes.c_void_p()\n"
            "for i in range(80): lib.cudaMalloc(ctypes.byref(p), 1 << 20), time.sleep(2 if i == 40 else 0.002)")
    recording = pages.record("idle", [sys.executable, "-B", "-c", code], "memory:2GiB,context:100MiB",
                             PYTHONPATH=os.path.join(TOP, "tests", "programs"))
    page = open_page(pages, recording)
    gaps = page.run("timeline.gaps.map(gap => [timeline.x(gap[1]) - timeline.x(gap[0]), gap[1] - gap[0]])")
    expect(gaps and all(px < 80 for px, _ in gaps) and max(ns for _, ns in gaps) > 1e9, f"idle time: {gaps}")
    expect(page.run("state.view.points.every((point, i, all) => i === 0 || timeline.x(point.t) >= timeline.x(all[i - 1].t))"), "time runs back")
    page.key("i", "i")
    expect_equal("with all time alike", page.run("[timeline.gaps.length, timeline.x.domain().length]"), [0, 2])


def browser_case_pending(pages):
    """The timeline shows pending memory apart from the cache."""
    page = open_page(pages, pages.made)
    history = json.loads(pages.world.report("export", "--format=json", pages.made).out)["devices"][0]["history"]
    expect_equal("pending", page.run("Number(document.getElementById('timeline').dataset.pending)"),
                 max(point["pending_bytes"] for point in history))
    expect("pending" in page.run("document.getElementById('legend').textContent"), "the legend does not name it")
    expect(page.run("document.querySelector('#timeline .area-pending').getBBox().height") > 0, "it is not drawn")


def browser_case_tags(pages):
    """PyTorch's arenas and tensors, and the program's ranges."""
    for recording in (pages.made, pages.golden["tags"], pages.golden["python"]):
        page, summary = open_page(pages, recording), pages.summary(recording)
        ranges = page.run("document.getElementById('tags').textContent")
        for row in summary["devices"][0]["tags"]:
            expect((row["tag"] or "(in no range)") in ranges, f"{row} is not in {ranges}")
        if not summary["verdict"]:
            page.key("e", "e")
            check_moment(page, summary, os.path.basename(recording))


def browser_case_million(pages):
    """A million events open in time, and a peak as short as one call is on the page, with its holders."""
    recording = pages.record("million", [pages.world.program("waves"), "1000000"], "memory:4GiB,context:0",
                             GPUCACHE_CONF="recording_size:256MiB")
    path = pages.page(recording)
    page = pages.browser
    page.size(1200, 900)
    times = []
    while len(times) < TRIES and (not times or min(times) > OPEN_S):
        times.append(page.open(path))
    events = page.run("DATA.runs[0].devices[0].moments.n_events")
    expect(events >= 1000000, f"{events} events")
    peak = pages.summary(recording)["devices"][0]["peak"]["live_bytes"]
    expect_equal("the highest of the ring", page.run("d3.max(state.view.rows, row => row.live)"), peak)
    expect_equal("the highest that is drawn", page.run("Number(document.getElementById('timeline').dataset.highest)"), peak)
    expect_equal("what was asked for there", page.run(
        "(() => { const top = d3.max(state.view.rows, row => row.live); selectMoment(state.view.moments.find(one => one.kind === 'event'"
        " && one.live === top)); return siteRows(state.view.run, state.moment.holders())[0].bytes; })()"), 777 << 20)
    expect(page.run("document.documentElement.outerHTML.length") < 2 << 20, "the page was not thinned")
    expect(min(times) < OPEN_S, f"it took {', '.join(f'{s:.2f}' for s in times)} s to open")
    return f"{events} events, {os.path.getsize(path) >> 10} KiB, open in {min(times):.2f} s"


def browser_case_sizes(pages):
    """Nothing is wider than the window, from a telephone to a large screen, dark and light."""
    for recording in (pages.made, pages.golden["python"]):
        for width in (320, 400, 800, 1600):
            for theme in ("light", "dark"):
                page = open_page(pages, recording, width=width, theme=theme)
                expect(page.run("document.documentElement.scrollWidth") <= width, f"at {width} pixels it is wider")
                expect_equal("theme", page.run("document.documentElement.dataset.theme"), theme)


def browser_case_unused(pages):
    """A process that used no GPU has a page that says so."""
    page = open_page(pages, pages.golden["unused"])
    expect("No" in page.run("document.getElementById('verdict').textContent"), "it says nothing")


def watched(case):
    """Fails a case whose page logs an error or requests anything from the network."""
    def run(pages):
        if pages.browser:
            pages.browser.problems.clear()
        said = case(pages)
        expect(not pages.browser or not pages.browser.problems, f"the page complained: {pages.browser and pages.browser.problems}")
        return said
    return run


def main():
    arguments = [word for word in sys.argv[1:] if word != "--browser"]
    if "--browser" not in sys.argv:
        return run_shared(cases_of(globals()) + cases_of(vars(chart)), arguments, Pages)
    path = chromium.find()
    if not path:
        print("skip html: there is no Chromium here; Debian's package is chromium\n0 passed, 0 failed")
        return 0

    def make(world):
        pages = Pages(world)
        pages.browser = chromium.Browser(path, world.folder)
        world.at_end(pages.browser.close)
        return pages

    return run_shared([(name, watched(case)) for name, case in cases_of(globals(), "browser_case_")], arguments, make)


if __name__ == "__main__":
    sys.exit(main())
