#!/usr/bin/env python3
"""Runs the tests of this folder, or of the named files; prints a line "ok - ..." or "not ok - ..." for each test.

run.py [--soak] [--jobs N] [test_words ...]. With --soak, tests that the step `deploy` repeats a few times run with
their full counts, one after the other. Else classes of tests run in parallel, one for each processor, each in a
separate process with its own hosts (bed.py).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

_LINE_MAX, _LINES_MAX = 500, 30  # of a failed test's output
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1] / "deploy")]
sys.dont_write_bytecode = True


class Lines(unittest.TestResult):
    """Prints a line for each test, and a note for each skipped test."""

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
        """Called by unittest: prints a subtest only if it fails."""
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


def tests_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests_of(one)
        else:
            yield one


def classes_of(suite: unittest.TestSuite) -> list[unittest.TestSuite]:
    """Returns a suite for each class. The longest come first, by `weight` or the number of tests."""
    found: dict[type, list[unittest.TestCase]] = {}
    for test in tests_of(suite):
        found.setdefault(type(test), []).append(test)
    order = sorted(found, key=lambda kind: -int(getattr(kind, "weight", len(found[kind]))))
    return [unittest.TestSuite(found[kind]) for kind in order]


def run(suite: unittest.TestSuite) -> bool:
    """Returns whether at least one test ran and no test failed."""
    result = Lines()
    suite.run(result)
    return bool(result.testsRun) and result.wasSuccessful()


def begin(suite: unittest.TestSuite) -> int:
    """Forks a process that runs a suite, and ends with this process. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    good = False
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        good = run(suite)
    finally:
        sys.stdout.flush()
        os._exit(0 if good else 1)


def side_by_side(suites: list[unittest.TestSuite], jobs: int) -> bool:
    """Runs suites, this many at a time. Returns whether all passed."""
    good, running = True, 0
    while suites or running:
        while suites and running < jobs:
            begin(suites.pop(0))
            running += 1
        _, status = os.wait()
        running -= 1
        if status:
            good = False
            if not os.WIFEXITED(status):
                print(f"not ok - a process of tests ended with signal {os.WTERMSIG(status)}", flush=True)
    return good


def main(words: list[str]) -> int:
    """Runs the tests. Returns 0 if at least one test ran and no test failed."""
    jobs = len(os.sched_getaffinity(0))
    if "--soak" in words:
        words.remove("--soak")
        os.environ["GRAPHWIRE_SOAK"] = "1"
        jobs = 1  # its results are times
    if "--jobs" in words:
        at = words.index("--jobs")
        jobs = int(words[at + 1])
        del words[at : at + 2]
    names = words or sorted(path.stem for path in HERE.glob("test_*.py"))
    suites = classes_of(unittest.defaultTestLoader.loadTestsFromNames(names))
    return 0 if suites and side_by_side(suites, jobs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
