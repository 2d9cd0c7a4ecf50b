"""examples/debian_packages.py with the command of its --help: relations as documented, the same graph as ever, a label
that is nowhere else."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import random
import re
import shlex
import subprocess
import sys

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, TOP

SCRIPT = TOP / "examples/debian_packages.py"
RELATIONS = "depends", "recommends", "suggests", "conflicts"

# Package "zed" is described twice by others; the stanza of "libb" ends its lines in another way.
SMALL = """Package: zed
Version: 1
Source: tools (1.2-3)
Maintainer: Ann <a@x>
Depends: libb (>= 2), libb (<< 3), mta | exim, gone | liba:any, zed
Pre-Depends: liba
recommends: virt (= 1)
Conflicts: mta
Breaks: liba (<< 1)
Provides: mta
Section: contrib/games
Description: A game game, of WAR!
 and peace

Package: liba
Maintainer: "B, ob" <b@x>
Suggests: exim,
 zed [amd64] <!nocheck>
Provides: virt (= 1), other
Section: libs


Package: libb\r
Maintainer: Ann <a@x>\r
Provides: virt\r
Section: libs\r
\r
Package: exim
Provides: mta
Section: mail
Description:

Package: liba
Suggests: libb
Section: oldlibs
"""


def script(folder, text, *words, path="dump"):
    (folder / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return subprocess.run([sys.executable, str(SCRIPT), "tables", "--from", path, *words], cwd=folder,
                          capture_output=True, text=True)


def imported(folder):
    """Runs the command that the script's help names."""
    text = subprocess.run([sys.executable, str(SCRIPT), "--help"], capture_output=True, text=True).stdout
    command = re.search(r"^ *graphwire import .*?[^\\]$", text, re.MULTILINE | re.DOTALL).group().replace("\\\n", " ")
    subprocess.run([PROGRAM, *shlex.split(command)[1:]], cwd=folder, check=True, capture_output=True)
    return folder / "packages"


def made(folder, text, *words):
    done = script(folder, text, *words)
    assert done.returncode == 0, done.stderr
    return imported(folder)


def named_edges(graph, etype):
    """The edges of a type as pairs of names."""
    src_type, _, dst_type = etype.split(":")
    ends = graph.find_edges(np.arange(graph.num_edges(etype)), etype)
    return sorted(zip(*(graph.node_texts(one, kind) for one, kind in zip(ends, (src_type, dst_type)))))


def test_relations_as_documented(tmp_path):
    folder = made(tmp_path, SMALL)
    with graphwire.open(folder, numpy=True) as graph:
        assert graph.node_texts(np.arange(4), "package") == ["exim", "liba", "libb", "zed"]
        edges = {name: named_edges(graph, f"package:{name}:package") for name in RELATIONS}
        # libb once; mta is exim, not zed itself; liba by the alternative and by Pre-Depends; its first stanza counts
        assert edges == {"depends": [("zed", "exim"), ("zed", "liba"), ("zed", "libb")],
                         "recommends": [("zed", "liba"), ("zed", "libb")],
                         "suggests": [("liba", "exim"), ("liba", "zed")],
                         "conflicts": [("zed", "exim"), ("zed", "liba")]}
        assert named_edges(graph, "package:built-from:source") == [
            ("exim", "exim"), ("liba", "liba"), ("libb", "libb"), ("zed", "tools")]
        assert named_edges(graph, "maintainer:rev_maintained-by:package") == [
            ('"B, ob" <b@x>', "liba"), ("Ann <a@x>", "libb"), ("Ann <a@x>", "zed"), ("unknown", "exim")]
        labels = graph.feature("label", "package")[:]
        assert graph.node_texts(labels, "package", name="label.names") == ["mail", "libs", "libs", "games"]
        assert sum(graph.feature(f"{split}_mask", "package")[:].astype(int)
                   for split in ("train", "val", "test")).tolist() == [1] * 4
        feat = graph.feature("feat", "package")[:]
        assert feat.shape == (4, 128) and not feat[0].any()  # exim has no words
        # "game" twice, "of", "war", "and" and "peace" once; "A" is too short
        assert np.isclose(np.linalg.norm(feat[3]), 1) and np.abs(feat[3]).max() > 0.5


def random_dump(seed, packages, sections):
    """Packages with all that real ones have, and with names that a table must put in quotes."""
    draw = random.Random(seed)
    words = ["library", "tool", "documentation", "Wörter", "network", "x" * 70, "fast"]
    names = ["NA", "null", "2048", "1e5", "inf", "lib.x+y", *(f"p{i}" for i in range(packages - 6))]
    stanzas = []
    for i, name in enumerate(draw.sample(names, packages)):
        def some(prefix="", count=3):
            return draw.choice([", ", " | "]).join(
                prefix + (f"v{draw.randrange(20)}" if draw.random() < 0.3 else draw.choice(names)) + draw.choice(
                    ["", " (>= 1)", ":any", " [amd64]"]) for _ in range(draw.randrange(1, count + 1)))
        stanzas.append(f"""Package: {name}
Source: s{draw.randrange(100)} (2)
Maintainer: {draw.choice(['"Q" <q@x>', "#a", "%b", "NA", "Ann  B, C <c@x>"])}
Section: {sections[i]}
Depends: {some()}, nothing{i}
Recommends: {some()}
Suggests: {some(count=1)}
Breaks: {some()}
Provides: v{draw.randrange(20)}
Tag: role::game
Description: {" ".join(draw.choices(words, k=draw.randrange(9)))}
 {draw.choice(words)}
""")
    return "\n".join(stanzas)


KINDS = ["libs", "games", "contrib/net", "doc", "non-free/math", "x11"]


@pytest.mark.parametrize("seed, graph_id", [(1, "cefd1c82150f81ed"), (2, "1ff244621a02efa4")])
def test_the_same_graph_in_every_version(tmp_path, seed, graph_id):
    """The digest over all arrays is that of the C importer which the script has replaced."""
    dump = random_dump(seed, 300, [KINDS[i % 6] for i in range(300)])
    folder = made(tmp_path, dump, "--seed", str(seed))
    assert json.loads((folder / "packages.json").read_text())["graph_id"] == graph_id
    tables = {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    assert script(tmp_path, gzip.compress(dump.encode()), "--seed", str(seed)).returncode == 0
    assert tables == {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}


def test_the_label_is_nowhere_else(tmp_path):
    """Other sections change one column of one table."""
    sections, tables = [KINDS[i % 6] for i in range(200)], []
    for order in sections, random.Random(5).sample(sections, 200):
        assert script(tmp_path, random_dump(7, 200, order)).returncode == 0
        tables.append({path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()})
    before, after = ([*csv.reader(one.pop("package.csv").decode().splitlines())] for one in tables)
    assert tables[0] == tables[1] and len(tables[0]) == 9
    assert [row[1] for row in before] != [row[1] for row in after]
    assert [(row[0], row[2]) for row in before] == [(row[0], row[2]) for row in after]


def test_splits_follow_their_shares(tmp_path):
    """A package's split depends neither on the next package's nor on its section."""
    count, shares = 6000, {"train": 0.6, "val": 0.2, "test": 0.2}
    text = "\n".join(f"Package: p{i}\nSection: {KINDS[i % 6]}\n" for i in range(count))
    assert script(tmp_path, text).returncode == 0
    rows = [*csv.reader((tmp_path / "tables/package.csv").read_text().splitlines())][1:]
    splits = [row[2] for row in rows]
    pairs = {pair: 0 for pair in itertools.product(shares, shares)}
    both = {pair: 0 for pair in itertools.product(shares, sorted({row[1] for row in rows}))}
    for row, after in zip(rows, splits[1:] + splits[:1]):
        pairs[row[2], after] += 1
        both[row[2], row[1]] += 1
    for counts, chances in ((pairs, [shares[a] * shares[b] for a, b in pairs]),
                            (both, [shares[a] / 6 for a, _ in both])):
        expected = count * np.array(chances)
        square = np.sum((np.array([*counts.values()]) - expected) ** 2 / expected)
        assert square < 60, counts  # 17 degrees of freedom exceed 60 once in a million


@pytest.mark.parametrize("text, why", [
    ("", "no packages: run apt-get update"), ("\n\n", "no packages: run apt-get update"),
    ("Version: 1\n", 'line 1: a stanza without "Package:"'),
    ("Package: a\n\nVersion: 1\nSection: x\n", "line 3: a stanza without"), ("Package:\n", "line 1: a stanza without"),
    (" Package: a\n", "line 1: a continuation line"), ("Package: a\nnonsense\n", 'line 2: not "Field: value"'),
    (": a\n", 'line 1: not "Field: value"'), (b"\x1f\x8b\x08damaged", "dump: ")])
def test_errors_are_one_line(tmp_path, text, why):
    done = script(tmp_path, text)
    assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "tables").exists()


def test_files_that_cannot_be_opened(tmp_path):
    for words, why in ((["--from", "absent"], "absent: No such file"), (["--from", "."], "Is a directory")):
        done = subprocess.run([sys.executable, str(SCRIPT), "tables", *words], cwd=tmp_path, capture_output=True,
                              text=True)
        assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1
    (tmp_path / "tables").write_text("")
    done = script(tmp_path, SMALL)
    assert done.returncode == 1 and "tables: " in done.stderr and done.stderr.count("\n") == 1
