"""Downloads files, resumes broken downloads, compares files with digests, and unpacks archives.

    path = fetch("https://data.dgl.ai/dataset/FB15k.zip", "data/FB15k.zip", digest="sha256:…")
    unpack(path, "data/FB15k")

    attempts append to NAME.part -> the size is complete -> the digest is compared -> NAME.part is renamed to NAME

NAME.part.from records the address, the server's tag and the size of the file that NAME.part is a part of. A later call,
also in another process, asks the server for the rest, and uses it only if the server still has the same file. If the
caller gives no digest, fetch writes the sha256 of the received file to NAME.sha256. Later calls compare the file with
this digest, and so notice a file that has changed on the disk. Simultaneous calls for the same file wait for each
other.

The names of these files are known beforehand, and others may write into the folder. So no link is followed under them:
each is opened with O_NOFOLLOW and must be a regular file of this user with no other name. NAME.part and NAME.part.from
that are not are replaced; NAME.lock that is not is an error.

If GRAPHWIRE_MIRROR holds an address, fetch asks there instead of the public hosts:
MIRROR/data.dgl.ai/dataset/FB15k.zip.

Errors: FetchError, an OSError.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import http.client
import json
import os
import re
import ssl
import stat
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._base.progress import Bar
from graphwire._base.scratch import Scratch, moved, whole
from graphwire._files.reading import reading
from graphwire._files.unpack import unpack

__all__ = ["FetchError", "fetch", "unpack"]

CHUNK = 1 << 20
NOTE_MAX = 1 << 16  # bytes of NAME.part.from
DIGESTS = ("md5", "sha1", "sha256", "sha512")
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)$")


class FetchError(OSError):
    """A file could not be fetched. The text names the file, its address, and what to do."""

    __module__ = "graphwire.fetch"


class _AgainError(Exception):
    """An attempt failed for a cause that may be temporary."""


def address_of(url: str) -> str:
    """The address to ask: `url` itself, or its place at GRAPHWIRE_MIRROR. Raises FetchError for an invalid address."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise FetchError(f"{url}: not an address that can be fetched: an address begins with http:// or https://")
    mirror = os.environ.get("GRAPHWIRE_MIRROR")
    return f"{mirror.rstrip('/')}/{url.split('://', 1)[1]}" if mirror else url


def digest_of(path: Path, kind: str = "sha256") -> str:
    """The digest of a file, as "sha256:…"."""
    with open(path, "rb") as file:
        return _digest_of(file, kind)


def _digest_of(file: IO[bytes], kind: str) -> str:
    found = hashlib.new(kind)
    while block := file.read(CHUNK):
        found.update(block)
    return f"{kind}:{found.hexdigest()}"


def _kind(digest: str) -> str:
    kind, _, value = digest.partition(":")
    if kind not in DIGESTS or len(value) != 2 * hashlib.new(kind).digest_size:
        raise ValueError(f'a digest is one of {", ".join(DIGESTS)}, ":" and the number in hexadecimal, such as '
                         f'"sha256:…", not {digest!r}')
    return kind


def _is_whole(path: Path, digest: str | None) -> bool:
    """Whether the file exists. Raises FetchError if its digest differs from `digest`, or, if `digest` is None, from the
    digest in NAME.sha256."""
    record = path.with_name(path.name + ".sha256")
    if not path.is_file():
        return False
    expected = digest
    if expected is None and record.is_file():
        with reading(record, FetchError):
            expected = f"sha256:{record.read_text().split(' ')[0].strip()}"
            _kind(expected)
    if expected is None:
        return True  # the user has put the file there
    found = digest_of(path, _kind(expected))
    if found != expected:
        raise FetchError(f"{path}: its digest is {found}, not {expected}: the file is damaged, or another one; remove "
                         "it to fetch it again")
    return True


def _owner_here(folder: Path) -> int:
    """The owner that a new file gets: this user, unless the file system maps users (NFS maps root)."""
    with Scratch(folder, ".owner") as made:
        return made.stat().st_uid


def _own(path: Path, flags: int) -> IO[bytes] | None:
    """Opens a file of this user, and follows no link. None: it is another one's, has a second name, or is no file.
    Raises OSError, also if it does not exist."""
    try:
        opened = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES):
            return None
        raise
    file, found = os.fdopen(opened, "ab" if flags & os.O_APPEND else "rb"), os.fstat(opened)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and (
            found.st_uid == os.geteuid() or found.st_uid == _owner_here(path.absolute().parent)):
        return file
    file.close()
    return None


def _new(path: Path, text: bytes = b"") -> None:
    """Writes a file of this user in place of what has its name now."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666),
                   "wb") as file:
        file.write(text)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Locks a file's name, so that one process at a time fetches it. The kernel unlocks it when the process ends."""
    name = path.with_name(path.name + ".lock")
    lock = _own(name, os.O_RDONLY | os.O_CREAT)
    if lock is None:
        raise FetchError(f"{name} is a link, or not a file of this user: remove it")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(FileNotFoundError):  # a process that waits finds the complete file, and needs no lock
            os.unlink(name)


class _Part:
    """NAME.part and NAME.part.from: the bytes received so far, and the file that they belong to."""

    def __init__(self, path: Path, url: str):
        self.url = url
        self.path, self._note = path.with_name(path.name + ".part"), path.with_name(path.name + ".part.from")

    def begun(self) -> tuple[int, dict[str, Any]]:
        """(size, record): the number of bytes in NAME.part, and the content of NAME.part.from. (0, {}) if the download
        cannot be resumed: no part, another address, or no tag."""
        try:
            note, part = _own(self._note, os.O_RDONLY), _own(self.path, os.O_RDONLY)
            if note is None or part is None:
                return 0, {}
            with note, part:
                of = json.loads(note.read(NOTE_MAX))
                size = os.fstat(part.fileno()).st_size
        except (OSError, ValueError, RecursionError):
            return 0, {}
        known = isinstance(of, dict) and of.get("url") == self.url and isinstance(of.get("tag"), str)
        return (size, of) if known and size else (0, {})

    def begin(self, tag: str, size: int | None) -> None:
        """Begins a new NAME.part. Without a tag, no later call can resume it, because the server's file may have
        changed."""
        self._note.unlink(missing_ok=True)
        _new(self.path)
        if tag:
            _new(self._note, json.dumps({"url": self.url, "tag": tag, "size": size}).encode())

    def open(self, flags: int) -> IO[bytes]:
        """Opens NAME.part. Raises FetchError if another program has put something else there."""
        opened = _own(self.path, flags)
        if opened is None:
            raise FetchError(f"{self.path} is not the file that fetch has made: remove it")
        return opened

    def digest(self, kind: str) -> str:
        with self.open(os.O_RDONLY) as file:
            return _digest_of(file, kind)

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def publish(self, path: Path) -> None:
        moved(self.path, path)
        self._note.unlink(missing_ok=True)


def _tag(headers: Any) -> str:
    """The tag that identifies this version of the file: a strong ETag, or else Last-Modified (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _length(headers: Any) -> int | None:
    word = headers.get("Content-Length", "")
    return int(word) if word.isdecimal() else None


class _Download:
    """The attempts to fetch one file."""

    def __init__(self, url: str, part: _Part, max_bytes: int, timeout: float, progress: bool | None):
        self.url, self.part, self.max_bytes, self.timeout = url, part, max_bytes, timeout
        self._progress = progress
        self.reached = 0  # the largest number of received bytes that any attempt has reached

    def attempt(self) -> None:
        """Asks for the missing bytes, and returns when the file is complete. Raises _AgainError if another attempt may
        succeed, else FetchError."""
        have, of = self.part.begun()
        request = urllib.request.Request(address_of(self.url), headers={
            "User-Agent": "graphwire", "Accept-Encoding": "identity"})
        if have:
            request.add_header("Range", f"bytes={have}-")
            request.add_header("If-Range", of["tag"])
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                self._take(answer, have, of)
        except urllib.error.HTTPError as error:
            self._refused(error, have, of)
        except (http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError, urllib.error.URLError) as error:
            raise _AgainError(str(getattr(error, "reason", None) or error) or type(error).__name__) from error

    def _refused(self, error: urllib.error.HTTPError, have: int, of: dict[str, Any]) -> None:
        error.close()
        if error.code == 416 and have:  # the part is complete, or the server's file is shorter now
            if have == of.get("size"):
                return
            self.part.drop()
            raise _AgainError("the file on the server has changed")
        if error.code in (408, 425, 429) or error.code >= 500:
            raise _AgainError(f"the server answers {error.code} {error.reason}")
        raise FetchError(f"{self.url}: the server answers {error.code} {error.reason}; fetch the file yourself, and "
                         f"put it at {str(self.part.path)[:-len('.part')]}")

    def _take(self, answer: Any, have: int, of: dict[str, Any]) -> None:
        size = _length(answer.headers)
        if answer.status == 206:
            found = _RANGE.match(answer.headers.get("Content-Range", ""))
            size = int(found.group(3)) if found and found.group(3) != "*" else None
            if not have or not found or int(found.group(1)) != have or of.get("size") not in (None, size):
                self.part.drop()
                raise _AgainError(f"the server answers with {answer.headers.get('Content-Range')!r}, and the request "
                                  f"was from byte {have} on of {of.get('size')}")
        elif answer.status == 200:
            have = 0
            self.part.begin(_tag(answer.headers), size)
        else:
            raise FetchError(f"{self.url}: the server answers {answer.status} without a file")
        if size is not None and size > self.max_bytes:
            raise FetchError(f"{self.url}: {size} bytes are more than the {self.max_bytes} that this file may have")
        name = self.part.path.name[:-len(".part")]
        with self.part.open(os.O_WRONLY | os.O_APPEND) as out, Bar(
                name, self._progress, total=size, unit="B", done=have) as bar:
            self._copy(answer, out, have, size, bar)

    def _copy(self, answer: Any, out: IO[bytes], have: int, size: int | None, bar: Bar) -> None:
        while block := answer.read1(CHUNK):
            have += len(block)
            self.reached = max(self.reached, have)
            if have > self.max_bytes or (size is not None and have > size):
                raise FetchError(f"{self.url}: the server sends more than the {size or self.max_bytes} bytes that the "
                                 "file may have")
            out.write(block)
            bar.to(have)
        if size is not None and have < size:
            raise _AgainError(f"the link was cut after {have} of {size} bytes")


def _whole(download: _Download, attempts: int, pause: float) -> None:
    """Repeats attempts until the file is complete. It counts the attempts in a row that got no further. The pause
    doubles after each of these attempts, up to a minute. Raises FetchError."""
    idle = 0
    while True:
        before = download.reached
        try:
            return download.attempt()
        except _AgainError as error:
            idle = 0 if download.reached > before else idle + 1
            if idle >= attempts:
                raise FetchError(f"{download.url}: {error}; {attempts} attempts came no further. The received bytes "
                                 "are kept: try again later") from error
            if idle:
                time.sleep(min(60.0, pause * 2 ** (idle - 1)))


@keywords
def fetch(url: str, path: str | os.PathLike, *, digest: str | None = None, max_bytes: int | str = 1 << 40,
          attempts: int = 5, timeout: float = 60.0, pause: float = 1.0, progress: bool | None = None) -> Path:
    """Fetches a file to `path`, and returns the path. An existing file with the right digest is not fetched again.

    digest: "sha256:…", or md5, sha1 or sha512, which the file must have. None: an existing file must have the digest
        that NAME.sha256 records, if that exists.
    max_bytes: the most bytes that the file may have, a number or a text such as "20Gi".
    attempts: fetch gives up after this many attempts in a row that got no further than the ones before.
    timeout: seconds that an attempt waits without receiving a byte.
    pause: seconds to wait after an attempt that got no further. The pause doubles after each of them, up to a minute.
    progress: a bar of tqdm, if it is installed. None: on a terminal and in a notebook; True: always; False: never.

    Raises FetchError, an OSError: the server does not have the file, the digest differs, the file has too many bytes,
    or the attempts are used up. Raises ValueError for an invalid digest.
    """
    path = Path(path)
    address_of(url)
    most = checks.size("max_bytes", max_bytes)
    if digest is not None:
        _kind(digest)
    if _is_whole(path, digest):
        return path
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        if _is_whole(path, digest):
            return path
        part = _Part(path, url)
        _whole(_Download(url, part, most, timeout, progress), attempts, pause)
        found = part.digest(_kind(digest or "sha256:" + 64 * "0"))
        if digest is not None and found != digest:
            part.drop()
            raise FetchError(f"{url}: the received file has the digest {found}, not {digest}: it was "
                             "changed on its way, or on the server; the received bytes are removed")
        if digest is None:
            with whole(path.with_name(path.name + ".sha256")) as record:
                record.write_text(f"{found.partition(':')[2]}  {path.name}\n")
        part.publish(path)
    return path
