"""Loads graphwire._c, the cffi module over the C library."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from graphwire._base.requirements import need


def _load() -> Any:
    """Imports graphwire._c from the package's folder if it is installed, else from the checkout's build folder.
    Before that, checks that cffi and NumPy exist.

    GRAPHWIRE_BUILD names another build folder. Raises ImportError.
    """
    need("graphwire", "_cffi_backend", "numpy")
    try:
        return importlib.import_module("graphwire._c")
    except ImportError as error:
        missing = error
    top = Path(__file__).resolve().parents[3]
    folders = [Path(os.environ["GRAPHWIRE_BUILD"])] if "GRAPHWIRE_BUILD" in os.environ else [
        top / "build" / name for name in ("release", "dev")]
    for folder in folders:
        path = folder / "python" / "_c.abi3.so"
        if path.is_file():
            spec = importlib.util.spec_from_file_location("graphwire._c", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError(
        f"graphwire's library was not found: {missing}; `pip install .` in a checkout builds and installs it, and "
        "`cmake --preset release -DGRAPHWIRE_PYTHON=ON && cmake --build --preset release` builds it there"
    ) from missing


_module = _load()
ffi: Any = _module.ffi
lib: Any = _module.lib
