"""Chooses the attributes' names of feature rows in PyG's data. Raises ValueError if two features would have the same
name, or if a name is PyG's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

import torch
from torch_geometric.data.storage import BaseStorage

Attributes = Mapping[str, Union[str, Mapping[str, str]]]  # {feature: its name}, {kind: {feature: its name}}, or both
_KINDS = {"features": "node feature", "edge_features": "edge feature", "labels": "label"}
# Names that to_pyg() and PyG's own loaders write.
OWN = frozenset(("batch_size", "dst_neg_index", "dst_pos_index", "e_id", "edge_index", "edge_label",
                 "edge_label_index", "edge_label_time", "input_id", "n_id", "negative_index", "num_nodes",
                 "num_sampled_edges", "num_sampled_nodes", "seed_time", "src_index"))


def check_names(names: Iterable[str], what: str, remedy: str = 'call the feature something else, as {"its name there": '
                '"the feature"}') -> None:
    """Raises ValueError for a name that PyG's loaders write, and TypeError for a name that is not a string. remedy: the
    end of the error's text."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what}: a name is a string, not {name!r}")
        if name in OWN:
            raise ValueError(f"{what}: {name!r} is a name of PyG's own: {remedy}")


def as_attribute(data: Any, store: Any, name: str, rows: torch.Tensor) -> torch.Tensor:
    """Rows as the attribute `name` of a store of `data`: along the axis in which PyG concatenates it, which is the last
    one for names such as "u_index"."""
    axis = data.__cat_dim__(name, rows, store) if rows.dim() > 1 else 0
    return rows.movedim(0, axis).contiguous() if isinstance(axis, int) and axis else rows


def fill(store: Any, values: Mapping[str, Any]) -> None:
    """Sets attributes of a store, or of Data, none of which is None. PyG takes as long for three attributes of a store
    as for the store, most of it to look at what the store has cached of the attributes: a new store has cached nothing.
    """
    if isinstance(store, BaseStorage) and "_cached_attr" not in vars(store):
        store._mapping.update(values)
    else:
        for name, value in values.items():
            setattr(store, name, value)


class Names:
    """The names in one call of to_pyg(): those that the caller asked for, and those already taken in each store."""

    def __init__(self, attributes: Attributes | None, data: Any):
        self._data = data
        self._called: dict[tuple[str | None, str], str] = {}
        for key, value in (attributes or {}).items():
            if isinstance(value, Mapping):
                if key not in _KINDS:
                    raise ValueError(f"attributes: {key!r} is not a kind of rows; the kinds are {', '.join(_KINDS)}")
                self._called.update({(key, name): called for name, called in value.items()})
            else:
                self._called[None, key] = value
        for called in self._called.values():
            if not isinstance(called, str):
                raise TypeError(f"attributes: a name is a string, not {called!r}")
        self._taken: dict[tuple[int, str], str] = {}  # {(id() of a store, name): feature}; stores outlive this object

    def own(self, store: Any, name: str, value: Any) -> None:
        """Writes an attribute that PyG's loaders have too, so that no feature takes its name."""
        store[name] = value
        self._taken[id(store), name] = f"PyG's {name!r}"

    def put(self, store: Any, kind: str, name: str, rows: Any) -> None:
        """Writes rows of a feature into a store. Raises ValueError if their name is taken."""
        called = self._called.get((kind, name), self._called.get((None, name), name))
        what, place = f"the {_KINDS[kind]} {name!r}", (id(store), called)
        remedy = f'give it another name, as attributes={{"{kind}": {{{name!r}: "…"}}}}'
        if place in self._taken:
            raise ValueError(f"to_pyg: {self._taken[place]} and {what} would both be {called!r}: {remedy}")
        if called in OWN:
            raise ValueError(f"to_pyg: {what} would be {called!r}, which is PyG's own: {remedy}")
        rows = as_attribute(self._data, store, called, rows)
        store[called] = rows
        if getattr(store, called, None) is not rows:
            raise ValueError(f"to_pyg: {what} would be {called!r}, which is something else in PyG's "
                             f"{type(store).__name__}: {remedy}")
        self._taken[place] = what
