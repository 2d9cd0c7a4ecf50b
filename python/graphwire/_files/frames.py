"""The columns of a TensorFrame of PyTorch Frame, which is recognized by its attributes: the package need not be
installed.

    a frame -> for each semantic type the way that its values are kept -> features, each with one row for each node
            -> rows of these features -> a frame of these rows

    the values of a type              the features of a column
    a tensor [rows, columns, …]       COLUMN: [rows, …]
    embeddings of several widths      COLUMN: [rows, width]
    lists of any length in each row   COLUMN: [rows, the longest length], and COLUMN.length: the length of each list
    a dict of such lists              COLUMN.KEY and COLUMN.KEY.length for each key

Lists whose features would take much more memory than the lists themselves are no features: the column is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

TARGET = "y"  # the frame's target, an attribute of the frame itself
LENGTH = "length"
# A column of lists is left out if its rows take more than SPARE bytes each, and FACTOR times the bytes of its lists.
SPARE, FACTOR = 1024, 16


def is_frame(value: Any) -> bool:
    return hasattr(value, "feat_dict") and hasattr(value, "col_names_dict")


class _Dense:
    """[rows, columns, …]."""

    def __init__(self, values: Any, columns: Sequence[str]):
        self._values, self.columns = values, list(columns)

    def features(self, number: int) -> dict[str, Any]:
        return {self.columns[number]: self._values[:, number]}

    def joined(self, rows: Mapping[str, Any]) -> Any:
        import torch

        return torch.stack([rows[column] for column in self.columns], 1)


class _Embeddings(_Dense):
    """[rows, the sum of widths]; offset[i] is where column i begins."""

    def features(self, number: int) -> dict[str, Any]:
        begin, end = (int(end) for end in self._values.offset[number:number + 2])
        some = self._values.values
        return {self.columns[number]: some[:, begin:end] if some.ndim == 2 else some.new_empty(0, end - begin)}

    def joined(self, rows: Mapping[str, Any]) -> Any:
        import torch

        found = torch.cat([rows[column] for column in self.columns], 1)
        return type(self._values)(len(found), len(self.columns), found, self._values.offset)


class _Lists(_Dense):
    """The entries of row i and column j are values[offset[i * columns + j]:offset[i * columns + j + 1]]."""

    def __init__(self, values: Any, columns: Sequence[str], key: str = ""):
        super().__init__(values, columns)
        self._key = key

    def _names(self, number: int) -> tuple[str, str]:
        """(of the entries, of their lengths)."""
        name = f"{self.columns[number]}.{self._key}" if self._key else self.columns[number]
        return name, f"{name}.{LENGTH}"

    def features(self, number: int) -> dict[str, Any]:
        import torch

        entries, count = self._values.values, len(self.columns)
        begin = self._values.offset[number:-1:count]
        lengths = self._values.offset[number + 1::count] - begin
        width = max(1, int(lengths.max()) if len(lengths) else 0)
        size = width * entries.element_size()
        name, of_lengths = self._names(number)
        if size > SPARE and size * len(lengths) > FACTOR * int(lengths.sum()) * entries.element_size():
            return {name: f"its longest list has {width} entries: its rows would take more than {FACTOR} times the "
                    "memory of its lists"}
        inside = torch.arange(width, device=lengths.device) < lengths[:, None]
        rows = entries.new_zeros(len(lengths), width)
        rows[inside] = entries[(begin[:, None] + torch.arange(width, device=lengths.device))[inside]]
        return {name: rows, of_lengths: lengths.to(torch.int32)}

    def joined(self, rows: Mapping[str, Any]) -> Any:
        import torch

        found = [tuple(rows[name] for name in self._names(number)) for number in range(len(self.columns))]
        lengths = torch.stack([some.to(torch.int64) for _, some in found], 1)
        widths = [some.shape[1] for some, _ in found]
        every = torch.cat([some for some, _ in found], 1)
        inside = torch.cat([torch.arange(width, device=lengths.device) < lengths[:, number, None]
                            for number, width in enumerate(widths)], 1)
        offset = lengths.new_zeros(lengths.numel() + 1)
        torch.cumsum(lengths.flatten(), 0, out=offset[1:])
        return type(self._values)(len(every), len(self.columns), every[inside], offset)


class _Keyed:
    """{key: lists}."""

    def __init__(self, values: Mapping[str, Any], columns: Sequence[str]):
        self.columns = list(columns)
        self._lists = {key: _Lists(some, columns, str(key)) for key, some in values.items()}

    def features(self, number: int) -> dict[str, Any]:
        return {name: rows for lists in self._lists.values() for name, rows in lists.features(number).items()}

    def joined(self, rows: Mapping[str, Any]) -> Any:
        return {key: lists.joined(rows) for key, lists in self._lists.items()}


class _Unknown(_Dense):
    """Values of a type that this file does not know."""

    def features(self, number: int) -> dict[str, Any]:
        return {self.columns[number]: f"{type(self._values).__name__} is a type of values that is not known"}


Kind = Union[_Dense, _Keyed]


def _kind(values: Any, names: Sequence[Any]) -> Kind:
    columns = list(map(str, names))
    if isinstance(values, Mapping):
        return (_Keyed if all(type(_kind(some, names)) is _Lists for some in values.values()) else _Unknown)(
            values, columns)
    if hasattr(values, "detach"):
        return (_Dense if values.ndim >= 2 and values.shape[1] == len(columns) else _Unknown)(values, columns)
    inner, offset = getattr(values, "values", None), getattr(values, "offset", None)
    if inner is None or offset is None:
        return _Unknown(values, columns)
    if len(offset) == len(values) * len(columns) + 1 and inner.ndim == 1:
        return _Lists(values, columns)
    return (_Embeddings if len(offset) == len(columns) + 1 else _Unknown)(values, columns)


def _of_columns(frame: Any) -> Iterator[tuple[Any, Kind, int, dict[str, Any]]]:
    """(type, its values, the number of a column in them, {feature: rows, or why it is left out})."""
    for kind, values in frame.feat_dict.items():
        found = _kind(values, frame.col_names_dict[kind])
        for number in range(len(found.columns)):
            yield kind, found, number, found.features(number)


def features(frame: Any) -> Iterator[tuple[str, Any]]:
    """(name, rows) of each feature of the frame, and of the target as "y"; a text instead of rows says why the
    feature is left out."""
    for _, _, _, found in _of_columns(frame):
        yield from found.items()
    if getattr(frame, TARGET, None) is not None:
        yield TARGET, frame.y


class Layout:
    """The columns of a frame, without its rows. names: the features, in the frame's order. ragged: the columns that
    are no features. columns: {type: names}, without these. kept: the features that are attributes of a batch too."""

    kept: Sequence[str] = ()

    def __init__(self, frame: Any):
        import torch

        self._empty = frame[torch.empty(0, dtype=torch.int64)]
        self.names: list[str] = []
        self.ragged: list[str] = []
        self.columns: dict[Any, list[Any]] = {}
        for kind, values, number, found in _of_columns(frame):
            if any(isinstance(rows, str) for rows in found.values()):
                self.ragged.append(values.columns[number])
            else:
                self.names += found
                self.columns.setdefault(kind, []).append(frame.col_names_dict[kind][number])
        if getattr(frame, TARGET, None) is not None:
            self.names.append(TARGET)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if TARGET in twice:
            raise ValueError(f'a frame has a target, and a column "{TARGET}": rename the column')
        if twice:
            raise ValueError(f'two columns of a frame would be the feature "{twice[0]}": rename one')
        self._kinds = {kind: _kind(self._empty.feat_dict[kind], columns) for kind, columns in self.columns.items()}
        self._target = getattr(frame, TARGET, None) is not None
        self._counted = getattr(frame, "_num_rows", None) is not None  # a frame without columns has rows, too

    def empty(self) -> Any:
        """A frame without rows."""
        return self.frame(dict(features(self._empty)), 0)

    def frame(self, rows: Mapping[str, Any], count: int) -> Any:
        """A frame of `count` rows, {feature: [rows, …]}, without the columns that are left out."""
        given = {"num_rows": count} if self._counted or not self.columns else {}
        return type(self._empty)({kind: some.joined(rows) for kind, some in self._kinds.items()},
                                 {kind: list(columns) for kind, columns in self.columns.items()},
                                 rows[TARGET] if self._target else None, **given)
