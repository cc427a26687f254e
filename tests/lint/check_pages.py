#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_pages.py [TOP]: what the pages refer to is there, and each fact has one place.

1. Each file and each heading that a link of a page names is there.
2. Each page or picture of docs/ that any text of the repository names is there: comments, messages, manuals.
3. docs/README.md links to each page of docs/.
4. Measurements stand on one page of docs/ only: no two pages have passages with the same two or more numbers, unit by unit.
5. Pages for users (README, docs/user) say what is, not what was.
"""
import os
import re
import subprocess
import sys
import urllib.parse

# Pages whose text comes from a program.
GENERATED = {"docs/user/CLIENTS.md"}

DIARY = re.compile(r"\bsince that table\b|\bbefore that(?:,|:)|\b(?:version|run) before\b|\b(?:a|one|two) (?:day|hour|week)s? later\b|"
                   r"\bthat (?:evening|day)\b|\|\s*before\s*\||\|\s*now\s*\||\bit (?:fell|rose) to\b", re.I)

# "1.13 to 1.18 times as long": each of the numbers has the unit.
AND = r"(?: to |, | and | or | instead of )"
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
UNIT = r"times|[mun]?s\b|[KMGT]i?B\b|%"
MEASURED = re.compile(rf"(?<![\w.,])({NUMBER}(?:{AND}{NUMBER})*) ?({UNIT})((?:{AND}{NUMBER})*)(?![\w.,]*\d)")

# Digits that the numbers have together which two passages share: as many are no accident.
MANY_DIGITS = 6


def files():
    """Every text file of the repository, relative to TOP."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True,
                                check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names]
    return sorted({name for name in listed if os.path.isfile(name) and not os.path.islink(name) and not name.startswith(("build/", ".git/"))})


def read(name):
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        return ""


def without_code(text):
    """The page with as many lines, those of code blocks empty."""
    inside, lines = False, []
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside ^= fence
    return "\n".join(lines)


def anchors(text):
    """The names by which GitHub links to the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", without_code(text), re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        n = 0
        while (unique := name if not n else f"{name}-{n}") in found:
            n += 1
        found.add(unique)
    return found | set(re.findall(r'<a (?:name|id)="([^"]+)"', text))


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def dead_links(name, text):
    body = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), without_code(text))
    for link in re.finditer(r"\]\(([^()\s]+)\)", body):
        if re.match(r"[a-z]+:", link[1]):
            continue
        target, _, anchor = urllib.parse.unquote(link[1]).partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
        if not os.path.exists(path):
            yield f"{name}:{line_of(body, link.start())}: links to {target}, which is not there"
        elif anchor and path.endswith(".md") and anchor not in anchors(read(path)):
            yield f"{name}:{line_of(body, link.start())}: links to {link[1]}: {path} has no such heading"


def dead_names(name, text):
    for named in re.finditer(r"(?<![\w/.-])(?:\.\./)*(docs/[\w./-]*\.(?:md|png|svg|yml|json))\b", text):
        if not os.path.exists(named[1]):
            yield f"{name}:{line_of(text, named.start())}: names {named[1]}, which is not there"


def passages(text):
    """(line, text) of each paragraph, item and row of a table."""
    start, lines = 1, []
    for number, line in enumerate(without_code(text).split("\n") + [""], 1):
        if lines and (not line.strip() or re.match(r"\s*(?:[-*|]|\d+\.) *", line)):
            yield start, " ".join(lines)
            lines = []
        if line.strip():
            start = start if lines else number
            lines.append(line.strip())


def digits(number):
    return len(number.replace(".", "").replace(",", "").strip("0"))


def measurements(text):
    """{(number, unit)} of a passage."""
    return {(number, said[2]) for said in MEASURED.finditer(text) for number in re.findall(NUMBER, said[1] + said[3]) if digits(number) > 1}


def repeated(pages):
    found = [(name, line, facts) for name, text in pages for line, said in passages(text) if len(facts := measurements(said)) > 1]
    for i, (name, line, facts) in enumerate(found):
        for other, its_line, its_facts in found[:i]:
            shared = facts & its_facts
            if other != name and len(shared) > 1 and sum(digits(number) for number, _ in shared) >= MANY_DIGITS:
                yield (f"{name}:{line}: {', '.join(sorted(' '.join(fact) for fact in shared))}: {other}:{its_line} says the same;"
                       " a measurement has one place, others link to it")


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    faults = []
    texts = {name: read(name) for name in files()}
    pages = {name: text for name, text in texts.items() if name.endswith(".md")}
    for name, text in texts.items():
        if name not in ("tests/lint/selftest.sh", "CHANGELOG.md"):
            faults += dead_names(name, text)
    for name, text in pages.items():
        faults += dead_links(name, text)
    docs = {name: text for name, text in pages.items() if name.startswith("docs/")}
    index = docs.get("docs/README.md", "")
    faults += [f"docs/README.md: has no link to {name}" for name in docs
               if name != "docs/README.md" and f"]({os.path.relpath(name, 'docs')})" not in index]
    faults += repeated([(name, text) for name, text in docs.items() if name not in GENERATED])
    for name, text in pages.items():
        if (name == "README.md" or name.startswith("docs/user/")) and name not in GENERATED:
            faults += [f"{name}:{line_of(text, said.start())}: \"{said[0]}\": a page for users says what is"
                       for said in DIARY.finditer(without_code(text))]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
