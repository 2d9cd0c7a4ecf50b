"""Data sets by name: downloaded from a local server instead of the public hosts, resumed, compared, unpacked."""

from __future__ import annotations

import dataclasses
import hashlib
import re

import graphwire.fetch
import pytest
from archives import tarred, zipped
from conftest import grid
from graphwire.fetch import FetchError
from graphwire.kge import sources
from graphwire.kge.commands import main
from graphwire.kge.data import BUILT_IN, load
from web import Web


def path_of(name):
    """The path of a data set's archive on a mirror."""
    return "/" + sources.SOURCES[name].url.split("://", 1)[1]


@pytest.fixture
def files(data_path):
    """The grid in the layout of each data set's archive."""
    grid_files = {path.name: path.read_text() for path in (data_path / "wn18").iterdir() if path.is_file()}
    whole = {name: zipped({f"{name}/{file}": text for file, text in grid_files.items()})
             for name in ("FB15k", "FB15k-237", "wn18", "wn18rr")}
    numbers = "0\t1\t0\n1\t0\t1\n"
    whole["Freebase"] = zipped({"Freebase/entity2id.txt": "2\n/m/a\t0\n/m/b\t1\n", "Freebase/relation2id.txt":
                                "2\nr\t0\ns\t1\n", **{f"Freebase/{split}.txt": numbers for split in (
                                    "train", "valid", "test")}})
    whole["wikidata5m"] = tarred({f"wikidata5m_transductive_{split}.txt": grid_files[f"{split}.txt"]
                                  for split in ("train", "valid", "test")})
    return whole


@pytest.fixture
def web(files, monkeypatch):
    """The mirror. A data set with a published digest gets the digest of the test's archive."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(graphwire._files.fetch.time, "sleep", lambda _: None)
    with Web({path_of(name): body for name, body in files.items()}) as made:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", made.url(""))
        digest = "sha256:" + hashlib.sha256(files["wikidata5m"]).hexdigest()
        monkeypatch.setitem(sources.SOURCES, "wikidata5m", dataclasses.replace(
            sources.SOURCES["wikidata5m"], digest=digest))
        yield made


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_each_name(web, tmp_path, dataset, name):
    """A download that is cut once is resumed; a second load reads the files without a request."""
    web.cut(path_of(name), 100)
    found = load(tmp_path, name)
    assert [asked for _, asked in web.asked] == [None, "bytes=100-"]
    source = sources.SOURCES[name]
    assert {path.name for path in tmp_path.iterdir()} == {name, source.archive} | (
        set() if source.digest else {f"{source.archive}.sha256"})
    again = load(tmp_path, name)
    assert len(web.asked) == 2 and len(again.train) == len(found.train)
    if name == "Freebase":
        assert (found.num_entities, found.num_relations, found.train.head.tolist()) == (2, 2, [0, 1])
        return
    assert (found.num_entities, found.num_relations) == (dataset.num_entities, dataset.num_relations)
    names = [line.split("\t")[1] for line in found.entity_file.read_text().splitlines()]
    relations = [line.split("\t")[1] for line in found.relation_file.read_text().splitlines()]
    triples = {(names[h], relations[r], names[t]) for split in (found.train, found.valid, found.test)
               for h, r, t in zip(split.head, split.relation, split.tail)}
    assert triples == set(grid())


def test_files_that_are_there_stay(web, tmp_path):
    (tmp_path / "wn18").mkdir()
    (tmp_path / "wn18/test.txt").write_text("p00\tright\tp10\n")
    assert len(load(tmp_path, "wn18").test) == 1


@pytest.mark.parametrize("name", ["test.txt", "valid.txt"])
def test_a_set_that_is_missing_is_fetched(web, data_path, tmp_path, capfd, name):
    """Without the set there would be no evaluation, or the filter would not know its triples."""
    (tmp_path / "wn18").mkdir()
    for path in (data_path / "wn18").iterdir():
        if path.is_file() and path.name != name:
            (tmp_path / "wn18" / path.name).write_bytes(path.read_bytes())
    found = load(tmp_path, "wn18")
    assert (len(found.valid), len(found.test)) == (30, 30)
    assert f"wn18 has no {name}: fetching https://" in capfd.readouterr().out


def test_a_digest_that_differs_is_refused(web, tmp_path):
    web.files[path_of("wikidata5m")] = tarred({"other.txt": "x"})
    with pytest.raises(FetchError, match="changed on its way"):
        load(tmp_path, "wikidata5m")
    assert not (tmp_path / "wikidata5m").exists()
    load(tmp_path, "wn18")
    (tmp_path / "wn18/train.txt").unlink()
    (tmp_path / "wn18.zip").write_bytes(b"another")  # since the first download
    with pytest.raises(FetchError, match="is damaged, or another one"):
        load(tmp_path, "wn18")


@pytest.mark.parametrize(("body", "says"), [
    (zipped({"wn18/train.txt": "a\tb\tc\n"}), r"has no entities\.dict: it is not the archive of wn18"),
    (b"no archive", "not a zip, tar or gz file"), (None, "the server answers 404")])
def test_an_invalid_archive_is_one_line(web, tmp_path, capfd, body, says):
    web.files.pop(path_of("wn18"))
    if body is not None:
        web.files[path_of("wn18")] = body
    assert main(["train", "--dataset", "wn18", "--data_path", str(tmp_path)]) == 1
    errors = capfd.readouterr().err
    assert errors.count("\n") == 1 and re.search(says, errors), errors
    assert not (tmp_path / "wn18").exists()


def test_a_bad_line_of_an_archive_without_dictionaries(web, tmp_path, monkeypatch):
    body = tarred({f"wikidata5m_transductive_{split}.txt": "a\tr\n" for split in ("train", "valid", "test")})
    web.files[path_of("wikidata5m")] = body
    monkeypatch.setitem(sources.SOURCES, "wikidata5m", dataclasses.replace(sources.SOURCES["wikidata5m"], digest=None))
    with pytest.raises(ValueError, match=r"train\.txt: line 1: expected head, relation and tail, not 2"):
        load(tmp_path, "wikidata5m")
    assert not (tmp_path / "wikidata5m").exists()
