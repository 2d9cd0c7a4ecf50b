"""The digests of Graphwire's files (docs/FORMAT.md), for files that Python writes: of arrays, and of a JSON by itself.

    text = sealed({"gamma": 12.0})             # '{"json_digest": "…", "gamma": 12.0}'
    unsealed(text.encode(), demanded=False)    # {"gamma": 12.0}; ValueError if a bit of the text has changed

The rules are the C library's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphwire._base.native import ffi, in_thread, lib

KEY = "json_digest"


def of_array(array: np.ndarray) -> str:
    """The digest of an array in C order, as 16 hexadecimal digits."""
    data = array.reshape(-1).view(np.uint8)
    return f"{in_thread(lambda: lib.gw_array_digest(ffi.from_buffer(data), data.nbytes)):016x}"


def sealed(values: Mapping[str, Any]) -> str:
    """A JSON text of the values and of its own digest."""
    text = bytearray((json.dumps({KEY: "0" * 16, **values}, indent=4) + "\n").encode())
    assert lib.gw_json_digest_set(ffi.from_buffer("char[]", text, require_writable=True), len(text))
    return text.decode()


def unsealed(text: bytes, *, demanded: bool) -> dict[str, Any]:
    """The values of a JSON text, without its digest. demanded: the text must have a digest. Raises ValueError."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("expected an object")
    if lib.gw_json_digest_check(ffi.from_buffer(text), len(text), demanded or KEY in values) != lib.GW_OK:
        raise ValueError(ffi.string(lib.gw_last_error()).decode())
    return {key: value for key, value in values.items() if key != KEY}
