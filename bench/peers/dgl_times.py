"""The sitecustomize module of dgl_scripts.py's workspaces. It measures the parts of a training script's collate
function, over DGL and over Graphwire alike. When the process ends, it writes times.json into its own folder: {"epochs":
[{…} of each epoch]}.

  collate      seconds in the first loader's collate function, which include the three below
  neighbours   in dgl.distributed.sample_neighbors
  rows         in reads of DistTensors
  to_block     in dgl.to_block

The floor is collate without neighbours and rows: to_block and the script's own lines, which both systems share.

The measurement starts when the script parses its arguments, because everything is imported by then. It needs
--num_workers 0: DGL's samplers are processes, and their times would not reach this process.
"""
import argparse
import atexit
import json
import os
import sys
import time
from pathlib import Path

_epochs = []
_inside = []  # the parts of the first loader's collate that are running


def _timed(word, call):
    def timed(*arguments, **named):
        if not _epochs or (not _inside and word != "collate"):
            return call(*arguments, **named)
        _inside.append(word)
        start = time.perf_counter()
        try:
            return call(*arguments, **named)
        finally:
            _epochs[-1][word] += time.perf_counter() - start
            _inside.pop()
    return timed


def _watch(dgl):
    loader, tensor, first = dgl.distributed.DistDataLoader, dgl.distributed.DistTensor, []
    init, begin = loader.__init__, loader.__iter__

    def with_collate(self, *arguments, collate_fn=None, **named):
        if not first:
            first.append(self)
            collate_fn = _timed("collate", collate_fn)
        init(self, *arguments, collate_fn=collate_fn, **named)

    def from_the_start(self):
        if self is first[0]:
            _epochs.append({"collate": 0.0, "neighbours": 0.0, "rows": 0.0, "to_block": 0.0})
        return begin(self)

    loader.__init__, loader.__iter__ = with_collate, from_the_start
    tensor.__getitem__ = _timed("rows", tensor.__getitem__)
    dgl.distributed.sample_neighbors = _timed("neighbours", dgl.distributed.sample_neighbors)
    dgl.to_block = _timed("to_block", dgl.to_block)
    atexit.register(_write)


def _write():
    """Writes the times in the first trainer only. (DGL's server runs the script too, without epochs.)"""
    if _epochs and os.environ.get("RANK", "0") == "0":
        Path(__file__).with_name("times.json").write_text(json.dumps({"epochs": _epochs}))


def _parse_args(*arguments, **named):
    found = _original(*arguments, **named)
    if "dgl" in sys.modules and getattr(found, "num_workers", None) == 0:
        argparse.ArgumentParser.parse_args = _original
        _watch(sys.modules["dgl"])
    return found


_original = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = _parse_args
