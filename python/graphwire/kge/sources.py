"""Fetches built-in datasets from their public addresses, if files of <data_path>/<name>/ are missing.

    obtain("data", "FB15k-237")        # data/FB15k-237.zip, resumed if interrupted -> data/FB15k-237/entities.dict, …

The archive stays in <data_path>, as in DGL-KE. If no digest is published, the first fetch writes its digest to
ARCHIVE.sha256, and later fetches must match it. Raises FetchError, and ValueError for an archive with wrong contents;
the folder then gets no file of the archive.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from graphwire._base.scratch import Scratch
from graphwire._files.fetch import fetch, unpack

FILES = ("entities.dict", "relations.dict", "train.txt", "valid.txt", "test.txt")


@dataclass(frozen=True)
class Source:
    """The address of a dataset's archive.

    names     for each member of the archive, the name of the file in the dataset's folder
    digest    the published digest, or None
    numbered  the archive has no dictionaries: entities and relations are numbered in the order of first use
    """

    url: str
    names: dict[str, str]
    digest: Optional[str] = None
    numbered: bool = False

    @property
    def archive(self) -> str:
        return self.url.rpartition("/")[2]


def _of_dgl(name: str, files: tuple[str, ...] = FILES) -> Source:
    """Returns the source of an archive that DGL-KE fetches too."""
    return Source(f"https://data.dgl.ai/dataset/{name}.zip", {file: file for file in files})


SOURCES = {name: _of_dgl(name) for name in ("FB15k", "FB15k-237", "wn18", "wn18rr")}
SOURCES["Freebase"] = _of_dgl("Freebase", ("entity2id.txt", "relation2id.txt", "train.txt", "valid.txt", "test.txt"))
SOURCES["wikidata5m"] = Source(
    "https://huggingface.co/datasets/intfloat/wikidata5m/resolve/6b2b09672129e280c0c9da97ab58154e9d535e6b/"
    "wikidata5m_transductive.tar.gz",
    {f"wikidata5m_transductive_{split}.txt": f"{split}.txt" for split in ("train", "valid", "test")},
    "sha256:383160990b41c0905fc03f4a8afbb9b12be1ca3591e026bde6cdc94a59542597", numbered=True)


def _write_numbers(folder: Path, splits: list[str]) -> None:
    """Writes entities.dict and relations.dict for triples "head relation tail" of names."""
    numbers: tuple[dict[str, int], dict[str, int]] = {}, {}
    for split in splits:
        with open(folder / split, encoding="utf-8", newline="\n") as file:
            for at, line in enumerate(file, 1):
                words = line.rstrip("\r\n").split("\t")
                if len(words) != 3:
                    raise ValueError(f"{split}: line {at}: expected head, relation and tail, not {len(words)} words")
                for kind, word in zip((0, 1, 0), words):
                    numbers[kind].setdefault(word, len(numbers[kind]))
    for found, name in zip(numbers, FILES):
        with open(folder / name, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{number}\t{word}\n" for word, number in found.items())


def obtain(data_path: str | Path, name: str) -> Path:
    """Fetches the missing files of a dataset and returns its folder. Existing files stay as they are."""
    source, top = SOURCES[name], Path(data_path)
    folder = top / name
    missing = [file for file in (FILES if source.numbered else source.names.values()) if not (folder / file).exists()]
    print(f"{folder} has no {', '.join(missing)}: fetching {source.url}", flush=True)
    archive = fetch(source.url, top / source.archive, digest=source.digest)
    with Scratch(top, f".{name}") as scratch:
        unpacked = unpack(archive, scratch / "all")
        members = {path.name: path for path in sorted(unpacked.rglob("*")) if path.name in source.names}
        missing = [member for member in source.names if member not in members]
        if missing:
            raise ValueError(f"{archive} has no {missing[0]}: it is not the archive of {name}; remove it to fetch it "
                             "again")
        ready = scratch / "ready"
        ready.mkdir()
        for member, file in source.names.items():
            os.rename(members[member], ready / file)
        if source.numbered:
            _write_numbers(ready, list(source.names.values()))
        folder.mkdir(exist_ok=True)
        for path in ready.iterdir():
            if not (folder / path.name).exists():
                os.rename(path, folder / path.name)
    return folder
