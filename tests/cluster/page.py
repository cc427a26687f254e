# SPDX-License-Identifier: Apache-2.0
"""Transcripts of docs/: what a page shows is run again, and has to look the same but for numbers, names of hosts and paths.

A transcript is the block after a line `<!-- transcript: NAME -->`: commands after `$ `, and what each printed.
"""
import os
import re

from harness import TOP, Failed


def transcript(page, name):
    """[(command, [line])]"""
    with open(os.path.join(TOP, "docs", "user", page), encoding="utf-8") as file:
        found = re.search(rf"<!-- transcript: {name} -->\n```\n(.*?)```", file.read(), re.S)
    if not found:
        raise Failed(f"docs/{page} has no transcript {name}")
    commands = []
    for line in found[1].splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def alike(line, host):
    """A line without what differs from run to run."""
    line = re.sub(r"/\S*/", "/", line.replace(host, "HOST").replace("node1", "HOST"))
    line = re.sub(r"\d+(\.\d+)?", "0", line)
    return re.sub(r"[ -]+", " ", line).strip()


def replay(page, name, host, run):
    """Runs the transcript's commands by run(command), which returns what is printed."""
    for command, wanted in transcript(page, name):
        said = run(command)
        found = [alike(line, host) for line in said.splitlines()]
        if found != [alike(line, host) for line in wanted]:
            raise Failed(f"docs/{page}, $ {command}: it prints\n{said}")
