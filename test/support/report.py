"""Prints pytest's results for ./check: a line "ok - …" or "not ok - …" for every test."""

from __future__ import annotations

import os
import sys


def tell(report, area):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the process that started this one prints the line
    if report.when == "call" or report.outcome == "failed":
        word = "not ok" if report.outcome == "failed" else "ok"
        if report.outcome == "skipped":
            print(f"\nnote: skipped {report.nodeid}", file=sys.__stdout__, flush=True)
        else:
            print(f"\n{word} - {area}: {report.nodeid.split('/')[-1]}", file=sys.__stdout__, flush=True)
