"""The columns of a TensorFrame of PyTorch Frame, which is recognized by its attributes: the package need not be
installed.

    a frame -> for each semantic type: [rows, columns, …], or embeddings of several widths -> a column at a time
            -> rows of these columns -> a frame of these rows

A ragged column has a list of its own length in each row. It is no feature, and only named.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

TARGET = "y"  # the frame's target, an attribute of the frame itself


def is_frame(value: Any) -> bool:
    return hasattr(value, "feat_dict") and hasattr(value, "col_names_dict")


def _widths(values: Any, columns: int) -> Optional[list[int]]:
    """The ends of the columns of embeddings, in `values.values`; None if `values` is something else. Embeddings without
    rows may have values of one dimension."""
    inner, offset = getattr(values, "values", None), getattr(values, "offset", None)
    if offset is None or len(offset) != columns + 1 or (getattr(inner, "ndim", 0) != 2 and len(values)):
        return None
    return [int(end) for end in offset]


def _column(values: Any, number: int, columns: int) -> Any:
    """Column `number`, [rows, …]; None if it is ragged."""
    ends = _widths(values, columns)
    if ends is not None:
        begin, end = ends[number], ends[number + 1]
        return values.values[:, begin:end] if len(values) else values.values.new_empty(0, end - begin)
    dense = hasattr(values, "detach") and values.ndim >= 2 and values.shape[1] == columns
    return values[:, number] if dense else None


def columns(frame: Any) -> Iterator[tuple[str, Any]]:
    """(name, rows) of each column, and of the target as "y"; rows are None for a ragged column."""
    for kind, values in frame.feat_dict.items():
        names = frame.col_names_dict[kind]
        for number, name in enumerate(names):
            yield str(name), _column(values, number, len(names))
    if getattr(frame, TARGET, None) is not None:
        yield TARGET, frame.y


class Layout:
    """The columns of a frame, without its rows. names: the columns that are features, in the frame's order."""

    def __init__(self, frame: Any):
        import torch

        found = list(columns(frame))
        self.names = [name for name, rows in found if rows is not None]
        self.ragged = [name for name, rows in found if rows is None]
        if len(set(self.names)) != len(self.names):
            raise ValueError(f'a frame has a target, and a column "{TARGET}": rename the column')
        self._empty = frame[torch.empty(0, dtype=torch.int64)]
        self._ends = {kind: _widths(values, len(frame.col_names_dict[kind]))
                      for kind, values in frame.feat_dict.items()}

    def frame(self, rows: Mapping[str, Any]) -> Any:
        """A frame of these rows, {column: [rows, …]}. Its ragged columns are left out."""
        made = copy.copy(self._empty)
        ragged = set(self.ragged)
        made.feat_dict, made.col_names_dict = {}, {}
        for kind, names in self._empty.col_names_dict.items():
            if not ragged.intersection(map(str, names)):
                made.col_names_dict[kind] = names
                made.feat_dict[kind] = self._joined(kind, [rows[str(name)] for name in names])
        if TARGET in rows:
            made.y = rows[TARGET]
        return made

    def _joined(self, kind: Any, found: Sequence[Any]) -> Any:
        import torch

        ends = self._ends[kind]
        if ends is None:
            return torch.stack(list(found), 1)
        empty = self._empty.feat_dict[kind]
        return type(empty)(len(found[0]), len(found), torch.cat(list(found), 1), empty.offset)
