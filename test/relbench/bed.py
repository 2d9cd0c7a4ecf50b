"""Runs RelBench's scripts, unedited, in this process, with four things replaced: PyG's loaders and samplers by
graphwire.pyg's, the data sets and tasks, the model of texts, and over servers the data of make_pkey_fkey_graph.

Packages that only download or draw pictures are not needed: the import of `datasets` finds an empty module.
"""

from __future__ import annotations

import functools
import runpy
import sys
import types

import graphwire
import torch_geometric.loader
import torch_geometric.sampler

LOADERS = ("NeighborLoader", "LinkNeighborLoader", "NodeLoader", "LinkLoader")


def without_downloads():
    """RelBench imports `datasets` of Hugging Face, with which it downloads."""
    if "datasets" not in sys.modules:
        empty, errors = types.ModuleType("datasets"), types.ModuleType("datasets.exceptions")
        empty.load_dataset, errors.DatasetNotFoundError = None, LookupError
        sys.modules.update({"datasets": empty, "datasets.exceptions": errors})


without_downloads()

import made  # noqa: E402
import relbench.datasets  # noqa: E402
import relbench.modeling.graph  # noqa: E402
import relbench.tasks  # noqa: E402


class Bed:
    """folder: of the scripts. cache: a folder that is written. served: what makes the data of a graph from HeteroData;
    None: data in memory. dataset: a made.Made."""

    def __init__(self, monkeypatch, folder, cache, dataset, served=None):
        self.folder, self.cache, self.patch = folder, cache, monkeypatch
        for name in LOADERS:
            monkeypatch.setattr(torch_geometric.loader, name, getattr(graphwire.pyg, name))
        monkeypatch.setattr(torch_geometric.sampler, "NeighborSampler", graphwire.pyg.NeighborSampler)
        for name in ("relbench.modeling.loader", "model"):  # they name the loaders when they are imported
            monkeypatch.delitem(sys.modules, name, raising=False)
        texts = types.ModuleType("text_embedder")
        texts.GloveTextEmbedding = made.Hashed
        monkeypatch.setitem(sys.modules, "text_embedder", texts)
        monkeypatch.setattr(relbench.datasets, "get_dataset", functools.lru_cache(lambda *_, **__: dataset))
        monkeypatch.setattr(relbench.tasks, "get_task", lambda _, task, **__: made.TASKS[task](dataset))
        whole = relbench.modeling.graph.make_pkey_fkey_graph

        def graph(*arguments, **options):
            data, stats = whole(*arguments, **options)
            return (data if served is None else served(data)), stats

        monkeypatch.setattr(relbench.modeling.graph, "make_pkey_fkey_graph", graph)
        monkeypatch.syspath_prepend(str(folder))

    def run(self, script, *words):
        """Returns the names of the script, as it ends."""
        options = ("--dataset", "made", "--cache_dir", str(self.cache), *map(str, words))
        self.patch.setattr(sys, "argv", [script, *options])
        return runpy.run_path(str(self.folder / f"{script}.py"), run_name="__main__")
