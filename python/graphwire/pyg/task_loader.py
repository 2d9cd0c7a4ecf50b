"""A loader of the rows of a task's table: each row asks for the target of an entity at a time.

    a table (_files/task_table.py) -> keys, as nodes of the graph, and times, in its unit -> the seeds of a
        NeighborLoader -> batches with the targets of their rows

Each row is a seed of its own: a table may ask for an entity many times, at different times. So targets belong to rows
and not to nodes, and a batch gets them by the rows' numbers, its input_id.

Errors: those of _files/task_table.py for the table; NotFoundError for a key that no node has; those of NeighborLoader.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

import numpy as np
import torch

from graphwire._base import checks
from graphwire._base.keywords import keywords, names_of_arguments
from graphwire._base.native import InvalidError, NotFoundError
from graphwire._base.times import UNITS, numbers
from graphwire._files.task_table import TaskTable, of_relbench
from graphwire._graph.rules import unit_of
from graphwire.pyg.draws import Counts
from graphwire.pyg.input_nodes import InputNodes
from graphwire.pyg.neighbor_loader import NeighborLoader
from graphwire.pyg.rows import selected
from graphwire.pyg.sources import Source, store_of
from graphwire.pyg.times import SeedTimes

Entity = Union[str, tuple[str, str], None]
_OF_THE_TABLE = ("input_nodes", "input_time", "input_id")  # arguments of NeighborLoader


class _Task(NamedTuple):
    """The table. ntype: the node type of the keys, or None. unit: that of times that have none; usual: the same, unless
    the times have another. skip: rows whose key no node has are left out; else they are an error."""

    table: TaskTable
    ntype: Optional[str]
    unit: Optional[str]
    usual: Optional[str]
    skip: bool

    @property
    def keys(self) -> str:
        """Names the column of keys in errors."""
        return f"{self.table.what}: column {self.table.key}"


class _Entities(InputNodes):
    """The seeds of a task. rows: those of its table, [seeds]."""

    _argument = "entity"
    _form = 'give ("type", "the column of its keys")'

    def _take(self, source: Source, ids: Any) -> None:
        task: _Task = ids
        try:
            nodes = source.ids.nodes_of_keys(self.ntype, task.table.keys)
        except InvalidError as error:
            raise InvalidError(error.status, f"{task.keys}: {error}") from error
        except TypeError as error:
            raise TypeError(f"{task.keys}: {error}") from None
        missing = nodes.numpy() < 0
        if missing.any() and not task.skip:
            raise self._missing(task, missing)
        self.rows = np.flatnonzero(~missing)
        self.nodes = nodes[torch.from_numpy(self.rows)]
        self.given = source.ids.nodes_to_user(self.ntype, self.nodes)
        self.input_id = torch.from_numpy(self.rows) if missing.any() else None

    def _missing(self, task: _Task, missing: np.ndarray) -> NotFoundError:
        row, count = int(np.argmax(missing)), int(missing.sum())
        return NotFoundError("GW_NOT_FOUND", f"{task.table.where(row)}: column {task.table.key} is "
                             f"{task.table.key_of(row)!r}, which no node of type {self.ntype} has as its id"
                             f"{f'; so are {count - 1} rows after it' if count > 1 else ''}: correct them, or pass "
                             'missing="skip", which leaves such rows out')


class RelationalLoader(NeighborLoader):
    """The NeighborLoader that relational() returns, which documents it."""

    _called = "relational"

    def __init__(self, data: Any, num_neighbors: Counts, task: _Task, **options: Any):
        table = task.table
        self._task = task
        super().__init__(data, num_neighbors, task if task.ntype is None else (task.ntype, task), table.times,
                         **options)
        del self._task, self._rows
        self.skipped = table.count - len(self._nodes)
        self.target = None if table.target is None else torch.from_numpy(table.target)
        nodes = self.input_data.node
        self.input_nodes = (self._ntype, nodes) if self._typed else nodes
        self.input_time = self.input_data.time

    @classmethod
    def _arguments(cls) -> list[str]:
        words = [*names_of_arguments(relational), *NeighborLoader._arguments()]
        return [word for word in words if word not in _OF_THE_TABLE]

    def _seeds_of(self, data: Any, input_nodes: Any) -> InputNodes:
        found = _Entities(self._source, data, input_nodes, None)
        self._rows = found.rows
        return found

    def _times_given(self, input_time: Any) -> SeedTimes:
        unit, what = self._unit(), f"{self._task.table.what}: column {self._task.table.time}"
        if unit is None and input_time.dtype.kind == "M":
            raise checks.invalid(f'{what} has dates, and not all times of the data have a unit: pass unit="s" if they '
                                 "are seconds since 1970")
        found = numbers(what, input_time, None, unit)
        return SeedTimes(found[self._rows], len(self._rows), what, unit)

    def _unit(self) -> str | None:
        """The unit of the data's times; None: they have none, or not one. Raises ValueError if the task says another.
        """
        draws, task = self._sampler._draws, self._task
        assert draws.time is not None
        units = [unit_of(tensor) for tensor in draws.time.tensors()]
        known = sorted({unit for unit in units if unit is not None})
        other = next((unit for unit in known if task.unit not in (None, unit)), None)
        if other is not None:
            raise ValueError(f"unit: the times of the data are in {other}, not in {task.unit}")
        if draws.unit is not None or (len(known) == 1 and None not in units):
            return draws.unit or known[0]
        return task.unit or (None if known else task.usual)

    def _add_seeds(self, data: Any, metadata: tuple[Any, ...]) -> None:
        super()._add_seeds(data, metadata)
        if self.target is not None:
            store_of(data, self._ntype if self._typed else None)["y"] = selected(self.target, metadata[0])


def _entity(entity: Entity, table: Any) -> tuple[str | None, str]:
    """(node type or None, column of keys)."""
    known = table.fkey_col_to_pkey_table if of_relbench(table) else {}
    if entity is None and len(known) == 1:
        return next((ntype, column) for column, ntype in known.items())
    if isinstance(entity, str):
        return known.get(entity), entity
    if isinstance(entity, (tuple, list)) and len(entity) == 2 and all(isinstance(one, str) for one in entity):
        return entity[0], entity[1]
    has = f"; the table has {', '.join(known)}" if known else ""
    raise TypeError(f'entity is ("type", "the column of its keys"), or a column of a graph with one type, not '
                    f"{entity!r:.100}{has}")


@keywords
def relational(data: Any, table: Any, num_neighbors: Counts, entity: Entity = None, time: str | None = None,
               target: str | None = None, *, time_attr: str | None = None, unit: str | None = None,
               missing: str = "raise", **options: Any) -> RelationalLoader:
    """A NeighborLoader of the rows of a task's table. Each row asks for the target of an entity at a time, and is a
    seed with neighbours of its own, which are not later than its time.

    data: as NeighborLoader's: a graphwire.Graph, graphwire.pyg.stores(…), Data or HeteroData.
    table: as a table of from_tables: a frame of pandas or polars, a table or stream of Arrow, {name: column}, or a path
        of CSV or Parquet; or a Table of RelBench. It is read once, when the loader is made. It needs pyarrow.
    num_neighbors: as NeighborLoader's.
    entity: (node type, column of its keys), or a column if the graph has one node type. Keys are the ids of your data:
        rows of data in memory; the original ids of a graph that keeps them, numbers or texts; with ids="graph" the
        graph's. A Table of RelBench with one foreign key needs no entity.
    time: the column of times, numbers or dates. Dates, also of a time zone, are converted to the unit of the data's
        times, exactly or not at all. None: those of a Table of RelBench; else the table has no times, and edges are
        drawn at all times.
    target: the column of targets: integers and bools become int64, floats keep their type, lists of numbers of one
        length are [rows, length]. Texts are refused: numbered in each table by itself, they would differ. None: batches
        have no targets; so does a Table of RelBench without the column.
    time_attr: as NeighborLoader's; with times, "time" by default.
    unit: the unit since 1970 ("D", "h", "m", "s", "ms", "us", "ns") of the data's times that are plain numbers, as
        those of tensors are: dates of the table are converted to it. With a Table of RelBench, "s" by default.
    missing: "raise": a key that no node has is an error; "skip": its row is left out.
    options: other arguments of NeighborLoader, such as batch_size, shuffle, temporal_strategy and transform.

    Batches are NeighborLoader's: batch[type] has input_id, the rows' numbers in the table; y, their targets, [seeds,
    …]; and, with times, seed_time, in the unit of the data's times. An attribute y of the entities themselves is
    replaced. A transform gets the batch with y.

    The loader's attributes: target: the targets of all rows of the table, or None; skipped: the number of rows that are
    left out.

    Raises ValueError and TypeError, which name the table, the row (from 0) and the column: a missing value (null, NaN,
    NaT), a value of another kind, a date that is no whole number of the unit, a column that does not exist;
    NotFoundError for a key that no node has; ModuleNotFoundError without pyarrow; and the errors of NeighborLoader.
    """
    given = next((name for name in _OF_THE_TABLE if name in options), None)
    if given is not None:
        raise TypeError(f"{given}: the table says it: relational() takes the columns entity and time")
    skip = checks.choice("missing", missing, ("raise", "skip")) == "skip"
    unit = None if unit is None else checks.choice("unit", unit, UNITS)
    relbench = of_relbench(table)
    ntype, key = _entity(entity, table)
    if relbench:
        time = table.time_col if time is None else time
        target = None if target is not None and target not in table.df else target
    found = TaskTable(table.df if relbench else table, key, time, target)
    return RelationalLoader(data, num_neighbors, _Task(found, ntype, unit, "s" if relbench else None, skip),
                            time_attr="time" if time_attr is None and time is not None else time_attr, **options)
