#!/usr/bin/env python3
"""Runs the tests of this folder, or those of the files that are named; each is a line "ok - ..." or "not ok - ...".

run.py [--soak] [test_words ...]; --soak: the full counts of what the step `deploy` does a few times.
"""

from __future__ import annotations

import os
import sys
import time
import unittest
from pathlib import Path

_LINE_MAX, _LINES_MAX = 500, 30  # of what a failed test says
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1] / "deploy")]
sys.dont_write_bytecode = True


class Lines(unittest.TestResult):
    """A line for each test; a skipped one is a note."""

    def startTest(self, test: unittest.TestCase) -> None:
        """Called by unittest."""
        super().startTest(test)
        self.began = time.monotonic()

    def _name(self, test: unittest.TestCase) -> str:
        return test.id().replace(".", ": ", 1)

    def addSuccess(self, test: unittest.TestCase) -> None:
        """Called by unittest."""
        super().addSuccess(test)
        print(f"ok - {self._name(test)} ({time.monotonic() - self.began:.1f} s)", flush=True)

    def _bad(self, test: unittest.TestCase, error: object) -> None:
        text = self._exc_info_to_string(error, test)  # type: ignore[attr-defined]
        lines = [line[:_LINE_MAX] for line in text.strip().splitlines()]
        print(f"not ok - {self._name(test)}: {lines[-1]}", *lines[-_LINES_MAX:], sep="\n", flush=True)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # type: ignore[override]
        """Called by unittest."""
        super().addFailure(test, err)  # type: ignore[arg-type]
        self._bad(test, err)

    def addError(self, test: unittest.TestCase, err: object) -> None:  # type: ignore[override]
        """Called by unittest."""
        super().addError(test, err)  # type: ignore[arg-type]
        self._bad(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:  # type: ignore[override]
        """Called by unittest: the parts of a test are told only where they fail."""
        super().addSubTest(test, subtest, err)  # type: ignore[arg-type]
        if err:
            self._bad(subtest, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        """Called by unittest."""
        super().addSkip(test, reason)
        if os.environ.get("CI") == "true":
            print(f"not ok - {self._name(test)}: skipped in CI: {reason}", flush=True)
            self.failures.append((test, reason))
        else:
            print(f"note: {self._name(test)} skipped: {reason}", flush=True)


def main(words: list[str]) -> int:
    """Runs them; 0 if none failed and at least one ran."""
    if "--soak" in words:
        words.remove("--soak")
        os.environ["GRAPHWIRE_SOAK"] = "1"
    names = words or sorted(path.stem for path in HERE.glob("test_*.py"))
    result = Lines()
    unittest.defaultTestLoader.loadTestsFromNames(names).run(result)
    return 0 if result.testsRun and result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
