"""What a training leaves, as DGL-KE does: MODEL_DATASET_N/{DATASET_MODEL_entity.npy, …_relation.npy, config.json}.

TransR has DATASET_MODELprojection.npy too. Rows are in the order of the dictionaries. They are written block by block,
so that no process ever has all of them. curve.csv, and curve.png where matplotlib is installed, tell how the training
went.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
import torch
from torch import Tensor

from graphwire.kge.data import DataError, is_there, whole, written
from graphwire.kge.dictionaries import digests, read_config
from graphwire.kge.models import Model, Relations, make
from graphwire.kge.store import Store

BLOCK_BYTES = 16 << 20


def new_folder(save_path: str | Path, model: str, dataset: str) -> Path:
    """MODEL_DATASET_N, N the first that is free; made, even where others make theirs at the same time."""
    top = Path(save_path)
    top.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        folder = top / f"{model}_{dataset}_{number}"
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


def write_rows(path: Path, count: int, width: int, read: Callable[[np.ndarray], np.ndarray]) -> None:
    """A .npy of float32 rows, read by number, a block at a time. It is there whole or not at all."""
    size = max(1, BLOCK_BYTES // (4 * width))
    with whole(path) as temporary, open(temporary, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {
            "descr": "<f4", "fortran_order": False, "shape": (count, width)})
        for first in range(0, count, size):
            rows = read(np.arange(first, min(first + size, count)))
            file.write(np.ascontiguousarray(rows, dtype="<f4").tobytes())
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """It is there whole or not at all."""
    with written(path) as file:
        file.write(json.dumps(values, indent=4) + "\n")


def config_of(args: Any, folder: Path, entity_file: str, relation_file: str, num_clients: int) -> dict[str, Any]:
    """config.json: DGL-KE's fields, every flag under its own name, the number of clients on all hosts, and the digests
    of the dictionaries that lie in the folder."""
    flags = {name: value for name, value in vars(args).items() if isinstance(
        value, (str, int, float, bool, list, type(None)))}
    return {**flags, "model": args.model_name, "emb_size": args.hidden_dim, "max_train_step": args.max_step,
            "emap_file": entity_file, "rmap_file": relation_file, **digests(folder), "num_clients": num_clients}


def save(folder: Path, dataset: str, store: Store) -> None:
    """Writes the rows of a store, of one that nobody trains any more."""
    model = store.model
    order = np.empty(store.num_entities, np.int64)
    order[store.numbers()] = np.arange(store.num_entities)
    write_rows(folder / f"{dataset}_{model.name}_entity.npy", store.num_entities, model.entity_width,
               lambda numbers: np.asarray(store.entity[order[numbers]]))
    relation, name = (store.relation, "_relation") if model.has_vectors else (store.matrix, "_relation")
    write_rows(folder / f"{dataset}_{model.name}{name}.npy", store.num_relations, relation.shape[1],
               lambda numbers: np.asarray(relation[numbers]))
    if model.has_vectors and model.has_matrices:
        write_rows(folder / f"{dataset}_{model.name}projection.npy", store.num_relations, model.matrix_width,
                   lambda numbers: np.asarray(store.matrix[numbers]))


def mapped(path: Path) -> np.ndarray:
    """The array of an .npy, as it lies on disk. Raises DataError."""
    is_there(path)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _read(rows: np.ndarray, ids: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(rows[ids], dtype=np.float32))


class Saved:
    """A model on disk, of this program or DGL-KE's: its rows are mapped, not read. Raises DataError."""

    def __init__(self, folder: str | Path, name: Optional[str] = None, dataset: Optional[str] = None,
                 **options: Any):
        self.folder = Path(folder)
        config = read_config(self.folder)
        if config is None and name is None:
            raise DataError(f"{self.folder}/config.json is not there: --model_path names the folder that train wrote")
        self.config: dict[str, Any] = config or {}
        self.name = name or self.config.get("model") or self.config.get("model_name") or ""
        self.dataset = dataset or self.config.get("dataset") or ""
        self.entity = self._rows(f"{self.dataset}_{self.name}_entity.npy")
        self.relation = self._rows(f"{self.dataset}_{self.name}_relation.npy")
        self.model = self._model(options)
        self.matrix = self.relation if not self.model.has_vectors else None
        if self.model.has_vectors and self.model.has_matrices:
            self.matrix = self._rows(f"{self.dataset}_{self.name}projection.npy")
        self._check()

    def _rows(self, name: str) -> np.ndarray:
        path = self.folder / name
        rows = mapped(path)
        if rows.ndim != 2 or rows.dtype.kind != "f" or 0 in rows.shape:
            raise DataError(f"{path}: expected rows of floats, not {rows.dtype} {rows.shape}")
        return rows

    def _model(self, options: Mapping[str, Any]) -> Model:
        def of(name: str, *others: str) -> Any:
            if options.get(name) is not None:
                return options[name]
            for key in (name, *others):
                if key in self.config:
                    return self.config[key]
            raise DataError(f"{self.folder}/config.json does not say {name}")

        try:
            return make(self.name, int(of("hidden_dim", "emb_size")), float(of("gamma")), bool(of("double_ent")),
                        bool(of("double_rel")))
        except ValueError as error:
            raise DataError(f"{self.folder}: {error}") from error

    def entity_rows(self, ids: np.ndarray) -> Tensor:
        return _read(self.entity, ids)

    def relations_of(self, ids: np.ndarray) -> Relations:
        found, places = np.unique(ids, return_inverse=True)
        return Relations(_read(self.relation, ids) if self.model.has_vectors else None,
                         None if self.matrix is None else _read(self.matrix, found), torch.from_numpy(places))

    def _check(self) -> None:
        model = self.model
        width = model.relation_width if model.has_vectors else model.matrix_width
        for what, rows, expected in (("entities", self.entity, model.entity_width), ("relations", self.relation, width),
                                     ("projections", self.matrix, model.matrix_width)):
            if rows is not None and rows.shape[1] != expected:
                raise DataError(f"{self.folder}: rows of {what} have {rows.shape[1]} elements, and {model.name} of "
                                f"these options has {expected}: --hidden_dim, -de, -dr are those of the training")


# --- The learning curve. ---

CURVE = ("step", "seconds", "triples_per_second", "triples_per_processor_second", "loss", "pos_loss", "neg_loss",
         "regularization", "MRR", "MR", "HITS@1", "HITS@3", "HITS@10")


def _numbers(row: Mapping[str, str]) -> bool:
    """Whether a line of the curve is one: a kill, or what was written after it, may have left half of one."""
    try:
        int(row["step"])
        float(row["seconds"])
        for word in row.values():
            float(word or 0)
    except (KeyError, ValueError):
        return False
    return True


class Curve:
    """curve.csv, a line at a time; a resumed training goes on at its step. seconds: of training, up to there."""

    def __init__(self, folder: Path, step: int = 0):
        self.path = folder / "curve.csv"
        rows = [row for row in self._read() if int(row["step"]) <= step]
        self.seconds = max((float(row["seconds"]) for row in rows), default=0.0)
        with written(self.path) as file:
            writer = csv.DictWriter(file, CURVE, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def _read(self) -> list[dict[str, str]]:
        """Its lines that are whole."""
        text = self.path.read_bytes().decode(errors="replace") if self.path.is_file() else ""
        names, *lines = [line.rstrip("\r").split(",") for line in text.split("\n")[:-1]] or [[]]
        rows = [dict(zip(names, words)) for words in lines if len(words) == len(names)]
        return [row for row in rows if _numbers(row)]

    def add(self, **values: Any) -> None:
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, CURVE).writerow(values)

    def draw(self) -> None:
        """curve.png, where matplotlib is installed."""
        try:
            import matplotlib
        except ImportError:
            return
        matplotlib.use("Agg")
        from matplotlib import pyplot

        rows = self._read()
        figure, axes = pyplot.subplots()
        for name, axis in (("loss", axes), ("MRR", axes.twinx())):
            points = [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]
            if points:
                axis.plot(*zip(*points), label=name, color="C0" if name == "loss" else "C1", marker=".")
                axis.set_ylabel(name)
        axes.set_xlabel("step")
        figure.savefig(self.path.with_suffix(".png"))
        pyplot.close(figure)
