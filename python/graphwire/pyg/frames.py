"""TensorFrames of PyTorch Frame in mini-batches: the batch's rows of columns become a frame again.

    from_pyg: data["user"].tf -> a feature "tf.COLUMN" for each column, of lists also "tf.COLUMN.length"
    frames = TensorFrames({"user": data["user"].tf})      # the columns and their types, without rows
    a loader fetches frames.names -> frames(batch) -> batch["user"].tf

    plain columns, as from_database stores them: frames = TensorFrames.of_columns(graph, stypes, stats)

Errors: ValueError and TypeError for frames; AttributeError for a batch without a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from graphwire._base.arrays import gather_all
from graphwire._base.keywords import keywords
from graphwire._files import frames as _frames
from graphwire._graph.graph import Feature, Graph
from graphwire._graph.index import RowIndex
from graphwire.pyg.frame_columns import PlainLayout
from graphwire.pyg.original_ids import OriginalIds


@keywords
class TensorFrames:
    """The frames of a graph's node types: a transform that makes a TensorFrame of the columns of each batch.

    frames: {node type: TensorFrame}; for a homogeneous graph, a TensorFrame. Their columns and types are used, not
        their rows, so frame[[]] has all that is needed.
    name: the attribute's name in the data that the graph was made from, and in the batches.

    names: the features to fetch, {node type: names}, or names if `frames` is one frame: "tf.COLUMN" for each column,
        and "tf.y" for the frame's target. A column of lists, such as multicategorical ones, has two features: the
        lists as rows of the longest one's length, and "tf.COLUMN.length"; a column of tokens has two for each kind of
        tokens, "tf.COLUMN.input_ids" and so on. Stores of graphwire.pyg and the loaders take them.
    ragged: the columns that the graph does not store, in the same form, because a few lists are much longer than the
        others: a row of more than 1 KiB for the longest one, which is more than 16 times the mean. The batches' frames
        lack them: add them in a transform of your own, from batch[node type].n_id. Frames without rows do not show
        which columns these are: leave them out of such frames.

    As a transform of a loader, or called with the result of Batch.to_pyg(), it sets batch[node type].tf, removes the
    single columns and returns the batch. It can be pickled.

    The batch's frame is frame[n_id], bit for bit, in all types of columns of PyTorch Frame 0.3.

    Raises TypeError for what is no TensorFrame; ValueError for a frame that has a target and a column "y", or columns
    such as "tags" and "tags.length" that would be one feature. A batch that lacks a feature raises AttributeError.
    """

    def __init__(self, frames: Any, name: str = "tf"):
        typed = frames if isinstance(frames, Mapping) else {None: frames}
        for ntype, frame in typed.items():
            if not _frames.is_frame(frame):
                raise TypeError(f"frames: {'the frame' if ntype is None else ntype} is {type(frame).__name__}, and not "
                                "a TensorFrame")
        self._settle(name, f"{name}.", {ntype: _frames.Layout(frame) for ntype, frame in typed.items()})

    @classmethod
    @keywords
    def of_columns(cls, graph: Graph, stypes: Mapping[str, Mapping[str, Any]],
                   stats: Mapping[str, Mapping[str, Mapping[Any, Any]]],
                   stored: Mapping[str, Mapping[str, str]] | None = None, name: str = "tf") -> TensorFrames:
        """The frames of plain columns, such as those of graphwire.from_database: the frame of a batch is what
        torch_frame.data.Dataset(rows, stypes[table]).materialize(col_stats=stats[table]) makes of the rows n_id of the
        table, bit for bit.

        graph: the graph whose features the columns are. The result does not keep it.
        stypes: {node type: {column: stype}}, as torch_frame.stype or its word. Node types may be left out. A number is
            numerical or categorical; a category is categorical; a timestamp is timestamp; a row of numbers is embedding
            or sequence_numerical.
        stats: {node type: {column: statistics}} of PyTorch Frame, of any rows, such as those of training. The list of
            categories, StatType.COUNT, numbers the categories; others are -1. Other statistics are not used.
        stored: {node type: {column: feature}}, the columns that the graph stores by another name: that of the rows'
            times is "time", and of their ends "end_time".
        name: the frames' attribute in the batches.

        `names` are the features. They are no single attributes of the batches, except "time" and "end_time".

        Raises ValueError for a column that is no feature, and for a stype that the stored rows do not give, in a line
        that says what to do; ModuleNotFoundError without PyTorch Frame.
        """
        for of, given in (("stypes", stypes), ("stored", stored or {})):
            odd = next((ntype for ntype in given if ntype not in graph.ntypes), None)
            if odd is not None:
                raise ValueError(f"{of}: {odd} is no node type of the graph, which has {', '.join(graph.ntypes)}")
        made: TensorFrames = cls.__new__(cls)
        made._settle(name, "", {ntype: PlainLayout(graph, ntype, columns, stats.get(ntype, {}),
                                                   (stored or {}).get(ntype, {})) for ntype, columns in stypes.items()})
        return made

    def _settle(self, name: str, prefix: str, layouts: dict[Any, _frames.Layout]) -> None:
        """prefix: of the features' names, before those in the layouts."""
        self.name, self.prefix, self._layouts = name, prefix, layouts
        names = {ntype: [f"{prefix}{column}" for column in layout.names] for ntype, layout in layouts.items()}
        ragged = {ntype: list(layout.ragged) for ntype, layout in self._layouts.items()}
        self.names: Any = names[None] if None in names else names
        self.ragged: Any = ragged[None] if None in ragged else ragged

    def of(self, ntypes: Sequence[str]) -> dict[str, _frames.Layout]:
        """The layouts by type. ntypes: those of the graph. Raises ValueError for frames of other types."""
        found = {ntypes[0] if ntype is None and len(ntypes) == 1 else str(ntype): layout
                 for ntype, layout in self._layouts.items()}
        if not set(found) <= set(ntypes):
            raise ValueError(f"frames: {next(iter(set(found) - set(ntypes)))} is no node type of the graph, which has "
                             f"{', '.join(ntypes)}")
        return found

    def __call__(self, batch: Any) -> Any:
        typed = hasattr(batch, "node_types")
        for ntype, layout in self._layouts.items():
            store = batch[ntype] if typed and ntype is not None else batch
            self.put(store, layout, "" if ntype is None else f" of {ntype}")
        return batch

    def put(self, store: Any, layout: _frames.Layout, of: str = "") -> None:
        """Replaces the columns of a store of nodes by their frame. of: the type, for errors."""
        names = {column: f"{self.prefix}{column}" for column in layout.names}
        missing = [name for name in names.values() if name not in store]
        if missing:
            raise AttributeError(f"the batch lacks {', '.join(missing)}{of}: let the loader fetch `names`")
        rows = {column: store[name] for column, name in names.items()}
        for column, name in names.items():
            if column not in layout.kept:
                del store[name]
        store[self.name] = layout.frame(rows, store.num_nodes)

    def __repr__(self) -> str:
        return f"<graphwire.pyg.TensorFrames: {self.names}>"


class ServedFrame:
    """The columns of a TensorFrame whose rows are with their owners. tf[ids] fetches rows, as a TensorFrame; row i is
    row i of the user's data. col_names_dict, num_rows and len(tf) are the frame's; other attributes are those of a
    frame without rows."""

    def __init__(self, graph: Graph, ids: OriginalIds, ntype: str, name: str, layout: _frames.Layout,
                 columns: Mapping[str, Feature]):
        """columns: {feature of the layout: its rows}."""
        self._graph, self._ids, self._type, self.name = graph, ids, ntype, name
        self._layout, self._columns = layout, dict(columns)

    @property
    def features(self) -> list[str]:
        """The names of the graph's features that are its columns."""
        return [column.name for column in self._columns.values()]

    @property
    def col_names_dict(self) -> dict[Any, list[str]]:
        return {kind: list(names) for kind, names in self._layout.columns.items()}

    @property
    def num_rows(self) -> int:
        return self._graph.num_nodes(self._type)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, index: Any) -> Any:
        """Fetches rows. Feature documents the forms and the errors; one integer is a row, as in PyTorch Frame."""
        where = RowIndex([index] if isinstance(index, int) else index, (self.num_rows,))
        at = self._ids.nodes_to_graph(self._type, torch.from_numpy(where.ids))
        found = gather_all(self._graph._opened(), [(column.pointer(), at) for column in self._columns.values()], torch)
        return self._layout.frame(dict(zip(self._columns, map(torch.as_tensor, found))), len(at))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("feat_dict", _frames.TARGET):
            raise AttributeError(f"{self.name}.{name}: the rows are not in memory: {self.name}[ids] fetches rows")
        return getattr(self._layout.empty(), name)

    def __repr__(self) -> str:
        return f"<graphwire.pyg frame {self.name} of {self._type}: {self.num_rows} rows, not in memory>"


def served_frames(graph: Graph, ids: OriginalIds, frames: TensorFrames,
                  nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[dict[str, Any], ServedFrame]]:
    """{node type: (the other attributes, its frame)}. nodes: {node type: {attribute: rows}}. Raises ValueError for
    frames of other types, and for columns that the graph does not store."""
    found = {}
    for ntype, layout in frames.of(graph.ntypes).items():
        tables = dict(nodes.get(ntype, {}))
        columns: dict[str, Any] = {column: tables.get(f"{frames.prefix}{column}") for column in layout.names}
        for column in set(columns) - set(layout.kept):
            tables.pop(f"{frames.prefix}{column}", None)
        missing = [f"{frames.prefix}{column}" for column, table in columns.items() if table is None]
        if missing:
            raise ValueError(f"frames: the graph does not store {', '.join(missing)} of {ntype}: leave these columns "
                             "out of the frame, and add them in a transform, from the batch's n_id")
        found[ntype] = tables, ServedFrame(graph, ids, ntype, frames.name, layout, columns)
    return found
