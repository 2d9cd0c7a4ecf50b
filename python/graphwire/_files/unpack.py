"""Unpacks zip, tar (gz, bz2, xz) and single .gz files into a folder, completely or not at all.

    the archive's members -> checked and copied to a temporary folder -> renamed to the folder

The archive is not trusted. Each member must be a file or a folder, and must lie inside the target folder. All files
together must not exceed a limit. Raises ValueError, which names the archive.
"""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._base.scratch import Scratch

CHUNK = 1 << 20


class _Limit:
    """Copies members to files, and counts the bytes that may still be written."""

    def __init__(self, archive: Path, most: int):
        self._archive, self._left, self._most = archive, most, most

    def copy(self, source: IO[bytes], path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as out:
            while block := source.read(CHUNK):
                self._left -= len(block)
                if self._left < 0:
                    raise ValueError(f"{self._archive}: it has more than {self._most} bytes, the limit that max_bytes= "
                                     "sets")
                out.write(block)


def _inside(archive: Path, name: str) -> PurePosixPath:
    """A member's path below the folder. Raises ValueError for a path that leads out of it."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or (path.parts and path.parts[0].endswith(":")):
        raise ValueError(f"{archive}: {name!r} leads out of the folder")
    return path


def _zip_members(archive: Path) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(archive) as whole:
        for info in whole.infolist():
            if info.is_dir():
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                raise ValueError(f"{archive}: {info.filename!r} is a link")
            with whole.open(info) as source:
                yield info.filename, source


def _tar_members(archive: Path) -> Iterator[tuple[str, Any]]:
    with tarfile.open(archive) as whole:
        for info in whole:
            if info.isdir():
                continue
            if not info.isfile():
                raise ValueError(f"{archive}: {info.name!r} is neither a file nor a folder")
            source = whole.extractfile(info)
            assert source is not None
            with source:
                yield info.name, source


def _members(archive: Path) -> Iterator[tuple[str, Any]]:
    """The name and an open stream of each file in the archive."""
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
    elif tarfile.is_tarfile(archive):
        yield from _tar_members(archive)
    elif archive.name.endswith(".gz"):
        with gzip.open(archive) as source:
            yield archive.name[:-len(".gz")], source
    else:
        raise ValueError(f"{archive}: not a zip, tar or gz file")


@keywords
def unpack(archive: str | os.PathLike, folder: str | os.PathLike, *, max_bytes: int | str = 1 << 40) -> Path:
    """Unpacks an archive into `folder`, and returns the folder. An existing folder is returned unchanged.

    archive: a zip, tar (gz, bz2, xz) or .gz file. max_bytes: the most bytes that all files together may have, a
        number or a text such as "20Gi".

    Raises ValueError, which names the archive, if the file is not an archive or is damaged, if a member leads out of
    the folder or is a link, or if the files exceed max_bytes.
    """
    archive, folder = Path(archive), Path(folder)
    limit = _Limit(archive, checks.size("max_bytes", max_bytes))
    if folder.is_dir():
        return folder
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        with Scratch(folder.absolute().parent, f".{folder.name}") as scratch:
            made = scratch / "all"
            made.mkdir()
            for name, source in _members(archive):
                limit.copy(source, made / _inside(archive, name))
            try:
                os.rename(made, folder)
            except OSError:
                if not folder.is_dir():  # if it exists, another process has unpacked the archive meanwhile
                    raise
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, FileExistsError, NotADirectoryError, RuntimeError,
            zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{archive}: cannot be unpacked: {error}") from error
    return folder
