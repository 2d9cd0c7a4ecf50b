"""Names the packages that are missing, in one line: what needs the package, and the command that installs it.

    import of a package with a need  ─▶ need(WHAT, MODULE…) ─▶ the module exists: nothing happens
                                                             ─▶ python -m graphwire.X: the line, and status 1
                                                             ─▶ else ModuleNotFoundError with the line

This module imports nothing of the package, because it runs first.
"""

from __future__ import annotations

import importlib.util
import sys

# Modules whose distribution has another name.
_DISTRIBUTIONS = {"_cffi_backend": "cffi"}


def _line(what: str, module: str) -> str:
    name = _DISTRIBUTIONS.get(module, module)
    return f"{what} needs {name}, and this Python does not have it: {sys.executable or 'python3'} -m pip install {name}"


def need(what: str, *modules: str) -> None:
    """Checks that the modules exist. what: the package that needs them, for the text.

    Raises ModuleNotFoundError. While Python looks for the module of `python -m graphwire.X`, which it does with "-m" as
    sys.argv[0], the process ends instead, because Python would print a traceback.
    """
    for module in modules:
        if importlib.util.find_spec(module) is not None:
            continue
        words = getattr(sys, "orig_argv", ["graphwire"])  # Python 3.10
        if sys.argv[:1] == ["-m"] and any("graphwire" in word for word in words):
            sys.exit(_line(what, module))
        raise ModuleNotFoundError(_line(what, module), name=module)

