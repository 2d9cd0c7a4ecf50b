"""The columns of a table that hold the ends of edges, by their names: the rules of `graphwire import` for headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Optional

_PAIRS = (("src", "dst"), ("source", "target"), ("source", "destination"), ("source", "dest"), ("from", "to"),
          ("startid", "endid"), ("u", "v"), ("head", "tail"), ("h", "t"), ("subject", "object"), ("user", "item"),
          ("follower", "followee"), ("follower", "followed"), ("citing", "cited"), ("sender", "receiver"))
_SOURCES, _DESTINATIONS = ("src", "source", "from"), ("dst", "target", "destination", "dest", "to")
_ENDINGS = ("", "id", "node", "nodeid", "vertex", "vertexid")


class _Name:
    """A name in lower case, without signs, as whole and without a last word "id" or "node id"."""

    def __init__(self, name: Any):
        self.text = str(name) if name is not None else ""
        words = re.sub(r"(?<=[^A-Z\W_])(?=[A-Z])", " ", self.text).lower()
        split = re.findall(r"[^\W_]+", words)
        self.whole = "".join(split)
        for endings in (("id", "ids"), ("node", "vertex")):
            if len(split) > 1 and split[-1] in endings:
                split.pop()
        self.stem = "".join(split)

    def means(self, known: str) -> bool:
        endings = _ENDINGS if len(known) > 1 else ("",)
        return self.stem == known or any(self.whole == known + ending for ending in endings)

    def is_type(self, ntype: str) -> bool:
        of = _Name(ntype).whole
        return bool(of) and (of in (self.whole, self.stem) or self.whole == of + "id")

    def is_neo4j(self, what: str) -> bool:
        return re.search(rf":{what}(\(|$)", self.text, re.IGNORECASE) is not None

    def unnamed(self) -> bool:
        return not self.text or re.match("unnamed:.", self.text, re.IGNORECASE) is not None


def _pair(names: Sequence[_Name], src: Any, dst: Any) -> Optional[tuple[list[int], list[int]]]:
    """The places of the names that pass src and of those that pass dst; None if either is missing."""
    found = [place for place, name in enumerate(names) if src(name)], [
        place for place, name in enumerate(names) if dst(name)]
    return found if all(found) else None


def _numbered(names: Sequence[_Name]) -> Optional[tuple[int, int]]:
    """node1 and node2 as the first two columns with names."""
    places = [place for place, name in enumerate(names) if not name.unnamed()][:2]
    if len(places) < 2:
        return None
    one, two = (names[place].stem for place in places)
    first = re.fullmatch("([a-z].*)1", one)
    return (places[0], places[1]) if first and two == first.group(1) + "2" else None


def ends(names: Sequence[Any], src_type: str = "", dst_type: str = "") -> Optional[tuple[int, int]]:
    """The places of sources and destinations among the names of columns; None if no names are known. Names of the two
    node types go before the known names, and node1 and node2 come last. Raises ValueError if the names point out
    several columns."""
    found = known_ends(names, src_type, dst_type)
    return _numbered([_Name(name) for name in names]) if found is None else found


def known_ends(names: Sequence[Any], src_type: str = "", dst_type: str = "") -> Optional[tuple[int, int]]:
    """As ends(), without node1 and node2, which may be names of nodes as well."""
    known = [_Name(name) for name in names]
    typed = _Name(src_type).whole != _Name(dst_type).whole
    found = [_pair(known, lambda name: name.is_type(src_type), lambda name: name.is_type(dst_type))] if typed else []
    if not any(found):
        found = [_pair(known, lambda name: name.is_neo4j("start_id"), lambda name: name.is_neo4j("end_id"))]
    if not any(found):
        found = [_pair(known, lambda name, word=src: name.means(word), lambda name, word=dst: name.means(word))
                 for src, dst in _PAIRS]
    pairs = [pair for pair in found if pair]
    if pairs:
        if any(pair != pairs[0] or len(pair[0]) > 1 or len(pair[1]) > 1 for pair in pairs):
            raise ValueError(f"several columns have known names of ends: {', '.join(map(str, names))}")
        return pairs[0][0][0], pairs[0][1][0]
    sources = [place for place, name in enumerate(known) if any(map(name.means, _SOURCES))]
    destinations = [place for place, name in enumerate(known) if any(map(name.means, _DESTINATIONS))]
    if len(sources) == 1 and len(destinations) == 1:
        return sources[0], destinations[0]
    return None
