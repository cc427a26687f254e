# SPDX-License-Identifier: Apache-2.0
"""docs/CLIENTS.md, as the runs make it: a section a set of packages, which a later run of the same set replaces."""
import os
import re

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "CLIENTS.md")

HEAD = """# Real programs

Unmodified packages from PyPI on the simulated GPU, where kernels do nothing and everything else behaves as on a GPU. Each
case runs plain and with the library. It passes if both print the same, results and the program's own count of its memory
included, and if the library's books agree with that count. Made by `make check-clients TABLE=1`; a set that was not run
keeps what its last run said.

| set | packages | stands for | passed |
| --- | --- | --- | --- |
"""


def sections(text):
    """The sections, by their titles."""
    parts = re.split(r"^## (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def section(name, packages, what, columns, results):
    passed = sum(not result.wrong for result in results)
    rows = ["| " + " | ".join((result.case, *(str(cell) for cell in result.cells), "no" if result.wrong else "yes")) + " |"
            for result in results]
    head = "| " + " | ".join(("case", *columns, "passed")) + " |\n" + "| --- " * (len(columns) + 2) + "|\n"
    return f"\n`{packages}` - {what} - {passed} of {len(results)}\n\n" + head + "\n".join(rows) + "\n\n"


def summary(name, body):
    packages, what, passed = re.match(r"\n`(.*)` - (.*) - (.*)\n", body).groups()
    return f"| {name} | {packages} | {what} | {passed} |\n"


def write(name, *args):
    """Replaces the section of this set: see section()."""
    try:
        with open(FILE) as file:
            found = sections(file.read())
    except FileNotFoundError:
        found = {}
    found[name] = section(name, *args)
    order = sorted(found, key=lambda title: (not title.startswith("torch-"), [
        -int(part) if part.isdigit() else 0 for part in re.split(r"\D+", title)], title))
    text = HEAD + "".join(summary(title, found[title]) for title in order) + "\n"
    with open(FILE, "w") as file:
        file.write((text + "".join(f"## {title}\n{found[title].rstrip()}\n\n" for title in order)).rstrip() + "\n")
