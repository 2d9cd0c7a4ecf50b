"""Step 2: the suite of all transports (test/conformance), over this host's device. Both ends are in one process."""

from __future__ import annotations

import re

from card.host import words
from card.run_state import Run

SUITE = (
    "test_transport_reads",
    "test_transport_calls",
    "test_transport_life",
    "test_transport_deferred",
    "test_transport_once",
    "test_transport_several",
    "test_transport_dynamic",
    "test_transport_versioned",
    "test_transport_verbs_trust",
    "test_transport_fork",
)
SHORT = ("test_transport_verbs_trust",)
BUILD = (
    "cmake --preset dev && cmake --build --preset dev (needs libcmocka-dev: deploy/packages.sh check), or use a "
    "bundle: it has these programs"
)
_TAP = re.compile(r"^(ok|not ok) \d+ (- .*|# SKIP.*)$", re.MULTILINE)


def check(run: Run) -> None:
    for name in SHORT if run.short else SUITE:
        program = run.programs.test(name)
        if program is None:
            run.report.note(f"suite {name}: not built", BUILD)
            continue
        if run.left() < 2:
            run.report.note(f"suite {name}: no time left", "run with a larger --limit")
            continue
        done = run.client.sh(
            "ulimit -c 0; ulimit -n $(ulimit -Hn); GRAPHWIRE_TEST_BED=verbs CMOCKA_MESSAGE_OUTPUT=TAP CI= exec "
            + words(*program),
            run.left(),
        )
        results = _TAP.findall(done.out)
        good = sum(mark == "ok" and text.startswith("-") for mark, text in results)
        failed = [text for mark, text in results if mark == "not ok"]
        if done.rc == 0 and good:
            run.report.ok(f"suite {name}: {good} tests over {run.client.device} in {done.seconds:.0f} s")
            continue
        run.report.attach(name, done.out + done.err)
        what = "; ".join(text[2:] for text in failed) or done.why()
        if done.rc == 124:
            run.report.note(f"suite {name}: {good} tests passed, then no time left", "run with a larger --limit")
        else:
            run.report.not_ok(
                f"suite {name}: {what}",
                "send the report: the appendix has the program's output. Locked memory or descriptors that are too few "
                "fail these tests too: see the limits above",
            )
