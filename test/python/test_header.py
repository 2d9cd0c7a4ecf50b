"""cffi parses the whole public header, so Python can call what C can."""

from __future__ import annotations

import re
from pathlib import Path

from graphwire._base.native import ffi, lib

INCLUDE = Path(__file__).resolve().parents[2] / "include" / "graphwire"
TEXT = "".join(path.read_text() for path in sorted(INCLUDE.glob("*.h")))


def test_every_function_of_the_header_is_there():
    names = set(re.findall(r"\bGW_API\b[^;{]*?\b(gw_\w+)\(", TEXT))
    assert len(names) > 60
    assert [name for name in sorted(names) if not hasattr(lib, name)] == []


def test_every_struct_of_the_header_is_whole():
    names = re.findall(r"^struct (gw_\w+) \{", TEXT, re.MULTILINE)
    assert {"gw_edge_list", "gw_edge_seeds", "gw_edge_batch", "gw_split_options", "gw_minibatch"} <= set(names)
    for name in names:
        assert ffi.sizeof(f"struct {name}") > 0
        assert ffi.typeof(f"struct {name}").fields
