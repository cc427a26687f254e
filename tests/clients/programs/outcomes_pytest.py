# SPDX-License-Identifier: Apache-2.0
"""Runs pytest's tests and says what became of each: outcomes_pytest.py FILE..., a line "OUTCOME TEST" each.

The outcomes are those of outcomes.py; what the tests themselves print goes to stderr.
"""
import os
import sys

import pytest


class Outcomes:
    def __init__(self, out):
        self.out = out

    def pytest_runtest_logreport(self, report):
        """A test is told once: by its call, or by the setup or teardown that ended it."""
        if report.when == "call" or report.outcome != "passed":
            file, *names = report.nodeid.split("::")
            test = ".".join([os.path.basename(file).removesuffix(".py"), *names])
            print({"passed": "ok"}.get(report.outcome, report.outcome), test, file=self.out, flush=True)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Outcomes(out)])


sys.exit(main())
