"""PyTorch Geometric's NodeLoader and LinkLoader, for several ranks and several loops at once.

    loop -> what it takes: workers that no other loop has -> the ranks hear how many batches each has -> PyG's batches

They divide nothing: input_nodes and edge_label_index are one rank's share, or a DistributedSampler divides them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch_geometric.loader as pyg

from graphwire.ranks import Steps


class _Loops:
    """Loops over a DataLoader."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._steps = Steps("graphwire.pyg", "drop_last=True helps where the shares have equally many whole batches; "
                            "docs/PYG.md, Several ranks.")
        self._workers_of: Any = None  # a reference to the loop that has the persistent workers

    def __getstate__(self) -> dict[str, Any]:
        """For a spawned worker: what loops have is this process's."""
        return {**self.__dict__, "_workers_of": None, "_iterator": None}

    def __iter__(self) -> Iterator[Any]:
        other = None if self._workers_of is None else self._workers_of()
        if other is not None and other.gi_frame is not None:
            return self._loop(self._get_iterator())  # type: ignore[attr-defined]
        batches = self._loop(super().__iter__())  # type: ignore[misc]
        self._workers_of = weakref.ref(batches)
        return batches

    def _loop(self, batches: Iterator[Any]) -> Any:
        try:
            count = len(self)  # type: ignore[arg-type]
        except TypeError:  # of a sampler that does not know
            return (batch for batch in batches)
        kind = f"{type(self).__name__}/{self.batch_size}/{int(self.drop_last)}"  # type: ignore[attr-defined]
        return self._steps.watched(batches, count, kind)


class NodeLoader(_Loops, pyg.NodeLoader):  # type: ignore[misc]
    """torch_geometric.loader.NodeLoader, with its arguments and batches.

    It never divides input_nodes among ranks (graphwire.NodeLoader does): give each rank its own, of graph.split(…), or
    a sampler=DistributedSampler. Where ranks have unequal numbers of batches, one warning says so as the first loop
    that records gradients begins: DistributedDataParallel would wait for ever. Each loop is an epoch of its own, beside
    others and with persistent_workers too, where PyG's own loops would share one.
    """


class LinkLoader(_Loops, pyg.LinkLoader):  # type: ignore[misc]
    """torch_geometric.loader.LinkLoader; as NodeLoader, of edge_label_index."""
