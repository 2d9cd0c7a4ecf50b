"""TensorFrames of PyTorch Frame in mini-batches: the batch's rows of columns become a frame again.

    from_pyg: data["user"].tf -> a feature "tf.COLUMN" for each column, of lists also "tf.COLUMN.length"
    frames = TensorFrames({"user": data["user"].tf})      # the columns and their types, without rows
    a loader fetches frames.names -> frames(batch) -> batch["user"].tf

Errors: ValueError and TypeError for frames; AttributeError for a batch without a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphwire._base.keywords import keywords
from graphwire._files import frames as _frames


@keywords
class TensorFrames:
    """The frames of a graph's node types: a transform that makes a TensorFrame of the columns of each batch.

    frames: {node type: TensorFrame}; for a homogeneous graph, a TensorFrame. Their columns and types are used, not
        their rows, so frame[[]] has all that is needed.
    name: the attribute's name in the data that the graph was made from, and in the batches.

    names: the features to fetch, {node type: names}, or names if `frames` is one frame: "tf.COLUMN" for each column, and
        "tf.y" for the frame's target. A column of lists, such as multicategorical ones, has two features: the lists as
        rows of the longest one's length, and "tf.COLUMN.length"; a column of tokens has two for each kind of tokens,
        "tf.COLUMN.input_ids" and so on. Stores of graphwire.pyg and the loaders take them.
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
        self.name = name
        self._layouts = {ntype: _frames.Layout(frame) for ntype, frame in typed.items()}
        names = {ntype: [f"{name}.{column}" for column in layout.names] for ntype, layout in self._layouts.items()}
        ragged = {ntype: list(layout.ragged) for ntype, layout in self._layouts.items()}
        self.names: Any = names[None] if None in names else names
        self.ragged: Any = ragged[None] if None in ragged else ragged

    def of(self, ntypes: Sequence[str]) -> dict[str, _frames.Layout]:
        """The layouts by type. ntypes: those of the graph. Raises ValueError for frames of other types."""
        found = {ntypes[0] if ntype is None and len(ntypes) == 1 else ntype: layout
                 for ntype, layout in self._layouts.items()}
        if not set(found) <= set(ntypes):
            raise ValueError(f"frames: {next(iter(set(found) - set(ntypes)))} is no node type of the graph, which has "
                             f"{', '.join(ntypes)}")
        return found

    def __call__(self, batch: Any) -> Any:
        for ntype, layout in self._layouts.items():
            store = batch if ntype is None else batch[ntype]
            missing = [column for column in layout.names if f"{self.name}.{column}" not in store]
            if missing:
                raise AttributeError(f"the batch lacks {', '.join(f'{self.name}.{column}' for column in missing)}"
                                     f"{'' if ntype is None else f' of {ntype}'}: let the loader fetch `names`")
            rows = {column: store[f"{self.name}.{column}"] for column in layout.names}
            for column in rows:
                del store[f"{self.name}.{column}"]
            store[self.name] = layout.frame(rows, store.num_nodes)
        return batch

    def __repr__(self) -> str:
        return f"<graphwire.pyg.TensorFrames: {self.names}>"
