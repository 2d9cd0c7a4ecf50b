"""The guides for users of PyTorch Geometric and DGL: blocks of Python are run, tables are compared."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import graphwire
import pytest
from conftest import PROGRAM, TOP
from graphwire.dgl import host
from graphwire.dgl.distributed import servers

of_dgl = pytest.mark.skipif(getattr(host.dgl(), "is_graphwire_subset", False), reason="DGL's names are DGL's to tell")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)  # (language, lines); commands have no language
OWN_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]  # so that ports do not collide


def run_blocks(text, folder):
    blocks = BLOCK.findall(text)
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return len(blocks), done.stdout


@pytest.mark.slow
def test_pyg(tmp_path):
    count, text = run_blocks((TOP / "docs/PYG.md").read_text(), tmp_path)
    assert count == 12 and text.count("y=[") == 4 and "torch.Size([100])" in text


def commands_of_dgl_guide():
    """Every line of docs/DGL.md that a user types."""
    blocks = [lines for language, lines in FENCED.findall((TOP / "docs/DGL.md").read_text()) if not language]
    return [line for block in blocks for line in block.splitlines()]


def typed(folder, word, *filled):
    """Runs the line of the guide that begins with `word`. filled: replacements of each "…"; then pairs of a printed
    text and the typed answer."""
    (line,) = [line for line in commands_of_dgl_guide() if line.startswith(word)]
    dots = [one for one in filled if isinstance(one, str)]
    assert line.count("…") == len(dots)
    for one in dots:
        line = line.replace("…", one, 1)
    for printed, own in [one for one in filled if not isinstance(one, str)]:
        assert line.count(printed) == 1, line
        line = line.replace(printed, own)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DGL_", "GRAPHWIRE_DGL"))}
    environment = {**clean, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                   "HOME": str(folder)}
    done = subprocess.run([*OWN_NETWORK, "sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300,
                          env=environment)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


def test_all_commands_of_the_guide_are_typed():
    """The tests below run every line; a new line needs a test."""
    assert [line.split(" …")[0].split(" --")[0] for line in commands_of_dgl_guide()] == [
        "python3 -m graphwire.dgl train_dist.py", "deploy/launch.py", "python3 -m graphwire.dgl partition_graph.py",
        "python examples/partition_graph.py", "python -m graphwire.dgl.convert dgl_data/ogb-product.json parts/"]


@pytest.mark.slow
def test_a_script_of_the_guide_runs(scripts, two_parts, tmp_path):
    """Standalone, and launched on two hosts that are this machine. Accuracy is evaluated over the servers."""
    shutil.copytree(two_parts, tmp_path / "data")
    (tmp_path / "code").mkdir()
    shutil.copy(scripts / "train_dist.py", tmp_path / "code")
    shutil.copy(scripts / "train_dist.py", tmp_path)
    (tmp_path / "ip_config.txt").write_text("127.0.0.1 30050\n127.0.0.1 30051\n")
    text = typed(tmp_path, "python3 -m graphwire.dgl train_dist.py",
                 "--num_workers 0 --num_epochs 1 --batch_size 100 --log_every 1 --close_profiler",
                 ("data/g.json", "data/communities.json"))
    assert "train: 300 (local" in text and text.count("parent ends") == 1
    text = typed(tmp_path, "deploy/launch.py",
                 f"--workspace {tmp_path} --num_trainers 1 --num_samplers 1 --num_servers 1 --part_config "
                 f"data/communities.json --ip_config ip_config.txt --scheduler local --program {PROGRAM}",
                 "--num_workers 1 --num_epochs 10 --batch_size 50 --eval_every 10 --lr 0.01 --close_profiler",
                 ("deploy/launch.py", f"{sys.executable} {TOP}/deploy/launch.py"),
                 ("--graph_name g ", "--graph_name communities "))
    assert text.count("train: 150 (local") == 2 and text.count("parent ends") == 2
    found = [float(accuracy) for accuracy in re.findall(r"Test Acc ([0-9.]+)", text)]
    assert len(found) == 2 and min(found) > 0.6, text


@pytest.mark.slow
def test_the_partitioning_of_the_guide(scripts, tmp_path):
    """The line for a data set in the layout of the package ogb."""
    import test_datasets as sets

    for name in ("partition_graph.py", "load_graph.py"):
        shutil.copy(scripts / name, tmp_path)
    sets.write(tmp_path / "dataset" / "ogbn_products", sets.of_nodes("sales_ranking"))
    text = typed(tmp_path, "python3 -m graphwire.dgl partition_graph.py")
    assert f"|V|={sets.NODES}, |E|={2 * sets.EDGES}" in text
    with graphwire.open(tmp_path / "data" / "ogb-product.json") as graph:
        assert graph.num_parts == 4 and graph.num_edges() == 2 * sets.EDGES


@of_dgl
def test_the_conversion_of_the_guide(tmp_path):
    code = ("import dgl, torch; g = dgl.rand_graph(60, 300); g.ndata['features'] = torch.rand(60, 3); "
            "dgl.distributed.partition_graph(g, 'ogb-product', 2, 'dgl_data', part_method='random')")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    typed(tmp_path, "python examples", ("examples/", f"{TOP}/examples/"))
    typed(tmp_path, "python -m graphwire.dgl.convert")
    for folder in ("data", "parts"):
        with graphwire.open(tmp_path / folder / "ogb-product.json") as graph:
            assert graph.num_parts == 4 and graph.num_edges() == 300


def names_of_dgl_guide():
    """{name: same, other or missing} of the table."""
    text = (TOP / "docs/DGL.md").read_text().partition("## Every name")[2]
    rows = re.findall(r"^\| (`.*?`) \| (same|other|missing) \|", text, re.MULTILINE)
    return {name: word for names, word in rows for name in re.findall(r"`([^`]+)`", names)}


def test_dgl_names():
    """Names that the table lists exist, and all others raise an error that says so."""
    import graphwire.dgl as dgl

    names = names_of_dgl_guide()
    assert len(names) > 60
    for name, word in names.items():
        found = dgl
        try:
            for part in name.split("."):
                found = getattr(found, part)
        except AttributeError as error:
            assert word == "missing" and name in str(error), name
        else:
            assert word != "missing", name


# {name: {name or name.method: named arguments}} of the functions and classes that argv names. null: no default.
ARGUMENTS = """
import importlib, inspect, json, sys

def arguments(call):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [(name, None if one.default is inspect.Parameter.empty else repr(one.default))
            for name, one in inspect.signature(call).parameters.items() if one.kind not in kinds]

dgl, found = importlib.import_module(sys.argv[1]), {}
for name in sys.argv[2:]:
    value = dgl
    for word in name.split("."):
        value = getattr(value, word)
    found[name] = {name: arguments(value)}
    for method, call in inspect.getmembers(value, inspect.isfunction) if isinstance(value, type) else ():
        if not method.startswith("_") or method == "__call__":
            found[name][f"{name}.{method}"] = arguments(call)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_backend_is_set_before_dgl_is_imported(tmp_path):
    """Scripts set it in their first lines, which run after dgl's import here. A value that is already set stays."""
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl/__init__.py").write_text("import os\nprint(os.environ.get('DGLBACKEND'))\n")
    clean = {name: value for name, value in os.environ.items() if name != "DGLBACKEND"}
    for given, backend in (({}, "pytorch"), ({"DGLBACKEND": "mxnet"}, "mxnet")):
        done = subprocess.run([sys.executable, "-c", "from graphwire.dgl import host; host.dgl()"], text=True,
                              capture_output=True, check=True, env={**clean, **given, "PYTHONPATH": os.pathsep.join(
                                  [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])})
        assert done.stdout.split() == [backend]


@functools.cache
def arguments_in(module):
    names = [name for name, word in names_of_dgl_guide().items() if word != "missing"]
    return json.loads(subprocess.run([sys.executable, "-c", ARGUMENTS, module, *names], capture_output=True, text=True,
                                     check=True).stdout.splitlines()[-1])


def arguments_of(word):
    """[DGL's, Graphwire's] {name: [(argument, default)]} of the names that the table gives this word, and of their
    methods."""
    names = [name for name, other in names_of_dgl_guide().items() if other == word]
    return [{name: words for one in names for name, words in arguments_in(module)[one].items()}
            for module in ("dgl", "graphwire.dgl")]


@of_dgl
def test_what_is_the_same_has_the_same_arguments():
    """Functions, classes and methods have DGL's arguments in DGL's order with DGL's defaults. Graphwire's may have more
    after them."""
    theirs, ours = arguments_of("same")
    assert len(theirs) > 40
    lacking = {name for name in theirs if name not in ours}
    assert {name.rpartition(".")[2] for name in lacking} == {"assign_lazy_features"}
    other = {name: (words, ours[name]) for name, words in theirs.items() if name in ours and [
        word for word, _ in ours[name][:len(words)]] != [word for word, _ in words]}
    assert not other
    assert different_defaults(theirs, ours) == {("distributed.DistEmbedding.__call__", "device"): "'cpu'"}


def different_defaults(theirs, ours):
    """{(name, argument): Graphwire's default} where DGL has another default. An argument without a default in DGL may
    have one."""
    return {(name, word): dict(ours[name]).get(word, "it has no such argument") for name, words in theirs.items()
            if name in ours for word, default in words
            if default is not None and dict(ours[name]).get(word, "it has no such argument") != default}


@of_dgl
def test_what_is_other_has_defaults_that_the_guide_explains():
    """The table's lines of names that differ: every difference is intended. Names of servers take any arguments, and
    raise when they are called."""
    theirs, ours = arguments_of("other")
    ours = {name: words for name, words in ours.items() if name.rpartition(".")[2] not in servers.NAMES}
    assert different_defaults(theirs, ours) == {
        ("distributed.initialize", "max_queue_size"): "None", ("distributed.initialize", "num_worker_threads"): "None",
        ("distributed.initialize", "net_type"): "None",  # by position and by keyword, as in any version; see the table
        ("distributed.DistGraph.in_degrees", "v"): "slice(None, None, None)",  # dgl.ALL is accepted too
        ("distributed.DistGraph.out_degrees", "u"): "slice(None, None, None)",
        ("distributed.sample_etype_neighbors", "etype_sorted"): "None"}  # in any version's order


@of_dgl
def test_the_table_is_whole():
    code = ("import dgl.distributed as d\nfor name, value in vars(d).items():\n"
            "    if not name.startswith('_') and callable(value): print('distributed.' + name)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 50 and not set(done.stdout.split()) - set(names_of_dgl_guide())
