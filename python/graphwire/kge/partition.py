"""gwke_partition: a dataset cut for dist_train, as Graphwire's parts and as DGL-KE's files.

<data_path>/<dataset>/graphwire/         the parts that servers load
<data_path>/<dataset>/partition_P/       of part P:
    train.txt            its triples, "head relation tail" by local numbers
    local_to_global.txt  of each local number the dictionary's: first the entities that P has, then the other ends
    partition_book.txt   of each entity of the dictionary its part
    relation_count.txt   how many relations there are

A triple is in the part that has its tail. The files are written a block of triples at a time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import graphwire
from graphwire.kge.data import Dataset
from graphwire.kge.store import ENTITY, TRIPLE, build, numbers_of, run_program

BLOCK = 1 << 20  # triples at once
PARTS = "graphwire"


def parts_folder(data_path: str | Path, dataset: str) -> Path:
    return Path(data_path) / dataset / PARTS


def _write_numbers(path: Path, numbers: np.ndarray) -> None:
    with open(path, "w", encoding="ascii") as file:
        for first in range(0, len(numbers), BLOCK):
            file.writelines(f"{number}\n" for number in numbers[first:first + BLOCK].tolist())


def _write_part(graph: graphwire.Graph, part: int, edges: range, numbers: np.ndarray, folder: Path) -> int:
    """A part's train.txt and local_to_global.txt; how many of its triples have their head in another part."""
    own = graph.part_range(part, ENTITY)
    local = np.full(graph.num_nodes(ENTITY), -1, np.int64)
    local[own.start:own.stop] = np.arange(len(own))
    known, order, cut = len(own), [np.arange(own.start, own.stop)], 0
    with open(folder / "train.txt", "w", encoding="ascii") as file:
        for first in range(edges.start, edges.stop, BLOCK):
            ids = np.arange(first, min(first + BLOCK, edges.stop))
            head, tail = (np.asarray(ends) for ends in graph.find_edges(ids, TRIPLE))
            relation = np.asarray(graph.gather("relation", ids, etype=TRIPLE)).reshape(-1)
            cut += int(((head < own.start) | (head >= own.stop)).sum())
            new = np.unique(head[local[head] < 0])
            local[new] = known + np.arange(len(new))
            known += len(new)
            order.append(new)
            file.writelines(f"{h}\t{r}\t{t}\n" for h, r, t in zip(
                local[head].tolist(), relation.tolist(), local[tail].tolist()))
    _write_numbers(folder / "local_to_global.txt", numbers[np.concatenate(order)])
    return cut


def write_files(graph_folder: Path, top: Path, num_relations: int) -> tuple[int, int]:
    """DGL-KE's files of a graph in parts; triples, and those that are cut."""
    meta = json.loads((graph_folder / "graph.json").read_text(encoding="utf-8"))
    ranges = [range(first, end) for first, end in meta["edge_map"][TRIPLE]]
    with graphwire.open(graph_folder) as graph:
        numbers = numbers_of(graph)
        book = np.empty(len(numbers), np.int64)
        for part in range(graph.num_parts):
            own = graph.part_range(part, ENTITY)
            book[numbers[own.start:own.stop]] = part
        cuts = 0
        for part, edges in enumerate(ranges):
            folder = top / f"partition_{part}"
            folder.mkdir(exist_ok=True)
            cut = _write_part(graph, part, edges, numbers, folder)
            cuts += cut
            _write_numbers(folder / "partition_book.txt", book)
            (folder / "relation_count.txt").write_text(f"{num_relations}\n", encoding="ascii")
            own = graph.part_range(part, ENTITY)
            print(f"part {part} has {len(own)} entities and {len(edges)} triples; {cut} heads are in other parts")
        return graph.num_edges(), cuts


def partition(args: argparse.Namespace, dataset: Dataset) -> None:
    """The command."""
    top = Path(args.data_path) / args.dataset
    top.mkdir(parents=True, exist_ok=True)
    parts = parts_folder(args.data_path, args.dataset)
    with tempfile.TemporaryDirectory(dir=top, prefix=".graph-") as scratch:
        whole = Path(scratch) / "whole"
        build(dataset, whole)
        if args.num_parts == 1:
            run_program("partition", whole, "--num-parts", "1", "--method", "random", "--out", parts, "--replace")
        else:
            run_program("partition", whole, "--num-parts", str(args.num_parts), "--out", parts, "--replace")
    triples, cuts = write_files(parts, top, dataset.num_relations)
    print(f"there are {triples} edges in the graph and {cuts} edge cuts for {args.num_parts} partitions.")
    print(f"{1 - cuts / (2 * triples):.1%} of the rows of triples' ends are in the triples' own parts")
