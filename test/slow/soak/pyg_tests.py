"""A plugin of pytest: PyTorch Geometric's own tests of its neighbour loaders, with Graphwire's loaders.

    PyG's test files -> its names of the loaders are Graphwire's -> the functions that use one, without the conditions
        that skip them where pyg-lib and torch-sparse do not exist -> for each file its functions, and those that pass

With --over servers the loaders get a Graph of two parts on two servers in place of Data or HeteroData, until the test
ends, with the same arguments. With --fails NAME,NAME the run succeeds if exactly these functions do not pass.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter

import graphwire
import pytest
import torch_geometric.loader
import torch_geometric.sampler
from pyg_served import Served, graphs

runtime_folder = graphs.runtime_folder
NAMES = {"NeighborLoader": torch_geometric.loader, "LinkNeighborLoader": torch_geometric.loader,
         "NeighborSampler": torch_geometric.sampler}
CONDITION = re.compile(r"pyg.lib|torch.sparse|No neighbor sampler")
BAD = ("failed", "skipped", "marked as failing")


class Results:
    """The outcomes of each function, over all of its parameters."""

    def __init__(self):
        self.outcomes, self.reasons = {}, {}

    def add(self, report):
        path, name = report.nodeid.split("[")[0].rsplit("::", 1)
        outcome = "marked as failing" if hasattr(report, "wasxfail") else report.outcome
        found = self.outcomes.setdefault((path, name), Counter())
        if report.when == "call" or report.outcome != "passed":
            found[outcome] += 1
        if outcome in BAD:
            said = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(
                getattr(report.longrepr, "reprcrash", None), "message", report.longrepr)
            self.reasons.setdefault((path, name), (outcome, str(said or report.wasxfail).split("\n")[0]))

    def passed(self, function):
        return self.outcomes[function].keys() == {"passed"}

    def lines(self):
        for path in dict.fromkeys(path for path, _ in self.outcomes):
            some = [function for function in self.outcomes if function[0] == path]
            yield f"{path}: {sum(map(self.passed, some))} of {len(some)} functions pass"
        for function, (outcome, reason) in self.reasons.items():
            of = sum(self.outcomes[function].values())
            yield f"{function[1]}: {self.outcomes[function][outcome]} of {of} {outcome}: {reason:.300}"
        yield f"all: {sum(map(self.passed, self.outcomes))} of {len(self.outcomes)} functions pass"


served, results = Served(), Results()


def pytest_addoption(parser):
    parser.addoption("--over", choices=("memory", "servers"), default="memory")
    parser.addoption("--fails", default="")


def pytest_configure(config):
    for name, module in NAMES.items():
        ours = getattr(graphwire.pyg, name)
        is_served = config.getoption("over") == "servers" and name.endswith("Loader")
        setattr(module, name, served.loader(ours) if is_served else ours)


def pytest_collection_modifyitems(config, items):
    used = re.compile(rf"\b({'|'.join(NAMES)})\(")
    kept = [item for item in items if used.search(inspect.getsource(item.function))]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
    for item in kept:
        item.own_markers = [mark for mark in item.own_markers if not (
            mark.name == "skipif" and CONDITION.search(mark.kwargs.get("reason", "")))]
        vars(item.module).update({name: True for name in ("WITH_PYG_LIB", "WITH_TORCH_SPARSE")
                                  if name in vars(item.module)})


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    served.close()


def pytest_runtest_logreport(report):
    results.add(report)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    failed = {name for path, name in results.outcomes if not results.passed((path, name))}
    session.exitstatus = int(failed != {*session.config.getoption("fails").split(",")} - {""})


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line("")
    for line in results.lines():
        terminalreporter.write_line(line)
