"""The columns, {name: tensor}, of one node or edge type, and the views by which a graph gives access to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Callable

import torch


class DGLError(Exception):
    """The error of dgl's calls."""


class Frame(dict):
    """Columns with `rows` rows each. Raises DGLError for a column of another length."""

    def __init__(self, rows: int, columns: Mapping[str, torch.Tensor] | None = None):
        super().__init__(columns or {})
        self.rows = rows

    def __setitem__(self, name: str, value: Any) -> None:
        value = torch.as_tensor(value)
        if value.dim() == 0 or len(value) != self.rows:
            raise DGLError(f"Expect number of features to match number of nodes or edges: {name} has "
                           f"{list(value.shape)}, and there are {self.rows}.")
        super().__setitem__(name, value)

    def copied(self) -> Frame:
        return Frame(self.rows, self)

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Frame:
        return Frame(self.rows, {name: change(column) for name, column in self.items()})

    def rows_of(self, ids: torch.Tensor) -> Frame:
        return Frame(len(ids), {name: column[ids] for name, column in self.items()})


class View(MutableMapping):
    """g.ndata, g.srcdata, …: {name: tensor} if the graph has one type, else {name: {type: tensor}}."""

    def __init__(self, frames: Mapping[Any, Frame], number: Callable[[Any], Any]):
        self._frames, self._number = frames, number

    def __getitem__(self, name: str) -> Any:
        if len(self._frames) == 1:
            return next(iter(self._frames.values()))[name]
        found = {kind: frame[name] for kind, frame in self._frames.items() if name in frame}
        if not found:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, value: Any) -> None:
        if len(self._frames) == 1 and not isinstance(value, Mapping):
            next(iter(self._frames.values()))[name] = value
            return
        if not isinstance(value, Mapping):
            raise DGLError(f"{name}: pass {{type: tensor}} in a graph of several types")
        for kind, rows in value.items():
            self._frames[self._number(kind)][name] = rows

    def __delitem__(self, name: str) -> None:
        found = [frame for frame in self._frames.values() if name in frame]
        if not found:
            raise KeyError(name)
        for frame in found:
            del frame[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for frame in self._frames.values() for name in frame))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})


class Space:
    """g.nodes[type], whose .data is the type's frame."""

    def __init__(self, data: Frame):
        self.data = data


class TypeView:
    """g.nodes, g.edges, …: [type].data is a frame, and a call returns ids."""

    def __init__(self, frames: Mapping[Any, Frame], number: Callable[[Any], Any], call: Callable[..., Any]):
        self._frames, self._number, self._call = frames, number, call

    def __getitem__(self, kind: Any) -> Space:
        return Space(self._frames[self._number(kind)])

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._call(*arguments, **named)
