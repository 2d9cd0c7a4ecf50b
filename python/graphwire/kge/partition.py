"""gwke_partition: a dataset cut for dist_train, as Graphwire's parts and as DGL-KE's files.

<data_path>/<dataset>/graphwire/         the parts that servers load, and the dictionaries of their numbers
<data_path>/<dataset>/partition_P/       of part P:
    train.txt            its triples, "head relation tail" by local numbers
    local_to_global.txt  of each local number the dictionary's: first the entities that P has, then the other ends
    partition_book.txt   of each entity of the dictionary its part
    relation_count.txt   how many relations there are

A triple is in the part that has its tail. Triples are read, handed over and written a block at a time: what this
process keeps is some 40 bytes an entity, and the dictionaries where lines have names. METIS takes more (docs/KGE.md);
--method random does not.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Callable, Optional

import numpy as np

from graphwire._scratch import Scratch
from graphwire.kge.data import DataError, Dataset, Sink
from graphwire.kge.dictionaries import keep
from graphwire.kge.store import ENTITY, TRIPLE, TripleFiles, run_program

BLOCK = 1 << 20  # triples at once
PARTS = "graphwire"
FILES = {"train.txt", "local_to_global.txt", "partition_book.txt", "relation_count.txt"}  # of a part, for DGL-KE


def parts_folder(data_path: str | Path, dataset: str) -> Path:
    return Path(data_path) / dataset / PARTS


def _write_numbers(path: Path, numbers: np.ndarray) -> None:
    with open(path, "w", encoding="ascii") as file:
        for first in range(0, len(numbers), BLOCK):
            file.writelines(f"{number}\n" for number in numbers[first:first + BLOCK].tolist())


class _Parts:
    """What is read of a graph in parts: array by array and block by block, from its files (docs/FORMAT.md)."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._meta = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        self.nodes, self.edges = ([range(first, end) for first, end in self._meta[name][kind]]
                                  for name, kind in (("node_map", ENTITY), ("edge_map", TRIPLE)))

    def has(self, part: int, key: str) -> bool:
        return key in self._meta[f"part-{part}"]

    def rows(self, part: int, key: str, first: int = 0, end: Optional[int] = None) -> np.ndarray:
        """Rows of an array of one element each."""
        with open(self._folder / self._meta[f"part-{part}"][key]["file"], "rb") as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            file.seek(first * dtype.itemsize, os.SEEK_CUR)
            return np.fromfile(file, dtype, (shape[0] if end is None else end) - first)

    def numbers(self) -> np.ndarray:
        """Of each entity, its number in the dictionary."""
        key = f"node/{ENTITY}/orig_id"
        return np.concatenate([self.rows(part, key).astype(np.int64) if self.has(part, key) else np.asarray(own)
                               for part, own in enumerate(self.nodes)])


EDGE = "edge/" + TRIPLE.replace(":", "__")


def _write_part(parts: _Parts, part: int, numbers: np.ndarray, folder: Path) -> int:
    """A part's train.txt and local_to_global.txt; how many of its triples have their head in another part."""
    own, count = parts.nodes[part], len(parts.edges[part])
    ends = parts.rows(part, f"node/{ENTITY}/indptr")[1:]
    local = np.full(len(numbers), -1, np.int32 if len(numbers) < 1 << 31 else np.int64)
    local[own.start:own.stop] = np.arange(len(own))
    known, order, cut = len(own), [np.arange(own.start, own.stop)], 0
    with open(folder / "train.txt", "w", encoding="ascii") as file:
        for first in range(0, count, BLOCK):
            end = min(first + BLOCK, count)
            head = parts.rows(part, f"{EDGE}/indices", first, end)
            relation = parts.rows(part, f"{EDGE}/relation", first, end)
            tail = np.searchsorted(ends, np.arange(first, end), side="right")  # local already
            cut += int(((head < own.start) | (head >= own.stop)).sum())
            new = np.unique(head[local[head] < 0])
            local[new] = known + np.arange(len(new))
            known += len(new)
            order.append(new)
            file.writelines(f"{h}\t{r}\t{t}\n" for h, r, t in zip(
                local[head].tolist(), relation.tolist(), tail.tolist()))
    _write_numbers(folder / "local_to_global.txt", numbers[np.concatenate(order)])
    return cut


def _remove_beyond(top: Path, num_parts: int) -> None:
    """Removes what a run with more parts has left: folders of exactly the files that this command writes."""
    for folder in sorted(top.glob("partition_*")):
        number = folder.name.partition("_")[2]
        if not number.isdecimal() or str(int(number)) != number or int(number) < num_parts or folder.is_symlink():
            continue
        if folder.is_dir() and {path.name for path in folder.iterdir()} == FILES:
            for name in FILES:
                (folder / name).unlink()
            folder.rmdir()
            print(f"{folder.name} is of a former run: removed")


def write_files(graph_folder: Path, top: Path, num_relations: int) -> tuple[int, int]:
    """DGL-KE's files of a graph in parts; triples, and those that are cut."""
    parts = _Parts(graph_folder)
    numbers = parts.numbers()
    book = np.empty(len(numbers), np.int32)
    for part, own in enumerate(parts.nodes):
        book[numbers[own.start:own.stop]] = part
    _remove_beyond(top, len(parts.edges))
    cuts = 0
    for part, edges in enumerate(parts.edges):
        folder = top / f"partition_{part}"
        folder.mkdir(exist_ok=True)
        cut = _write_part(parts, part, numbers, folder)
        cuts += cut
        _write_numbers(folder / "partition_book.txt", book)
        (folder / "relation_count.txt").write_text(f"{num_relations}\n", encoding="ascii")
        print(f"part {part} has {len(parts.nodes[part])} entities and {len(edges)} triples; {cut} heads are in other "
              "parts")
    return sum(map(len, parts.edges)), cuts


def _replace(place: Path, ready: Path, former: Path) -> None:
    """Puts a folder of parts into its place; what was there is moved to `former`, and is back where that fails."""
    if place.exists() and not (place / "graph.json").is_file():
        raise DataError(f"{place} is there and has no graph.json: remove it, or move it away")
    if place.exists():
        place.rename(former)
    try:
        ready.rename(place)
    except BaseException:
        if former.exists() and not place.exists():
            former.rename(place)
        raise


def partition(args: argparse.Namespace, load: Callable[[Sink], Dataset]) -> None:
    """The command. load: reads the dataset, whose training triples go where it is told."""
    top = Path(args.data_path) / args.dataset
    top.mkdir(parents=True, exist_ok=True)
    parts = parts_folder(args.data_path, args.dataset)
    with Scratch(top, ".graph") as scratch:
        whole = scratch / "whole"
        files = TripleFiles(scratch)
        dataset = load(files.add)
        files.build(dataset.num_entities, whole)
        method = "random" if args.num_parts == 1 else args.method
        run_program("partition", whole, "--num-parts", str(args.num_parts), "--method", method,
                    *(["--memory", args.memory] if args.memory else []), "--out", Path(scratch) / PARTS)
        keep(dataset, Path(scratch) / PARTS)
        _replace(parts, Path(scratch) / PARTS, Path(scratch) / "former")
    triples, cuts = write_files(parts, top, dataset.num_relations)
    print(f"there are {triples} edges in the graph and {cuts} edge cuts for {args.num_parts} partitions.")
    print(f"{1 - cuts / (2 * triples):.1%} of the rows of triples' ends are in the triples' own parts")
