"""Files from the network: fetched whole, resumed where a link was cut, compared with a digest; archives unpacked.

    path = fetch("https://data.dgl.ai/dataset/FB15k.zip", "data/FB15k.zip", digest="sha256:…")
    unpack(path, "data/FB15k")

What has come lies in NAME.part until it is whole, with NAME.part.from beside it, which says of which file it is
(address, the server's tag, size): a later call, of another process too, asks for the rest, and takes it only where that
is still the same file. Without a digest the file's own is written to NAME.sha256 when it has come: a file that changed
on the disk since is found all the same. Calls for one file at once wait for each other.

GRAPHWIRE_MIRROR, an address, is asked instead of the public hosts: MIRROR/data.dgl.ai/dataset/FB15k.zip.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from graphwire._unpack import unpack

__all__ = ["FetchError", "fetch", "unpack"]

CHUNK = 1 << 20
DIGESTS = ("md5", "sha1", "sha256", "sha512")
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)$")


class FetchError(OSError):
    """What could not be fetched; the text says what, from where, and what to do."""


class _AgainError(Exception):
    """An attempt that failed in a way that may pass."""


def address_of(url: str) -> str:
    """Where a public address is asked for: there, or at GRAPHWIRE_MIRROR."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise FetchError(f"{url}: not an address that can be fetched: it begins with http:// or https://")
    mirror = os.environ.get("GRAPHWIRE_MIRROR")
    return f"{mirror.rstrip('/')}/{url.split('://', 1)[1]}" if mirror else url


def digest_of(path: Path, kind: str = "sha256") -> str:
    """"sha256:…" of a file."""
    found = hashlib.new(kind)
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            found.update(block)
    return f"{kind}:{found.hexdigest()}"


def _kind(digest: str) -> str:
    kind, _, value = digest.partition(":")
    if kind not in DIGESTS or len(value) != 2 * hashlib.new(kind).digest_size:
        raise ValueError(f'a digest is "sha256:" or another of {", ".join(DIGESTS)} and the number, not {digest!r}')
    return kind


def _is_whole(path: Path, digest: str | None) -> bool:
    """Whether the file is there. Raises FetchError where it is another than it should be."""
    record = path.with_name(path.name + ".sha256")
    if not path.is_file():
        return False
    expected = digest
    if expected is None and record.is_file():
        expected = f"sha256:{record.read_text().split(' ')[0].strip()}"
    if expected is None:
        return True  # the user's own
    found = digest_of(path, _kind(expected))
    if found != expected:
        raise FetchError(f"{path}: its digest is {found}, not {expected}: the file is damaged, or another one; remove "
                         "it to fetch it again")
    return True


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time fetches a file. The lock goes with the process, whatever ends it."""
    with open(path.with_name(path.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(FileNotFoundError):  # who waits for it finds the file whole, and needs it no more
            os.unlink(lock.name)


class _Part:
    """NAME.part and NAME.part.from: what has come so far, and of which file."""

    def __init__(self, path: Path, url: str):
        self.url = url
        self.path, self._note = path.with_name(path.name + ".part"), path.with_name(path.name + ".part.from")

    def begun(self) -> tuple[int, dict[str, Any]]:
        """Bytes that are there, and what they are of; (0, {}) where they are of nothing that can be gone on with."""
        try:
            of = json.loads(self._note.read_text())
            size = self.path.stat().st_size
        except (OSError, ValueError):
            return 0, {}
        known = isinstance(of, dict) and of.get("url") == self.url and isinstance(of.get("tag"), str)
        return (size, of) if known and size else (0, {})

    def begin(self, tag: str, size: int | None) -> None:
        """A new file. Without a tag it is not gone on with by a later call."""
        self._note.unlink(missing_ok=True)
        self.path.write_bytes(b"")
        if tag:
            self._note.write_text(json.dumps({"url": self.url, "tag": tag, "size": size}))

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def publish(self, path: Path) -> None:
        os.replace(self.path, path)
        self._note.unlink(missing_ok=True)


def _tag(headers: Any) -> str:
    """What names this state of the file: a strong ETag, or the time of its change (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _length(headers: Any) -> int | None:
    word = headers.get("Content-Length", "")
    return int(word) if word.isdecimal() else None


class _Download:
    """Attempts for one file, until it is whole."""

    def __init__(self, url: str, part: _Part, max_bytes: int, timeout: float):
        self.url, self.part, self.max_bytes, self.timeout = url, part, max_bytes, timeout
        self.reached = 0  # the furthest byte of all attempts

    def attempt(self) -> None:
        """Asks for what is missing; returns when the file is whole. Raises _AgainError where it may help to ask once
        more, FetchError where not."""
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
        if error.code == 416 and have:  # nothing is left of it, or it is shorter now
            if have == of.get("size"):
                return
            self.part.drop()
            raise _AgainError("the file is another than it was")
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
                raise _AgainError(f"the server answers with {answer.headers.get('Content-Range')!r}, not from {have} "
                                  f"on of {of.get('size')}")
        elif answer.status == 200:
            have = 0
            self.part.begin(_tag(answer.headers), size)
        else:
            raise FetchError(f"{self.url}: the server answers {answer.status}, and no file")
        if size is not None and size > self.max_bytes:
            raise FetchError(f"{self.url}: {size} bytes are more than the {self.max_bytes} that this file may have")
        with open(self.part.path, "ab") as out:
            self._copy(answer, out, have, size)

    def _copy(self, answer: Any, out: IO[bytes], have: int, size: int | None) -> None:
        while block := answer.read1(CHUNK):
            have += len(block)
            self.reached = max(self.reached, have)
            if have > self.max_bytes or (size is not None and have > size):
                raise FetchError(f"{self.url}: more bytes come than the {size or self.max_bytes} that it may have")
            out.write(block)
        if size is not None and have < size:
            raise _AgainError(f"the link was cut after {have} of {size} bytes")


def _whole(download: _Download, attempts: int, pause: float) -> None:
    """Attempts that come no further are counted, and each waits longer than the one before."""
    idle = 0
    while True:
        before = download.reached
        try:
            return download.attempt()
        except _AgainError as error:
            idle = 0 if download.reached > before else idle + 1
            if idle >= attempts:
                raise FetchError(f"{download.url}: {error}; {attempts} attempts came no further. What has come is "
                                 "kept: try again later") from error
            if idle:
                time.sleep(min(60.0, pause * 2 ** (idle - 1)))


def fetch(url: str, path: str | os.PathLike, *, digest: str | None = None, max_bytes: int = 1 << 40, attempts: int = 5,
          timeout: float = 60.0, pause: float = 1.0) -> Path:
    """The file of an address, at `path`; one that is there already is taken as it is, if its digest is right.

    digest: "sha256:…" (md5, sha1, sha512): what the file must have. None: the digest that it had when it came.
    max_bytes: more is refused. attempts: in a row that come no further than those before. timeout: seconds without a
    byte. pause: seconds after the first attempt of such a row, doubled after each, up to a minute.

    Raises FetchError, an OSError: no such file there, another digest, too many bytes, attempts used up.
    """
    path = Path(path)
    address_of(url)
    if digest is not None:
        _kind(digest)
    if _is_whole(path, digest):
        return path
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        if _is_whole(path, digest):
            return path
        part = _Part(path, url)
        _whole(_Download(url, part, max_bytes, timeout), attempts, pause)
        found = digest_of(part.path, _kind(digest or "sha256:" + 64 * "0"))
        if digest is not None and found != digest:
            part.drop()
            raise FetchError(f"{url}: what came has the digest {found}, not {digest}: it was changed on its way, or "
                             "there; nothing of it is kept")
        if digest is None:
            path.with_name(path.name + ".sha256").write_text(f"{found.partition(':')[2]}  {path.name}\n")
        part.publish(path)
    return path
