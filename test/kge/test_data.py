"""Formats: files that are read, files that are written next to them, and refusals by file and line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from graphwire.kge import data, dictionaries
from graphwire.kge.data import DataError, load


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_built_in(data_path, dataset):
    assert (dataset.num_entities, dataset.num_relations) == (81, 5)
    assert [len(split) for split in (dataset.valid, dataset.test)] == [30, 30]
    names = [line.split("\t")[1] for line in (data_path / "wn18/entities.dict").read_text().splitlines()]
    first = (data_path / "wn18/train.txt").read_text().splitlines()[0].split("\t")
    assert [names[dataset.train.head[0]], names[dataset.train.tail[0]]] == [first[0], first[2]]


def test_freebase_has_numbers_in_another_order(tmp_path):
    folder = tmp_path / "Freebase"
    folder.mkdir()
    write(folder, entity2id="3\n/m/a\t0\n/m/b\t1\n/m/c\t2\n", relation2id="2\nr\t0\ns\t1\n", train="0\t2\t1\n1\t0\t0\n",
          valid="2\t2\t1\n", test="1\t1\t0\n")
    found = load(tmp_path, "Freebase")
    assert (found.num_entities, found.num_relations, len(found.test)) == (3, 2, 1)
    assert [found.train.head.tolist(), found.train.relation.tolist(), found.train.tail.tolist()] == [
        [0, 1], [1, 0], [2, 0]]
    write(folder, train="0\t3\t1\n")
    with pytest.raises(DataError, match=r"train\.txt: line 1: '3' is no entity"):
        load(tmp_path, "Freebase")


@pytest.mark.parametrize("order", ["hrt", "htr", "rht", "rth", "thr", "trh"])
def test_raw_numbers_names_in_the_order_of_first_use(tmp_path, order):
    def line(**words):
        return "|".join(words[letter] for letter in order)

    write(tmp_path, train=line(h="b", r="x", t="a") + "|0.5\n" + line(h="c", r="y", t="b") + "|2\n")
    found = load(tmp_path, "own", f"raw_udd_{order}", delimiter="|", files=["train.txt"], has_edge_importance=True)
    assert found.train.relation.tolist() == [0, 1]
    assert found.train.importance is not None and found.train.importance.tolist() == [0.5, 2]
    names = found.entities
    assert found.train.head.tolist() == [names["b"], names["c"]]
    assert found.train.tail.tolist() == [names["a"], names["b"]]
    assert list(names.values()) == [0, 1, 2] and found.relations == {"x": 0, "y": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]
    dictionaries.keep(found, tmp_path)
    assert (tmp_path / "relations.tsv").read_text() == "0\tx\n1\ty\n"


def test_a_dictionary_that_is_right_is_left_alone(tmp_path):
    """Another process may be reading or writing the same file: it is renamed into place, and only if it differs."""
    path = tmp_path / "relations.tsv"
    data.write_dictionary(path, {"r": 0})
    os.utime(path, (1, 1))
    data.write_dictionary(path, {"r": 0})
    before = path.stat()
    assert before.st_mtime == 1
    with open(path) as reader:
        data.write_dictionary(path, {"r": 0, "s": 1})
        assert reader.read() == "0\tr\n"
    after = path.stat()
    assert after.st_mtime != 1 and after.st_mode == before.st_mode
    assert path.read_text() == "0\tr\n1\ts\n"
    path.write_bytes(b"0\t\xff\n")
    data.write_dictionary(path, {"r": 0})
    assert path.read_text() == "0\tr\n"
    with pytest.raises(UnicodeEncodeError):
        data.write_dictionary(path, {"x": 0, "\ud800": 1})
    assert path.read_text() == "0\tr\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_a_dictionary_cannot_hold_is_refused(tmp_path):
    """Its columns are separated by tabs, and its lines may end with a carriage return."""
    write(tmp_path, train="a,r,b\na,r,b\tc\n", tabs="a\tr\tb\n")
    (tmp_path / "ends.txt").write_bytes(b"a\r\tr\tb\n")
    with pytest.raises(DataError, match=r"ends\.txt: line 1: 'a\\r' ends with a carriage return"):
        load(tmp_path, "own", "raw_udd_hrt", files=["ends.txt"])
    with pytest.raises(DataError, match=r"train\.txt: line 2: 'b\\tc' has a tab"):
        load(tmp_path, "own", "raw_udd_hrt", delimiter=",", files=["train.txt"])
    assert not list(tmp_path.glob("*.tsv"))
    assert len(load(tmp_path, "own", "raw_udd_hrt", files=["tabs.txt"]).train) == 1


def test_udd_has_numbers(tmp_path):
    write(tmp_path, e="0\ta\n1\tb\n", r="0\tx\n", train="0,0,1\n", valid="1,0,0\n", test="1,0,1\n")
    found = load(tmp_path, "own", "udd_hrt", delimiter=",", files=[
        f"{name}.txt" for name in ("e", "r", "train", "valid", "test")])
    assert (found.num_entities, found.num_relations) == (2, 1)
    assert found.test is not None and found.test.tail.tolist() == [1]
    assert found.train.head.dtype == np.int64


@pytest.mark.parametrize("block", [1, 7, 245])
def test_blocks_are_all_of_it(data_path, dataset, monkeypatch, block):
    monkeypatch.setattr(data, "BLOCK", block)
    found = []
    assert len(load(data_path, "wn18", train_to=found.append).train) == 0
    assert {len(some) for some in found[:-1]} <= {block} and 0 < len(found[-1]) <= block
    for name in ("head", "relation", "tail"):
        expected = getattr(dataset.train, name).tolist()
        assert [number for some in found for number in getattr(some, name).tolist()] == expected
        assert getattr(load(data_path, "wn18").train, name).tolist() == expected


@pytest.mark.parametrize(("text", "message"), [
    ("0\t0\n", "line 1: expected 3 columns, not 2"), ("0\t0\t1\n\n0\t1\t0\n", "line 3: '1' is no relation"),
    ("-1\t0\t0\n", "line 1: '-1' is no entity"), ("", "no triples"), ("0\tx\t1\n", "'x' is no relation")])
def test_bad_lines_are_named(tmp_path, text, message):
    write(tmp_path, e="0\ta\n1\tb\n", r="0\tx\n", train=text)
    with pytest.raises(DataError, match=message):
        load(tmp_path, "own", "udd_hrt", files=["e.txt", "r.txt", "train.txt"])


@pytest.mark.parametrize(("importance", "message"), [("0", "above 0"), ("nan", "above 0"), ("x", "could not convert"),
                                                       ("1e-50", "finite in float32"), ("1e39", "finite in float32")])
def test_bad_importance_is_refused(tmp_path, importance, message):
    write(tmp_path, train=f"a\tr\tb\t{importance}\n")
    with pytest.raises(DataError, match=f"line 1: .*{message}"):
        load(tmp_path, "own", "raw_udd_hrt", files=["train.txt"], has_edge_importance=True)


def test_bad_dictionaries_are_refused(data_path, tmp_path):
    folder = tmp_path / "wn18"
    folder.mkdir()
    for name in ("relations.dict", "train.txt", "valid.txt", "test.txt"):
        (folder / name).write_bytes((data_path / "wn18" / name).read_bytes())
    for text, message in (("0\ta\n2\tb\n", "not those from 0 to 1"), ("0\ta\n1\ta\n", "line 2: 'a' occurs twice"),
                          ("a\t0\n", "line 1: expected a number"), ("0\ta\n", "is no entity of the dictionary")):
        (folder / "entities.dict").write_text(text)
        with pytest.raises(DataError, match=message):
            load(tmp_path, "wn18")
    (folder / "entities.dict").write_bytes(b"0\t\xff\n")
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path, "wn18")


@pytest.mark.parametrize(("arguments", "options", "message"), [
    (("none",), {}, "there is no built-in dataset none"),
    (("own", "udd_xyz"), {}, "there is no format udd_xyz"), (("own", "csv_hrt"), {}, "there is no format"),
    (("own", "udd_hrt"), {"files": ["a"]}, "not 1 files"),
    (("own", "raw_udd_hrt"), {"files": ["a", "b"]}, "not 2 files"),
    (("own", "raw_udd_hrt"), {"files": ["gone"]}, "does not exist"), (("FB15k", "udd_hrt"), {}, "not 0 files"),
    (("wn18",), {"has_edge_importance": True}, "built-in datasets have no importance"),
    (("wn18",), {"files": ["a"]}, "--data_files goes with"), (("wn18",), {"delimiter": "::"}, "one character")])
def test_invalid_input_is_refused(tmp_path, arguments, options, message):
    with pytest.raises(DataError, match=message):
        load(tmp_path, *arguments, **options)


@pytest.mark.parametrize(("make", "kind"), [(os.mkfifo, "a pipe"), (os.mkdir, "a folder")])
def test_paths_that_are_not_files_are_named(data_path, tmp_path, make, kind):
    """A user's own file and a built-in data set, which is not downloaded then."""
    make(tmp_path / "train.tsv")
    with pytest.raises(DataError, match=f"train.tsv is {kind}, not a file"):
        load(tmp_path, "own", "raw_udd_hrt", files=["train.tsv"])
    (tmp_path / "wn18").mkdir()
    for path in (data_path / "wn18").iterdir():
        if path.name != "entities.dict":
            (tmp_path / "wn18" / path.name).write_bytes(path.read_bytes())
    make(tmp_path / "wn18/entities.dict")
    with pytest.raises(DataError, match=f"entities.dict is {kind}, not a file"):
        load(tmp_path, "wn18")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_half_of_a_file_goes_with_its_writer(tmp_path, end):
    """The existing file stays."""
    path = tmp_path / "file.tsv"
    path.write_text("before\n")
    script = """
import sys
from pathlib import Path
from graphwire.kge.data import written
with written(Path(sys.argv[1])) as file:
    file.write("half\\n")
    file.flush()
    print("ready", flush=True)
    sys.stdin.readline()
"""
    with subprocess.Popen([sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "ready\n" and len(list(tmp_path.iterdir())) == 2
        process.send_signal(end)
        assert process.wait() == -end
        while len(list(tmp_path.iterdir())) > 1:  # its guard removes the rest
            time.sleep(0.001)
    assert path.read_text() == "before\n"


@pytest.mark.parametrize("order", ["hrt", "htr"])
def test_entities_with_numbers_are_no_header(tmp_path, order):
    """e1 and e2 in the first line are entities, in a file of any length; head and tail are names of columns."""
    def read(*triples):
        lines = ["\t".join({"h": head, "r": "x", "t": tail}[letter] for letter in order) for head, tail in triples]
        write(tmp_path, train="\n".join(lines) + "\n")
        return load(tmp_path, "own", f"raw_udd_{order}", files=["train.txt"])
    for triples in ([("e1", "e2")], [("node1", "node2"), ("node2", "node3")]):
        assert len(read(*triples).train) == len(triples)
    with pytest.raises(DataError, match="names of columns"):
        read(("head", "tail"), ("a", "b"))


def test_only_spaces_and_tabs_separate(tmp_path):
    """With blanks as delimiter, other blanks of Unicode are a part of a name, as for import."""
    write(tmp_path, train="New\u00a0York \t in USA\nParis in a\u3000b\n")
    found = load(tmp_path, "own", "raw_udd_hrt", delimiter=" ", files=["train.txt"])
    assert list(found.entities) == ["New\u00a0York", "USA", "Paris", "a\u3000b"] and list(found.relations) == ["in"]
    for text in ("a\t\ufeffx\tb\n", "a\tx\t\ufeffb\n", "a\tx\tb\n\ufeffa\tx\tb\n"):
        write(tmp_path, train=text)
        with pytest.raises(DataError, match="byte order mark"):
            load(tmp_path, "own", "raw_udd_hrt", files=["train.txt"])
