"""The files of a trained model, as in DGL-KE: MODEL_DATASET_N/{DATASET_MODEL_entity.npy, …_relation.npy, config.json}.

TransR also has DATASET_MODELprojection.npy. Rows are in the order of the dictionaries. Rows are written block by block,
so no process ever has all of them in memory. curve.csv is the learning curve; curve.png draws it if matplotlib is
installed.

    rows are written -> config.json gets their digests -> Saved compares them before the first score

config.json has a digest of itself, and "arrays": the dtype, shape and digest of each .npy, as a graph's JSON has them.
A folder without digests, which DGL-KE or an older Graphwire wrote, opens with one line that says so.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
import torch
from torch import Tensor

from graphwire._files import digest
from graphwire._files.reading import reading
from graphwire.kge.data import DataError, is_there, warn, whole, written
from graphwire.kge.dictionaries import ARRAYS, digests, read_config, write_sealed
from graphwire.kge.models import Model, Relations, make
from graphwire.kge.store import Store

BLOCK_BYTES = 16 << 20


def new_folder(save_path: str | Path, model: str, dataset: str) -> Path:
    """Makes the folder MODEL_DATASET_N with the first free N, even if other trainings make theirs at the same time."""
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
    """Writes a .npy of float32 rows. read: returns the rows of an array of numbers; called for one block at a time. The
    file appears when it is complete."""
    size = max(1, BLOCK_BYTES // (4 * width))
    with whole(path) as temporary, open(temporary, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {
            "descr": "<f4", "fortran_order": False, "shape": (count, width)})
        for first in range(0, count, size):
            rows = read(np.arange(first, min(first + size, count)))
            file.write(np.ascontiguousarray(rows, dtype="<f4").tobytes())


def config_of(args: Any, folder: Path, entity_file: str, relation_file: str, num_clients: int) -> dict[str, Any]:
    """Returns the contents of config.json: DGL-KE's fields, every flag by name, the number of clients on all hosts, and
    the digests of the dictionaries in the folder. A resumed training keeps the digests of the folder's arrays, until it
    writes others."""
    flags = {name: value for name, value in vars(args).items() if isinstance(
        value, (str, int, float, bool, list, type(None)))}
    arrays = {ARRAYS: (read_config(folder) or {}).get(ARRAYS, {})}
    return {**flags, **arrays, "model": args.model_name, "emb_size": args.hidden_dim, "max_train_step": args.max_step,
            "emap_file": entity_file, "rmap_file": relation_file, **digests(folder), "num_clients": num_clients}


def _entry(rows: np.ndarray) -> dict[str, Any]:
    return {"dtype": rows.dtype.name, "shape": list(rows.shape), "digest": digest.of_array(rows)}


def save(folder: Path, dataset: str, store: Store) -> None:
    """Writes the rows of a store, and their digests into config.json. The training must have ended. After a kill
    between two files, Saved refuses the folder, because the files are of two trainings."""
    model = store.model
    order = np.empty(store.num_entities, np.int64)
    order[store.numbers()] = np.arange(store.num_entities)
    write_rows(folder / f"{dataset}_{model.name}_entity.npy", store.num_entities, model.entity_width,
               lambda numbers: np.asarray(store.entity[order[numbers]]))
    relation = store.relation if model.has_vectors else store.matrix
    write_rows(folder / f"{dataset}_{model.name}_relation.npy", store.num_relations, relation.shape[1],
               lambda numbers: np.asarray(relation[numbers]))
    names = [f"{dataset}_{model.name}_entity.npy", f"{dataset}_{model.name}_relation.npy"]
    if model.has_vectors and model.has_matrices:
        names.append(f"{dataset}_{model.name}projection.npy")
        write_rows(folder / names[-1], store.num_relations, model.matrix_width,
                   lambda numbers: np.asarray(store.matrix[numbers]))
    config = read_config(folder) or {}
    write_sealed(folder / "config.json", {**config, ARRAYS: {name: _entry(mapped(folder / name)) for name in names}})


def mapped(path: Path) -> np.ndarray:
    """Maps the array of a .npy into memory. Raises DataError."""
    is_there(path)
    with reading(path, DataError):
        return np.lib.format.open_memmap(path, mode="r")


def rows_of(path: Path, *, checks: bool = True, listed: bool = True) -> np.ndarray:
    """Maps rows of floats, after a comparison with config.json in their folder. Raises DataError.

    checks: False: without the comparison, because another process has made it.
    listed: a config.json with digests must have that of these rows; False: the rows may be the user's own.
    """
    rows = mapped(path)
    if rows.ndim != 2 or rows.dtype.kind != "f" or 0 in rows.shape:
        raise DataError(f"{path}: expected rows of floats, not {rows.dtype} {rows.shape}")
    config = read_config(path.parent) if checks else None
    if config is None or ARRAYS not in config:
        return rows
    entry = config[ARRAYS].get(path.name) if isinstance(config[ARRAYS], dict) else None
    if entry is None and not listed:
        return rows
    if entry is None:
        raise DataError(f"{path}: config.json has no digest of it: the training did not end, or the file is of another "
                        "one; resume the training")
    if entry != _entry(rows):
        raise DataError(f"{path} is not the file that the training wrote: its dtype, shape or digest differs from "
                        "config.json's: copy the folder again, or resume the training")
    return rows


def _read(rows: np.ndarray, ids: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(rows[ids], dtype=np.float32))


class Saved:
    """A model on disk, written by Graphwire or DGL-KE. Its rows are mapped; they are read once, to compare their
    digests. checks: False: another process has compared them. Raises DataError."""

    def __init__(self, folder: str | Path, name: Optional[str] = None, dataset: Optional[str] = None, *,
                 checks: bool = True, **options: Any):
        self.folder, self._checks = Path(folder), checks
        with reading(self.folder, DataError, what="no model"):
            self._open(name, dataset, options)

    def _open(self, name: Optional[str], dataset: Optional[str], options: Mapping[str, Any]) -> None:
        config = read_config(self.folder)
        if config is None and name is None:
            raise DataError(f"{self.folder}/config.json does not exist: --model_path must name a folder that train "
                            "wrote")
        self.config: dict[str, Any] = config or {}
        self.name = name or self.config.get("model") or self.config.get("model_name") or ""
        self.dataset = dataset or self.config.get("dataset") or ""
        if self._checks and ARRAYS not in self.config:
            warn(f"{self.folder} has no digests of its rows, as DGL-KE and older versions wrote it: damage cannot be "
                 "noticed")
        self.entity = self._rows(f"{self.dataset}_{self.name}_entity.npy")
        self.relation = self._rows(f"{self.dataset}_{self.name}_relation.npy")
        self.model = self._model(options)
        self.matrix = self.relation if not self.model.has_vectors else None
        if self.model.has_vectors and self.model.has_matrices:
            self.matrix = self._rows(f"{self.dataset}_{self.name}projection.npy")
        self._check()

    def _rows(self, name: str) -> np.ndarray:
        return rows_of(self.folder / name, checks=self._checks)

    def _model(self, options: Mapping[str, Any]) -> Model:
        def of(name: str, *others: str) -> Any:
            if options.get(name) is not None:
                return options[name]
            for key in (name, *others):
                if key in self.config:
                    return self.config[key]
            raise DataError(f"{self.folder}/config.json has no {name}")

        return make(self.name, int(of("hidden_dim", "emb_size")), float(of("gamma")), bool(of("double_ent")),
                    bool(of("double_rel")))

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
                raise DataError(f"{self.folder}: rows of {what} have {rows.shape[1]} elements, but {model.name} with "
                                f"these options has {expected}: give the training's --hidden_dim, -de and -dr")


# --- The learning curve. ---

CURVE = ("step", "seconds", "triples_per_second", "triples_per_processor_second", "loss", "pos_loss", "neg_loss",
         "regularization", "MRR", "MR", "HITS@1", "HITS@3", "HITS@10")


def _numbers(row: Mapping[str, str]) -> bool:
    """Whether a line of the curve is complete. A killed training may have left half a line, and a resumed one may have
    appended to the half."""
    try:
        int(row["step"])
        float(row["seconds"])
        for word in row.values():
            float(word or 0)
    except (KeyError, ValueError):
        return False
    return True


class Curve:
    """curve.csv, written a line at a time. A resumed training keeps the lines up to its first step. seconds: the
    training time of the kept lines."""

    def __init__(self, folder: Path, step: int = 0):
        self.path = folder / "curve.csv"
        rows = [row for row in self._read() if int(row["step"]) <= step]
        self.seconds = max((float(row["seconds"]) for row in rows), default=0.0)
        with written(self.path) as file:
            writer = csv.DictWriter(file, CURVE, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def _read(self) -> list[dict[str, str]]:
        """Returns the complete lines of the file."""
        text = self.path.read_bytes().decode(errors="replace") if self.path.is_file() else ""
        names, *lines = [line.rstrip("\r").split(",") for line in text.split("\n")[:-1]] or [[]]
        rows = [dict(zip(names, words)) for words in lines if len(words) == len(names)]
        return [row for row in rows if _numbers(row)]

    def add(self, **values: Any) -> None:
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, CURVE).writerow(values)

    def draw(self) -> None:
        """Draws curve.png if matplotlib is installed."""
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
