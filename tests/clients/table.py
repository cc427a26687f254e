# SPDX-License-Identifier: Apache-2.0
"""docs/user/CLIENTS.md, as the runs make it: a section a set of packages, a row a case, which a later run of it replaces.

table.py PAGE: what of the page was not made so."""
import os
import re
import sys

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "user", "CLIENTS.md")

HEAD = """# Real programs

Unmodified packages from PyPI on the simulated GPU, where kernels do nothing and everything else behaves as on a GPU. Each case runs
plain and with the library. It passes if both runs print the same, including results and the program's own count of its memory, and
if the library's accounting agrees with that count. `make check-clients TABLE=1` generates this page; a case that did not run keeps
its last result.

On the simulated GPU a loss is whatever was in memory, so two equal losses prove little. PyTorch's cases therefore compare what
determines a loss on a GPU:

| compared, plain and with the library | shows | does not show |
| --- | --- | --- |
| each stream's kernels, in order, with grids, blocks and shared memory; each copy with its size | the GPU gets the same work: the same kernels, nothing left out or done twice | the kernels' arguments: addresses differ by design, and their types are unknown |
| the final states of all random generators, including the GPUs' | each generator produced the same random numbers | |
| losses and weights of a model trained on the host next to one on the GPU, bit for bit | the library disturbs no computation in the process | |
| data copied to the GPU and back without kernels, bit for bit | copies reach the right tensor | what kernels do with the data |

Losses computed by a real GPU were compared on an H100 with torch 2.11: they are bit-identical.

| set | packages | stands for | passed |
| --- | --- | --- | --- |
"""


def sections(text):
    """The sections, by their titles."""
    parts = re.split(r"^## (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def key(row, n_keys):
    """The cells that name a row: the case, and the ways in which it ran; a case of several words has no ways."""
    return tuple(row[:1 if " " in row[0] else n_keys])


def rows_of(body, packages, n_keys):
    """The rows of a section, by their keys; none if it is of other packages."""
    if not body.startswith(f"\n`{packages}` "):
        return {}
    rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in body.splitlines()
            if line.startswith("| ") and not line.startswith("| --- ")]
    return {key(row, n_keys): row for row in rows[1:]}


def section(before, packages, what, columns, n_keys, results):
    """The section with the rows of this run; rows of cases that did not run stay."""
    rows = rows_of(before, packages, n_keys)
    for result in results:
        row = [result.case, *(str(cell) for cell in result.cells), "no" if result.wrong else "yes"]
        rows[key(row, n_keys)] = row
    passed = sum(row[-1] == "yes" for row in rows.values())
    lines = ["| " + " | ".join([*row[:-1], *[""] * (len(columns) + 2 - len(row)), row[-1]]) + " |" for row in rows.values()]
    head = "| " + " | ".join(("case", *columns, "passed")) + " |\n" + "| --- " * (len(columns) + 2) + "|\n"
    return f"\n`{packages}` - {what} - {passed} of {len(rows)}\n\n" + head + "\n".join(lines) + "\n\n"


def summary(name, body):
    packages, what, passed = re.match(r"\n`(.*)` - (.*) - (.*)\n", body).groups()
    return f"| {name} | {packages} | {what} | {passed} |\n"


def page(found):
    """The whole page, of these sections."""
    order = sorted(found, key=lambda title: (not title.startswith("torch-"), [
        -int(part) if part.isdigit() else 0 for part in re.split(r"\D+", title)], title))
    text = HEAD + "".join(summary(title, found[title]) for title in order) + "\n"
    return (text + "".join(f"## {title}\n{found[title].rstrip()}\n\n" for title in order)).rstrip() + "\n"


def write(name, *args):
    """Replaces the section of this set: see section()."""
    try:
        with open(FILE) as file:
            found = sections(file.read())
    except FileNotFoundError:
        found = {}
    found[name] = section(found.get(name, ""), *args)
    with open(FILE, "w") as file:
        file.write(page(found))


def check(path):
    """What was written into the page by hand, a line each."""
    with open(path) as file:
        text = file.read()
    found = sections(text)
    wrong = [] if page(found) == text else [f"{path}: the head and the list of sets are not what the sections and table.py say"]
    for title, body in found.items():
        last = [line.rsplit(" | ", 1)[1] for line in body.splitlines() if re.match(r"\|.* \| (yes|no) \|$", line)]
        said = re.search(r" - (\d+ of \d+)\n", body)[1]
        if said != f"{last.count('yes |')} of {len(last)}":
            wrong.append(f"{path}: {title} says {said}, and its rows {last.count('yes |')} of {len(last)}")
    return wrong


if __name__ == "__main__":
    faults = check(sys.argv[1])
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(1 if faults else 0)
