"""PyTorch Geometric's NodeLoader and LinkLoader, for several ranks and several loops at once.

    a loop begins -> it gets workers that no other loop uses -> the ranks exchange their numbers of batches
        -> PyG's batches

The loaders do not divide seeds among ranks. input_nodes and edge_label_index are one rank's share, or a
DistributedSampler divides them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch_geometric.loader as pyg

from graphwire.ranks import Steps


class _Loops:
    """Makes each loop over a DataLoader an epoch of its own, and compares the ranks' numbers of batches."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._steps = Steps("graphwire.pyg", "drop_last=True helps if the shares have equally many whole batches; "
                            "docs/PYG.md, Several ranks.")
        self._workers_of: Any = None  # a weak reference to the loop that uses the persistent workers

    def __getstate__(self) -> dict[str, Any]:
        """For a spawned worker: the state of loops belongs to this process and is left out."""
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
        except TypeError:  # the sampler does not know its length
            return (batch for batch in batches)
        kind = f"{type(self).__name__}/{self.batch_size}/{int(self.drop_last)}"  # type: ignore[attr-defined]
        return self._steps.watched(batches, count, kind)


class NodeLoader(_Loops, pyg.NodeLoader):  # type: ignore[misc]
    """torch_geometric.loader.NodeLoader, with its arguments and batches.

    It does not divide input_nodes among ranks, as graphwire.NodeLoader does. Give each rank its own nodes, of
    graph.split(…), or pass sampler=DistributedSampler.

    If ranks have unequal numbers of batches, a UserWarning reports it once, when the first loop that records gradients
    begins: DistributedDataParallel would wait for ever.

    Each loop is an epoch of its own, also while other loops run and with persistent_workers. PyG's own loops would
    share an epoch then.
    """


class LinkLoader(_Loops, pyg.LinkLoader):  # type: ignore[misc]
    """torch_geometric.loader.LinkLoader, with its arguments and batches. Ranks, warnings and loops are as NodeLoader's,
    for edge_label_index."""
