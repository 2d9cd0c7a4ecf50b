"""Keys of several columns as one text, which is the original id of a node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def key_text(values: Iterable[Any]) -> str:
    """The text of a key of several columns: a JSON array of texts and integers, without blanks. Two keys have one text
    only if they are equal. Raises TypeError for other values."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
