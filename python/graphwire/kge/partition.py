"""gwke_partition: partitions a dataset for dist_train. It writes Graphwire's parts and DGL-KE's files.

<data_path>/<dataset>/graphwire/         the parts that the servers load, and the dictionaries of their numbers
<data_path>/<dataset>/partition_P/       the files of part P for DGL-KE:
    train.txt            the part's triples, "head relation tail" by local numbers
    local_to_global.txt  the dictionary's number for each local number: P's own entities, then the other ends
    partition_book.txt   the part of each entity, in the order of the dictionary
    relation_count.txt   the number of relations

The part that owns the tail stores the triple. This process reads, passes on and writes one block of triples at a time.
It keeps some 40 bytes for each entity in memory, and the dictionaries if lines have names. METIS needs more memory
(docs/KGE.md); --method random does not.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Callable, Optional

import numpy as np

from graphwire._base.scratch import Scratch
from graphwire.kge.data import DataError, Dataset, Sink
from graphwire.kge.dictionaries import keep_with_parts
from graphwire.kge.store import ENTITY, TRIPLE, TripleFiles, run_program

BLOCK = 1 << 20  # triples at once
PARTS = "graphwire"
FILES = {"train.txt", "local_to_global.txt", "partition_book.txt", "relation_count.txt"}  # a part's files for DGL-KE


def parts_folder(data_path: str | Path, dataset: str) -> Path:
    return Path(data_path) / dataset / PARTS


def _write_numbers(path: Path, numbers: np.ndarray) -> None:
    with open(path, "w", encoding="ascii") as file:
        for first in range(0, len(numbers), BLOCK):
            file.writelines(f"{number}\n" for number in numbers[first:first + BLOCK].tolist())


class _Parts:
    """Reads the arrays of a partitioned graph block by block from its files (docs/FORMAT.md)."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._meta = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        self.nodes, self.edges = ([range(first, end) for first, end in self._meta[name][kind]]
                                  for name, kind in (("node_map", ENTITY), ("edge_map", TRIPLE)))

    def has(self, part: int, key: str) -> bool:
        return key in self._meta[f"part-{part}"]

    def rows(self, part: int, key: str, first: int = 0, end: Optional[int] = None) -> np.ndarray:
        """Reads rows first to end of an array whose rows have one element."""
        with open(self._folder / self._meta[f"part-{part}"][key]["file"], "rb") as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            file.seek(first * dtype.itemsize, os.SEEK_CUR)
            return np.fromfile(file, dtype, (shape[0] if end is None else end) - first)

    def numbers(self) -> np.ndarray:
        """Returns the dictionary's number for each entity."""
        key = f"node/{ENTITY}/orig_id"
        return np.concatenate([self.rows(part, key).astype(np.int64) if self.has(part, key) else np.asarray(own)
                               for part, own in enumerate(self.nodes)])


EDGE = "edge/" + TRIPLE.replace(":", "__")


def _write_part(parts: _Parts, part: int, numbers: np.ndarray, folder: Path) -> int:
    """Writes a part's train.txt and local_to_global.txt. Returns the number of triples whose head is in another
    part."""
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
            tail = np.searchsorted(ends, np.arange(first, end), side="right")  # a local number
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
    """Removes the folders of a former run with more parts. A folder is removed only if it contains exactly the files
    that this command writes."""
    for folder in sorted(top.glob("partition_*")):
        number = folder.name.partition("_")[2]
        if not number.isdecimal() or str(int(number)) != number or int(number) < num_parts or folder.is_symlink():
            continue
        if folder.is_dir() and {path.name for path in folder.iterdir()} == FILES:
            for name in FILES:
                (folder / name).unlink()
            folder.rmdir()
            print(f"{folder.name}: removed, a former run with more parts wrote it")


def write_files(graph_folder: Path, top: Path, num_relations: int) -> tuple[int, int]:
    """Writes DGL-KE's files for a partitioned graph. Returns the number of triples, and how many of them are cut."""
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
    """Moves a folder of parts (`ready`) to `place`. An existing folder at `place` is first moved to `former`; if the
    second move fails, it is moved back."""
    if place.exists() and not (place / "graph.json").is_file():
        raise DataError(f"{place} exists but has no graph.json: remove it, or move it away")
    if place.exists():
        place.rename(former)
    try:
        ready.rename(place)
    except BaseException:
        if former.exists() and not place.exists():
            former.rename(place)
        raise


def partition(args: argparse.Namespace, load: Callable[[Sink], Dataset]) -> None:
    """Runs the command. load: reads the dataset, and passes the training triples to the given sink."""
    top = Path(args.data_path) / args.dataset
    top.mkdir(parents=True, exist_ok=True)
    parts = parts_folder(args.data_path, args.dataset)
    with Scratch(top, ".graph") as scratch:
        uncut = scratch / "whole"
        files = TripleFiles(scratch)
        dataset = load(files.add)
        files.build(dataset.num_entities, uncut)
        method = "random" if args.num_parts == 1 else args.method
        run_program("partition", uncut, "--num-parts", str(args.num_parts), "--method", method,
                    *(["--memory", args.memory] if args.memory else []), "--out", Path(scratch) / PARTS)
        keep_with_parts(dataset, Path(scratch) / PARTS)
        _replace(parts, Path(scratch) / PARTS, Path(scratch) / "former")
    triples, cuts = write_files(parts, top, dataset.num_relations)
    print(f"there are {triples} edges in the graph and {cuts} edge cuts for {args.num_parts} partitions.")
    print(f"{1 - cuts / (2 * triples):.1%} of all heads and tails are in the same part as their triple")
