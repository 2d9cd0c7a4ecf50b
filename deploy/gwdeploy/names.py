"""The names by which users type the three commands, for help and messages. In a checkout: deploy/launch.py and its
siblings. In an installed wheel: the console scripts (python/graphwire_commands.py). And which names users may give."""

from __future__ import annotations

import os
import re
import sys

# A checkout, a bundle, or the installed package graphwire.
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IN_PACKAGE = os.path.isfile(os.path.join(TOP, "__init__.py"))

LAUNCH = "graphwire-launch" if IN_PACKAGE else "launch.py"
COPY = "graphwire-copy" if IN_PACKAGE else "copy_files.py"
CLUSTER = "graphwire-cluster" if IN_PACKAGE else "cluster.py"

# Folders that are in every PATH, in an order that is the host's.
_SHARED = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")


def own_folder() -> str | None:
    """Returns the folder of the commands in this Python's environment (a virtual environment, conda's, pyenv's); None
    for the system's Python."""
    folder = os.path.dirname(os.path.abspath(sys.executable)) if sys.executable else ""
    return None if folder in ("", *_SHARED) else folder


SERVICE = "1 to 64 characters of A-Z a-z 0-9 _ . + -"


def is_service(name: str) -> bool:
    """Whether servers may have this name: gw_name_check's rule, which `graphwire serve --name` applies."""
    return re.fullmatch(r"[A-Za-z0-9_.+-]{1,64}", name) is not None and name not in (".", "..")


def is_variable(name: str) -> bool:
    """Whether a shell takes this as the name of a variable."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None


def visible(text: str, most: int = 60) -> str:
    """Returns the text, cut, for an error. A character that a terminal does not show becomes its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:most])
