"""Names of types and features in the format's alphabet, A-Z a-z 0-9 _ . + -.

    "gene/protein" -> "gene+2Fprotein" in files, on servers and in the program -> "gene/protein" in Python

A name within the alphabet stays as it is, unless it looks like an escaped name. Each other byte of a name's UTF-8, and
each "+", becomes "+" and two hexadecimal digits. ":" separates the three names of an edge type, so that a name cannot
have it.

Errors: ValueError for ":" in a new name, and for a name that is too long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 64  # bytes of a name in the format
_PLAIN = re.compile(r"[A-Za-z0-9_.-]")
_ESCAPED = re.compile(r"(?:[A-Za-z0-9_.-]|\+[0-9A-F]{2})*")


def _escape(name: str) -> str:
    return "".join(one if _PLAIN.fullmatch(one) else "".join(f"+{byte:02X}" for byte in one.encode())
                   for one in name)


def unescaped(name: str) -> str:
    """The name that `escaped` has made `name` of; a name that is not escaped, as it is."""
    if "+" not in name or not _ESCAPED.fullmatch(name):
        return name
    try:
        found = re.sub(r"((?:\+[0-9A-F]{2})+)", lambda run: bytes.fromhex(run.group(1).replace("+", "")).decode(), name)
    except UnicodeDecodeError:
        return name
    return found if _escape(found) == name and re.search(r"[^A-Za-z0-9_.-]", found) else name


def is_plain(name: str) -> bool:
    """Whether the text of a type or a feature is within the format's alphabet."""
    return re.fullmatch(r"[A-Za-z0-9_.+:-]*", name) is not None


def _stays(name: str) -> bool:
    return ":" not in name and is_plain(name) and unescaped(name) == name


def escaped(name: str, what: str = "a name") -> str:
    """The name in the format's alphabet. unescaped() gives it back. what: names it in errors. Raises ValueError,
    and TypeError for what is no text."""
    if not isinstance(name, str):
        raise TypeError(f"{what} is a text, not {name!r:.100}")
    if any("\ud800" <= one <= "\udfff" for one in name):
        raise ValueError(f"{what}: {name!r:.100} has half of a character, which UTF-8 does not hold")
    if ":" in name:
        raise ValueError(f'{what}: {name!r} has a ":", which separates the three names of an edge type')
    if _stays(name):
        return name
    found = _escape(name)
    if len(found) > LONGEST:
        raise ValueError(f"{what}: {name!r} takes {len(found)} bytes as {found:.80}: at most {LONGEST}")
    return found


def is_storable(name: str) -> bool:
    """Whether a type or a feature may have this name."""
    try:
        return 0 < len(escaped(name)) <= LONGEST and "\0" not in name and name not in (".", "..")
    except ValueError:
        return False


def escaped_names(names: Sequence[str]) -> list[str]:
    """The names of a type, and perhaps of one of its features behind them, each as `escaped` gives it."""
    kinds = ["a type's name"] * len(names)
    if len(names) % 2 == 0:  # (type, feature), (source, relation, destination, feature)
        kinds[-1] = "a feature's name"
    return [escaped(name, kind) for name, kind in zip(names, kinds)]


def escaped_type(name: str) -> str:
    """The text of a type or a feature, "name" or "src:rel:dst", in the format's alphabet. It may be too long."""
    return ":".join(one if _stays(one) else _escape(one) for one in name.split(":"))


def unescaped_type(name: str) -> str:
    return ":".join(unescaped(one) for one in name.split(":"))


def escaped_tensor(name: str) -> str:
    """The name in the alphabet of tensors' names, which has ":" and "/" too. No two names have the same result."""
    return "".join(one if one in ":/" or _PLAIN.fullmatch(one) else _escape(one) for one in name)


def unescaped_tensor(name: str) -> str:
    """The name that escaped_tensor has made `name` of."""
    try:
        return re.sub(r"((?:\+[0-9A-F]{2})+)", lambda run: bytes.fromhex(run.group(1).replace("+", "")).decode(), name)
    except UnicodeDecodeError:
        return name


def plain(text: str) -> str:
    """The text as one plain line: "?" stands for control characters, as in the library's texts."""
    return re.sub("[\0-\x1f\x7f-\x9f]", "?", text)


def readable(text: str) -> str:
    """A text of the library or the program, such as an error, with the names that are escaped in it as they were, in
    one plain line."""
    return plain(re.sub(r"[A-Za-z0-9_.:-]*\+[A-Za-z0-9_.+:-]*", lambda word: unescaped_type(word.group()), text))
