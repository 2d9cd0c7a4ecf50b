"""Options that would have no effect: each call refuses them in one line, which names the option. The table has every
option of a function or command that another option has to accompany, or replaces. Seeds and numbers of threads are
allowed everywhere."""

from __future__ import annotations

import subprocess

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM

EDGES = (np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]))
# (what is called, the options that come with it, an option without effect, its value)
PYTHON = [
    *(("partition_graph", {"assignment": [0, 1, 0, 1]}, name, value) for name, value in (
        ("method", "metis"), ("method", "lp"), ("objtype", "vol"))),
    *(("partition_graph", {}, name, value) for name, value in (
        ("replicate_by", "degree"), ("fanouts", [5]), ("batch_size", 5))),
    *(("open", {}, name, value) for name, value in (
        ("transport", "tcp"), ("neighbours", "reads"), ("insecure", True), ("key_file", "key"), ("reconnect", 5),
        ("reconnect", None), ("idle", 5), ("spin_us", 5))),
    *((called, more, "dtype", "float16") for called in ("NodeLoader", "EdgeLoader", "sample", "Sampler")
      for more in ({}, {"features": "label"})),
    ("NodeLoader", {"labels": "label"}, "dtype", "float16"),
    *((loader, {}, "cache_batches", 2) for loader in ("NodeLoader", "EdgeLoader")),
    *(("NodeLoader", {}, name, value) for name, value in (
        ("pick", "last"), ("window", 3), ("strict", True), ("times", 5))),
    *(("EdgeLoader", {}, name, value) for name, value in (
        ("negative_ids", [1]), ("no_true_edges", True), ("negative_end", "src"))),
]
# (the command, what comes with it, the option without effect)
PROGRAMS = [
    *((f"partition WHOLE --num-parts 2 --out OUT{more}", option) for more, option in (
        ("", "--batch-size=5"), ("", "--fanouts=5"), ("", "--by=degree"), ("", "--python=python3"),
        (" --method lp", "--python=python3"), (" --method random", "--objtype=vol"), (" --method lp", "--objtype=vol"),
        (" --assignment FILE", "--objtype=vol"), (" --assignment FILE", "--objtype=cut"),
        (" --assignment FILE", "--method=lp"), (" --assignment FILE", "--python=python3"),
        (" --assignment FILE", "--balance-edges"))),
    *(("epoch --part-config PARTS", option) for option in (
        "--negatives=2", "--no-true-edges", "--keep-edges", "--disk-cache=2Mi", "--transport=tcp", "--key-file=FILE",
        "--insecure", "--reconnect=5", "--pick=last", "--window=5", "--strict")),
    *(("doctor", option) for option in ("--batch-size=5", "--steps=5", "--fanouts=5", "--memory=5Gi", "--read=FILE",
                                        "--features=feat", "--insecure", "--transport=tcp", "--key-file=FILE",
                                        "--row=8", "--timeout=5", "--measure=20")),
    *(("doctor --part-config PARTS --fanouts 2", option) for option in (
        "--insecure", "--transport=tcp", "--key-file=FILE", "--row=8", "--timeout=5", "--measure=20", "--spin=5",
        "--bytes=5Mi", "--read=FILE", "--server=127.0.0.1:1")),
    ("serve --part-config PARTS --part 0", "--disk-cache=2Mi"),
]


@pytest.mark.parametrize(("called", "given", "name", "value"), PYTHON, ids=lambda value: str(value)[:20])
def test_of_python(parts, tmp_path, called, given, name, value):
    def call(options):
        if called == "partition_graph":
            graphwire.partition_graph(EDGES, "g", 2, tmp_path / "out", **{**options, "method": options.get(
                "method", None if "assignment" in options else "random")})
        elif called == "open":
            graphwire.open(parts, **options).close()
        else:
            with graphwire.open(parts) as graph:
                seeds = {"sample": [[1]], "Sampler": []}.get(called, [None])
                getattr(graphwire, called)(graph, *seeds, [2], **options)

    with pytest.raises(graphwire.InvalidError, match=rf"^{name} (has no effect|needs time=)[^\n]*$"):
        call({**given, name: value})
    assert not (tmp_path / "out").exists()
    call(given)  # the other options are right


@pytest.mark.parametrize(("command", "option"), PROGRAMS)
def test_of_programs(whole, parts, tmp_path, command, option):
    file = tmp_path / "parts.npy"
    np.save(file, np.arange(4096, dtype=np.int64) % 2)
    paths = {"WHOLE": whole, "PARTS": parts, "OUT": tmp_path / "out", "FILE": file}
    words = [str(paths.get(word, word)) for word in command.split()] + [option.replace("FILE", str(file))]
    ran = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False)
    name = option.partition("=")[0]
    assert ran.returncode in (1, 2) and ran.stdout == "", ran
    assert ran.stderr.count("\n") == 1 and name in ran.stderr, ran.stderr
    assert not (tmp_path / "out").exists()
