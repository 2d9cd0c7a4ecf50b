"""Wrong keywords, over all public names: Python's error suggests the right one, and mypy refuses the wrong one."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import graphwire
import pytest
from conftest import TOP
from graphwire._base.keywords import suggestion

MODULES = ["graphwire", "graphwire.nn", "graphwire.optim", "graphwire.datasets", "graphwire.fetch", "graphwire.pyg",
           "graphwire.dgl", "graphwire.dgl.distributed", "graphwire.dgl.distributed.optim",
           "graphwire.dgl.dataloading"]
# Their keywords depend on the version of PyG or torch.
OF_PYG = {"NeighborSampler.sample_from_nodes", "NeighborLoader.__init__", "LinkNeighborLoader.__init__", "relational"}


def public_names(module):
    opened = importlib.import_module(module)
    named = getattr(opened, "__all__", None) or [
        name for name, thing in vars(opened).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module]
    return {name: getattr(opened, name) for name in named}


def calls_of(module):
    """{name: function} of the public functions, constructors and methods that this package defines."""
    found = {}
    for thing in public_names(module).values():
        if inspect.isfunction(thing) and thing.__module__.startswith("graphwire"):
            found[thing.__qualname__] = thing
        if not inspect.isclass(thing):
            continue
        for base in thing.__mro__:
            if not base.__module__.startswith("graphwire"):
                continue
            for name, member in vars(base).items():
                if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                    found[member.__qualname__] = member
    return found


def parameters_of(call):
    return [one for one in inspect.signature(call).parameters.values() if one.name != "self"]


def keywords_of(call):
    return [one.name for one in parameters_of(call) if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]


def torch_calls(name, call):
    """Whether torch calls it for a layer, with the layer's arguments."""
    return name.endswith(".forward") or "reset_parameters" in name


@pytest.mark.parametrize("module", MODULES)
def test_a_misspelt_keyword_gets_the_right_one(module):
    pytest.importorskip("torch_geometric") if module.endswith("pyg") else None
    calls = {name: call for name, call in calls_of(module).items() if keywords_of(call) and not torch_calls(name, call)}
    assert calls or module == "graphwire.dgl.distributed.optim"
    unwritten, plain = set(), []
    for name, call in calls.items():
        if any(one.kind is one.VAR_KEYWORD for one in parameters_of(call)):
            unwritten.add(name)
            continue
        for word in keywords_of(call):
            try:
                call(**{f"{word}x": 1})
                text = "no error"
            except TypeError as error:
                text = str(error)
            if not text.startswith(f"{name.replace('.__init__', '')}() has no argument '{word}x': did you mean '"):
                plain.append((name, word, text))
    assert not plain
    internal = {name for name in unwritten if name.startswith(("_", "DistSparseGradOptimizer."))}
    assert unwritten - internal - OF_PYG == set(), "these hide their keywords in **"


@pytest.mark.parametrize("module", MODULES)
def test_a_call_is_checked_once(module):
    for name, call in calls_of(module).items():
        checks = 0
        while call is not None:
            checks += call.__code__.co_name == "checked"
            call = getattr(call, "__wrapped__", None)
        assert checks <= 1, name


def test_an_unknown_keyword_gets_all():
    with pytest.raises(TypeError, match=r"^sample\(\) has no argument 'zzz'; its arguments are graph, seeds, fano"):
        graphwire.sample(None, [], [], zzz=1)
    assert suggestion("batch_sise", ["graph", "batch_size"]) == ": did you mean 'batch_size'?"
    assert suggestion("x", []) == ""


def test_right_keywords_reach_the_call(rmat):
    loader = graphwire.NodeLoader(graph=rmat, seeds=range(30), fanouts=[2], batch_size=10, depth=2)
    assert len(loader) == 3 and len(list(loader)) == 3


@pytest.mark.parametrize("name", ["Dataset.partition", "from_pyg", "convert_parts"])
def test_the_arguments_of_partition_graph_are_the_same_everywhere(name):
    """name, method and transpose may have another usual value. whole and resume are for databases alone."""
    found = {**calls_of("graphwire.datasets"), **calls_of("graphwire.pyg"), **calls_of("graphwire.dgl")}[name]
    of_graph = inspect.signature(graphwire.partition_graph).parameters
    here = inspect.signature(found).parameters
    for word, one in of_graph.items():
        if one.kind is one.KEYWORD_ONLY and word not in ("whole", "resume"):
            assert word in here, word
            if word not in ("method", "transpose"):
                assert here[word].default == one.default, word


CALLS = """
from typing import Any
import graphwire
from graphwire.dgl.dataloading import DistEdgeDataLoader, DistNodeDataLoader, MultiLayerFullNeighborSampler
from graphwire.dgl.distributed import DistDataLoader, initialize
from graphwire.pyg import LinkLoader, NodeLoader, from_pyg

graph: graphwire.Graph = graphwire.open("parts/")
data: Any = None
"""
# A call without its last argument, a right one and a wrong one.
KEYWORDS = [
    ("graphwire.NodeLoader(graph, None, [5]", "batch_size=5", "batch_sise=5"),
    ("graphwire.EdgeLoader(graph, None, [5]", "shuffle=True", "shufle=True"),
    ("graphwire.sample(graph, [1], [5]", "features='feat'", "feature='feat'"),
    ("graphwire.optim.SparseSGD([], 0.1", "sync=True", "sinc=True"),
    ("graphwire.partition_graph(data, 'n', 2, 'out'", "progress=False", "progres=False"),
    ("graphwire.datasets.load('Cora').partition(2, 'out'", "balance_train=True", "balance_trian=True"),
    ("from_pyg(data", "num_nodes=3", "num_node=3"),
    ("NodeLoader(data, data", "batch_size=5", "batch_sise=5"),
    ("LinkLoader(data, data", "num_workers=2", "num_worker=2"),
    ("DistDataLoader(data, 5", "drop_last=True", "droplast=True"),
    ("DistNodeDataLoader(data, data, data", "batch_size=5", "batch_sise=5"),
    ("DistEdgeDataLoader(data, data, data", "negative_sampler=data", "negative_samples=data"),
    ("MultiLayerFullNeighborSampler(2", "replace=True", "replac=True"),
    ("initialize('ip'", "net_type='socket'", "net_typ='socket'"),
]


def test_mypy_refuses_a_misspelt_keyword(tmp_path):
    """One run over all calls: an error in each line with a wrong keyword, and in no other line. It shares the cache of
    the step's own run of mypy, which needs the same folder and options."""
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    lines = CALLS.splitlines()
    wrong_lines = {}
    for call, right, wrong in KEYWORDS:
        lines += [f"{call}, {right})", f"{call}, {wrong})"]
        wrong_lines[len(lines)] = wrong.partition("=")[0]
    script.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", "build/python/mypy", script],
        env={"MYPYPATH": "python", "PATH": "/usr/bin:/bin"}, cwd=TOP, capture_output=True, text=True)
    found = {}
    for line in done.stdout.splitlines():
        if f"{script.name}:" in line:
            _, number, level, text = line[line.index(script.name):].split(":", 3)
            if level.strip() == "error":
                found[int(number)] = text
    assert found.keys() == wrong_lines.keys(), done.stdout + done.stderr
    for number, word in wrong_lines.items():
        assert f'Unexpected keyword argument "{word}"' in found[number], found[number]
