"""Files from a local server: complete, resumed after cuts, compared with digests; and harmful archives."""

from __future__ import annotations

import concurrent.futures
import gzip
import hashlib
import io
import json
import os
import socket
import stat
import zipfile

import graphwire.fetch
import numpy as np
import pytest
from archives import tarred, zipped
from graphwire.fetch import FetchError, fetch, unpack
from web import Web

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
BODY = np.random.default_rng(7).bytes(3_000_000)
DIGEST = "sha256:" + hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy, no mirror, no pauses."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("GRAPHWIRE_MIRROR", raising=False)
    monkeypatch.setattr(graphwire._files.fetch.time, "sleep", lambda _: None)


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file(tmp_path):
    with Web({"/a.bin": BODY}) as web:
        path = fetch(web.url("/a.bin"), tmp_path / "new" / "a.bin", digest=DIGEST)
        assert path.read_bytes() == BODY and left(path.parent) == ["a.bin"]
        assert fetch(web.url("/a.bin"), path, digest=DIGEST) == path
        assert fetch(web.url("/a.bin"), path, digest="md5:" + hashlib.md5(BODY).hexdigest()) == path
        assert web.asked == [("/a.bin", None)]


def test_cut_links_are_resumed(tmp_path):
    """Three cuts in one call; each attempt requests only the missing bytes."""
    with Web({"/a.bin": BODY}) as web:
        for after in (100_000, 100_001, 2_999_999):
            web.cut("/a.bin", after)
        path = fetch(web.url("/a.bin"), tmp_path / "a.bin", digest=DIGEST, attempts=1)
        assert path.read_bytes() == BODY and left(tmp_path) == ["a.bin"]
        assert [asked for _, asked in web.asked] == [None, "bytes=100000-", "bytes=100001-", "bytes=2999999-"]


def test_another_call_goes_on(tmp_path):
    """Bytes from before a failure are kept. Another call, after the server was away, downloads the rest."""
    with Web({"/a.bin": BODY}) as web:
        web.cut("/a.bin", 1_000_000)
        for _ in range(3):
            web.plan("/a.bin", status=503)
        with pytest.raises(FetchError, match=r"503.*3 attempts.*kept"):
            fetch(web.url("/a.bin"), tmp_path / "a.bin", attempts=3)
        assert (tmp_path / "a.bin.part").read_bytes() == BODY[:1_000_000] and not (tmp_path / "a.bin").exists()
        fetch(web.url("/a.bin"), tmp_path / "a.bin")
        assert (tmp_path / "a.bin").read_bytes() == BODY and web.asked[-1] == ("/a.bin", "bytes=1000000-")
        assert left(tmp_path) == ["a.bin", "a.bin.sha256"]


def test_a_note_without_a_size(tmp_path):
    """The note is from a server that sent no size, or from an older version: the rest is requested all the same."""
    with Web({"/a.bin": BODY}) as web:
        web.cut("/a.bin", 1_000_000)
        web.plan("/a.bin", status=503)
        with pytest.raises(FetchError):
            fetch(web.url("/a.bin"), tmp_path / "a.bin", attempts=1)
        note = tmp_path / "a.bin.part.from"
        note.write_text(json.dumps({key: json.loads(note.read_text())[key] for key in ("url", "tag")}))
        assert fetch(web.url("/a.bin"), tmp_path / "a.bin", digest=DIGEST).read_bytes() == BODY
        assert web.asked[-1] == ("/a.bin", "bytes=1000000-")


def test_another_file_there_is_not_joined(tmp_path):
    """The file changed between two attempts, or the address did: no byte of the first attempt is used."""
    other = BODY[::-1]
    with Web({"/a.bin": BODY, "/b.bin": BODY}) as web:
        web.cut("/a.bin", 500_000)
        web.plan("/a.bin", status=500)
        with pytest.raises(FetchError):
            fetch(web.url("/a.bin"), tmp_path / "a.bin", attempts=1)
        web.files["/a.bin"] = other
        assert fetch(web.url("/a.bin"), tmp_path / "a.bin").read_bytes() == other
        web.cut("/b.bin", 500_000)
        web.plan("/b.bin", status=500)
        with pytest.raises(FetchError):
            fetch(web.url("/b.bin"), tmp_path / "c.bin", attempts=1)
        assert fetch(web.url("/a.bin"), tmp_path / "c.bin").read_bytes() == other and web.asked[-1] == ("/a.bin", None)


@pytest.mark.parametrize("kind", ["link", "link to nothing", "second name", "pipe", "another user's"])
@pytest.mark.parametrize("name", ["a.bin.lock", "a.bin.part", "a.bin.part.from", "a.bin.sha256"])
def test_what_lies_under_its_names_is_not_followed(tmp_path, name, kind):
    """Nothing is written through it; a lock that is not ours is an error, and the rest is replaced."""
    if kind == "another user's" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    folder, other = tmp_path / "new", tmp_path / "other"
    folder.mkdir()
    with Web({"/a.bin": BODY}) as web:
        if name != "a.bin.lock":  # an attempt that was cut has left all files
            web.cut("/a.bin", 1_000_000)
            web.plan("/a.bin", status=503)
            with pytest.raises(FetchError):
                fetch(web.url("/a.bin"), folder / "a.bin", attempts=1)
            assert {"a.bin.part", "a.bin.part.from"} <= set(left(folder))
        planted = folder / name
        text = planted.read_bytes() if planted.exists() else b"not yours"
        planted.unlink(missing_ok=True)
        if kind == "link to nothing":
            planted.symlink_to(tmp_path / "nothing")
        elif kind == "pipe":
            os.mkfifo(planted)
        elif kind == "another user's":
            planted.write_bytes(text)
            os.chown(planted, 12345, 12345)
        else:
            other.write_bytes(text)
            planted.symlink_to(other) if kind == "link" else os.link(other, planted)
        record = name == "a.bin.sha256"
        if name == "a.bin.lock":
            with pytest.raises(FetchError, match=r"a\.bin\.lock is a link, or not a file of this user"):
                fetch(web.url("/a.bin"), folder / "a.bin")
        else:
            fetch(web.url("/a.bin"), folder / "a.bin")
            assert (folder / "a.bin").read_bytes() == BODY and left(folder) == ["a.bin", "a.bin.sha256"]
            assert web.asked[-1] == ("/a.bin", "bytes=1000000-" if record else None)
            for path in folder.iterdir():
                assert stat.S_ISREG(path.lstat().st_mode) and path.stat().st_nlink == 1 and (
                    path.stat().st_uid == os.geteuid())
    assert not other.exists() or other.read_bytes() == text
    assert not (tmp_path / "nothing").exists()


def test_a_damaged_record_is_named(tmp_path):
    with Web({"/a.bin": BODY}) as web:
        fetch(web.url("/a.bin"), tmp_path / "a.bin")
        for text in (b"", b"\xff\xfe", b"12 a.bin", b"0" * 64):
            (tmp_path / "a.bin.sha256").write_bytes(text)
            with pytest.raises(FetchError, match=r"a\.bin"):
                fetch(web.url("/a.bin"), tmp_path / "a.bin")


@pytest.mark.parametrize("ranges, tags", [(False, True), (True, False)])
def test_servers_that_cannot_resume(ranges, tags, tmp_path):
    """Without ranges, or without a tag that identifies the file, a download starts again, a limited number of times."""
    with Web({"/a.bin": BODY}, ranges, tags) as web:
        web.cut("/a.bin", 2_000_000)
        assert fetch(web.url("/a.bin"), tmp_path / "a.bin", digest=DIGEST).read_bytes() == BODY
        for _ in range(10):
            web.cut("/a.bin", 1_000_000)
        with pytest.raises(FetchError, match=r"cut after 1000000 of 3000000 bytes; 2 attempts"):
            fetch(web.url("/a.bin"), tmp_path / "b.bin", attempts=2)
        assert len(web.asked) == 2 + 3


def test_answers_that_lie(tmp_path):
    """Another range than requested, or more bytes than announced: downloaded again, or refused."""
    with Web({"/a.bin": BODY}) as web:
        web.cut("/a.bin", 700_000)
        web.plan("/a.bin", range="bytes 0-2999999/3000000")
        assert fetch(web.url("/a.bin"), tmp_path / "a.bin", digest=DIGEST).read_bytes() == BODY
        web.cut("/a.bin", 700_000)
        web.plan("/a.bin", range="bytes 700000-2999999/2999999")
        assert fetch(web.url("/a.bin"), tmp_path / "b.bin", digest=DIGEST).read_bytes() == BODY
        with pytest.raises(FetchError, match="more than the 1000000"):
            fetch(web.url("/a.bin"), tmp_path / "c.bin", max_bytes=1_000_000)
        assert not (tmp_path / "c.bin").exists()


def test_digests(tmp_path):
    """Digests of new files, of existing files, and of files that existed when a process got the lock."""
    with Web({"/a.bin": BODY}) as web:
        wrong = "sha256:" + 64 * "0"
        with pytest.raises(FetchError, match="changed on its way"):
            fetch(web.url("/a.bin"), tmp_path / "a.bin", digest=wrong)
        assert not [name for name in left(tmp_path) if not name.endswith(".lock")]
        path = fetch(web.url("/a.bin"), tmp_path / "a.bin")
        with pytest.raises(FetchError, match="another one"):
            fetch(web.url("/a.bin"), path, digest=wrong)
        path.write_bytes(BODY[:-1])
        with pytest.raises(FetchError, match="damaged"):
            fetch(web.url("/a.bin"), path)
        own = tmp_path / "own.bin"
        own.write_bytes(b"the user's")
        assert fetch(web.url("/a.bin"), own).read_bytes() == b"the user's"
        for bad in ("sha256:12", "crc:12345678", "12"):
            with pytest.raises(ValueError, match="a digest is"):
                fetch(web.url("/a.bin"), tmp_path / "d.bin", digest=bad)


def test_what_is_not_there(tmp_path):
    with Web({}) as web:
        with pytest.raises(FetchError, match=r"404.*put it at .*a\.bin"):
            fetch(web.url("/a.bin"), tmp_path / "a.bin")
        assert len(web.asked) == 1
    with socket.socket() as closed:  # owns the port, and does not listen
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(FetchError, match="2 attempts"):
            fetch(f"http://127.0.0.1:{closed.getsockname()[1]}/a.bin", tmp_path / "a.bin", attempts=2)
    with pytest.raises(FetchError, match="begins with http"):
        fetch("file:///etc/passwd", tmp_path / "a.bin")


def test_a_mirror(tmp_path, monkeypatch):
    """One address in the place of all public ones."""
    with Web({"/m/data.dgl.ai/dataset/x.zip": BODY}) as web:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", web.url("/m/"))
        assert fetch("https://data.dgl.ai/dataset/x.zip", tmp_path / "x.zip").read_bytes() == BODY


def test_callers_at_once(tmp_path):
    """Four threads request one file: it is downloaded once."""
    with Web({"/a.bin": BODY}) as web, concurrent.futures.ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch(web.url("/a.bin"), tmp_path / "a.bin", digest=DIGEST), range(4)))
        assert {path.read_bytes() for path in paths} == {BODY} and len(web.asked) == 1


FILES = {"raw/a.txt": b"one", "raw/deep/b.txt": b"two" * 1000}


@pytest.mark.parametrize("name, body", [
    ("a.zip", zipped(FILES)), ("a.tar", tarred(FILES, "w")), ("a.tgz", tarred(FILES)),
    ("a.tar.xz", tarred(FILES, "w:xz"))], ids=["zip", "tar", "gz", "xz"])
def test_unpacking(name, body, tmp_path):
    (tmp_path / name).write_bytes(body)
    folder = unpack(tmp_path / name, tmp_path / "out")
    assert {path: (folder / path).read_bytes() for path in FILES} == FILES
    (folder / "raw/a.txt").write_bytes(b"kept")
    assert (unpack(tmp_path / name, folder) / "raw/a.txt").read_bytes() == b"kept"
    assert left(tmp_path) == sorted([name, "out"])


def test_unpacking_one_file(tmp_path):
    (tmp_path / "edges.txt.gz").write_bytes(gzip.compress(b"0 1\n"))
    assert (unpack(tmp_path / "edges.txt.gz", tmp_path / "out") / "edges.txt").read_bytes() == b"0 1\n"


def link_in_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return out.getvalue()


@pytest.mark.parametrize("name, body, says", [
    ("a.zip", zipped({"../x": b"1"}), "leads out"), ("b.zip", zipped({"/x": b"1"}), "leads out"),
    ("c.zip", link_in_zip(), "link"), ("d.tgz", tarred({}, link="x"), "neither a file nor a folder"),
    ("e.tgz", tarred({"a/../../x": b"1"}), "leads out"), ("f.zip", zipped(FILES)[:-10], "not a zip"),
    ("g.txt.gz", gzip.compress(BODY)[:1000], "cannot be unpacked"), ("h.zip", zipped({"x": bytes(5000)}), "max_bytes"),
    ("i.zip", zipped({"x": b"1", "x/y": b"2"}), "cannot be unpacked"), ("j.bin", b"no archive", "not a zip")],
    ids="abcdefghij")
def test_invalid_archives(name, body, says, tmp_path):
    (tmp_path / name).write_bytes(body)
    with pytest.raises(ValueError, match=says):
        unpack(tmp_path / name, tmp_path / "out", max_bytes=4000)
    assert left(tmp_path) == [name]
