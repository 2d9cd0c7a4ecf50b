#!/usr/bin/env python3
"""py_rooms.py [ROOT]: checks that modules of the Python package import only from their own room and from rooms on lower
floors (docs/ARCHITECTURE.md). Prints each import that goes up or to another room of the floor, and each module
without a room. Imports count as for py_circles.py.

py_rooms.py --self-test: plants violations and checks that they are found.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from py_circles import Modules

# The floors, lowest first. {room: its packages and modules}. A package has all modules below it, except "graphwire",
# which has the public modules directly in it: no folder, and no module whose name begins with "_".
FLOORS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"_base": ("graphwire._base",)},
    {"_files": ("graphwire._files",), "_graph": ("graphwire._graph",)},
    {"_train": ("graphwire._train",), "datasets": ("graphwire.datasets",)},
    {"pyg": ("graphwire.pyg",)},
    {"public names": ("graphwire",)},
    {"dgl": ("graphwire.dgl",), "kge": ("graphwire.kge",), "bench": ("graphwire.bench",)},
    {"commands": ("graphwire.when_dgl", "graphwire.__main__", "graphwire_commands")},
)
PLACES = {name: (room, floor) for floor, rooms in enumerate(FLOORS) for room, names in rooms.items() for name in names}
BESIDE = ("bindings", "build_backend")  # programs of the build, which import nothing of the package


def place_of(modules: Modules, module: str) -> tuple[str, int] | None:
    """(the room, its floor) of a module; None if it has no room."""
    words = module.split(".")
    for end in range(len(words), 0, -1):
        name = ".".join(words[:end])
        if name == "graphwire" and len(words) > 1 and (module in modules.packages or len(words) > 2
                                                       or words[1].startswith("_")):
            return None
        if name in PLACES:
            return PLACES[name]
    return None


def faults(root: Path) -> Iterator[str]:
    modules = Modules(root / "python")
    places = {module: place_of(modules, module) for module in modules.trees}
    for module, place in places.items():
        path = modules.paths[module].relative_to(root)
        if place is None:
            if module not in BESIDE:
                yield f"{path}: a module without a room: py_rooms.py says which rooms there are"
            continue
        for other, line in sorted(modules.imports[module].items()):
            found = places[other]
            if found is not None and found[0] != place[0] and found[1] >= place[1]:
                yield f"{path}:{line}: {place[0]} imports {other}, of {found[0]}"


PLANTED = """
graphwire/_base/x: from graphwire._files import y: caught
graphwire/_base/x: import graphwire: caught
graphwire/_base/x: from graphwire import Y: caught
graphwire/_files/x: from graphwire._graph.y import Y: caught
graphwire/_graph/x: from graphwire._files import y: caught
graphwire/_graph/x: def f(): from graphwire._train import y: caught
graphwire/_graph/x: from graphwire.batch import Y: caught
graphwire/_train/x: if TYPE_CHECKING: from graphwire.pyg import y: caught
graphwire/_train/x: importlib.import_module("graphwire.datasets.y"): caught
graphwire/datasets/x: from graphwire.pyg import y: caught
graphwire/pyg/x: from graphwire.loader import Y: caught
graphwire/x: from graphwire.dgl import y: caught
graphwire/x: import graphwire_commands: caught
graphwire/dgl/x: from graphwire.kge import y: caught
graphwire/dgl/subset/x: from graphwire import when_dgl: caught
graphwire/kge/x: from graphwire.bench import Y: caught
graphwire/_x: import sys: caught
graphwire/_other/x: import sys: caught
graphwire/other/__init__: import sys: caught
other: import sys: caught
graphwire/_base/x: from graphwire._base import y: allowed
graphwire/_graph/x: from graphwire._base.y import Y: allowed
graphwire/_train/x: from graphwire._graph import y: allowed
graphwire/datasets/x: from graphwire._files import y: allowed
graphwire/pyg/x: from graphwire._train.y import Y: allowed
graphwire/x: from graphwire.pyg import y: allowed
graphwire/dgl/subset/x: from graphwire import Y: allowed
graphwire/dgl/subset/x: from ..distributed import y: allowed
graphwire/kge/x: import graphwire.batch: allowed
graphwire/when_dgl: from graphwire.dgl import y: allowed
graphwire/__main__: import graphwire_commands: allowed
bindings: import sys: allowed
"""
# What the planted modules import.
EXISTING = ("_base/y", "_files/y", "_graph/y", "_train/y", "datasets/y", "pyg/y", "dgl/y", "dgl/subset/y",
            "dgl/distributed/y", "kge/y", "batch", "loader", "bench", "when_dgl")


def self_test() -> bool:
    """Checks all cases. Returns whether all verdicts are right."""
    right = True
    for case in PLANTED.strip().split("\n"):
        what, _, verdict = case.rpartition(": ")
        name, _, text = what.partition(": ")
        with tempfile.TemporaryDirectory() as root:
            python = Path(root, "python")
            for existing in EXISTING:
                path = python / "graphwire" / f"{existing}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("Y = 1\n")
                path.with_name("__init__.py").touch()
            (python / "graphwire/__init__.py").write_text("from graphwire._train.y import Y\n")
            (python / "graphwire_commands.py").touch()
            planted = python / f"{name}.py"
            planted.parent.mkdir(parents=True, exist_ok=True)
            planted.write_text(text + "\n")
            found = "caught" if list(faults(Path(root))) else "allowed"
        right = right and found == verdict
        print(f"ok - {what}: {verdict}" if found == verdict else f"not ok - {what}: {found}, not {verdict}")
    return right


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return not self_test()
    found = list(faults(Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]))
    if found:
        print("\n".join(found))
        print("not ok - these Python modules import from a floor that is not below theirs, or have no room")
        return 1
    print("ok - no Python module imports from a higher floor or another room of its floor")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
