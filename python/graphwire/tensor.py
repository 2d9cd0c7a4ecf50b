"""Tensors that change: rows in the memory of the servers (standalone: of this process), read, overwritten and trained.

create_tensor (every trainer: the first creates, the others open) -> t[ids], t[ids] = rows, t.push -> delete_tensor

Rows live in memory: when a server ends, its rows are gone, and who touches the tensor gets NotFoundError. A read that
begins after a write has returned sees it, in any process. Processes share the tensors of a job: open(job=…), or the
GRAPHWIRE_JOB of deploy/launch.py. torchrun alone names no job, and its ranks would have a tensor each: that is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from graphwire import _arrays
from graphwire._arrays import Array, Ids
from graphwire._native import aside, check, ffi, finish, lib, text

if TYPE_CHECKING:
    from graphwire.graph import Etype, Graph

Initial = Union[str, float, tuple]
_PLACES = {"even": "GW_PLACE_EVEN", "striped": "GW_PLACE_STRIPED"}
_COMBINE = {"sum": "GW_COMBINE_SUM", "mean": "GW_COMBINE_MEAN", "each": "GW_COMBINE_EACH"}
_KINDS = {"sgd": "GW_SGD", "adagrad": "GW_ADAGRAD", "adagrad_rows": "GW_ADAGRAD_ROWS", "adam": "GW_ADAM"}


def _dtype(name: Any) -> int:
    """A C type: of "float32", np.float32 or torch.float32."""
    word = str(name).replace("torch.", "") if not isinstance(name, type) else np.dtype(name).name
    code = getattr(lib, f"GW_{word.upper()}", None)
    if code is None or word == "int8_row":
        raise ValueError(f"{name} is no type of a tensor's elements")
    return int(code)


def _initial(spec: Any, initial: Initial) -> None:
    """"zeros", a number, ("uniform", low, high), ("normal", mean, deviation)."""
    if initial == "zeros":
        spec.initial = lib.GW_INITIAL_ZERO
    elif isinstance(initial, (int, float)):
        spec.initial, spec.low = lib.GW_INITIAL_CONSTANT, initial
    elif isinstance(initial, tuple) and len(initial) == 3 and initial[0] in ("uniform", "normal"):
        spec.initial = lib.GW_INITIAL_UNIFORM if initial[0] == "uniform" else lib.GW_INITIAL_NORMAL
        spec.low, spec.high = initial[1:]
    else:
        raise ValueError(f'initial is "zeros", a number, ("uniform", low, high) or ("normal", mean, deviation), not '
                         f"{initial!r}")


class Tensor:
    """Rows that change. Made by Graph.create_tensor and Graph.open_tensor.

    name; shape: (rows, …) over all parts; dtype: torch's, or NumPy's without torch.
    """

    def __init__(self, graph: Graph, name: str, kept: bool, pointer: Any, client: Any):
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
        """Rows, [len(ids), …]; of one integer, its row. Errors as Feature's; NotFoundError where the tensor is gone:
        deleted, or with a server that ended."""
        if isinstance(ids, (int, np.integer)):
            return self[[int(ids)]][0]
        client, tensor = self._there()
        return _arrays.gather(client, tensor, ids, self._graph._torch)

    def gather(self, ids: Ids, out: Array) -> Array:
        """Rows into memory that is there, such as pinned memory that a GPU reads by itself; returns it.

        out: [len(ids), …] of the tensor's dtype, contiguous, of the host; a tensor (without torch, an array). Raises
        ValueError and TypeError where it is not; errors as Feature's, and what it holds then is undefined.
        """
        client, tensor = self._there()
        _arrays.gather_into(client, tensor, ids, out, self._graph._torch)
        return out

    def __setitem__(self, ids: Ids, rows: Any) -> None:
        """Overwrites rows: [len(ids), …], or what broadcasts to it. Of equal ids the last counts. Raises
        OutOfRangeError, and nothing is written then."""
        client, tensor = self._there()
        array = _arrays.ids_array([int(ids)] if isinstance(ids, (int, np.integer)) else ids, len(self))
        shape, dtype = _arrays.stored_rows(tensor, len(array))
        stored = np.ascontiguousarray(np.broadcast_to(_arrays.to_stored(rows, tensor.dtype, dtype), shape))
        finish(lambda ticket: lib.gw_update_start(
            client.pointer, tensor, _arrays.ids_pointer(array), len(array), _arrays.pointer(stored), ticket))

    def push(self, ids: Ids, gradients: Any, *, kind: str, lr: float, combine: str = "sum", eps: float = 1e-8,
             betas: tuple[float, float] = (0.9, 0.999), step: int = 0) -> None:
        """Trains rows where they are.

        gradients: float32, [len(ids), …]. kind: "sgd", "adagrad", "adagrad_rows" (one sum of squares for a row, as
        DGL-KE), "adam". combine: what becomes of equal ids: "sum", "mean", "each". step: "adam": of all rows; 0: each
        row counts its own. The first push decides the kind. Raises InvalidError for another one.
        """
        client, tensor = self._there()
        array = _arrays.ids_array(ids, len(self))
        if hasattr(gradients, "detach"):
            gradients = gradients.detach().cpu().float().numpy()
        rows = np.ascontiguousarray(gradients, dtype=np.float32)
        expected = (len(array), *self.shape[1:])
        if rows.shape != expected:
            raise ValueError(f"gradients have shape {rows.shape}, not {expected}")
        optimizer = ffi.new("struct gw_optimizer *", {
            "kind": getattr(lib, _KINDS[kind]), "combine": getattr(lib, _COMBINE[combine]), "rate": lr, "eps": eps,
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


def _lifetime(kept: bool) -> int:
    return int(lib.GW_KEPT if kept else lib.GW_OF_JOB)


def _open(client: Any, name: str, kept: bool) -> Any:
    def call() -> Any:
        out = ffi.new("const struct gw_tensor **")
        check(lib.gw_tensor_open(client.pointer, os.fsencode(name), _lifetime(kept), out))
        return out[0]

    return aside(call)


def _reopened(graph: Graph, name: str, kept: bool) -> Tensor:
    return open_tensor(graph, name, kept)


def open_tensor(graph: Graph, name: str, kept: bool) -> Tensor:
    client = graph._opened()
    return Tensor(graph, name, kept, _open(client, name, kept), client)


def shared(graph: Graph, kept: bool) -> None:
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


def create_tensor(graph: Graph, name: str, shape: Any, dtype: Any, *, ntype: str | None, etype: Etype | None,
                  place: str, initial: Initial, seed: int, kept: bool) -> Tensor:
    """Graph.create_tensor, which tells."""
    shared(graph, kept)
    client = graph._opened()
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(size) for size in shape)
    if not 1 <= len(shape) <= lib.GW_DIMS_MAX:
        raise ValueError(f"a tensor has 1 to {lib.GW_DIMS_MAX} dimensions, not {len(shape)}")
    if place not in _PLACES:
        raise ValueError(f"place is {' or '.join(_PLACES)}, not {place!r}")
    word = ffi.new("char[]", os.fsencode(name))
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


def delete_tensor(graph: Graph, name: str, kept: bool) -> None:
    client = graph._opened()
    aside(lambda: check(lib.gw_tensor_delete(client.pointer, os.fsencode(name), _lifetime(kept))))


def _words(names: Sequence[str] | None) -> tuple[Any, int, list[Any]]:
    """An array of C strings, and what it points to."""
    words = [ffi.new("char[]", os.fsencode(name)) for name in names or ()]
    return (ffi.NULL if names is None else ffi.new("char *[]", words)), len(words), words


def checkpoint(graph: Graph, folder: str, names: Sequence[str] | None, replace: bool, bytes_per_second: int) -> None:
    client = graph._opened()
    words, count, kept = _words(names)
    options = ffi.new("struct gw_checkpoint_options *", {
        "names": words, "name_count": count, "bytes_per_second": bytes_per_second, "replace": replace})

    def call() -> None:
        check(lib.gw_checkpoint(client.pointer, os.fsencode(folder), options))
        kept.clear()

    aside(call)


def restore(graph: Graph, folder: str, names: Sequence[str] | None) -> None:
    client = graph._opened()
    words, count, kept = _words(names)

    def call() -> None:
        check(lib.gw_restore(client.pointer, os.fsencode(folder), words, count))
        kept.clear()

    aside(call)


def list_tensors(graph: Graph) -> list[Mapping[str, Any]]:
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
