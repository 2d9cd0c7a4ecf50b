"""Batches of triples, drawn by the C library (include/graphwire/triples.h).

    batches = Batches(head, relation, tail, batch_size=1000, chunk_size=200, negatives=200, entities=(0, 14541), seed=1)
    batch = batches[step]                                     # a pure function of the step; steps come in any order
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor

from graphwire._base import arrays as _arrays
from graphwire._base.native import check, ffi, lib, owned


def rounded(batch_size: int, neg_sample_size: int) -> int:
    """Rounds a batch size as DGL-KE does: a size above neg_sample_size becomes a multiple of neg_sample_size."""
    if neg_sample_size < batch_size and batch_size % neg_sample_size:
        return math.ceil(batch_size / neg_sample_size) * neg_sample_size
    return batch_size


def _tensor(pointer: Any, count: int, dtype: str) -> Tensor:
    """Copies a C array to int64, the type of torch's indices."""
    array = np.frombuffer(ffi.buffer(pointer, count * np.dtype(dtype).itemsize), dtype=dtype)
    return torch.from_numpy(array.astype(np.int64))


class Batch:
    """The triples of one step.

    entities, relations  ids whose rows the step reads; the first `positive_count` entities are heads and tails
    *_rows               positions in `entities` or `relations`
    positions            positions of the triples in the arrays that Batches was given
    side                 the end that negatives replace: "head" or "tail"
    """

    def __init__(self, batch: Any):
        self.side = "head" if batch.corrupt_head else "tail"
        self.count, self.positive_count = int(batch.count), int(batch.positive_count)
        self.chunks = self.count // int(batch.chunk_size)
        self.entities = _tensor(batch.entities, batch.entity_count, "<i8")
        self.relations = _tensor(batch.relations, batch.relation_count, "<i8")
        self.head_rows = _tensor(batch.head_rows, batch.count, "<u4")
        self.relation_rows = _tensor(batch.relation_rows, batch.count, "<u4")
        self.tail_rows = _tensor(batch.tail_rows, batch.count, "<u4")
        self.negative_rows = _tensor(batch.negative_rows, batch.negative_count, "<u4")
        self.positions = _tensor(batch.positions, batch.count, "<i8")


class Batches:
    """Draws batches of triples. Raises InvalidError.

    head, relation, tail  int64 ids; the object keeps the arrays
    entities              (first, end): the range of ids that negatives are drawn from
    others                int64 ids that negatives are drawn from too
    stream                a different number for each trainer of a job
    """

    def __init__(self, head: np.ndarray, relation: np.ndarray, tail: np.ndarray, *, batch_size: int, chunk_size: int,
                 negatives: int, entities: tuple[int, int], others: Optional[np.ndarray] = None, seed: int = 0,
                 stream: int = 0):
        self._arrays = [_arrays.ids_array(array, None, what) for array, what in (
            (head, "head"), (relation, "relation"), (tail, "tail"))]
        if len({len(array) for array in self._arrays}) != 1:
            raise ValueError("heads, relations and tails must have the same length")
        pointers = [ffi.from_buffer("int64_t[]", array) for array in self._arrays]
        self._arrays.append(_arrays.ids_array([] if others is None else others, None, "others"))
        pointers.append(ffi.from_buffer("int64_t[]", self._arrays[3]))
        options = ffi.new("struct gw_triples_options *", {
            "count": len(self._arrays[0]), "head": pointers[0], "relation": pointers[1], "tail": pointers[2],
            "batch_size": batch_size, "chunk_size": chunk_size, "negatives": negatives,
            "negative_begin": entities[0], "negative_end": entities[1], "others": pointers[3],
            "other_count": len(self._arrays[3]), "seed": seed, "stream": stream})
        self._held = owned("struct gw_triples **", lib.triples_end)
        check(lib.gw_triples_open(options, self._held))
        self._kept = pointers

    @property
    def steps(self) -> int:
        """Steps of an epoch in which negatives replace one side."""
        return int(lib.gw_triples_steps(self._held[0]))

    def __getitem__(self, step: int) -> Batch:
        out = owned("struct gw_triple_batch **", lib.triple_batch_end)
        check(lib.gw_triples_batch(self._held[0], step, out))
        return Batch(out[0])
