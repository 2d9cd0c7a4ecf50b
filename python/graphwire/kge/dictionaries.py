"""Which row of a model is which entity and relation: the dictionaries that lie with the model, and with parts.

    keep(dataset, folder)                                     # at the beginning of a training, or with the parts
    found = of(folder)                                        # None: a model of DGL-KE, or of an older Graphwire
    dataset = load(…, numbers=found)                          # names get these numbers, or DataError names what differs

A number means nothing without its dictionary, and two readings of the same files in another order number names
differently. So each model has the dictionaries that it was trained by: entities.tsv and relations.tsv, "number name" a
line (entity2id.txt and relation2id.txt, as they are, of Freebase). Nothing is written where the data lies.
"""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path
from typing import Optional

from graphwire.kge.data import DataError, Dataset, Dictionaries, read_dictionary, warn, whole, write_dictionary

NAMED = ("entities.tsv", "relations.tsv")
NUMBERED = ("entity2id.txt", "relation2id.txt")  # Freebase's: a count, then "name number" a line


def of(folder: str | Path) -> Optional[Dictionaries]:
    """Those in a folder of results or of parts; None where it has none. Raises DataError where one is missing."""
    for names in (NAMED, NUMBERED):
        paths = [Path(folder) / name for name in names]
        there = [path for path in paths if path.is_file()]
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
    return Dictionaries(*paths) if form.startswith("raw_") and all(path.is_file() for path in paths) else None


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
