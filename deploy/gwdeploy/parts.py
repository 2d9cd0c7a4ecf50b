"""Reads which files belong to each part of a partitioned graph, and the JSON that names them, for copying."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from typing import Any

from .errors import UsageError

FORMAT = "graphwire-1"  # any minor version: the copy sends the files that the JSON names
_JSON_MAX = 256 << 20


@dataclasses.dataclass
class Graph:
    """A partitioned graph in a folder here."""

    config: str  # the JSON's path
    folder: str
    name: str
    parts: list[list[str]]  # for each part, its files relative to the folder, digests included
    lists: list[list[str]]  # for each part, those of them from which neighbours are drawn
    sizes: list[int]  # bytes of each part
    text: bytes  # the JSON's content

    @property
    def config_name(self) -> str:
        """The JSON's file name, the same on the hosts."""
        return os.path.basename(self.config)


def _find_config(path: str) -> str:
    path = os.path.expanduser(path)
    if not os.path.isdir(path):
        return path
    found = sorted(name for name in os.listdir(path) if name.endswith(".json"))
    if len(found) != 1:
        raise UsageError(f"--part_config {path}: the folder has {len(found)} JSON files; name the graph's JSON")
    return os.path.join(path, found[0])


def _load(config: str) -> tuple[dict[str, Any], bytes]:
    if os.path.exists(config) and not os.path.isfile(config):  # reading a pipe would wait
        raise UsageError(f"--part_config {config}: it is not a file")
    try:
        with open(config, "rb") as file:
            text = file.read(_JSON_MAX)
        graph = json.loads(text)
    except OSError as error:
        raise UsageError(f"--part_config {config}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--part_config {config}: it is not JSON: {error}") from None
    kind = graph.get("format") if isinstance(graph, dict) else None
    if isinstance(kind, str) and re.fullmatch("graphwire-[0-9]+", kind) and kind != FORMAT:
        raise UsageError(
            f"--part_config {config}: its format is {kind}, but this launcher reads {FORMAT}: use the Graphwire "
            "version that wrote it, or partition the graph again"
        )
    if kind != FORMAT:
        raise UsageError(
            f"--part_config {config}: not a graph that graphwire partition made; graphwire import converts DGL's"
        )
    return graph, text


def _files_of(config: str, number: int, part: Any) -> list[str]:
    files = []
    for key, array in part.items() if isinstance(part, dict) else ():
        path = array.get("file") if isinstance(array, dict) else None
        steps = path.split("/") if isinstance(path, str) else [""]
        if not path or not path.endswith(".npy") or any(step in ("", ".", "..") for step in steps):
            raise UsageError(f'--part_config {config}: part {number}, "{key}": no file inside the graph\'s folder')
        files += [path, path[:-4] + ".xxh"]
    return files


def _is_of_lists(key: str, array: dict[str, Any]) -> bool:
    """Returns whether `graphwire serve --lists all` may read an array of a part that it does not serve. The program
    decides by the same names and shapes (core/graph/part_lists.h); a file too many costs its copy alone."""
    name = key.rsplit("/", 1)[-1]
    if not key.startswith("edge/"):
        return name in ("indptr", "out_indptr")
    shape = array.get("shape")
    plain = isinstance(shape, list) and len(shape) == 1 and name not in ("rel", "orig_id", "orig_id.inverse")
    return plain or name.endswith(".alias")


def read(path: str) -> Graph:
    """Returns the graph of a JSON, or of a folder with one JSON. All its files must exist here."""
    config = _find_config(path)
    graph, text = _load(config)
    folder = os.path.dirname(os.path.abspath(config))
    count = graph.get("num_parts")
    if not isinstance(count, int) or not 1 <= count <= 65536:
        raise UsageError(f"--part_config {config}: num_parts is {count!r}")
    parts, lists, sizes = [], [], []
    for number in range(count):
        part = graph.get(f"part-{number}")
        files = _files_of(config, number, part)
        try:
            sizes.append(sum(os.path.getsize(os.path.join(folder, name)) for name in files))
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}: part {number} is incomplete here") from None
        parts.append(files)
        arrays = part.items() if isinstance(part, dict) else ()
        lists.append(_files_of(config, number, {key: array for key, array in arrays if _is_of_lists(key, array)}))
    return Graph(config, folder, str(graph.get("graph_name")), parts, lists, sizes, text)
