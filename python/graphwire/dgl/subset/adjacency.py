"""The edges of one type, as pairs in the order of their ids, and as a CSC, grouped by destination. Each form is
computed from the other when it is first needed."""

from __future__ import annotations

from typing import Callable

import torch

from graphwire._train.batch import Edges


class Adjacency:
    """The edges of one type. sizes: the numbers of source and of destination nodes. pairs: (sources, destinations),
    [edges] each; or csc: (indptr, indices), whose edges are in the order of ids."""

    def __init__(self, sizes: tuple[int, int], pairs: tuple[torch.Tensor, torch.Tensor] | None = None,
                 csc: tuple[torch.Tensor, torch.Tensor] | None = None):
        self.num_src, self.num_dst = sizes
        self._pairs, self._csc = pairs, csc
        self._order: torch.Tensor | None = None  # the ids of the edges in the CSC's order; None: 0, 1, 2, …
        self.num_edges = len(pairs[0]) if pairs is not None else len(csc[1])  # type: ignore[index]

    @property
    def dtype(self) -> torch.dtype:
        return self._pairs[0].dtype if self._pairs is not None else self._csc[1].dtype  # type: ignore[index]

    @property
    def device(self) -> torch.device:
        return self._pairs[0].device if self._pairs is not None else self._csc[1].device  # type: ignore[index]

    @property
    def pairs(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._pairs is None:
            indptr, indices = self._csc  # type: ignore[misc]
            rows = torch.arange(self.num_dst, device=indices.device, dtype=indices.dtype)
            self._pairs = indices, torch.repeat_interleave(rows, indptr[1:] - indptr[:-1],
                                                           output_size=self.num_edges)
        return self._pairs

    @property
    def src(self) -> torch.Tensor:
        return self.pairs[0]

    @property
    def dst(self) -> torch.Tensor:
        return self.pairs[1]

    @property
    def csc(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """(indptr, indices, ids of the edges in this order). ids is None if the edges are in the order of ids."""
        if self._csc is None:
            src, dst = self.pairs
            counts = torch.bincount(dst, minlength=self.num_dst)
            indptr = torch.zeros(self.num_dst + 1, dtype=torch.int64, device=src.device)
            torch.cumsum(counts, 0, out=indptr[1:])
            if self.num_edges and bool((dst[1:] < dst[:-1]).any()):
                self._order = torch.argsort(dst, stable=True)
                src = src[self._order]
            self._csc = indptr, src
        return self._csc[0], self._csc[1], self._order

    def edges(self) -> Edges:
        """The edges in the form that the layers of graphwire.nn take."""
        indptr, indices, order = self.csc
        ids = torch.arange(self.num_edges) if order is None else order
        return Edges("_E", ("_S", "_D"), (self.num_src, self.num_dst), (indptr, indices, ids))

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Adjacency:
        if self._csc is not None and self._order is None:
            return Adjacency((self.num_src, self.num_dst), csc=(change(self._csc[0]), change(self._csc[1])))
        return Adjacency((self.num_src, self.num_dst), (change(self.src), change(self.dst)))

    def in_degrees(self) -> torch.Tensor:
        indptr = self.csc[0]
        return indptr[1:] - indptr[:-1]

    def out_degrees(self) -> torch.Tensor:
        indices = self.src if self._pairs is not None else self.csc[1]
        return torch.bincount(indices, minlength=self.num_src)

    def edges_between(self, u: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(i, edge id) of every edge from u[i] to v[i], including parallel edges: two arrays of the same length."""
        keys = self.src.to(torch.int64) * self.num_dst + self.dst
        keys, order = torch.sort(keys, stable=True)
        asked = u.to(torch.int64) * self.num_dst + v
        begin, end = torch.searchsorted(keys, asked), torch.searchsorted(keys, asked, right=True)
        counts = end - begin
        question = torch.repeat_interleave(torch.arange(len(asked), device=keys.device), counts)
        within = torch.arange(len(question), device=keys.device) - torch.repeat_interleave(
            torch.cumsum(counts, 0) - counts, counts)
        return question, order[begin[question] + within]
