"""Sizes in bytes: Python takes the texts that the program takes, with the same values."""

from __future__ import annotations

import random
import shutil
import subprocess
from fractions import Fraction

import graphwire
import graphwire.fetch
import numpy as np
import pytest
from conftest import PROGRAM
from graphwire._base import checks
from graphwire._files.unpack import unpack

FACTORS = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
           "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@pytest.mark.parametrize("unit", FACTORS)
def test_values(unit):
    rng = random.Random(unit)
    for _ in range(300):
        value = Fraction(rng.randrange(10**rng.randrange(1, 7)), 10**rng.randrange(5))
        text = f"{float(value):.4f}" if rng.random() < 0.5 and value < 10**9 else str(int(value))
        exact = Fraction(text) * FACTORS[unit]
        if exact.denominator == 1:
            assert checks.size("n", text + unit) == exact
        else:
            with pytest.raises(graphwire.InvalidError, match=r'^n: "[^"]+" is not a whole number'):
                checks.size("n", text + unit)


TEXTS = ["64", "2Mi", "1.5Mi", "1100k", "1.1M", "0.5Gi", "1024K", "2mi", "2ki", "1.0", "1.k", ".5M", "1.00001k",
         "0.3Ki", "", " 2Mi", "2Mi ", "2 Mi", "2MiB", "1e6", "-1", "+2Mi", "0x10", "2P", "1.5.5M",
         "\N{ARABIC-INDIC DIGIT TWO}Mi"]
EDGES = (np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]))
PLACES = ["memory", "replicate", "rows", "disk_cache", "cache_bytes", "bytes_per_second", "max_bytes", "unpacked"]


@pytest.mark.parametrize("place", PLACES)
def test_every_argument(place, tmp_path, parts):
    """Each argument that is a size takes and refuses the same texts, and refuses before anything is done."""
    def call(given):
        if place in ("memory", "replicate"):
            more = {place: given, **({"fanouts": [2]} if place == "replicate" else {})}
            graphwire.partition_graph(EDGES, "g", 2, tmp_path / "out", method="random", **more)
        elif place == "rows":
            graphwire.replicate(tmp_path / "nowhere", given, fanouts=[2])
        elif place == "disk_cache":
            graphwire.open(parts, on_disk="feat", disk_cache=given).close()
        elif place == "max_bytes":
            graphwire.fetch.fetch("http://127.0.0.1:9/file", tmp_path / "got", max_bytes=given, attempts=1, pause=0)
        elif place == "unpacked":
            unpack(tmp_path / "file.gz", tmp_path / "folder", max_bytes=given)
        else:
            with graphwire.open(parts) as graph:
                if place == "cache_bytes":
                    graphwire.NodeLoader(graph, None, [2], cache_bytes=given)
                else:
                    graph.checkpoint(tmp_path / "no/folder", ["none"], bytes_per_second=given)

    for value in (1.5, True, -1, 2**63, [2], b"2Mi"):
        with pytest.raises((TypeError, graphwire.InvalidError), match="max_bytes" if place == "unpacked" else place):
            call(value)
    for text in TEXTS:
        wrong = None
        try:
            call(text)
        except (graphwire.GraphwireError, RuntimeError, OSError, ValueError) as error:
            wrong = error
        assert (refused(text) is None) == ("is not a whole number" not in str(wrong)), (text, wrong)
        if refused(text):
            assert type(wrong) is graphwire.InvalidError and not (tmp_path / "out").exists()
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def refused(text):
    """Why checks.size refuses a text; None: it takes it."""
    try:
        checks.size("n", text)
    except graphwire.InvalidError as error:
        return str(error)
    return None


@pytest.mark.parametrize("text", TEXTS)
def test_the_program_takes_the_same_texts(text):
    done = subprocess.run([PROGRAM, "serve", "--part-config", "none", "--part", "0", "--disk-cache", text],
                          capture_output=True, text=True)
    assert done.returncode in (1, 2), done.stderr
    assert (refused(text) is None) == ("is not a whole number" not in done.stderr), done.stderr
