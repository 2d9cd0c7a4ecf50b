"""gwke_predict: the likeliest triples of given heads, relations and tails; * stands for all of them.

The model's rows are mapped and read block by block: only a block and the results are in memory. With score_func none
the score is the model's without gamma, as in DGL-KE; with logsigmoid it is log sigma(score with gamma). (DGL-KE leaves
gamma out of RotatE's phases too, so it predicts with other rotations than it trained. Graphwire keeps the training's
phases.)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from graphwire.kge.best import BLOCK, Best, Names, blocks, write_table
from graphwire.kge.data import DataError, is_there
from graphwire.kge.dictionaries import check_named
from graphwire.kge.dictionaries import of as dictionaries_of
from graphwire.kge.models import Relations, check_scores
from graphwire.kge.outputs import Saved

FORMATS = ("h_r_t", "h_r_*", "h_*_t", "*_r_t", "h_*_*", "*_r_*", "*_*_t")


class Predictor:
    """Scores a saved model's triples."""

    def __init__(self, saved: Saved, score_func: str = "none", device: str = "cpu"):
        self.saved, self.model, self.device = saved, saved.model, device
        self.logsigmoid = score_func == "logsigmoid"
        if not self.logsigmoid:
            self.model.gamma = 0.0  # changes the score only; model.initial was computed from the training's gamma

    def _rows(self, ids: np.ndarray) -> Tensor:
        return self.saved.entity_rows(ids).to(self.device)

    def _relations(self, ids: np.ndarray) -> Relations:
        return self.saved.relations_of(ids).to(self.device)

    def _of(self, scores: Tensor, ids: Sequence[Tensor]) -> Tensor:
        check_scores(scores, *ids)
        return (logsigmoid(scores) if self.logsigmoid else scores).cpu()

    @torch.no_grad()
    def triplet_wise(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray, k: int) -> Best:
        """Returns the best of the triples (heads[i], relations[i], tails[i])."""
        if not len(heads) == len(relations) == len(tails):
            raise DataError(f"triplet_wise: {len(heads)} heads, {len(relations)} relations, {len(tails)} tails: give "
                            "the same number of each")
        best = Best(1, k, 3)
        for first, some in blocks(heads):
            at = slice(first, first + len(some))
            scores = self.model.score(self._rows(some), self._relations(relations[at]), self._rows(tails[at]))
            ids = [torch.from_numpy(array[at]).unsqueeze(0) for array in (heads, relations, tails)]
            best.add(0, self._of(scores.unsqueeze(0), ids), ids)
        return best

    @torch.no_grad()
    def combined(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray, k: int, mode: str) -> Best:
        """Returns the best of all combinations. mode: the best of all, or for each head, relation or tail."""
        best = Best({"all": 1, "batch_head": len(heads), "batch_rel": len(relations), "batch_tail": len(tails)}[mode],
                    k, 3)
        size = max(1, min(BLOCK, (1 << 24) // (BLOCK * self.model.entity_width)))  # heads of a block: bounds memory
        for place, relation in enumerate(relations):
            for first, some in [(i, heads[i:i + size]) for i in range(0, len(heads), size)]:
                rows, of_relation = self._rows(some), self._relations(np.full(len(some), relation))
                for tail_first, other in blocks(tails):
                    ids = [torch.from_numpy(some).unsqueeze(1), torch.tensor([[int(relation)]]),
                           torch.from_numpy(other).unsqueeze(0)]
                    scores = self._of(self.model.against("tail", rows, of_relation, self._rows(other).unsqueeze(0))[0],
                                      ids)
                    if mode == "batch_head":
                        best.add(first, scores, ids)
                    elif mode == "batch_tail":
                        best.add(tail_first, scores.T, [array.T for array in ids])
                    else:
                        ids = [array.expand_as(scores).reshape(1, -1) for array in ids]
                        best.add(0 if mode == "all" else place, scores.reshape(1, -1), ids)
        return best


def _dictionary(args: argparse.Namespace, own: Optional[Path], given: Optional[str], config: dict, key: str,
                kinds: tuple[str, ...]) -> Path:
    """Finds a dictionary. The first of these counts:

    1. the one that the user gave; DataError if it contradicts the model's own
    2. the model's own
    3. DGL-KE's, in --data_path: the name in config.json (`key`), else one of `kinds`
    """
    if given:
        check_named(own, given)
        return Path(given)
    if own is not None:
        return own
    names = [config[key]] if isinstance(config.get(key), str) and config[key] else []
    for name in [*names, *kinds]:
        path = Path(args.data_path) / name
        if is_there(path):
            return path
    raise DataError(f"--raw_data: {args.data_path} has no {' or '.join([*names, *kinds])}; name a dictionary by "
                    "--entity_mfile or --rel_mfile")


def predict(args: argparse.Namespace) -> None:
    """Runs the command."""
    if args.format not in FORMATS:
        raise DataError(f"there is no format {args.format}: choose one of {', '.join(FORMATS)}")
    saved = Saved(args.model_path)
    paths: tuple[Optional[Path], Optional[Path]] = (None, None)
    if args.raw_data:
        own = dictionaries_of(saved.folder)
        paths = (
            _dictionary(args, None if own is None else own.entities, args.entity_mfile, saved.config, "emap_file",
                        ("entities.tsv", "entities.dict")),
            _dictionary(args, None if own is None else own.relations, args.rel_mfile, saved.config, "rmap_file",
                        ("relations.tsv", "relations.dict")))
    entities, relations = Names(paths[0], len(saved.entity)), Names(paths[1], len(saved.relation))
    columns, files = args.format.split("_"), list(args.data_files or ())
    if len(files) != sum(column != "*" for column in columns):
        raise DataError(f"--data_files: format {args.format} takes {sum(column != '*' for column in columns)}, not "
                        f"{len(files)} files")
    lists = [np.arange(names.count) if column == "*" else names.read(files.pop(0))
             for column, names in zip(columns, (entities, relations, entities))]
    predictor = Predictor(saved, args.score_func, "cpu" if args.gpu < 0 else f"cuda:{args.gpu}")
    if args.exec_mode == "triplet_wise":
        best = predictor.triplet_wise(lists[0], lists[1], lists[2], args.topK)
    else:
        best = predictor.combined(lists[0], lists[1], lists[2], args.topK, args.exec_mode)
    header = ("head", "rel", "tail", "score") if args.raw_data else ("src", "rel", "dst", "score")
    lines = write_table(args.output, header, best, (entities, relations, entities))
    print(f"{lines} triples: {args.output}")
