"""The names by which users type the three commands, for help and messages. In a checkout: deploy/launch.py and its
siblings. In an installed wheel: the console scripts (python/graphwire_commands.py)."""

from __future__ import annotations

import os

# A checkout, a bundle, or the installed package graphwire.
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IN_PACKAGE = os.path.isfile(os.path.join(TOP, "__init__.py"))

LAUNCH = "graphwire-launch" if IN_PACKAGE else "launch.py"
COPY = "graphwire-copy" if IN_PACKAGE else "copy_files.py"
CLUSTER = "graphwire-cluster" if IN_PACKAGE else "cluster.py"
