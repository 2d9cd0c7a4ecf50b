"""The dictionaries in the folder of a model or of parts: they name the entity or relation of each row.

    keep(dataset, folder)                                     # when a training begins, or when parts are written
    found = of(folder)                                        # None: a model of DGL-KE, or of an older Graphwire
    dataset = load(…, numbers=found)                          # names get these numbers; a difference is a DataError

A number means nothing without its dictionary: the same files read in another order give other numbers. So each model's
folder contains the dictionaries of its training: entities.tsv and relations.tsv, with a line "number name" for each
row. For Freebase the folder contains copies of entity2id.txt and relation2id.txt. Nothing is written into the data's
folder. config.json, or dictionaries.digests in a folder of parts, has the digests of the dictionaries: a dictionary
that was edited afterwards, or is missing, is an error.
"""

from __future__ import annotations

import filecmp
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from graphwire._files import digest
from graphwire._files.reading import reading
from graphwire.kge.data import (
    DataError,
    Dataset,
    Dictionaries,
    is_there,
    read_dictionary,
    warn,
    whole,
    write_dictionary,
    written,
)

NAMED = ("entities.tsv", "relations.tsv")
NUMBERED = ("entity2id.txt", "relation2id.txt")  # Freebase: a line with the count, then lines "name number"
DIGESTS = ("emap_digest", "rmap_digest")  # in config.json; optional
ARRAYS = "arrays"  # in config.json: the digests of the rows
DIGESTS_OF_PARTS = "dictionaries.digests"  # a JSON; graph.json must be the only .json in a folder of parts


def _read_sealed(path: Path) -> Optional[dict[str, Any]]:
    """Reads a JSON with a digest of itself; without one, if it has no digests of other files. None: no such file."""
    if not is_there(path):
        return None
    with reading(path, DataError, what="it was changed, or is not valid JSON"):
        text = path.read_bytes()
        values = digest.unsealed(text, demanded=False)
        return digest.unsealed(text, demanded=True) if ARRAYS in values else values


def write_sealed(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file with a digest of itself. The file appears when it is complete."""
    with written(path) as file:
        file.write(digest.sealed(values))


def read_config(folder: str | Path) -> Optional[dict[str, Any]]:
    """Reads a model's config.json; returns None if it does not exist. Raises DataError, also if the file's own digest
    differs. Files of DGL-KE and of older versions have no digest."""
    return _read_sealed(Path(folder) / "config.json")


def _file_digest(path: Path) -> str:
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return f"sha256:{found.hexdigest()}"


def digests(folder: Path) -> dict[str, str]:
    """Returns config.json's entries for the dictionaries in a folder: their digests."""
    found = _found(folder)
    return {} if found is None else dict(zip(DIGESTS, map(_file_digest, (found.entities, found.relations))))


def of(folder: str | Path) -> Optional[Dictionaries]:
    """Returns the dictionaries in a folder of results or of parts; None if the folder has neither. Raises DataError if
    one of the two is missing, or if its digest differs from the recorded one."""
    found = _found(folder)
    name, known = "config.json", read_config(folder)
    if known is None:
        name, known = DIGESTS_OF_PARTS, _read_sealed(Path(folder) / DIGESTS_OF_PARTS) or {}
    if found is None:
        if any(key in known for key in DIGESTS):
            raise DataError(f"{folder} has no dictionaries, but {name} has their digests: without them the rows have "
                            "no names; copy the folder again")
        return None
    for path, key in zip((found.entities, found.relations), DIGESTS):
        if key in known and known[key] != _file_digest(path):
            raise DataError(f"{path} is not the dictionary of the training: its digest differs from {key} in {name}")
    return found


def num_relations_of_parts(folder: Path) -> Optional[int]:
    """The number of relations that gwke_partition recorded with the parts; None if an older version wrote them."""
    number = (_read_sealed(folder / DIGESTS_OF_PARTS) or {}).get("num_relations")
    return number if isinstance(number, int) else None


def keep_with_parts(dataset: Dataset, folder: Path) -> None:
    """Writes a dataset's dictionaries into a folder of parts, and their digests and the number of relations."""
    keep(dataset, folder)
    write_sealed(folder / DIGESTS_OF_PARTS, {**digests(folder), "num_relations": dataset.num_relations})


def _found(folder: str | Path) -> Optional[Dictionaries]:
    for names in (NAMED, NUMBERED):
        paths = [Path(folder) / name for name in names]
        existing = [path for path in paths if is_there(path)]
        if len(existing) == 2:
            return Dictionaries(*paths)
        if existing:
            missing = paths[1 - paths.index(existing[0])]
            raise DataError(f"{missing} does not exist, but {existing[0].name} does: without both dictionaries the "
                            "rows have no names")
    return None


def recorded(data_path: str | Path, form: str) -> Optional[Dictionaries]:
    """Finds the dictionaries of a model, or of parts, that an older version wrote. That version stored the dictionaries
    of a training on names in the data's folder, and each training overwrote the former ones. Returns None for data
    without names, or if the files do not exist."""
    paths = [Path(data_path) / name for name in NAMED]
    return Dictionaries(*paths) if form.startswith("raw_") and all([is_there(path) for path in paths]) else None


def of_model(folder: str | Path, data_path: str | Path, form: str, warns: bool = True) -> Optional[Dictionaries]:
    """Returns a model's own dictionaries, else those of recorded(). For data with names and a model without
    dictionaries, the result may be wrong: a line warns of it (unless `warns` is False)."""
    own = of(folder)
    if own is not None or not form.startswith("raw_"):
        return own
    found = recorded(data_path, form)
    if warns:
        warn(f"{folder} has no {NAMED[0]}: names are numbered " + (
            "in the order of first use, which is right if --data_files are the training's files in the same order"
            if found is None else f"by {found.entities}, which is right unless another training wrote it"))
    return found


def keep(dataset: Dataset, folder: Path) -> None:
    """Writes a dataset's dictionaries into a folder; each file appears when it is complete."""
    given = dataset.entity_file, dataset.relation_file
    names = NUMBERED if tuple(path.name for path in given if path) == NUMBERED else NAMED
    for path, numbers, name in zip(given, (dataset.entities, dataset.relations), names):
        if numbers is not None:
            write_dictionary(folder / name, numbers)
        elif path is not None:
            with whole(folder / name) as temporary:
                shutil.copyfile(path, temporary)


def check_named(own: Optional[Path], given: str | Path) -> None:
    """Raises DataError if a name has different numbers in a model's dictionary (own) and another one (given). A name
    that only one of the two has is accepted, as another name of its row."""
    if own is None or filecmp.cmp(own, given, shallow=False):
        return
    numbers = read_dictionary(own)
    for name, number in read_dictionary(given).items():
        if numbers.get(name, number) != number:
            raise DataError(f"{given}: {name!r} is number {number} there, but {numbers[name]} in {own}, the dictionary "
                            "of the model's training")
