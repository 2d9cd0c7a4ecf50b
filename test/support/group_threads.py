"""That programs leave no thread of a process group as they end: at_exit/sitecustomize.py, which tells why, counts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

AT_EXIT = Path(__file__).resolve().parent / "at_exit"


def counted(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment in which a Python program counts and prints its threads at exit."""
    path = environment.get("PYTHONPATH")
    return {**environment, "PYTHONPATH": os.pathsep.join([str(AT_EXIT), *([path] if path else [])])}


def left(text: str) -> list[int]:
    """Returns the numbers that the programs printed."""
    return [int(count) for count in re.findall(r"threads of a process group at exit: (\d+)", text)]
