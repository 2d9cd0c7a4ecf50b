"""Puts torchrun into the trainer's command, if the command runs a Python script. The command may be any shell command.

    cd code && OMP_X=1 python3 -u train.py --name "a b"
    cd code && OMP_X=1 python3 -u -m torch.distributed.run ... train.py --name "a b"

For a script that imports dgl, -m graphwire.dgl comes between torchrun's options and the script. For other programs,
-m graphwire.when_dgl does, in case a module of theirs imports dgl. If the launcher sees no Python script in the command
(a shell script, say), PYTHONPATH does the same for each Python that the command starts (at_start.py).

The launcher's own environment comes first in the PATH of the command, on hosts where it exists: `python3` and
`graphwire` are then those that the user installed with the launcher.

Nothing else in the text changes, so quotes, variables and other syntax of the shell stay as they are.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

# Programs that run the command behind their options.
_WRAPPERS = (
    "chrt|conda|exec|env|ionice|mamba|micromamba|ncu|nice|nohup|nsys|numactl|perf|pipenv|poetry|py-spy|setsid|stdbuf|"
    "strace|sudo|taskset|time|timeout|uv"
)
# The name of a Python in the place of a command: at the beginning, or after ; && || | ( and assignments, or behind a
# wrapper and its options.
_PYTHON = re.compile(
    rf"""(?:^|[;&|(]|\bexec\b|\benv\b)\s*            # where a command begins
        (?:[A-Za-z_][A-Za-z0-9_]*=(?:"[^"]*"|'[^']*'|[^\s"';&|])*\s+)*   # assignments in front of it
        (?:(?:[^\s"';&|()=]*/)?(?:{_WRAPPERS})\s+(?:[^\s"';&|()]+\s+)*?)?      # a wrapper and its options
        (?P<python>(?:[^\s"';&|()=]*/)?python[0-9.]*)(?=\s)""",
    re.VERBOSE,
)
_WORD = re.compile(r"""\s+((?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+)""")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def _script_at(command: str, at: int) -> int | None:
    """Returns where the script (or -m MODULE) begins, for the word "python" that ends at `at`; None without a
    script."""
    skip = False
    for word in _WORD.finditer(command, at):
        if word.start() != at:
            return None
        text, at = word.group(1), word.end()
        if skip:
            skip = False
        elif text in _WITH_VALUE:
            skip = True
        elif text in ("-c", "-") or text.startswith("-c"):
            return None
        elif text == "-m" or not text.startswith("-"):
            return word.start(1)
    return None


def _find(command: str) -> tuple[int, str] | None:
    match = _PYTHON.search(command)
    if not match:
        return None
    at = _script_at(command, match.end("python"))
    if at is None or re.match(r"-m\s+torch\.distributed\.(run|launch)\b", command[at:]):
        return None
    return at, match.group("python")


def runs_under_torchrun(command: str) -> bool:
    """Whether the command runs a Python script or module, which torchrun can start."""
    return _find(command) is not None


_IMPORTS_DGL = r"^[[:space:]]*(import|from)[[:space:]]+([A-Za-z0-9_., ]*[, ])?dgl([[:space:].,;]|\$)"


_HAS_GRAPHWIRE = 'import importlib.util, sys; sys.exit(importlib.util.find_spec("graphwire") is None)'

# The sitecustomize of a command in which no Python script is seen, and what puts its folder into PYTHONPATH.
AT_START = (Path(__file__).parent / "at_start.py").read_text()
_WATCHING = 'export PYTHONPATH="$GRAPHWIRE_AT_START${PYTHONPATH:+:$PYTHONPATH}"; '


def with_dgl(command: str, mode: str) -> str:
    """Returns the command with `-m graphwire.dgl` before its Python script. mode:

    auto   if the script imports dgl; the host checks this when it runs the command. Otherwise, and for -m MODULE,
           `-m graphwire.when_dgl`, if the Python has graphwire: that module waits for an import by another module
    as-is  always
    off    never

    If no script is seen in the command, auto and as-is make each Python that it starts wait for an import of dgl.
    """
    found = _find(command)
    if mode == "off":
        return command
    if not found:
        return _WATCHING + command
    script = _WORD.match(command, found[0] - 1)
    if not script:
        return command
    module = _WORD.match(command, script.end()) if script.group(1) == "-m" else None
    if mode == "auto" and module and module.group(1).partition(".")[0] == "graphwire":
        return command  # Graphwire's own programs do not import dgl
    later = f"{found[1]} -c '{_HAS_GRAPHWIRE}' && echo -m graphwire.when_dgl"
    if mode == "as-is":
        words = "-m graphwire.dgl"
    elif script.group(1) == "-m":
        words = f"$({later})"
    else:
        words = f'$(grep -Eqs "{_IMPORTS_DGL}" {script.group(1)} && echo -m graphwire.dgl || {{ {later}; }})'
    return command[: found[0]] + words + " " + command[found[0] :]


def in_environment(command: str, folder: str | None) -> str:
    """Returns the command with the folder of an environment's commands first in its PATH, if the host has the
    folder's Python. None: the command as it is."""
    if folder is None:
        return command
    quoted = shlex.quote(folder)
    return f'if [ -x {quoted}/python3 ]; then PATH={quoted}:"$PATH"; export PATH; fi; {command}'


def torchrun(command: str, trainers: int, hosts: int, host: int, address: str, port: int) -> str:
    """Returns the command with torchrun before its script."""
    found = _find(command)
    if not found:
        return command
    words: list[str] = [
        "-m torch.distributed.run",
        f"--nproc_per_node={trainers}",
        f"--nnodes={hosts}",
        f"--node_rank={host}",
        f"--master_addr={address}",
        f"--master_port={port}",
    ]
    at = found[0]
    return command[:at] + " ".join(words) + " " + command[at:]
