"""The state that optimizers keep with an embedding's rows, in the place of a tensor's rows.

    State(table, "adagrad", "sum") -> DistTensor.of_state -> t[ids], t[ids] = rows

Errors: those of graphwire.Tensor.read_state and write_state.
"""

from __future__ import annotations

from typing import Any

import torch

# {kind: {DGL's name of an array: (graphwire.Tensor's name of it, whether it has one number for each row)}}
ARRAYS = {"adagrad": {"sum": ("sum", False)},
          "adam": {"step": ("step", True), "mem": ("mean", False), "power": ("power", False)}}


class State:
    """An array of state, float32. table: the embedding's DistTensor. kind, word: see ARRAYS."""

    dtype = torch.float32

    def __init__(self, table: Any, kind: str, word: str):
        self.table, self.kind, self.word = table, kind, word
        self._array, alone = ARRAYS[kind][word]
        self.shape = table.shape[:1] if alone else table.shape
        self.name = f"{table.tensor_name}_{word}"

    def __getitem__(self, ids: Any) -> torch.Tensor:
        found: torch.Tensor = self.table._data.read_state(ids, kind=self.kind, array=self._array)
        return found.to(torch.float32)

    def __setitem__(self, ids: Any, rows: Any) -> None:
        self.table._data.write_state(ids, torch.as_tensor(rows), kind=self.kind, array=self._array)

    def __repr__(self) -> str:
        return f"<State {self.name}: {list(self.shape)}>"
