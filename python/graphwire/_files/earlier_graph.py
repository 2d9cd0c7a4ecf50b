"""A graph in one part that was built of tables, from which a later build takes over what has not changed.

    Earlier(folder) ─▶ record NAME.build.json: {type: digest of all that its arrays depend on} ─▶ has(type, digest)
    ─▶ keys and times of its rows, checked by their digests, for edges that refer to them

Errors: Unfit, with the reason: the folder has no such graph, or a part of it is damaged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphwire._files import digest as _digest
from graphwire._files.numbering import Ids, Texts

RECORD = "graphwire-build-1"
_PIECE = 1 << 20  # ids of a batch


class Unfit(Exception):
    """A graph from which nothing is taken over. The text is the reason."""


class Earlier:
    """A graph on disk and its record. graph: the path of its JSON. nodes: {type: {"key", "rows"}}; edges: {type:
    {"key", …}}, as the record has them. Raises Unfit."""

    def __init__(self, folder: Path):
        self.folder = folder
        records = sorted(folder.glob("[!.]*.build.json"))
        if len(records) != 1:
            raise Unfit("it has no record of its build" if not records else "it has records of several builds")
        self.graph = records[0].with_name(records[0].name[:-len(".build.json")] + ".json")
        try:
            self._meta = _digest.unsealed(self.graph.read_bytes(), demanded=True)
            self.record = json.loads(records[0].read_text("utf-8"))
            if self.record["format"] != RECORD:
                raise Unfit("the record of its build is of another version")
            if self.record["graph_id"] != self._meta["graph_id"]:
                raise Unfit("the record of its build is that of another graph")
            self._arrays, self._units = self._meta["part-0"], self._meta.get("units", {})
            self.nodes: dict[str, Any] = {name: one for name, one in self.record["nodes"].items() if one["key"]}
            self.edges: dict[str, Any] = {name: one for name, one in self.record["edges"].items() if one["key"]}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise Unfit("its JSON, or the record of its build, is damaged") from None
        if self._meta["num_parts"] != 1:
            raise Unfit("it is divided into parts")

    def _array(self, key: str) -> np.ndarray:
        """An array, whose digest is checked."""
        try:
            array = self._arrays[key]
            path = self.folder / array["file"]
            found = np.load(path, mmap_mode="r" if all(array["shape"]) else None, allow_pickle=False)
            if list(found.shape) != array["shape"] or _digest.of_array(found) != array["digest"]:
                raise ValueError
        except KeyError:
            raise Unfit(f"its JSON has no {key}") from None
        except (OSError, ValueError, EOFError):
            raise Unfit(f"{path} is damaged") from None
        return found

    def keys(self, name: str) -> Iterator[Ids]:
        """The keys of a table's rows, in batches. name: the node type in the graph."""
        key = f"node/{name}/orig_id"
        if key in self._arrays:
            rows = self._array(key)
            for begin in range(0, len(rows), _PIECE):
                yield rows[begin:begin + _PIECE]
            return
        offsets, data = self._array(f"{key}.offsets").view(np.int64), self._array(f"{key}.bytes")
        for begin in range(0, len(offsets) - 1, _PIECE):
            yield Texts(np.ascontiguousarray(offsets[begin:begin + _PIECE + 1]), data)

    def times(self, name: str, feature: str) -> np.ndarray:
        """Times of a table's rows, with their unit."""
        key = f"node/{name}/{feature}"
        rows, unit = self._array(key), self._units.get(key)
        return rows if unit is None else rows.view(f"<M8[{unit}]")


def found_in(folder: Path) -> Iterator[Earlier]:
    """The graphs in a folder that serve."""
    for one in sorted(folder.iterdir()):
        try:
            yield Earlier(one)
        except Unfit:
            continue
