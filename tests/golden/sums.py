#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sum that a report prints adds up as printed: sums.py FILE...

    a balance sheet     its lines to `=`, what a line consists of to that line, shares to shares
    a table             its rows to the amount in its section's first line, shares to 100.0 %
    a tree              the children of each node to the node
    a comparison        both columns to their totals
    USED                its summands to the first amount
    leaks               the groups' bytes, and the GPUs', to SUMMARY's, to the byte

Numbers are added as they stand there, and the sum is rounded to the last digit of the one that is printed.
"""
import re
import sys
from fractions import Fraction

UNITS = {unit: 1024 ** i for i, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
AMOUNT = r"(\d+(?:\.\d\d)?) ([KMGTPE]?i?B)\b"
SHEET_LINE = re.compile(r"(?: {3}| {7})([ +=]) (  )?(\w.{28}) +" + AMOUNT + r"(?: +(\d+\.\d) %)?(?:  .*)?")
ROW = re.compile(r" *" + AMOUNT + r" +(\d+\.\d) % ")
HEAD = re.compile(r" *(bytes|own) +share ")
COLOUR = re.compile("\033\\[[0-9;]*m")


class Wrong(Exception):
    pass


def value(number, unit):
    return Fraction(number) * UNITS[unit]


def expect_sum(where, wanted, parts):
    """wanted is a printed (number, unit); parts are values."""
    step = UNITS[wanted[1]] * (Fraction(1, 100) if "." in wanted[0] else 1)
    if abs(sum(parts) - value(*wanted)) * 2 > step:
        raise Wrong(f"{where}: {float(sum(parts) / UNITS[wanted[1]]):.4f} {wanted[1]}, not {' '.join(wanted)}")


def expect_shares(where, wanted, parts):
    if sum(map(Fraction, parts)) != Fraction(wanted):
        raise Wrong(f"{where}: {float(sum(map(Fraction, parts)))} %, not {wanted} %")


def check_sheet(lines):
    """The lines behind a BALANCE line; how many sums there were."""
    parts, shares, over, below = [], [], None, []
    n = 0

    def close():
        nonlocal over, below
        if below:
            expect_sum("what a line consists of", over, below)
        done, over, below = len(below) > 0, None, []
        return done

    for i, line in enumerate(lines):
        found = SHEET_LINE.fullmatch(line)
        if not found:
            if re.match(r" {30}|.* unknown$", line):
                continue
            break
        sign, is_detail, label, number, unit, share = found.groups()
        if is_detail:
            below.append(value(number, unit))
            continue
        n += close()
        if sign == "=":
            missing = re.search("difference (-?)" + AMOUNT, line + lines[i + 1]) if "all of" in label else None
            missed = value(missing[2], missing[3]) * (-1 if missing[1] else 1) if missing else 0
            expect_sum(label, (number, unit), parts + [missed])
            if not missing:
                expect_shares(label, share, shares)
            parts, shares = [value(number, unit)], [share]
            n += 1
        else:
            parts.append(value(number, unit))
            shares.append(share)
            over = number, unit
    return n + close()


def check_table(title, lines):
    amounts, shares = [], []
    for line in lines:
        found = ROW.match(line)
        if found:
            amounts.append(value(found[1], found[2]))
            shares.append(found[3])
        elif not line.startswith("      "):
            break
    total = re.search(AMOUNT, title)
    if not total or not amounts:
        raise Wrong(f"a table without rows or sum: {title}")
    expect_sum(title, total.groups(), amounts)
    expect_shares(title, "100.0", shares)
    return 1


def check_tree(title, lines):
    """Of each node the children's numbers, which are two columns further right, add up to its own."""
    rows = []
    for line in lines:
        found = re.match(r" *" + AMOUNT + r" +(\d+\.\d) % {1,10}(?:[\d,]*) +(?=\S)", line)
        if not found:
            break
        rows.append((found.end(), found.groups()[:2], found[3]))
    if not rows:
        return 0
    left = min(at for at, _, _ in rows)
    rows.insert(0, (left - 2, re.search(AMOUNT, title).groups(), "100.0"))
    n = 0
    for i, (at, amount, share) in enumerate(rows):
        below = []
        for child in rows[i + 1:]:
            if child[0] <= at:
                break
            if child[0] == at + 2:
                below.append(child)
        if below:
            expect_sum(title, amount, [value(*row[1]) for row in below])
            expect_shares(title, share, [row[2] for row in below])
            n += 1
    return n


def check_diff(title, lines):
    """Both columns add up to their totals, and a change is that of the numbers beside it."""
    amounts = re.findall(AMOUNT, title)[:2]
    sides = [], []
    for line in lines:
        found = re.match(r" *[+-]?" + AMOUNT + " +" + AMOUNT + " +" + AMOUNT + "  ", line)
        if not found:
            break
        change, before, after = (found.groups()[i:i + 2] for i in (0, 2, 4))
        sides[0].append(value(*before))
        sides[1].append(value(*after))
        if len({change[1], before[1], after[1]}) == 1:
            expect_sum(line, change, [abs(value(*after) - value(*before))])
    for amount, side in zip(amounts, sides):
        expect_sum(title, amount, side)
    return 2


def check_used(text):
    text = re.sub(r"\(.*?\)", "", " ".join(text.split()))
    amounts = re.findall(AMOUNT, text)
    expect_sum("USED", amounts[0], [value(*amount) for amount in amounts[1:]])
    return 1


def check_leaks(text):
    total = re.search(r"^SUMMARY: gpumem-report: (\d+) bytes", text, re.M)
    groups = re.findall(r"^[\d.]+ [KMGTPE]?i?B \(([\d,]+) B\) (?:in|by) ", text, re.M)
    if not total:
        return 0
    of_gpus = re.findall(r"^GPU .*: [\d.]+ [KMGTPE]?i?B \(([\d,]+) B\)$", text.replace("\n  ", " "), re.M)
    for parts in groups, of_gpus:
        found = sum(int(part.replace(",", "")) for part in parts)
        if found != int(total[1]):
            raise Wrong(f"leaks: {found}, not {total[1]}")
    return 2


def check(text):
    lines = COLOUR.sub("", text).splitlines()
    n = check_leaks(text)
    for i, line in enumerate(lines):
        if line.startswith("BALANCE") and SHEET_LINE.fullmatch(lines[i + 1] if i + 1 < len(lines) else ""):
            n += check_sheet(lines[i + 1:])
        elif re.match(" +change +before", line):
            n += check_diff(lines[i - 1], lines[i + 1:])
        elif re.search(" blocks  (callers first|callees first)", line):
            n += check_tree(lines[i - 1], lines[i + 1:])
        elif HEAD.match(line):
            title = i - 1
            while not lines[title] or lines[title][0] == " ":
                title -= 1
            n += check_table(lines[title], lines[i + 1:])
        elif line.startswith("USED"):
            n += check_used(" ".join(lines[i:i + 3]).split(" others.")[0])
    return n


def main():
    total = failed = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            total += check(text)
        except Wrong as wrong:
            failed += 1
            print(f"{path}: {wrong}")
    print(f"{total} sums")
    return failed != 0 or total == 0


if __name__ == "__main__":
    sys.exit(main())
