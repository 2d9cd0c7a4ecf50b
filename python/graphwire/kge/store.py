"""Stores a knowledge graph in Graphwire: a triple is an edge whose feature is its relation; the model's rows are
tensors.

    build(dataset, folder)                                    # writes a graph of one part with the program `graphwire`
    store = Store(graph, model, num_relations, seed=seed)     # in every client
    store.create()                                            # the first client creates the rows, the others open them
    triples = store.own_triples()                             # this client's share; its own part comes first

Entities have the graph's ids, which a partition renumbers; Store.numbers() returns the dictionary's numbers. Relations
keep the dictionary's numbers.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor

import graphwire
from graphwire._base.program import ProgramError, program
from graphwire._base.scratch import Scratch, descriptors
from graphwire._files.npy import Rows
from graphwire.kge.batches import Batch
from graphwire.kge.data import DataError, Dataset, Triples
from graphwire.kge.models import Model, Relations

ENTITY, TRIPLE = "entity", "entity:triple:entity"
EPS = 1e-10  # DGL-KE's value
EACH_BYTES = 1 << 20  # a push takes at most this many bytes of gradients for one row
POLL_SECONDS = 0.02


def run_program(*words: str | Path) -> None:
    """Runs the program; raises ProgramError with the program's last line on stderr."""
    with descriptors() as kept:
        done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True, pass_fds=kept)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise ProgramError(f"graphwire {words[0]}: {lines[-1]}")


class TripleFiles:
    """Collects triples block by block in the arrays that `graphwire import` reads, then builds a graph. folder: a
    temporary folder for the arrays."""

    def __init__(self, folder: Path):
        self._edges = Rows(folder / "edges.npy")
        self._relation = Rows(folder / "relation.npy")
        self._importance: Optional[Rows] = None

    def add(self, triples: Triples) -> None:
        self._edges.append(np.stack([triples.head, triples.tail], 1).astype(np.int64))
        self._relation.append(triples.relation.astype(np.int32))
        if triples.importance is not None:
            if self._importance is None:
                self._importance = Rows(self._edges.path.with_name("importance.npy"))
            self._importance.append(triples.importance.astype(np.float32))

    def build(self, num_entities: int, folder: Path) -> None:
        """Writes a graph of one part. `folder` must not exist."""
        words: list[str | Path] = ["import", "--edges", f"{TRIPLE}={self._edges.path}", "--num-nodes",
                                   f"{ENTITY}={num_entities}", "--ids", "dense"]
        self._edges.close(np.int64, (2,))
        for feature in (self._relation, self._importance):
            if feature is not None:
                feature.close(np.int32)
                words += ["--edge-feature", f"{TRIPLE}:{feature.path.stem}={feature.path}"]
        run_program(*words, "--name", "graph", "--out", folder, "--quiet")


def build(dataset: Dataset, folder: Path) -> None:
    """Writes the training triples as a graph of one part. `folder` must not exist."""
    with Scratch(folder.parent, f".{folder.name}") as scratch:
        files = TripleFiles(scratch)
        files.add(dataset.train)
        files.build(dataset.num_entities, folder)


def numbers_of(graph: graphwire.Graph) -> np.ndarray:
    """Returns the dictionary's number for each entity of the graph; a partition renumbers entities."""
    if any(feature.name == "orig_id" and not feature.of_edges for feature in graph.features):
        return np.asarray(graph.gather("orig_id", slice(None), ENTITY)).reshape(-1).astype(np.int64)
    return np.arange(graph.num_nodes(ENTITY))


def _merged(ids: np.ndarray, gradients: np.ndarray, row_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Merges gradients, because one push takes at most EACH_BYTES of gradients for a row. The gradients of a row that
    has more are added up, into as many sums as fit. If no row has more, the arrays are returned unchanged."""
    most = max(1, EACH_BYTES // row_bytes)
    ascending = np.sort(ids)
    if not (ascending[most:] == ascending[:-most]).any():  # no id occurs more than `most` times
        return ids, gradients
    found, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    occurrence = np.empty(len(ids), np.int64)
    occurrence[order] = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
    places, slots = np.unique(inverse * most + occurrence % most, return_inverse=True)
    out = np.zeros((len(places), gradients.shape[1]), np.float32)
    np.add.at(out, slots, gradients)
    return found[places // most], out


class Store:
    """The model's rows, and a barrier of the clients. seed: for the initial rows."""

    def __init__(self, graph: graphwire.Graph, model: Model, num_relations: int, *, seed: int = 0, rank: int = 0,
                 world: int = 1):
        self.graph, self.model, self.num_relations = graph, model, num_relations
        self.seed, self.rank, self.world = seed, rank, world
        self._progress = graph.create_tensor("kge.progress", (world, 1), "int64")
        self._phase = 0
        self.entity: Any = None
        self.relation: Any = None
        self.matrix: Any = None
        self.step: Any = None

    @property
    def num_entities(self) -> int:
        return self.graph.num_nodes(ENTITY)

    def create(self) -> None:
        """Creates the rows; opens them if another client has created them."""
        model, graph = self.model, self.graph
        low, high = -model.initial, model.initial
        self.step = graph.create_tensor("kge.step", (1, 1), "int64")
        self.entity = graph.create_tensor("kge.entity", (0, model.entity_width), ntype=ENTITY,
                                          initial=("uniform", low, high), seed=self.seed)
        if model.has_vectors:
            self.relation = graph.create_tensor("kge.relation", (self.num_relations, model.relation_width),
                                                place="striped", initial=("uniform", low, high), seed=self.seed + 1)
        if model.has_matrices:
            bound = 1.0 if model.has_vectors else model.initial  # TransR's projections begin in ±1, as in DGL-KE
            self.matrix = graph.create_tensor("kge.matrix", (self.num_relations, model.matrix_width), place="striped",
                                              initial=("uniform", -bound, bound), seed=self.seed + 2)

    @property
    def names(self) -> list[str]:
        """The names of the tensors in a checkpoint."""
        return [tensor.name for tensor in (self.step, self.entity, self.relation, self.matrix) if tensor is not None]

    # --- The barrier. ---

    def barrier(self) -> None:
        """Returns when every client of the job has called barrier() as often as this client. It does not notice a
        client that has died: the launcher ends all clients then."""
        self._phase += 1
        if self.world == 1:
            return
        self._progress[[self.rank]] = np.array([[self._phase]], np.int64)
        while int(np.asarray(self._progress[:]).min()) < self._phase:
            time.sleep(POLL_SECONDS)

    # --- Triples. ---

    def own_triples(self, by_relation: bool = False, importance: bool = False) -> Triples:
        """Returns this client's share of the training triples. The shares of two clients differ by at most one triple.

        by_relation: for most relations, one client gets all triples, from all parts.
        importance: returns the triples' importance too; DataError if the graph has no importance.
        """
        if importance and not any(some.of_edges and some.name == "importance" for some in self.graph.features):
            raise DataError("--has_edge_importance: the graph has no importance: gwke_partition --has_edge_importance "
                            "makes parts with it")
        if by_relation:
            ids = self._by_relation()
        else:
            ids = np.asarray(self.graph.split(None, etype=TRIPLE, world=self.world, rank=self.rank))
        head, tail = (np.asarray(ends) for ends in self.graph.find_edges(ids, TRIPLE))
        relation = np.asarray(self.graph.gather("relation", ids, etype=TRIPLE)).reshape(-1).astype(np.int64)
        weights = np.asarray(self.graph.gather("importance", ids, etype=TRIPLE)).reshape(-1) if importance else None
        return Triples(head, relation, tail, weights)

    def _by_relation(self) -> np.ndarray:
        relation = np.asarray(self.graph.gather("relation", slice(None), etype=TRIPLE)).reshape(-1)
        order = np.argsort(-np.bincount(relation)[relation].astype(np.int64) * len(relation) + relation, kind="stable")
        first, end = (len(order) * r // self.world for r in (self.rank, self.rank + 1))
        return order[first:end]

    def negative_range(self) -> tuple[int, int]:
        """Returns the range of ids of this client's own part. The client draws negatives from the range."""
        part = self.rank * self.graph.num_parts // self.world
        own = self.graph.part_range(part, ENTITY)
        return (own.start, own.stop) if len(own) else (0, self.num_entities)

    def negative_others(self, own: Triples) -> np.ndarray:
        """Returns the entities of other parts that are ends of this client's triples, ascending. The client draws
        negatives from them too, as in DGL-KE, which draws from all entities of a part's local_to_global.txt."""
        first, end = self.negative_range()
        ends = np.unique(np.concatenate([own.head, own.tail]))
        return ends[(ends < first) | (ends >= end)]

    def numbers(self) -> np.ndarray:
        """Returns the dictionary's number for each entity."""
        return numbers_of(self.graph)

    # --- Rows. ---

    def pull(self, batch: Batch, pinned: bool = False) -> tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
        """Reads the rows of a batch's entities, and the vectors and matrices of its relations. pinned: returns the rows
        in pinned memory, which a GPU can read directly."""
        def rows(tensor: Any, ids: Tensor) -> Any:
            if tensor is None:
                return None
            if pinned:
                return tensor.gather(ids, torch.empty(len(ids), *tensor.shape[1:], pin_memory=True))
            return torch.as_tensor(tensor[ids])

        return rows(self.entity, batch.entities), rows(self.relation, batch.relations), rows(
            self.matrix, batch.relations)

    def push(self, tensor: Any, ids: Tensor, gradients: Tensor, lr: float) -> None:
        """Sends gradients to the servers, which apply row-wise Adagrad. If a row has several gradients, the
        mean square of each is added to the row's sum first; then each gradient is applied."""
        some, rows = _merged(ids.numpy(), gradients.detach().cpu().numpy(), gradients.shape[1] * 4)
        tensor.push(some, rows, kind="adagrad_rows", combine="each", lr=lr, eps=EPS)

    def entity_rows(self, ids: np.ndarray) -> Tensor:
        return torch.as_tensor(self.entity[ids])

    def relations_of(self, ids: np.ndarray) -> Relations:
        found, places = np.unique(ids, return_inverse=True)
        return Relations(None if self.relation is None else torch.as_tensor(self.relation[ids]),
                         None if self.matrix is None else torch.as_tensor(self.matrix[found]),
                         None if self.matrix is None else torch.from_numpy(places))
