"""The frame of plain columns: which features of a graph its columns are, and how their rows become the values that
PyTorch Frame makes of the table.

    {column: stype}, statistics, graph -> PlainLayout -> rows of features -> the values of the columns -> a TensorFrame

    stype                  the stored rows                          the values
    numerical              one number                               torch's default type, NaN where missing
    categorical            codes with names, or one number          places in the statistics' categories, else -1
    timestamp              int64 with a unit                        the seven numbers of TimestampTensorMapper
    embedding              numbers of one length                    torch's default type
    sequence_numerical     numbers of one length                    float32

It needs PyTorch Frame. It is pickled with the trainer's transform, so that it keeps no graph.

Errors: ValueError, which names the table and the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from graphwire._base.native import NotFoundError, OutOfRangeError, lib
from graphwire._files.frames import LENGTH, Layout, features
from graphwire._graph.graph import Feature, Graph
from graphwire._graph.rules import unit_of

TIMES = ("time", "end_time")  # the features that from_database makes of a table's times
_NO_END = np.iinfo(np.int64).max
_MISSING = np.iinfo(np.int64).min  # NaT
_ALL = "numerical, categorical, timestamp, embedding and sequence_numerical"


def _names_of(graph: Graph, table: str, feature: str) -> list[str] | None:
    """The names of all values of a feature; None for numbers. Their number is found by asking for single ones."""
    def there(code: int) -> bool:
        try:
            graph.node_texts([code], table, f"{feature}.names")
            return True
        except OutOfRangeError:
            return False

    try:
        count = 1
        while there(count - 1):
            count *= 2
    except NotFoundError:
        return None
    low, high = count // 2, count - 1  # the code low - 1 has a name, and high has none
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if there(middle) else (low, middle)
    return graph.node_texts(range(low), table, f"{feature}.names")


def _is_text(graph: Graph, table: str, column: str) -> bool:
    try:
        graph.node_texts([], table, column)
        return True
    except NotFoundError:
        return False


def _text(category: Any) -> str:
    """A category as from_database names it: pandas makes floats of integers, some of which are missing."""
    return str(int(category)) if isinstance(category, float) and category.is_integer() else str(category)


# --- The values of a column. Each object is called with its rows. ---

class _Numbers:
    """kind: None: torch's default type. unsigned: the rows are the bits of uint64."""

    def __init__(self, kind: torch.dtype | None, unsigned: bool):
        self._kind, self._unsigned = kind, unsigned

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        kind = self._kind or torch.get_default_dtype()
        if not self._unsigned:
            return rows.to(kind)
        return torch.from_numpy(rows.numpy().view(np.uint64).astype(str(kind).removeprefix("torch.")))


class _Codes:
    """codes: the place of each stored code in the statistics."""

    def __init__(self, codes: list[int]):
        self._codes = torch.tensor([*codes, -1])  # the code -1 is missing

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        return self._codes[rows]


class _Places:
    """places: {number: its place in the statistics}."""

    def __init__(self, places: Mapping[Any, int], unsigned: bool):
        self._places, self._unsigned = dict(places), unsigned

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        values, inverse = np.unique(rows.numpy().view(np.uint64) if self._unsigned else rows.numpy(),
                                    return_inverse=True)
        found = np.array([self._places.get(value, -1) for value in values.tolist()], np.int64)
        return torch.from_numpy(found[inverse.reshape(-1)])


class _Times:
    def __init__(self, unit: str, ends: bool):
        self._unit, self._ends = unit, ends

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        import pandas as pd
        from torch_frame.data.mapper import TimestampTensorMapper

        if self._ends:
            rows = rows.masked_fill(rows == _NO_END, _MISSING)
        found: torch.Tensor = TimestampTensorMapper(None).forward(pd.Series(rows.numpy().view(f"M8[{self._unit}]")))
        return found


class PlainLayout(Layout):
    """The columns of a frame whose rows are plain features. names: these features. kept: those that stay attributes of
    the batch."""

    kept = TIMES

    def __init__(self, graph: Graph, table: str, stypes: Mapping[str, Any], stats: Mapping[str, Any],
                 stored: Mapping[str, str]):
        from torch_frame import TensorFrame, stype
        from torch_frame.data import MultiEmbeddingTensor, MultiNestedTensor

        self._graph, self._table = graph, table
        self._features = {one.name: one for one in graph.features if one.type == table and not one.of_edges}
        self._stored: dict[str, str] = {}
        self._values: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}
        widths: dict[str, int] = {}
        named: dict[Any, list[str]] = {}
        for column, word in stypes.items():
            kind = stype(word)
            feature = self._feature(column, stored.get(column, column), kind)
            self._stored[column] = feature.name
            self._values[column] = self._values_of(column, feature, kind, stats.get(column, {}))
            named.setdefault(kind, []).append(column)
            widths[column] = feature.shape[-1]
        made: dict[Any, Any] = {}
        for kind, columns in named.items():
            columns.sort()  # as PyTorch Frame orders them
            if kind == stype.embedding:
                offset = torch.tensor([0, *(widths[column] for column in columns)]).cumsum(0)
                made[kind] = MultiEmbeddingTensor(0, len(columns), torch.empty(0, int(offset[-1])), offset)
            elif kind == stype.sequence_numerical:
                made[kind] = MultiNestedTensor(0, len(columns), torch.empty(0), torch.zeros(1, dtype=torch.int64))
            elif kind == stype.timestamp:
                made[kind] = torch.empty(0, len(columns), 7, dtype=torch.int64)
            else:
                made[kind] = torch.empty(0, len(columns), dtype=None if kind == stype.numerical else torch.int64)
        self._lists = named.get(stype.sequence_numerical, [])
        super().__init__(TensorFrame(made, named, num_rows=None if named else 0))
        self.names = list(dict.fromkeys(self._stored.values()))
        del self._graph, self._features

    def _feature(self, column: str, name: str, kind: Any) -> Feature:
        of = f"{self._table}.{column}"
        if name in self._features:
            return self._features[name]
        if _is_text(self._graph, self._table, name):
            raise ValueError(f"{of}: the graph stores text, which {kind.value} needs as " + (
                f"a category: name the column in graphwire.Table(…, categories=[{name!r}])"
                if kind.value == "categorical" else "numbers: add a column of the texts' embeddings to the table, and "
                "give it the stype embedding"))
        times = [one for one in TIMES if one in self._features] if kind.value == "timestamp" else []
        if times:
            raise ValueError(f"{of}: the graph has no feature {name!r}; if it is the rows' {times[0]}: "
                             f"stored={{{self._table!r}: {{{column!r}: {times[0]!r}}}}}")
        raise ValueError(f"{of}: {self._table} has no feature {name!r}: leave out the column, if it is a key, or "
                         f"name one of {', '.join(self._features) or 'no features'}")

    def _values_of(self, column: str, feature: Feature, kind: Any, stats: Mapping[Any, Any],
                   ) -> Callable[[torch.Tensor], torch.Tensor]:
        of, word = f"{self._table}.{column}", kind.value
        names = _names_of(self._graph, self._table, feature.name)
        unit = unit_of(feature.pointer())
        unsigned = bool(feature.pointer().dtype == lib.GW_UINT64)
        width = len(feature.shape) - 1
        fitting = {"numerical": names is None and unit is None and width == 0,
                   "categorical": unit is None and width == 0, "timestamp": unit is not None and width == 0,
                   "embedding": width == 1, "sequence_numerical": width == 1}
        if word not in fitting:
            raise ValueError(f"{of}: plain columns become {_ALL}, not {word}: store a frame that PyTorch Frame "
                             "materialized, with from_pyg")
        if not fitting[word]:
            has = ("categories" if names is not None else f"times in {unit}" if unit is not None else
                   "one number in a row" if width == 0 else f"{feature.shape[-1]} numbers in a row")
            others = " or ".join(one for one, fits in fitting.items() if fits)
            raise ValueError(f"{of}: the graph stores {has}, which is {others or 'no stype'}, not {word}")
        if word == "categorical":
            from torch_frame.data.stats import StatType

            if StatType.COUNT not in stats:
                raise ValueError(f"{of}: stats has no StatType.COUNT of the column, the list of its categories")
            categories = list(stats[StatType.COUNT][0])
            if names is None:
                return _Places({one: place for place, one in enumerate(categories)}, unsigned)
            places = {_text(one): place for place, one in enumerate(categories)}
            return _Codes([places.get(name, -1) for name in names])
        if unit is not None:
            return _Times(unit, feature.name == TIMES[1])
        return _Numbers(torch.float32 if word == "sequence_numerical" else None, unsigned)

    def empty(self) -> Any:
        return super().frame(dict(features(self._empty)), 0)

    def frame(self, rows: Mapping[str, Any], count: int) -> Any:
        """rows: {feature: rows}."""
        found = {}
        for column, values in self._values.items():
            given = rows[self._stored[column]]
            found[column] = values(given.cpu()).to(given.device)
            if column in self._lists:
                found[f"{column}.{LENGTH}"] = given.new_full((count,), given.shape[1], dtype=torch.int32)
        return super().frame(found, count)
