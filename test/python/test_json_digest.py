"""The JSONs of graphs and checkpoints for other readers: the lines in docs/FORMAT.md compute the digest; every
interface refuses a changed bit; a pipe does not block; and a checkpoint that is replaced removes only its own files."""

import json
import os
import re
import shutil
import signal
import subprocess

import graphwire
import numpy as np
import pytest
import xxhash
from conftest import PROGRAM, TOP, run

BLOCKS = re.findall(r"^```py\n(.*?)^```$", (TOP / "docs/FORMAT.md").read_text(), re.MULTILINE | re.DOTALL)
LINES = next(block for block in BLOCKS if "xxhash" in block)


def digest_is_right(path):
    """Runs the page's lines on another file."""
    lines = LINES.replace("parts/mygraph.json", str(path))
    assert lines != LINES
    try:
        exec(lines, {"re": re, "json": json, "xxhash": xxhash})
    except AssertionError:
        return False
    return True


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A graph in two parts and a checkpoint of it."""
    top = tmp_path_factory.mktemp("json")
    run("generate", "rmat", "--scale", "6", "--features", "2", "--name", "g", "--out", top / "whole", "--quiet")
    run("partition", top / "whole", "--num-parts", "2", "--method", "random", "--out", top / "parts")
    with graphwire.open(top / "parts", numpy=True) as graph:
        graph.create_tensor("t", (0, 4), ntype="_N", initial=("normal", 0, 1), seed=2)
        graph.create_tensor("striped", (7,), "int64", place="striped")[:] = np.arange(7)
        graph.checkpoint(top / "saved")
    return top


def flipped(text, bit):
    out = bytearray(text)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


@pytest.mark.parametrize("name", ["parts/g.json", "saved/checkpoint.json"])
def test_the_page_verifies_the_digest(folders, tmp_path, name):
    text = (folders / name).read_bytes()
    assert digest_is_right(folders / name)
    for bit in np.random.default_rng(3).choice(8 * len(text), 200, replace=False):
        (tmp_path / "other.json").write_bytes(flipped(text, bit))
        try:
            assert not digest_is_right(tmp_path / "other.json")
        except (ValueError, KeyError, AttributeError):
            pass  # not JSON any more, or without the key


def test_a_damaged_checkpoint_is_not_restored(folders, tmp_path):
    shutil.copytree(folders / "saved", tmp_path / "saved")
    path = tmp_path / "saved/checkpoint.json"
    text = path.read_bytes()
    with graphwire.open(folders / "parts", numpy=True) as graph:
        graph.restore(tmp_path / "saved")
        good = graph.open_tensor("t")[:]
        for bit in np.random.default_rng(4).choice(8 * len(text), 300, replace=False):
            path.write_bytes(flipped(text, bit))
            with pytest.raises(graphwire.GraphwireError) as refused:
                graph.restore(tmp_path / "saved")
            assert refused.value.status in ("GW_FORMAT", "GW_DIGEST", "GW_VERSION"), refused.value
        path.write_bytes(text)
        graph.restore(tmp_path / "saved")
        assert np.array_equal(graph.open_tensor("t")[:], good)
        assert np.array_equal(graph.open_tensor("striped")[:], np.arange(7))


def test_a_damaged_graph_is_not_opened(folders, tmp_path):
    shutil.copytree(folders / "parts", tmp_path / "parts")
    path = tmp_path / "parts/g.json"
    text = path.read_bytes()
    for at, bit in enumerate(np.random.default_rng(5).choice(8 * len(text), 60, replace=False)):
        path.write_bytes(flipped(text, bit))
        with pytest.raises(graphwire.GraphwireError) as refused:
            graphwire.open(path)
        assert refused.value.status in ("GW_FORMAT", "GW_DIGEST", "GW_VERSION"), refused.value
        if at < 3:
            for words in (["verify", path], ["inspect", path], ["serve", "--part-config", path, "--part", "0",
                                                               "--listen", "127.0.0.1:0"]):
                done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
                assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr


def test_newer_versions(folders, tmp_path):
    """A newer minor version is read without its additions; a newer major version is refused with one line."""
    shutil.copytree(folders / "parts", tmp_path / "parts")
    path = tmp_path / "parts/g.json"
    graph = json.loads(path.read_text())
    graph.update(minor=99, halo={"hops": 2}, json_digest="0" * 16)
    for part in range(2):
        graph[f"part-{part}"]["node/_N/tiles"] = {
            "file": f"part{part}/tiles.npy", "dtype": "float4", "shape": [1], "digest": "0" * 16, "packed": True}
    text = json.dumps(graph, indent=1)
    path.write_text(text.replace("0" * 16, xxhash.xxh3_64_hexdigest(text.encode()), 1))
    run("verify", path)
    with graphwire.open(path, numpy=True) as opened, graphwire.open(folders / "parts", numpy=True) as before:
        assert np.array_equal(opened.feature("feat")[:], before.feature("feat")[:])
        opened.restore(folders / "saved")  # saved from the same graph
        assert np.array_equal(opened.open_tensor("striped")[:], np.arange(7))
    path.write_text(text.replace('"graphwire-1"', '"graphwire-2"'))
    with pytest.raises(graphwire.GraphwireError, match="this program reads graphwire-1: take the Graphwire that") as no:
        graphwire.open(path)
    assert no.value.status == "GW_VERSION"


def test_replace_removes_only_its_own(folders, tmp_path):
    with graphwire.open(folders / "parts", numpy=True) as graph:
        graph.restore(folders / "saved")
        graph.checkpoint(tmp_path / "last")
        (tmp_path / "last/model.pt").write_text("weights")
        (tmp_path / "last/runs").mkdir()
        (tmp_path / "last/runs/events").write_text("1")
        with open(tmp_path / "last/log", "w") as log:  # from a writer that keeps writing
            for epoch in range(3):
                graph.checkpoint(tmp_path / "last", ["striped"] if epoch else None, replace=True)
                print(epoch, file=log, flush=True)
        assert sorted(os.listdir(tmp_path / "last")) == ["checkpoint.json", "log", "model.pt", "runs", "tensor0"]
        assert (tmp_path / "last/log").read_text() == "0\n1\n2\n"
        assert (tmp_path / "last/runs/events").read_text() == "1" and os.listdir(tmp_path) == ["last"]
        (tmp_path / "other").mkdir()
        (tmp_path / "other/mine").write_text("mine")
        with pytest.raises(graphwire.GraphwireError, match="not a checkpoint"):
            graph.checkpoint(tmp_path / "other", replace=True)
        assert (tmp_path / "other/mine").read_text() == "mine"


def test_pipes_are_not_waited_for(folders, tmp_path):
    shutil.copytree(folders / "saved", tmp_path / "saved")
    signal.alarm(60)  # ends the tests if an open blocks
    try:
        with graphwire.open(folders / "parts", numpy=True) as graph:
            for name in ("tensor0/part1/rows.npy", "tensor1/part0/rows.xxh", "checkpoint.json"):
                (tmp_path / "saved" / name).unlink()
                os.mkfifo(tmp_path / "saved" / name)
                with pytest.raises(graphwire.GraphwireError, match="not a regular file"):
                    graph.restore(tmp_path / "saved")
                shutil.copy(folders / "saved" / name, tmp_path / "copy")
                os.replace(tmp_path / "copy", tmp_path / "saved" / name)
            graph.restore(tmp_path / "saved")
        shutil.copytree(folders / "parts", tmp_path / "parts")
        for path in sorted((tmp_path / "parts").rglob("*.*")):
            kept = path.read_bytes()
            path.unlink()
            os.mkfifo(path)
            with pytest.raises(graphwire.GraphwireError):
                graphwire.open(path if path.suffix == ".json" else tmp_path / "parts")
            path.unlink()
            path.write_bytes(kept)
        graphwire.open(tmp_path / "parts").close()
    finally:
        signal.alarm(0)
