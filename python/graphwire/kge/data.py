"""Reads knowledge graphs from disk: built-in datasets, and the user's own files in DGL-KE's formats.

    dataset = load("data", "FB15k-237")                       # <data_path>/<dataset>/: entities.dict, train.txt, …
    dataset = load("data", "mine", "udd_hrt", files=["entities.tsv", "relations.tsv", "train.tsv"])
    dataset = load("data", "mine", "raw_udd_htr", files=["train.tsv", "valid.tsv", "test.tsv"])

built_in     files in <data_path>/<dataset>/: entities.dict and relations.dict ("id name"), train.txt, valid.txt and
             test.txt (names; h r t). Freebase has entity2id.txt and relation2id.txt, whose first line is the number of
             names; its triples are numbers (h t r). sources.py fetches missing files
udd_XYZ      entities, relations, train [valid test]: numbers. XYZ is the order of h, r and t in a line
raw_udd_XYZ  train [valid test]: names, numbered in the order of first use

A dataset for an existing model gets the model's numbers (dictionaries.py). Files of names are read with the model's
dictionaries; files of numbers must have the same dictionaries as the model. Reading writes no file except the fetched
ones.

With has_edge_importance, the fourth column of udd and raw_udd files is the triple's importance. Lines are cut as by
`graphwire import --triples` (docs/PYTHON.md, "How tables are read"), and a header is refused. Errors name the file and
the line.
"""

from __future__ import annotations

import filecmp
import json
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Callable, Optional, TextIO

import numpy as np

from graphwire._base.scratch import whole as whole
from graphwire._files import names as _names
from graphwire.kge.sources import obtain

# The built-in datasets: the files of entities and relations, and the order of a triple's columns.
BUILT_IN = {name: ("entities.dict", "relations.dict", "hrt") for name in (
    "FB15k", "FB15k-237", "wn18", "wn18rr", "wikidata5m")}
BUILT_IN["Freebase"] = ("entity2id.txt", "relation2id.txt", "htr")
SPLITS = ("train", "valid", "test")
BLOCK = 1 << 18  # triples that are read at once
BLANKS = " \t"  # around a column, where they are no part of it
_IN_QUOTES = re.compile(r'[ \t]*"((?:[^"]|"")*)"[ \t]*')
ORDERS = ("hrt", "htr", "rht", "rth", "thr", "trh")


def warn(text: str) -> None:
    print(f"gwke: {text}", file=sys.stderr, flush=True)


class DataError(ValueError):
    """A file does not exist or has wrong contents; the text names the file, the line and the fault."""


@dataclass
class Triples:
    """head, relation, tail: int64 [n] each; importance: float32 [n], or None."""

    head: np.ndarray
    relation: np.ndarray
    tail: np.ndarray
    importance: Optional[np.ndarray] = None

    def __len__(self) -> int:
        return len(self.head)


Sink = Callable[[Triples], None]  # called with each block of triples


@dataclass
class Dataset:
    """A knowledge graph in memory.

    entity_file, relation_file  the files of the dictionaries; None if names were numbered in the order of first use
    entities, relations         the number of each name; None if the files of triples contain numbers
    """

    name: str
    folder: Path
    num_entities: int
    num_relations: int
    entity_file: Optional[Path]
    relation_file: Optional[Path]
    train: Triples
    valid: Optional[Triples]
    test: Optional[Triples]
    entities: Optional[dict[str, int]] = None
    relations: Optional[dict[str, int]] = None


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """Yields a text file to write; `path` appears when the file is complete."""
    with whole(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        yield file


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file, which appears when it is complete."""
    with written(path) as file:
        file.write(json.dumps(values, indent=4) + "\n")


_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
          stat.S_IFBLK: "a device"}


def is_there(path: Path) -> bool:
    """Whether a regular file exists. Raises DataError for a pipe, a folder or a device of that name: reading a pipe
    would wait."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if kind != stat.S_IFREG:
        raise DataError(f"{path} is {_KINDS.get(kind, 'something else')}, not a file")
    return True


def lines_of(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yields the number and text of each line. Only "\\n" ends a line: a name may contain the other characters at which
    str.splitlines splits. A byte order mark at the start is no part of the text."""
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _out_of_quotes(line: str, delimiter: str) -> Iterator[str]:
    """The columns of a line that has quotes. A quote inside a column is a character if "|" separates. Raises
    DataError."""
    at = 0
    while at <= len(line):
        quoted = _IN_QUOTES.match(line, at)
        end = quoted.end() if quoted else -1
        if quoted is None or line[end:end + 1] not in ("", delimiter):
            end = line.find(delimiter, at) if delimiter in line[at:] else len(line)
            word = line[at:end].strip(BLANKS)
            if '"' in word and (delimiter != "|" or word.rfind('"') == 0):
                raise DataError(f"{word!r}: a quote inside a column, or a quoted column that does not end")
            yield word
        else:
            yield quoted.group(1).replace('""', '"')
        at = end + 1


def _cut(line: str, delimiter: str) -> list[str]:
    """The columns of a line, by the rules of `graphwire import --triples`."""
    if delimiter == " ":
        return re.split("[ \t]+", line.strip(BLANKS))
    if '"' in line and delimiter in ",;|":
        return list(_out_of_quotes(line, delimiter))
    return [word.strip(BLANKS) for word in line.split(delimiter)]


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and columns of each line that is not blank."""
    for number, line in lines_of(path):
        if not line.strip(BLANKS):
            continue
        try:
            columns = _cut(line, delimiter)
        except DataError as error:
            raise DataError(f"{path}: line {number}: {error}") from None
        if any(word.startswith("\ufeff") for word in columns):
            raise DataError(f"{path}: line {number}: a byte order mark, as in files that were joined: delete the mark")
        yield number, columns


def _holds(path: Path, lines: Iterator[str]) -> bool:
    """Whether a file consists of exactly these lines."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            return all(found == line for found, line in zip_longest(file, lines))
    except (OSError, UnicodeDecodeError):
        return False


def number_of(word: str) -> int:
    """A whole number of a file; -1 for other words, and for numbers that no row has."""
    return int(word) if word.isascii() and word.isdecimal() and len(word) < 19 else -1


def read_dictionary(path: str | Path, delimiter: str = "\t") -> dict[str, int]:
    """Reads lines "number name" and returns the number of each name. Raises DataError unless the numbers are 0, 1, 2, …
    and each occurs once."""
    path = Path(path)
    numbers: dict[str, int] = {}
    for line, columns in _lines(path, delimiter):
        if len(columns) != 2 or number_of(columns[0]) < 0 or not columns[1]:
            raise DataError(f"{path}: line {line}: expected a number and a name, not {columns!r}")
        if columns[1] in numbers:
            raise DataError(f"{path}: line {line}: {columns[1]!r} occurs twice")
        numbers[columns[1]] = number_of(columns[0])
    if sorted(numbers.values()) != list(range(len(numbers))):
        raise DataError(f"{path}: its {len(numbers)} numbers are not those from 0 to {len(numbers) - 1}")
    return numbers


def write_dictionary(path: Path, names: dict[str, int], delimiter: str = "\t") -> None:
    """Writes a dictionary, unless the file already has the same names."""
    def lines() -> Iterator[str]:
        return (f"{number}{delimiter}{name}\n" for name, number in names.items())

    if not _holds(path, lines()):
        with written(path) as file:
            file.writelines(lines())


@dataclass(frozen=True)
class Dictionaries:
    """The two files of a model's dictionaries; both exist."""

    entities: Path
    relations: Path

    def copy(self, folder: Path) -> None:
        """Copies both files into a folder; each appears when it is complete."""
        for path in (self.entities, self.relations):
            with whole(folder / path.name) as temporary:
                shutil.copyfile(path, temporary)

    def check_same(self, others: Dictionaries) -> None:
        """Raises DataError unless the other dictionaries have the same bytes. self belongs to a model, `others` to the
        data that the model is used with."""
        for own, other in ((self.entities, others.entities), (self.relations, others.relations)):
            if not filecmp.cmp(own, other, shallow=False):
                raise DataError(f"{other} is not {own}, the dictionary of the model's training: the two number the "
                                "rows differently")


def _count_lines(path: Path) -> int:
    """Counts the lines of a dictionary. If the first line is a single number, the number is the count (Freebase)."""
    count = 0
    for line, columns in _lines(path, "\t"):
        if line == 1 and len(columns) == 1 and columns[0].isascii() and columns[0].isdecimal():
            if number_of(columns[0]) < 0:
                raise DataError(f"{path}: line 1: {columns[0][:40]} names are too many")
            return number_of(columns[0])
        count += 1
    return count


class _Reader:
    """Turns lines into triples. entities, relations: the number of each name; None if the lines contain numbers. grow:
    a new name gets the next number."""

    def __init__(self, order: str, delimiter: str, importance: bool, entities: Optional[dict[str, int]],
                 relations: Optional[dict[str, int]], counts: tuple[int, int], grow: bool = False,
                 numbers: Optional[Dictionaries] = None):
        self.files = {} if numbers is None else {"entity": numbers.entities, "relation": numbers.relations}
        self.columns = [order.index(letter) for letter in "hrt"]
        self.delimiter, self.importance, self.grow = delimiter, importance, grow
        self.entities, self.relations, self.counts = entities, relations, counts

    def _number(self, names: Optional[dict[str, int]], count: int, word: str, what: str) -> int:
        if names is None:
            number = number_of(word)
            if not 0 <= number < count:
                raise DataError(f"{word!r} is no {what}: expected a number below {count}")
            return number
        if not word:
            raise DataError(f"the {what} is empty")
        if word not in names:
            if not self.grow:
                raise DataError(f"{word!r} is no {what} of the dictionary {self.files.get(what, '')}".rstrip())
            if "\t" in word or word.endswith("\r"):
                end = "has a tab" if "\t" in word else "ends with a carriage return"
                raise DataError(f"{word!r} {end}: dictionaries cannot store such a name; rename it")
            names[word] = len(names)
        return names[word]

    def _check_header(self, words: list[str]) -> None:
        """Raises DataError if a line has known names of ends, such as head and tail, in the columns of heads and tails:
        with names, it would be a triple."""
        ends = self.columns[0], self.columns[2]
        if self.grow and _names.known_ends([words[min(ends)], words[max(ends)]]) is not None:
            raise DataError(f"{words[ends[0]]!r} and {words[ends[1]]!r} are names of columns: delete the header")

    def _triples(self, columns: list[list[int]], importance: list[np.float32]) -> Triples:
        head, relation, tail = (np.array(column, dtype=np.int64) for column in columns)
        return Triples(head, relation, tail, np.array(importance, dtype=np.float32) if self.importance else None)

    def blocks(self, path: Path) -> Iterator[Triples]:
        """Yields blocks of at most BLOCK triples. Raises DataError for a file without triples."""
        columns: list[list[int]] = [[], [], []]
        importance: list[np.float32] = []
        first = True
        width = 4 if self.importance else 3
        for number, words in _lines(path, self.delimiter):
            try:
                if len(words) < width:
                    raise DataError(f"expected {width} columns, not {len(words)}")
                if number == 1:
                    self._check_header(words)
                for out, at, names, count, what in zip(columns, self.columns, (
                        self.entities, self.relations, self.entities), (*self.counts, self.counts[0]), (
                        "entity", "relation", "entity")):
                    out.append(self._number(names, count, words[at], what))
                if self.importance:
                    with np.errstate(over="ignore"):
                        importance.append(np.float32(words[3]))
                    if not 0 < importance[-1] < float("inf"):
                        raise DataError(f"an importance must be above 0 and finite in float32, not {words[3]}")
            except ValueError as error:
                raise DataError(f"{path}: line {number}: {error}") from error
            if len(columns[0]) == BLOCK:
                yield self._triples(columns, importance)
                columns, importance, first = [[], [], []], [], False
        if columns[0]:
            yield self._triples(columns, importance)
        elif first:
            raise DataError(f"{path}: the file has no triples")

    def read(self, path: Path, sink: Optional[Sink] = None) -> Triples:
        """Returns all triples. With a sink, passes the triples to the sink instead and returns an empty Triples."""
        if sink is not None:
            for block in self.blocks(path):
                sink(block)
            return self._triples([[], [], []], [])
        blocks = list(self.blocks(path))
        head, relation, tail = (np.concatenate([getattr(block, name) for block in blocks])
                                for name in ("head", "relation", "tail"))
        importances = [block.importance for block in blocks if block.importance is not None]
        return Triples(head, relation, tail, np.concatenate(importances) if importances else None)


def _check_same(numbers: Optional[Dictionaries], entity_file: Path, relation_file: Path) -> None:
    """Raises DataError if a model was trained with other dictionaries than those of these files of numbers."""
    if numbers is not None:
        numbers.check_same(Dictionaries(entity_file, relation_file))


def _built_in(folder: Path, name: str, train_to: Optional[Sink], numbers: Optional[Dictionaries]) -> Dataset:
    entity_name, relation_name, order = BUILT_IN[name]
    entity_file, relation_file = folder / entity_name, folder / relation_name
    split_files = [folder / f"{split}.txt" for split in SPLITS]
    if numbers is not None and name != "Freebase":
        entity_file, relation_file = numbers.entities, numbers.relations
    if not all([is_there(path) for path in (entity_file, relation_file, *split_files)]):
        obtain(folder.parent, name)
    entities: Optional[dict[str, int]] = None
    relations: Optional[dict[str, int]] = None
    if name == "Freebase":
        _check_same(numbers, entity_file, relation_file)
        counts = _count_lines(entity_file), _count_lines(relation_file)
    else:
        entities, relations = read_dictionary(entity_file), read_dictionary(relation_file)
        counts = len(entities), len(relations)
    reader = _Reader(order, "\t", False, entities, relations, counts, numbers=numbers)
    train, valid, test = (reader.read(path, None if i else train_to) for i, path in enumerate(split_files))
    return Dataset(name, folder, *counts, entity_file, relation_file, train, valid, test, entities, relations)


def _own_files(folder: Path, kind: str, files: Sequence[str]) -> list[Path]:
    raw = kind == "raw_udd"
    if len(files) not in ((1, 3) if raw else (3, 5)):
        wanted = "train [valid test]" if raw else "entities relations train [valid test]"
        raise DataError(f"--data_files of format {kind}: {wanted}, not {len(files)} files")
    paths = [folder / file for file in files]
    for path in paths:
        if not is_there(path):
            raise DataError(f"{path} does not exist")
    return paths


def _own(folder: Path, name: str, kind: str, order: str, delimiter: str, files: Sequence[str],
         importance: bool, train_to: Optional[Sink], numbers: Optional[Dictionaries]) -> Dataset:
    raw, paths = kind == "raw_udd", _own_files(folder, kind, files)
    entity_file: Optional[Path] = None
    relation_file: Optional[Path] = None
    entities: Optional[dict[str, int]] = None
    relations: Optional[dict[str, int]] = None
    counts = 0, 0
    if not raw:
        entity_file, relation_file, *paths = paths
        _check_same(numbers, entity_file, relation_file)
        counts = _count_lines(entity_file), _count_lines(relation_file)
    elif numbers is not None:
        entity_file, relation_file = numbers.entities, numbers.relations
        entities, relations = read_dictionary(entity_file), read_dictionary(relation_file)
    else:
        entities, relations = {}, {}
    reader = _Reader(order, delimiter, importance, entities, relations, counts, raw and numbers is None, numbers)
    splits: list[Optional[Triples]] = [reader.read(path, None if i else train_to) for i, path in enumerate(paths)]
    if entities is not None and relations is not None:
        counts = len(entities), len(relations)
    splits += [None] * (3 - len(splits))
    assert splits[0] is not None
    return Dataset(name, folder, *counts, entity_file, relation_file, splits[0], splits[1], splits[2], entities,
                   relations)


def load(data_path: str | Path, name: str, form: str = "built_in", *, delimiter: str = "\t",
         files: Optional[Sequence[str]] = None, has_edge_importance: bool = False,
         train_to: Optional[Sink] = None, numbers: Optional[Dictionaries] = None) -> Dataset:
    """Reads a dataset; raises DataError.

    The first six parameters are DGL-KE's --data_path, --dataset, --format, --delimiter, --data_files and
    --has_edge_importance. The user's own data may have the name of a built-in dataset.

    train_to: receives the training triples, which the returned dataset then lacks.
    numbers: the dictionaries of the model that the dataset is read for.
    """
    if len(delimiter) != 1:
        raise DataError(f"--delimiter must be one character, not {delimiter!r}")
    if form == "built_in":
        if name not in BUILT_IN:
            raise DataError(f"there is no built-in dataset {name}: choose one of {', '.join(BUILT_IN)}, or give your "
                            "own files by --format udd_hrt or raw_udd_hrt and --data_files")
        if has_edge_importance:
            raise DataError("--has_edge_importance: built-in datasets have no importance; it goes with --format "
                            "udd_hrt or raw_udd_hrt")
        if files:
            raise DataError("--data_files goes with --format udd_hrt or raw_udd_hrt")
        return _built_in(Path(data_path) / name, name, train_to, numbers)
    kind, _, order = form.rpartition("_")
    if kind not in ("udd", "raw_udd") or order not in ORDERS:
        raise DataError(f"there is no format {form}: choose built_in, udd_XYZ or raw_udd_XYZ, where XYZ is one of "
                        f"{', '.join(ORDERS)}")
    return _own(Path(data_path), name, kind, order, delimiter, files or (), has_edge_importance, train_to, numbers)
