# SPDX-License-Identifier: Apache-2.0
"""Runs the table of error codes (tests/programs/errors.def) on a driver alone and with gpucache."""
import concurrent.futures
import os

# The ways to run each row: name, whether with gpucache, its configuration.
WAYS = (
    ("plain", False, None),
    ("cache on", True, None),
    ("cache off", True, "cache:off"),
)


class Row:
    def __init__(self, line):
        self.name, apis, expected, cached, self.seen, self.source = line.split("\t")
        self.apis = apis.split(",")
        self.expected = int(expected)
        self.cached = int(cached)

    def wanted(self, way):
        return self.cached if way == "cache on" else self.expected


def read_rows(world):
    lines = world.run([world.program("errors"), "list"], with_us=False).out.splitlines()
    return [Row(line) for line in lines]


def ask_all(world, rows, ways=WAYS):
    """{(row, api): {way: code}}; the code is a text if the program did not reach the call under test."""
    def ask(row, api, way, with_us, conf):
        done = world.run([world.program("errors"), row.name, api], with_us, GPUCACHE_CONF=conf)
        if done.status == 0 and done.out.strip().lstrip("-").isdigit():
            return row.name, api, way, int(done.out)
        return row.name, api, way, f"status {done.status} {done.out.strip()} {done.err.strip()}"

    answers = {}
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        jobs = [pool.submit(ask, row, api, *way) for row in rows for api in row.apis for way in ways]
        for job in jobs:
            name, api, way, code = job.result()
            answers.setdefault((name, api), {})[way] = code
    return answers
