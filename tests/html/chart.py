# SPDX-License-Identifier: Apache-2.0
"""The page's chart without a browser: its levels, against the balance of each failure, and its colours."""
import collections
import itertools
import math
import os
import re
import sys

from harness import expect, expect_equal

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

N_PURPOSES = 8

# Numbers of a row of moments, and of a level.
ROW = 5
LEVEL = 4 + N_PURPOSES
Level = collections.namedtuple("Level", "t live idle reserved purposes")


def levels_of(device):
    flat = device["levels"]
    return [Level(*flat[i:i + 4], flat[i + 4:i + LEVEL]) for i in range(0, len(flat), LEVEL)]


OURS = ("requested_bytes", "rounding_bytes", "pending_bytes", "cached_bytes", "direct_bytes")


def check_failures(data, device):
    """At each failure the levels are those of its balance."""
    levels = levels_of(device)
    expect(levels and levels[0].reserved is not None, "the reserved bytes are not known")
    expect(device["ooms"], "nothing failed")
    for oom, said in zip(device["ooms"], reversed(data["runs"][0]["ooms"])):
        balance = said["balance"]
        level = [level for level in levels if level.t <= oom["t"]][-1]
        taken = sum(balance[line] for line in OURS)
        expect_equal(f"reserved at failure {oom['number']}", level.reserved, taken)
        expect_equal(f"the page's balance of failure {oom['number']}", oom["levels"][3], taken)
        expect_equal(f"live and idle at failure {oom['number']}", [level.live, level.idle], oom["levels"][:2])
        expect_equal(f"all lines of failure {oom['number']}", sum(oom["levels"][:3]) + balance["cached_bytes"], taken)


def case_reserved_is_that_of_the_balance(pages):
    """At each failure the chart's sum is what the balance says is taken, also of memory that the ladder gave back for it."""
    code = ("from train import *; d = Device(); kept = [d.alloc(100 << 20) for _ in range(4)]; idle = [(d.alloc(64 << 20), 64 << 20) for _ in range(8)]\n"
            "for one in idle: d.free(*one)\n"
            "for size in (3 << 30, 3 << 29, 3 << 30):\n    try: d.alloc(size)\n    except CudaError: kept.append(d.alloc(40 << 20))")
    ladder = pages.record("ladder", [sys.executable, "-B", "-c", code], "memory:1GiB,context:100MiB", PYTHONPATH=os.path.join(TOP, "tests", "programs"))
    for path in (ladder, pages.record("comb", pages.world.script("comb.py"), "memory:2GiB,context:100MiB", status=1),
                 pages.record("oomed", pages.world.script("train.py") + ["--oom"], "memory:2GiB,context:100MiB")):
        _, data = pages.data(path)
        check_failures(data, data["runs"][0]["devices"][0])


def case_what_is_not_kept_is_not_cached(pages):
    """A program that allocates slowly, and keeps all, reserves what is live: from its first moment to its last one."""
    code = ("import time; from train import Device; d = Device()\n"
            "for i in range(12): d.alloc(256 << 20), time.sleep(0.03)")
    path = pages.record("slow", [sys.executable, "-B", "-c", code], "memory:8GiB,context:100MiB", PYTHONPATH=os.path.join(TOP, "tests", "programs"))
    device = pages.data(path)[1]["runs"][0]["devices"][0]
    levels = levels_of(device)
    expect(len(levels) > 12, f"{len(levels)} levels")
    expect_equal("moments with a cache", [level for level in levels if level.reserved != level.live], [])


def case_reserved_without_the_beginning(pages):
    """If the ring lost the beginning, the levels lead to the end; contexts that ended leave nothing."""
    ring = pages.record("ring", [pages.world.program("waves"), "60000"], "memory:4GiB,context:100MiB", GPUCACHE_CONF="recording_size:4MiB")
    code = ("import ctypes; cu = ctypes.CDLL('libcuda.so.1'); at, context = ctypes.c_uint64(), ctypes.c_void_p(); cu.cuInit(0)\n"
            "for n in range(3):\n cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0)\n"
            " for i in range(20): cu.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(3 << 20))\n"
            " cu.cuMemFree_v2(at), n < 2 and cu.cuCtxDestroy_v2(context)")
    ended = pages.record("ended", [sys.executable, "-B", "-c", code], "memory:4GiB,context:50MiB", status=0)
    for path in (ring, ended):
        for device in pages.data(path)[1]["runs"][0]["devices"]:
            levels = levels_of(device)
            said = next(one for one in pages.summary(path)["devices"] if one["ordinal"] == device["ordinal"])
            expect_equal("reserved at the end", levels[-1].reserved, sum(said["balance"][line] for line in OURS))
    levels = levels_of(pages.data(ended)[1]["runs"][0]["devices"][0])
    expect(max(level.live for level in levels) <= 110 << 20, "contexts that ended count on")
    expect(levels[-1].live >= 57 << 20, f"{levels[-1].live} bytes are live in the last context")
    device = pages.data(ring)[1]["runs"][0]["devices"][0]
    expect(device["moments"]["n_events"] < 120000, "the ring has all events")
    expect(all(level.live <= level.reserved for level in levels_of(device)), "more is live than reserved")


# What a colour of linear sRGB is to people without red, green or blue cones (Machado, Oliveira, Fernandes 2009).
SEEN = {"all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
        "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))}
# Colours of one chart, on the card.
CHART = [f"purpose-{i}" for i in range(8)] + ["rest", "purpose-none", "torch", "cached", "pending", "card"]
# The least distance in Oklab; 0.02 is one that is just noticed.
APART = 0.08


def oklab(colour, seen):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))]
    r, g, b = [min(1, max(0, sum(m * c for m, c in zip(row, linear)))) for row in SEEN[seen]]
    l, m, s = [(x * r + y * g + z * b) ** (1 / 3) for x, y, z in ((0.4122214708, 0.5363325363, 0.0514459929),
               (0.2119034982, 0.6806995451, 0.1073969566), (0.0883024619, 0.2817188376, 0.6299787005))]
    return (0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s)


def case_colours_differ(pages):
    """Any two colours of the timeline differ, also for the colour blind."""
    with open(os.path.join(TOP, "tools", "gpumem-report", "html", "page.css"), encoding="utf-8") as file:
        themes = re.findall(r"(?:^:root|^\[data-theme=\"dark\"\]) \{(.*?)^\}", file.read(), re.S | re.M)
    for theme in themes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", theme))
        for seen in SEEN:
            points = {name: oklab(colours[name], seen) for name in CHART}
            near = [(round(math.dist(points[a], points[b]), 3), a, b) for a, b in itertools.combinations(CHART, 2)]
            expect(min(near)[0] >= APART, f"seen by people with {seen}: {sorted(near)[:3]}")
