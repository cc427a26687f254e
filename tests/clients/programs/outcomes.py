# SPDX-License-Identifier: Apache-2.0
"""Runs unittest's tests and says what became of each: outcomes.py MODULE[.CLASS[.TEST]]..., a line "OUTCOME TEST" each.

A module may be a file's name, too; several tests of one file load it once.  What the tests themselves print goes to stderr.
"""
import importlib.util
import os
import sys
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out, self.told = out, {}

    def tell(self, test, outcome):
        """Once for each test, the first that is told; the tests of a class that could not begin are told by its name."""
        if self.told.setdefault(test.id(), outcome) == outcome:
            print(outcome, test.id(), file=self.out, flush=True)

    def addSuccess(self, test):
        self.tell(test, "ok")

    def addFailure(self, test, err):
        print(self._exc_info_to_string(err, test), file=sys.stderr)
        self.tell(test, "failed")

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(test, err)

    def addSkip(self, test, reason):
        self.tell(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.tell(test, "ok")

    def addUnexpectedSuccess(self, test):
        self.tell(test, "failed")


def load(name):
    """The tests of a module, or of what is named in it."""
    file, _, rest = name.partition(".py")
    if os.path.exists(file + ".py"):
        word = os.path.basename(file)
        name = word + rest
    if os.path.exists(file + ".py") and word not in sys.modules:
        spec = importlib.util.spec_from_file_location(word, file + ".py")
        sys.modules[word] = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(file))
        spec.loader.exec_module(sys.modules[word])
    names = [name]
    if name.count(".") == 2 and name.split(".")[0] in sys.modules:  # the tests that PyTorch makes of one with parameters
        module, group, test = name.split(".")
        methods = dir(getattr(sys.modules[module], group))
        names = [name] if test in methods else [f"{module}.{group}.{m}" for m in methods if m.startswith(test + "_")]
    return unittest.defaultTestLoader.loadTestsFromNames(names)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    result = Outcomes(out)
    unittest.TestSuite([load(name) for name in sys.argv[1:]]).run(result)


main()
