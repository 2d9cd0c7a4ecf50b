"""Tensors that change: rows in the servers' memory, or in this process's memory if the graph is standalone.

create_tensor (the first trainer creates, the others open) -> t[ids], t[ids] = rows, t.push -> delete_tensor

Rows are in memory only. When a server ends, its rows are lost, and later uses of the tensor raise NotFoundError. A read
that begins after a write has returned sees the write, in any process.

Processes share the tensors of a job. open(job=…) names the job, or GRAPHWIRE_JOB, which deploy/launch.py sets. torchrun
alone names no job. Each of its ranks would get a tensor of its own, so create_tensor refuses them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from graphwire._base import arrays as _arrays
from graphwire._base import checks
from graphwire._base.arrays import Array, Ids
from graphwire._base.keywords import keywords
from graphwire._base.native import c_text, check, ffi, finish, in_thread, lib, text
from graphwire._base.opened import Etype, OpenedGraph
from graphwire._graph.index import RowIndex

Initial = Union[str, float, tuple]
_PLACES = {"even": "GW_PLACE_EVEN", "striped": "GW_PLACE_STRIPED"}
_COMBINE = {"sum": "GW_COMBINE_SUM", "mean": "GW_COMBINE_MEAN", "each": "GW_COMBINE_EACH"}
_KINDS = {name[3:].lower(): kind for kind, name in sorted(ffi.typeof("enum gw_optimizer_kind").elements.items())}
# {kind: {array of its state: (whether it has the shape of the rows, its dtype)}}
_STATE: dict[str, dict[str, tuple[bool, Any]]] = {
    "adagrad": {"sum": (True, np.float32)}, "adagrad_rows": {"sum": (False, np.float32)},
    "adam": {"step": (False, np.uint32), "mean": (True, np.float32), "power": (True, np.float32)}}


def _initial(spec: Any, initial: Initial) -> None:
    """Writes initial values into a gw_tensor_spec: "zeros", a number, ("uniform", low, high) or ("normal", mean,
    deviation). Raises ValueError and TypeError."""
    if isinstance(initial, str) and initial == "zeros":
        spec.initial = lib.GW_INITIAL_ZERO
    elif isinstance(initial, tuple) and len(initial) == 3 and initial[0] in ("uniform", "normal"):
        spec.initial = lib.GW_INITIAL_UNIFORM if initial[0] == "uniform" else lib.GW_INITIAL_NORMAL
        spec.low, spec.high = (checks.number(f"initial[{i}]", initial[i]) for i in (1, 2))
    elif checks.is_bool(initial) or hasattr(type(initial), "__float__"):
        whole = checks.as_integer(initial)
        spec.initial = lib.GW_INITIAL_CONSTANT
        spec.low = float(bool(initial)) if checks.is_bool(initial) else checks.number("initial", initial)
        if whole is not None and spec.low != whole:
            raise ValueError(f"initial is sent as a double, which cannot hold {whole} exactly: write the rows instead")
    else:
        raise ValueError(f'initial is "zeros", a number, ("uniform", low, high) or ("normal", mean, deviation), not '
                         f"{initial!r}")


@keywords
class Tensor:
    """A table of rows that can be overwritten and trained. Graph.create_tensor and Graph.open_tensor make it.

    name: the tensor's name.
    shape: (rows, …) over all parts.
    dtype: torch's dtype, or NumPy's without torch.
    kept: True if the tensor stays after the end of its job.
    """

    __module__ = "graphwire"

    rows_by_id = True

    def __init__(self, graph: OpenedGraph, name: str, kept: bool, pointer: Any, client: Any):
        self._graph, self.name, self.kept = graph, name, kept
        self._pointer, self._client = pointer, client
        self.shape = _arrays.public_shape(pointer)
        self.dtype = _arrays.public_dtype(_arrays.fetched_as(pointer, graph._torch), graph._torch)
        self.rows_of = graph.rows_of(pointer)

    def _there(self) -> tuple[Any, Any]:
        """The client and the gw_tensor of this process, which are opened again after a fork."""
        client = self._graph._opened()
        if client is not self._client:
            self._pointer, self._client = _open(client, self.name, self.kept), client
        return client, self._pointer

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Ids) -> Array:
        """Reads rows as Feature does, with the same forms of ids and the same errors. Also raises NotFoundError if the
        tensor was deleted, or rows were lost with a server that has ended."""
        index = RowIndex(ids, self.shape, self.rows_of)
        client, tensor = self._there()
        return index.of(_arrays.gather(client, tensor, index.ids, self._graph._torch))

    def _read(self, ids: Ids, dtype: Any) -> Array:
        """Rows of real numbers in a dtype of `Graph.feature`."""
        client, tensor = self._there()
        torch = self._graph._torch
        return _arrays.gather(client, tensor, _arrays.ids_array(ids, self.rows_of), torch,
                              _arrays.real_code(dtype, torch))

    def gather(self, ids: Ids, out: Array) -> Array:
        """Reads rows into existing memory, such as pinned memory for a GPU, and returns `out`.

        ids: as for t[ids].
        out: a torch tensor on the CPU, or a NumPy array without torch: [len(ids), …] of the tensor's dtype, contiguous
            and writable.

        Raises ValueError and TypeError for an unsuitable out, and the errors of t[ids]. After an error of a read, the
        content of out is undefined.
        """
        client, tensor = self._there()
        _arrays.gather_into(client, tensor, _arrays.ids_array(ids, self.rows_of, "rows"), out, self._graph._torch)
        return out

    def __setitem__(self, ids: Ids, rows: Any) -> None:
        """Overwrites rows.

        ids: as for reading, but only whole rows. If an id occurs twice, its last row is stored.
        rows: [len(ids), …], or an array that broadcasts to this shape. Floating-point tensors store NaN and infinities;
            a number that is too large for the dtype becomes infinite.

        Raises OutOfRangeError, IndexError, TypeError and ValueError, also for a number that an integer dtype cannot
        hold. After these errors nothing is written.
        """
        index = RowIndex(ids, self.shape, self.rows_of)
        if not index.whole:
            raise IndexError(f"tensor {self.name}: only whole rows can be overwritten: read them, change them, and "
                             "write them")
        client, tensor = self._there()
        array = index.ids
        shape, dtype = _arrays.fetched_rows(tensor, tensor.dtype, len(array))
        given = _arrays.to_stored(rows, tensor.dtype, dtype)
        try:
            stored = np.ascontiguousarray(np.broadcast_to(given, shape))
        except ValueError:
            raise ValueError(f"tensor {self.name}: rows of shape {list(given.shape)} do not fit "
                             f"{list(shape)}") from None
        finish(lambda ticket: lib.gw_update_start(
            client.pointer, tensor, _arrays.ids_pointer(array), len(array), _arrays.pointer(stored), ticket))

    def push(self, ids: Ids, gradients: Any, *, kind: str, lr: float, combine: str = "sum", eps: float = 1e-8,
             betas: tuple[float, float] = (0.9, 0.999), step: int = 0) -> None:
        """Trains rows on their servers, by one step of an optimizer.

        ids: integers, or a mask of all rows.
        gradients: float32, [len(ids), …].
        kind: "sgd", "adagrad", "adagrad_rows" (one sum of squares for each row, as in DGL-KE) or "adam". The first push
            of a tensor fixes its kind.
        lr, eps, betas: as in torch's optimizers; rounded to float32.
        combine: how gradients of equal ids are combined: "sum", "mean", or "each", which applies them one after
            another.
        step: for "adam", the number of the step for all rows; 0: each row counts its own steps.

        A gradient that is NaN or infinite is not an error. It shows in the trained rows, as with torch's optimizers.

        Raises GraphwireError: GW_EXISTS for a kind other than that of the first push, and GW_UNSUPPORTED unless the
        rows are float32, float16 or bfloat16. Raises InvalidError for an invalid word, lr, eps or betas; TypeError for
        values that are not numbers; ValueError for gradients of another shape; and the errors of t[ids].
        """
        check_optimizer(kind, lr, combine, eps, betas)
        step = checks.integer("step", step, 0, checks.U64)
        client, tensor = self._there()
        array = _arrays.ids_array(ids, self.rows_of)
        if hasattr(gradients, "detach"):
            gradients = gradients.detach().cpu().float().numpy()
        rows = np.ascontiguousarray(gradients, dtype=np.float32)
        expected = (len(array), *self.shape[1:])
        if rows.shape != expected:
            raise ValueError(f"gradients have shape {rows.shape}, not {expected}")
        optimizer = ffi.new("struct gw_optimizer *", {
            "kind": _KINDS[kind], "combine": getattr(lib, _COMBINE[combine]), "rate": lr, "eps": eps,
            "beta1": betas[0], "beta2": betas[1], "step": step})
        finish(lambda ticket: lib.gw_push_start(
            client.pointer, tensor, _arrays.ids_pointer(array), len(array), _arrays.pointer(rows, "float *"), optimizer,
            ticket))

    def read_state(self, ids: Ids, *, kind: str, array: str) -> Array:
        """Reads the state that an optimizer has stored with rows.

        ids: as for t[ids].
        kind: as in push. Rows that were never pushed have zeros.
        array: "adagrad" has "sum", float32 [len(ids), …] like the rows; "adagrad_rows" has "sum", [len(ids)]; "adam"
            has "step", int64 [len(ids)], and "mean" and "power", float32 like the rows.

        Raises InvalidError for another kind or array; GraphwireError: GW_EXISTS for a kind other than that of the first
        push; and the errors of t[ids].
        """
        index, (shape, dtype) = RowIndex(ids, self.shape, self.rows_of), self._state_rows(kind, array)
        client, tensor = self._there()
        out = np.zeros((len(index.ids), *shape), dtype)
        in_thread(lambda: check(lib.gw_tensor_state_read(
            client.pointer, tensor, _KINDS[kind], array.encode(), _arrays.ids_pointer(index.ids), len(index.ids),
            _arrays.pointer(out))))
        found = out.astype(np.int64) if dtype == np.uint32 else out
        return index.of(_arrays.public(found, self._graph._torch))

    def write_state(self, ids: Ids, values: Any, *, kind: str, array: str) -> None:
        """Overwrites the state of rows, which the servers allocate first if necessary. This fixes the tensor's kind of
        optimizer, as the first push does.

        ids: as for t[ids] = rows. If an id occurs twice, its last value is stored.
        values: what read_state returns, or an array that broadcasts to its shape.

        Raises ValueError for values of another shape, and for steps outside of 0 to 2**32 - 1; the errors of
        read_state; GraphwireError: GW_UNSUPPORTED, as push.
        """
        index, (shape, dtype) = RowIndex(ids, self.shape, self.rows_of), self._state_rows(kind, array)
        if not index.whole:
            raise IndexError(f"tensor {self.name}: only the state of whole rows can be overwritten")
        client, tensor = self._there()
        given = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        if dtype == np.uint32 and given.size and not (0 <= given.min() and given.max() < 2**32):
            raise ValueError(f"steps run from 0 to 2**32 - 1, not from {given.min()} to {given.max()}")
        if dtype == np.uint32 and given.dtype.kind == "f" and (given != np.trunc(given)).any():
            raise ValueError(f"steps are integers, not {given[given != np.trunc(given)][0]}")
        expected = (len(index.ids), *shape)
        try:
            rows = np.ascontiguousarray(np.broadcast_to(given, expected), dtype)
        except ValueError:
            raise ValueError(f"tensor {self.name}: state of shape {list(given.shape)} does not fit "
                             f"{list(expected)}") from None
        in_thread(lambda: check(lib.gw_tensor_state_write(
            client.pointer, tensor, _KINDS[kind], array.encode(), _arrays.ids_pointer(index.ids), len(index.ids),
            _arrays.pointer(rows))))

    def _state_rows(self, kind: Any, array: Any) -> tuple[tuple[int, ...], Any]:
        """(shape of a row, dtype) of an array of state. Raises InvalidError."""
        checks.choice("kind", kind, _STATE)
        checks.choice("array", array, _STATE[kind])
        like_rows, dtype = _STATE[kind][array]
        return self.shape[1:] if like_rows else (), dtype

    def count_nonzero(self) -> int:
        """The number of elements that are not zero, over all parts. Raises NotFoundError if the tensor was deleted, or
        rows were lost with a server that has ended; PeerError and DeadlineError if a server does not answer."""
        client, tensor = self._there()
        out = ffi.new("uint64_t *")
        in_thread(lambda: check(lib.gw_tensor_count_nonzero(client.pointer, tensor, out)))
        return int(out[0])

    def __reduce__(self) -> Any:
        """The other process opens the tensor by its name, in the same job. Raises TypeError for a standalone graph."""
        if self._graph.standalone:
            raise TypeError(f"{self.name}: the rows of a standalone graph's tensor are this process's own, and cannot "
                            "be pickled or copied: send tensor[:], or open the graph over servers")
        return open_tensor, (self._graph, self.name, self.kept)

    def __repr__(self) -> str:
        return f"<graphwire.Tensor {self.name}: {list(self.shape)} {self.dtype}>"


def check_optimizer(kind: Any, lr: Any, combine: Any, eps: Any = 1e-8, betas: Any = (0.9, 0.999)) -> None:
    """Checks the arguments of Tensor.push that configure the optimizer. Raises InvalidError and TypeError."""
    checks.choice("kind", kind, _KINDS)
    checks.optimizer(lr, combine, _COMBINE, eps, betas)


def _lifetime(kept: bool) -> int:
    return int(lib.GW_KEPT if checks.flag("kept", kept) else lib.GW_OF_JOB)


def shape_of(shape: Any) -> tuple[int, ...]:
    """Returns a shape as a tuple; a single number is a number of rows. Raises TypeError and ValueError."""
    alone = checks.as_integer(shape)
    if alone is None and not isinstance(shape, (tuple, list)):
        raise TypeError(f"shape is (rows, …), not {shape!r}")
    found = tuple(checks.integer("shape", size, 0, 2**63 - 1) for size in ([alone] if alone is not None else shape))
    if not 1 <= len(found) <= lib.GW_DIMS_MAX:
        raise ValueError(f"shape: a tensor has 1 to {lib.GW_DIMS_MAX} dimensions, not {len(found)}")
    return found


def _open(client: Any, name: str, kept: bool) -> Any:
    word = c_text("name", name)

    def call() -> Any:
        out = ffi.new("const struct gw_tensor **")
        check(lib.gw_tensor_open(client.pointer, word, _lifetime(kept), out))
        return out[0]

    return in_thread(call)


def open_tensor(graph: OpenedGraph, name: str, kept: bool) -> Tensor:
    client = graph._opened()
    return Tensor(graph, name, kept, _open(client, name, kept), client)


def shared(graph: OpenedGraph, kept: bool) -> None:
    """Raises ValueError if torch.distributed has several ranks, and each would get a tensor of its own. Otherwise
    training would continue, without an error, with different tables."""
    world, _ = _arrays.world_of(None, None)
    if world == 1:
        return
    if graph.standalone:
        raise ValueError(f"a standalone graph's tensors belong to this process, and {world} ranks are to share them: "
                         "open the graph over servers")
    if not kept and graph._job_of == os.getpid():
        raise ValueError(f"this process has a job's name of its own, and {world} ranks are to share the job's tensors: "
                         "pass the same graphwire.open(job=…) on all ranks, or set GRAPHWIRE_JOB, as deploy/launch.py "
                         "does")


def create_tensor(graph: OpenedGraph, name: str, shape: Any, dtype: Any, *, ntype: str | None, etype: Etype | None,
                  place: str, initial: Initial, seed: int, kept: bool) -> Tensor:
    """Graph.create_tensor, which documents the arguments."""
    shared(graph, kept)
    client = graph._opened()
    shape, seed = shape_of(shape), checks.integer("seed", seed, 0, checks.U64)
    checks.choice("place", place, _PLACES)
    word = ffi.new("char[]", c_text("name", name))
    spec = ffi.new("struct gw_tensor_spec *", {
        "name": word, "dtype": _arrays.dtype_code(dtype), "placement": getattr(lib, _PLACES[place]), "ndim": len(shape),
        "shape": list(shape), "seed": seed, "lifetime": _lifetime(kept)})
    if ntype is not None:
        spec.placement, spec.type = lib.GW_PLACE_NODES, graph.ntype_number(ntype)
    elif etype is not None:
        spec.placement, spec.type = lib.GW_PLACE_EDGES, graph.etype_number(etype)
    _initial(spec, initial)

    def call() -> Any:
        out = ffi.new("const struct gw_tensor **")
        check(lib.gw_tensor_create(client.pointer, spec, out))
        return word, out[0]

    return Tensor(graph, name, kept, in_thread(call)[1], client)


def delete_tensor(graph: OpenedGraph, name: str, kept: bool) -> None:
    client, word = graph._opened(), c_text("name", name)
    in_thread(lambda: check(lib.gw_tensor_delete(client.pointer, word, _lifetime(kept))))


def _words(names: Sequence[str] | None) -> tuple[Any, int, list[Any]]:
    """(names as an array of C strings or NULL, their number, the strings that the array points to)."""
    if isinstance(names, str):
        raise TypeError(f"names is a list of names, not {names!r}")
    words = [ffi.new("char[]", c_text("names", name)) for name in names or ()]
    return (ffi.NULL if names is None else ffi.new("char *[]", words)), len(words), words


def checkpoint(graph: OpenedGraph, folder: str, names: Sequence[str] | None, replace: bool,
               bytes_per_second: int | str) -> None:
    client, path = graph._opened(), c_text("folder", folder)
    words, count, kept = _words(names)
    options = ffi.new("struct gw_checkpoint_options *", {
        "names": words, "name_count": count, "replace": checks.flag("replace", replace),
        "bytes_per_second": checks.size("bytes_per_second", bytes_per_second)})

    def call() -> None:
        check(lib.gw_checkpoint(client.pointer, path, options))
        kept.clear()

    in_thread(call)


def restore(graph: OpenedGraph, folder: str, names: Sequence[str] | None) -> None:
    client, path = graph._opened(), c_text("folder", folder)
    words, count, kept = _words(names)

    def call() -> None:
        check(lib.gw_restore(client.pointer, path, words, count))
        kept.clear()

    in_thread(call)


def list_tensors(graph: OpenedGraph) -> list[Mapping[str, Any]]:
    """Graph.tensors."""
    client = graph._opened()

    def call() -> list[Mapping[str, Any]]:
        out = ffi.new("struct gw_tensor_list **")
        check(lib.gw_tensor_list(client.pointer, out))
        try:
            return [{"name": text(entry.name), "kept": entry.lifetime == lib.GW_KEPT,
                     "dtype": _arrays.dtype_name(entry.dtype)[3:].lower(),
                     "shape": tuple(entry.shape[i] for i in range(entry.ndim)), "bytes": int(entry.bytes)}
                    for entry in out[0].entries[0:out[0].count]]
        finally:
            lib.gw_tensor_list_free(out[0])

    return in_thread(call)
