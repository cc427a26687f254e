# SPDX-License-Identifier: Apache-2.0
"""Errors are the driver's own: every row of errors.def, by both APIs, with and without gpucache."""
import errors
from harness import expect, expect_equal


def case_every_row_of_the_table_of_errors_is_answered_as_it_says(world):
    rows = errors.read_rows(world)
    expect(len(rows) > 80, f"only {len(rows)} rows")
    answers = errors.ask_all(world, rows)
    wrong = [f"{row.name} ({api}, {way}): {answers[row.name, api][way]}, not {row.wanted(way)}"
             for row in rows for api in row.apis for way, _, _ in errors.WAYS
             if answers[row.name, api][way] != row.wanted(way)]
    expect(not wrong, "\n    ".join(["", *wrong]))


def case_every_row_of_the_table_of_errors_names_its_source(world):
    rows = errors.read_rows(world)
    expect_equal("rows without a source", [row.name for row in rows if len(row.source) < 6], [])
    expect_equal("names that stand twice", len({row.name for row in rows}), len(rows))
