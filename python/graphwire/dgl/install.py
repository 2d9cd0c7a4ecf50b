"""Installs graphwire.dgl under dgl's names, before a script imports dgl.

    install() -> chooses dgl, the installed one or the subset
              -> sys.modules: dgl.distributed and its submodules become graphwire.dgl.distributed
              -> other modules of dgl: replaces the names that they imported from the original dgl.distributed
              -> an import hook, which refuses submodules that Graphwire lacks
              -> children that multiprocessing starts by spawn or forkserver install it too

left_over() lists the names that still refer to the original.

Errors: the import of a name that Graphwire lacks raises ImportError, which names it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from multiprocessing import spawn
from pathlib import Path
from types import ModuleType
from typing import Any

from graphwire.dgl import host, seeding

# Submodules of dgl.distributed that scripts import from, in any version.
_SUBMODULES = (
    "constants", "dist_context", "dist_dataloader", "dist_graph", "dist_tensor", "graph_partition_book",
    "graph_services", "id_map", "kvstore", "nn", "nn.pytorch", "nn.pytorch.sparse_emb", "optim", "optim.pytorch",
    "optim.pytorch.sparse_optim", "partition", "role", "rpc", "rpc_client", "rpc_server", "server_state",
    "shared_mem_utils", "sparse_emb", "standalone_kvstore")
_OWN = ("constants", "kvstore", "role", "rpc")  # those that are modules of Graphwire's too
# Further names under which the subset's modules are imported: {name below dgl: module of the subset}.
_SUBSET = {
    "backend": "backend", "function": "function", "nn": "nn", "nn.pytorch": "nn", "nn.pytorch.conv": "nn",
    "nn.pytorch.conv.gatv2conv": "nn", "nn.pytorch.hetero": "nn",
    "nn.functional": "ops", "ops": "ops", "utils": "ops",
    "data": "data", "data.dgl_dataset": "data", "data.utils": "data", "convert": "convert", "transforms": "transforms",
    "heterograph": "graph",
    "base": "", "subgraph": "transforms"}


class _Alias(ModuleType):
    """A module that forwards to other modules' names: to the first module that has the name, else to the last."""

    def __init__(self, name: str, *of: ModuleType):
        super().__init__(name, f"{name} of Graphwire")
        self._of = of
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for module in self._of:
            if hasattr(module, name):
                return getattr(module, name)
        error = host.not_here if self.__name__.startswith("dgl.distributed.") else host.missing
        raise error(f"{self.__name__}.{name}")


class _Lacking(importlib.abc.MetaPathFinder):
    """An import hook for modules that are not imported yet. All of Graphwire's modules under dgl are imported already,
    so an import that reaches the hook raises ModuleNotFoundError with the reason.

    The hook has two more purposes. If dgl.nn has no X, `from dgl.nn import X` tries to import dgl.nn.X, which would
    hide the text of the AttributeError. And without the hook, a file of Graphwire could be imported a second time,
    under a name of dgl.
    """

    def __init__(self, modules: dict[str, str]):
        self._modules = modules  # {name in DGL: Graphwire's module}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        parent, _, last = fullname.rpartition(".")
        for name, ours in self._modules.items():
            if parent == ours:
                found = PathFinder.find_spec(fullname, path)
                if found is not None:
                    return found
                parent = name
            if parent == name or parent.startswith(f"{name}."):
                error = host.not_here if f"{parent}.".startswith("dgl.distributed.") else host.missing
                raise ModuleNotFoundError(str(error(f"{parent}.{last}")))  # without name=: Python would drop the text
        return None


class _Metadata(Distribution):
    """The version of the subset, as that of a package dgl."""

    def read_text(self, filename: str) -> str | None:
        return f"Name: dgl\nVersion: {host.dgl().__version__}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


class _Version(importlib.abc.MetaPathFinder):
    """Finds the version of the subset for libraries that ask importlib.metadata for that of dgl."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()  # noqa: B008
                           ) -> Iterator[Distribution]:
        return iter([_Metadata()] if context.name == "dgl" else [])


def _put(name: str, module: ModuleType) -> None:
    """Puts a module into sys.modules, and into its parent as an attribute. A function of the same name stays the
    attribute: dgl.heterograph is both a function and a module in DGL."""
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent and isinstance(vars(sys.modules[parent]).get(last, module), ModuleType):
        setattr(sys.modules[parent], last, module)


def _put_distributed() -> None:
    ours = importlib.import_module("graphwire.dgl.distributed")
    optim = importlib.import_module("graphwire.dgl.distributed.optim")
    for name in [name for name in sys.modules if name.startswith("dgl.distributed")]:
        del sys.modules[name]
    _put("dgl.distributed", ours)
    for name in _SUBMODULES:
        own = [importlib.import_module(f"graphwire.dgl.distributed.{name}")] if name in _OWN else []
        _put(f"dgl.distributed.{name}", _Alias(f"dgl.distributed.{name}", *own,
                                               optim if name.startswith("optim") else ours))
    ours.optim = optim  # type: ignore[attr-defined]
    sys.modules["dgl.distributed.optim"] = optim


def _of_dgl(value: Any) -> bool:
    """Whether a value is a class or function of the original dgl.distributed, or of DGL's distributed loaders."""
    module = str(getattr(value, "__module__", ""))
    return (isinstance(value, type) or callable(value)) and (
        module.startswith("dgl.distributed") or module == "dgl.dataloading.dist_dataloader")


def _modules() -> list[tuple[str, ModuleType]]:
    return [(name, module) for name, module in list(sys.modules.items())
            if (name == "dgl" or name.startswith("dgl.")) and isinstance(module, ModuleType)
            and not name.startswith("dgl.distributed")]


def _is_collators(value: Any) -> bool:
    """Whether a class or function belongs to DGL's collators, which work with any graph."""
    return value.__module__ == "dgl.dataloading.dist_dataloader" and not value.__name__.startswith("Dist")


def _replace_names() -> None:
    """Replaces, in other modules of dgl, the original's classes and functions by Graphwire's of the same names."""
    ours = sys.modules["dgl.distributed"]
    for _, module in _modules():
        for name, value in list(vars(module).items()):
            if _of_dgl(value) and hasattr(ours, name) and not _is_collators(value):
                setattr(module, name, getattr(ours, name))


def _put_exclusion() -> None:
    """Replaces the function by which DGL's own samplers and collators find the edges to exclude. That function relies
    on original edge ids, and a DistGraph may have renumbered its edges."""
    exclude = importlib.import_module("graphwire.dgl.dataloading.exclude")
    for name in ("dgl.dataloading.base", "dgl.dataloading.dist_dataloader"):
        module: Any = sys.modules.get(name)
        if hasattr(module, "_find_exclude_eids"):
            module._find_exclude_eids = exclude.for_dist_graphs(module._find_exclude_eids)


def _accept_old_arguments() -> None:
    """Makes layers of an installed dgl accept the arguments that older versions took and that change no result."""
    layer: Any = importlib.import_module("dgl.nn").RelGraphConv
    make = layer.__init__

    @functools.wraps(make)
    def init(self: Any, *arguments: Any, low_mem: Any = None, **named: Any) -> None:
        make(self, *arguments, **named)

    if "low_mem" not in inspect.signature(make).parameters:
        layer.__init__ = init


class _InChild:
    """An object of a child's preparation data. When the child unpickles the object, before it imports the script, it
    installs Graphwire too. The object's code names no module, because the child's sys.path is not set before."""

    def __reduce__(self) -> Any:
        return exec, (f"import sys\nsys.path[:] = {sys.path!r}\nimport graphwire.dgl\ngraphwire.dgl.install()\n",)


def _hand_down() -> None:
    """Makes the processes that multiprocessing starts without a fork install Graphwire as well."""
    prepare = spawn.get_preparation_data

    @functools.wraps(prepare)
    def get_preparation_data(*arguments: Any, **named: Any) -> dict[str, Any]:
        return {**prepare(*arguments, **named), "graphwire_dgl": _InChild()}

    spawn.get_preparation_data = get_preparation_data


def left_over() -> list[str]:
    """"module.name" of each reference to the original dgl.distributed in the other modules of dgl."""
    return sorted(f"{name}.{attribute}" for name, module in _modules()
                  for attribute, value in list(vars(module).items()) if _of_dgl(value))


def install() -> Any:
    """Installs Graphwire under dgl's names, and returns the dgl that scripts import from now on. A second call changes
    nothing."""
    dgl = host.dgl()
    if getattr(dgl, "is_graphwire_installed", False):
        return dgl
    sys.modules["dgl"] = dgl
    ours = {"dgl.distributed": "graphwire.dgl.distributed"}
    if getattr(dgl, "is_graphwire_subset", False):
        for name, of in _SUBSET.items():
            module = importlib.import_module(f"graphwire.dgl.subset.{of}") if of else dgl
            _put(f"dgl.{name}", _Alias(f"dgl.{name}", module))
        _put("dgl.dataloading", importlib.import_module("graphwire.dgl.dataloading"))
        _put("dgl.dataloading.dist_dataloader", _Alias("dgl.dataloading.dist_dataloader", importlib.import_module(
            "graphwire.dgl.distributed")))
        _put("dgl.dataloading.negative_sampler", importlib.import_module("graphwire.dgl.dataloading.negative_sampler"))
        ours = {**ours, "dgl.dataloading": "graphwire.dgl.dataloading", "dgl": "graphwire.dgl.subset"}
        sys.meta_path.append(_Version())
    _accept_old_arguments()
    _put_distributed()
    _replace_names()
    _put_exclusion()
    sys.meta_path.insert(0, _Lacking(ours))
    if not getattr(dgl, "is_graphwire_subset", False):
        seeding.watch_dgl(dgl)
    _hand_down()
    dgl.is_graphwire_installed = True
    return dgl
