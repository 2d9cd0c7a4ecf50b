"""A test whose resources are missing is skipped on a developer's machine, and fails in CI."""

from __future__ import annotations

import os
import unittest

import pytest
from shared import given, imported, need_root


@pytest.mark.parametrize("ask, text", [
    (lambda: given("absent"), "no shared/absent"), (lambda: imported("absent.module"), "absent"),
    (lambda: need_root("namespaces"), "namespaces need root")])
def test_missing_resources(monkeypatch, ask, text):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for setting, kind in (("", unittest.SkipTest), ("true", AssertionError)):
        monkeypatch.setenv("CI", setting)
        with pytest.raises(kind, match=text):
            ask()
