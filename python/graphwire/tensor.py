"""Tensors that change: rows in the memory of the servers (standalone: of this process), read, overwritten and trained.

create_tensor (every trainer: the first creates, the others open) -> t[ids], t[ids] = rows, t.push -> delete_tensor

Rows live in memory: when a server ends, its rows are gone, and who touches the tensor gets NotFoundError. A read that
begins after a write has returned sees it, in any process. Processes share the tensors of a job: open(job=…), or the
GRAPHWIRE_JOB of deploy/launch.py. torchrun alone names no job, and its ranks would have a tensor each: that is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from graphwire import _arrays, _checks
from graphwire._arrays import Array, Ids
from graphwire._index import RowIndex
from graphwire._native import aside, c_text, check, ffi, finish, lib, text
from graphwire._opened import Etype, OpenedGraph

Initial = Union[str, float, tuple]
_PLACES = {"even": "GW_PLACE_EVEN", "striped": "GW_PLACE_STRIPED"}
_COMBINE = {"sum": "GW_COMBINE_SUM", "mean": "GW_COMBINE_MEAN", "each": "GW_COMBINE_EACH"}
_KINDS = {name[3:].lower(): kind for kind, name in sorted(ffi.typeof("enum gw_optimizer_kind").elements.items())}


def _dtype(name: Any) -> int:
    """A C type: of "float32", np.float32 or torch.float32."""
    word = str(name).replace("torch.", "")
    if isinstance(name, type):
        try:
            word = np.dtype(name).name
        except TypeError:
            pass
    if word not in _arrays.DTYPES:
        raise ValueError(f"dtype: {name!r} is no type of a tensor's elements: {', '.join(_arrays.DTYPES)}")
    return int(getattr(lib, f"GW_{word.upper()}"))


def _initial(spec: Any, initial: Initial) -> None:
    """"zeros", a number, ("uniform", low, high), ("normal", mean, deviation)."""
    if isinstance(initial, str) and initial == "zeros":
        spec.initial = lib.GW_INITIAL_ZERO
    elif isinstance(initial, tuple) and len(initial) == 3 and initial[0] in ("uniform", "normal"):
        spec.initial = lib.GW_INITIAL_UNIFORM if initial[0] == "uniform" else lib.GW_INITIAL_NORMAL
        spec.low, spec.high = (_checks.number(f"initial[{i}]", initial[i]) for i in (1, 2))
    elif _checks.is_bool(initial) or hasattr(type(initial), "__float__"):
        whole = _checks.as_integer(initial)
        spec.initial = lib.GW_INITIAL_CONSTANT
        spec.low = float(bool(initial)) if _checks.is_bool(initial) else _checks.number("initial", initial)
        if whole is not None and spec.low != whole:
            raise ValueError(f"initial is a double, which does not hold {whole}: write the rows instead")
    else:
        raise ValueError(f'initial is "zeros", a number, ("uniform", low, high) or ("normal", mean, deviation), not '
                         f"{initial!r}")


class Tensor:
    """Rows that change. Made by Graph.create_tensor and Graph.open_tensor.

    name; shape: (rows, …) over all parts; dtype: torch's, or NumPy's without torch.
    """

    rows_by_id = True

    def __init__(self, graph: OpenedGraph, name: str, kept: bool, pointer: Any, client: Any):
        self._graph, self.name, self.kept = graph, name, kept
        self._pointer, self._client = pointer, client
        self.shape = _arrays.public_shape(pointer)
        self.dtype = _arrays.public_dtype(pointer.dtype, graph._torch)

    def _there(self) -> tuple[Any, Any]:
        """Client and gw_tensor of this process."""
        client = self._graph._opened()
        if client is not self._client:
            self._pointer, self._client = _open(client, self.name, self.kept), client
        return client, self._pointer

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Ids) -> Array:
        """Rows, as Feature's, with the same errors; NotFoundError where the tensor is gone: deleted, or with a server
        that ended."""
        index = RowIndex(ids, self.shape)
        client, tensor = self._there()
        return index.of(_arrays.gather(client, tensor, index.ids, self._graph._torch))

    def gather(self, ids: Ids, out: Array) -> Array:
        """Rows into memory that is there, such as pinned memory that a GPU reads by itself; returns it.

        out: [len(ids), …] of the tensor's dtype, contiguous, of the host; a tensor (without torch, an array). Raises
        ValueError and TypeError where it is not; errors as Feature's, and what it holds then is undefined.
        """
        client, tensor = self._there()
        _arrays.gather_into(client, tensor, ids, out, self._graph._torch)
        return out

    def __setitem__(self, ids: Ids, rows: Any) -> None:
        """Overwrites rows: [len(ids), …], or what broadcasts to it; ids: as for reading, of whole rows. Of equal ids
        the last counts. Floating-point rows take NaN and infinities, and what is too large for them as infinite. Raises
        OutOfRangeError, IndexError, TypeError and ValueError, also for a number that rows of integers do not hold; and
        nothing is written then."""
        index = RowIndex(ids, self.shape)
        if not index.whole:
            raise IndexError(f"tensor {self.name}: whole rows are overwritten: read them, change them, and write them")
        client, tensor = self._there()
        array = index.ids
        shape, dtype = _arrays.stored_rows(tensor, len(array))
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
        """Trains rows where they are.

        gradients: float32, [len(ids), …]. kind: "sgd", "adagrad", "adagrad_rows" (one sum of squares for a row, as
        DGL-KE), "adam". combine: what becomes of equal ids: "sum", "mean", "each". step: "adam": of all rows; 0: each
        row counts its own. The first push decides the kind. lr, eps and betas are rounded to float32.

        A gradient that is NaN or infinite is no error: it is seen in the rows that it trains, as with torch's
        optimizers. Raises GraphwireError (GW_EXISTS) for another kind than the first, and (GW_UNSUPPORTED) for rows
        that are not float32, float16 or bfloat16; InvalidError for a word, an lr, eps or betas that make no sense;
        TypeError for what is no number.
        """
        check_optimizer(kind, lr, combine, eps, betas)
        step = _checks.integer("step", step, 0, _checks.U64)
        client, tensor = self._there()
        array = _arrays.ids_array(ids, len(self))
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

    def count_nonzero(self) -> int:
        """Elements that are not zero, over all parts. Raises NotFoundError where the tensor is gone: deleted, or with
        a server that ended; PeerError and DeadlineError where a server cannot be asked."""
        client, tensor = self._there()
        out = ffi.new("uint64_t *")
        aside(lambda: check(lib.gw_tensor_count_nonzero(client.pointer, tensor, out)))
        return int(out[0])

    def __reduce__(self) -> Any:
        """Another process opens it by its name, in the same job."""
        if self._graph.standalone:
            raise TypeError(f"{self.name}: the rows of a standalone graph's tensor are this process's own, and cannot "
                            "be pickled or copied: send tensor[:], or open the graph over servers")
        return _reopened, (self._graph, self.name, self.kept)

    def __repr__(self) -> str:
        return f"<graphwire.Tensor {self.name}: {list(self.shape)} {self.dtype}>"


def check_optimizer(kind: Any, lr: Any, combine: Any, eps: Any = 1e-8, betas: Any = (0.9, 0.999)) -> None:
    """Raises InvalidError and TypeError for what no optimizer takes."""
    _checks.choice("kind", kind, _KINDS)
    _checks.optimizer(lr, combine, _COMBINE, eps, betas)


def _lifetime(kept: bool) -> int:
    return int(lib.GW_KEPT if _checks.flag("kept", kept) else lib.GW_OF_JOB)


def shape_of(shape: Any) -> tuple[int, ...]:
    """A number of rows, or (rows, …)."""
    alone = _checks.as_integer(shape)
    if alone is None and not isinstance(shape, (tuple, list)):
        raise TypeError(f"shape is (rows, …), not {shape!r}")
    found = tuple(_checks.integer("shape", size, 0, 2**63 - 1) for size in ([alone] if alone is not None else shape))
    if not 1 <= len(found) <= lib.GW_DIMS_MAX:
        raise ValueError(f"shape: a tensor has 1 to {lib.GW_DIMS_MAX} dimensions, not {len(found)}")
    return found


def _open(client: Any, name: str, kept: bool) -> Any:
    word = c_text("name", name)

    def call() -> Any:
        out = ffi.new("const struct gw_tensor **")
        check(lib.gw_tensor_open(client.pointer, word, _lifetime(kept), out))
        return out[0]

    return aside(call)


def _reopened(graph: OpenedGraph, name: str, kept: bool) -> Tensor:
    return open_tensor(graph, name, kept)


def open_tensor(graph: OpenedGraph, name: str, kept: bool) -> Tensor:
    client = graph._opened()
    return Tensor(graph, name, kept, _open(client, name, kept), client)


def shared(graph: OpenedGraph, kept: bool) -> None:
    """Refuses tensors that each rank would have for itself, without a word."""
    world, _ = _arrays.world_of(None, None)
    if world == 1:
        return
    if graph.standalone:
        raise ValueError(f"a standalone graph's tensors are this process's own, and {world} ranks are to share them: "
                         "open it over servers")
    if not kept and graph._job_of == os.getpid():
        raise ValueError(f"the job's name was made up in this process, and {world} ranks are to share its tensors: "
                         "graphwire.open(job=…), the same for all of them, or GRAPHWIRE_JOB, which deploy/launch.py "
                         "sets")


def create_tensor(graph: OpenedGraph, name: str, shape: Any, dtype: Any, *, ntype: str | None, etype: Etype | None,
                  place: str, initial: Initial, seed: int, kept: bool) -> Tensor:
    """Graph.create_tensor, which tells."""
    shared(graph, kept)
    client = graph._opened()
    shape, seed = shape_of(shape), _checks.integer("seed", seed, 0, _checks.U64)
    _checks.choice("place", place, _PLACES)
    word = ffi.new("char[]", c_text("name", name))
    spec = ffi.new("struct gw_tensor_spec *", {
        "name": word, "dtype": _dtype(dtype), "placement": getattr(lib, _PLACES[place]), "ndim": len(shape),
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

    return Tensor(graph, name, kept, aside(call)[1], client)


def delete_tensor(graph: OpenedGraph, name: str, kept: bool) -> None:
    client, word = graph._opened(), c_text("name", name)
    aside(lambda: check(lib.gw_tensor_delete(client.pointer, word, _lifetime(kept))))


def _words(names: Sequence[str] | None) -> tuple[Any, int, list[Any]]:
    """An array of C strings, and what it points to."""
    if isinstance(names, str):
        raise TypeError(f"names is a list of names, not {names!r}")
    words = [ffi.new("char[]", c_text("names", name)) for name in names or ()]
    return (ffi.NULL if names is None else ffi.new("char *[]", words)), len(words), words


def checkpoint(graph: OpenedGraph, folder: str, names: Sequence[str] | None, replace: bool,
               bytes_per_second: int) -> None:
    client, path = graph._opened(), c_text("folder", folder)
    words, count, kept = _words(names)
    options = ffi.new("struct gw_checkpoint_options *", {
        "names": words, "name_count": count, "replace": _checks.flag("replace", replace),
        "bytes_per_second": _checks.integer("bytes_per_second", bytes_per_second, 0, _checks.U64)})

    def call() -> None:
        check(lib.gw_checkpoint(client.pointer, path, options))
        kept.clear()

    aside(call)


def restore(graph: OpenedGraph, folder: str, names: Sequence[str] | None) -> None:
    client, path = graph._opened(), c_text("folder", folder)
    words, count, kept = _words(names)

    def call() -> None:
        check(lib.gw_restore(client.pointer, path, words, count))
        kept.clear()

    aside(call)


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

    return aside(call)
