"""Copies rows of other parts that a part's trainers want most into the part: `graphwire replicate`.

    replicate("parts/", "5%", fanouts=[15, 10, 5], batch_size=1024)

Errors: RuntimeError with the program's last line; ValueError and TypeError; FileNotFoundError without the program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Union

from graphwire._base import checks
from graphwire._base.escape import escaped_type
from graphwire._base.keywords import keywords
from graphwire._files.running import run

Fanouts = Union[Sequence[int], Mapping[Any, Sequence[int]]]


def amount(what: str, given: Any) -> str:
    """How many rows, as the program takes it: "5%", or bytes. Raises TypeError and ValueError."""
    if not isinstance(given, str) or not given.endswith("%"):
        return str(checks.size(what, given))
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?%", given):
        raise ValueError(f'{what} is a share such as "5%", or bytes such as 10**9 or "20Gi", not {given!r}')
    checks.number(what, float(given[:-1]), 0, 100)
    return given


def _hops(what: str, given: Any) -> str:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        raise TypeError(f"{what} is a list with a number for each hop, such as [15, 10, 5], not {given!r}")
    return ",".join(str(checks.integer(what, hop, -1, 1 << 20)) for hop in given)


def sampling_words(by: str, fanouts: Fanouts | None, batch_size: int) -> list[str]:
    """The options that say how the trainers sample. Raises TypeError and ValueError."""
    if not isinstance(by, str):
        raise TypeError(f'by is "vip", "degree" or "epochs:N", not {by!r}')
    words = ["--by", by, "--batch-size", str(checks.integer("batch_size", batch_size, 1, 1 << 24))]
    if isinstance(fanouts, Mapping):
        if not fanouts:
            raise ValueError("fanouts: no edge type is sampled")
        names = {etype if isinstance(etype, str) else ":".join(etype): hops for etype, hops in fanouts.items()}
        lengths = {len(_hops(f"fanouts of {etype}", hops).split(",")) for etype, hops in names.items()}
        if len(lengths) > 1:
            raise ValueError("fanouts: each edge type has as many numbers as there are hops")
        words += ["--fanouts", ",".join(["0"] * lengths.pop())]
        for etype, hops in names.items():
            words.append(f"--fanout={escaped_type(etype)}={_hops('fanouts', hops)}")
    elif fanouts is not None:
        words += ["--fanouts", _hops("fanouts", fanouts)]
    return words


@keywords
def replicate(part_config: str | os.PathLike, rows: int | str, *, by: str = "vip", fanouts: Fanouts | None = None,
              batch_size: int = 1000, features: str | Sequence[str] = (), ntype: str | None = None,
              mask: str | None = None, seed: int = 1) -> None:
    """Copies the rows of other parts that a part's trainers will want most into the part. Servers load them, and
    clients on a server's host read them from its memory: one copy for each host, and no server sends them. The graph's
    id stays, and no mini-batch changes.

    part_config: the JSON or the folder of a graph in parts, which has all parts.
    rows: how many rows a part gets: a share of the rows of each node type, such as "5%", or the bytes of all its
        replicas, such as "20Gi". They replace those that the graph has; 0 removes them.
    by: which rows. "vip": how likely a mini-batch has the row (SALIENT++). "degree": how many lists name it.
        "epochs:N": how many mini-batches of N epochs have it, counted with the loader itself.
    fanouts: those of the trainers, a list with a number for each hop from the seeds on (-1: all neighbours), or {edge
        type: list}; types that it does not name are not sampled. rows=0 needs none.
    batch_size: their seeds of a mini-batch.
    features: names of node features, "NAME" or "TYPE:NAME": a list, or one text with commas. Without it: those with
        more than one number a row.
    ntype, mask: the seeds are the nodes of this type where this feature is set. Without it: train_mask, if a type has
        it; else all nodes.
    seed: of the epochs that by="epochs:N" counts.

    Raises RuntimeError with the program's error line; TypeError and ValueError for other invalid arguments;
    FileNotFoundError without the program."""
    names = checks.names("features", features)
    words = ["replicate", os.fspath(part_config), "--rows", amount("rows", rows),
             *sampling_words(by, fanouts, batch_size), "--seed", str(checks.integer("seed", seed, 0, checks.U64))]
    if names:
        words += ["--features", ",".join(map(escaped_type, names))]
    for option, value in (("ntype", ntype), ("mask", mask)):
        if value is not None:
            if not isinstance(value, str):
                raise TypeError(f"{option} is a name, not {value!r}")
            words += [f"--{option}", escaped_type(value)]
    run(words)
