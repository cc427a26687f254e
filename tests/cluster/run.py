#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where jobs run, for real: Slurm, containers, Prometheus, a hundred ranks: run.py BUILD [WORD...].

A word is part of the name of a case or of its set: slurm, containers, alerts, hundred.  The cases of a set share its
daemons; where these are not installed, all are skipped with the reason.
"""
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))

import cases_alerts  # noqa: E402
import cases_containers  # noqa: E402
import cases_hundred  # noqa: E402
import cases_slurm  # noqa: E402
from containers import Podman  # noqa: E402
from harness import Skip  # noqa: E402
from monitoring import Monitoring  # noqa: E402
from runner import cases_of, run_shared  # noqa: E402
from slurm import Slurm  # noqa: E402

SETS = [(cases_slurm, Slurm), (cases_containers, Podman), (cases_alerts, Monitoring),
        (cases_hundred, cases_hundred.Ranks)]


def main():
    words = sys.argv[2:]
    sets = [(module.__name__.removeprefix("cases_"), make, cases_of(vars(module))) for module, make in SETS]
    names = [f"{name} {case}" for name, _, cases in sets for case, _ in cases]
    unknown = [word for word in words if not any(word in name for name in names)]
    if unknown:
        sys.exit(f"run.py: no case has {', '.join(unknown)} in its name")
    status = 0
    for name, make, cases in sets:
        cases = [case for case in cases if not words or any(word in f"{name} {case[0]}" for word in words)]
        try:
            status |= run_shared(cases, sys.argv[1:2], make) if cases else 0
        except Skip as reason:
            print(f"skip {name}: {reason}")
    return status


if __name__ == "__main__":
    sys.exit(main())
