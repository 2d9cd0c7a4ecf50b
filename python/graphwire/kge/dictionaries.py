"""Which row of a model is which entity and relation: the dictionaries that lie with the model, and with parts.

    keep(dataset, folder)                                     # at the beginning of a training, or with the parts
    found = of(folder)                                        # None: a model of DGL-KE, or of an older Graphwire
    dataset = load(…, numbers=found)                          # names get these numbers, or DataError names what differs

A number means nothing without its dictionary, and two readings of the same files in another order number names
differently. So each model has the dictionaries that it was trained by: entities.tsv and relations.tsv, "number name" a
line (entity2id.txt and relation2id.txt, as they are, of Freebase). Nothing is written where the data lies. config.json
has their digests: a dictionary that was edited afterwards is an error.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Optional

from graphwire.kge.data import (
    DataError,
    Dataset,
    Dictionaries,
    is_there,
    read_dictionary,
    warn,
    whole,
    write_dictionary,
)

NAMED = ("entities.tsv", "relations.tsv")
NUMBERED = ("entity2id.txt", "relation2id.txt")  # Freebase's: a count, then "name number" a line
DIGESTS = ("emap_digest", "rmap_digest")  # in config.json; optional


def read_config(folder: str | Path) -> Optional[dict[str, Any]]:
    """A model's config.json; None where it does not exist. Raises DataError."""
    path = Path(folder) / "config.json"
    if not is_there(path):
        return None
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("expected an object")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise DataError(f"{path}: is no JSON: {error}") from error
    return config


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return f"sha256:{found.hexdigest()}"


def digests(folder: Path) -> dict[str, str]:
    """What config.json says of the dictionaries in its folder."""
    found = _found(folder)
    return {} if found is None else dict(zip(DIGESTS, map(_digest, (found.entities, found.relations))))


def of(folder: str | Path) -> Optional[Dictionaries]:
    """Those in a folder of results or of parts; None where it has none. Raises DataError where one is missing, or is
    not the one whose digest config.json has."""
    found = _found(folder)
    config = None if found is None else read_config(folder)
    if found is not None and config is not None:
        for path, key in zip((found.entities, found.relations), DIGESTS):
            if key in config and config[key] != _digest(path):
                raise DataError(f"{path} is not the dictionary of the training: its digest is not the {key} of "
                                "config.json")
    return found


def _found(folder: str | Path) -> Optional[Dictionaries]:
    for names in (NAMED, NUMBERED):
        paths = [Path(folder) / name for name in names]
        there = [path for path in paths if is_there(path)]
        if len(there) == 2:
            return Dictionaries(*paths)
        if there:
            missing = paths[1 - paths.index(there[0])]
            raise DataError(f"{missing} is not there, beside {there[0].name}: nothing else tells which row is which")
    return None


def recorded(data_path: str | Path, form: str) -> Optional[Dictionaries]:
    """For a model, or parts, of an older version: its trainings on names left their dictionaries where the data lies,
    over those of others. None: it was not on names, or they are not there."""
    paths = [Path(data_path) / name for name in NAMED]
    return Dictionaries(*paths) if form.startswith("raw_") and all([is_there(path) for path in paths]) else None


def of_model(folder: str | Path, data_path: str | Path, form: str, told: bool = True) -> Optional[Dictionaries]:
    """A model's own, or what is recorded of it. A line warns (told) of what cannot be known."""
    own = of(folder)
    if own is not None or not form.startswith("raw_"):
        return own
    found = recorded(data_path, form)
    if told:
        warn(f"{folder} has no {NAMED[0]}: names are numbered " + (
            "in the order of first use, which is right if --data_files are those of the training, in that order"
            if found is None else f"by {found.entities}, which is right unless another training wrote it"))
    return found


def keep(dataset: Dataset, folder: Path) -> None:
    """Writes a dataset's dictionaries into a folder; each is there whole or not at all."""
    given = dataset.entity_file, dataset.relation_file
    names = NUMBERED if tuple(path.name for path in given if path) == NUMBERED else NAMED
    for path, numbers, name in zip(given, (dataset.entities, dataset.relations), names):
        if numbers is not None:
            write_dictionary(folder / name, numbers)
        elif path is not None:
            with whole(folder / name) as temporary:
                shutil.copyfile(path, temporary)


def check_named(own: Optional[Path], given: str | Path) -> None:
    """Raises DataError where a name has other numbers in two dictionaries: the rows of `given` are not those of `own`.
    Names that one of them alone has are other names for the same rows."""
    if own is None or filecmp.cmp(own, given, shallow=False):
        return
    numbers = read_dictionary(own)
    for name, number in read_dictionary(given).items():
        if numbers.get(name, number) != number:
            raise DataError(f"{given}: {name!r} is number {number} there, and {numbers[name]} in {own}, which the "
                            "model was trained by")
