"""dgl.distributed.optim: SparseAdam and SparseAdagrad, which run on the servers.

sync=True: step() exchanges the trainers' gradients, as in DGL. Gradients of equal ids are averaged over all trainers,
and rank 0 pushes them. step() ends with a barrier, so every trainer must call it.

sync=False: each trainer pushes its own gradients without waiting. Gradients of equal ids within a push are averaged.

    save(f): all trainers -> f_RANK: hyper-parameters, and the state of the rows of this trainer's share of its part
    load(f): f_RANK, f_RANK+WORLD, … as far as the saving job had trainers

The servers keep the state with the rows: <name>_sum of SparseAdagrad; <name>_step, _mem and _power of SparseAdam.

Errors: AssertionError for other tables; ValueError for another optimizer's state; those of graphwire.Tensor.push.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from graphwire._base import checks
from graphwire._base.keywords import keywords
from graphwire._files.pickles import load_torch
from graphwire._files.reading import reading
from graphwire._graph.tensor import check_optimizer
from graphwire.dgl import host
from graphwire.dgl.distributed.context import context
from graphwire.dgl.distributed.embedding import DistEmbedding
from graphwire.dgl.distributed.optim_state import ARRAYS, State
from graphwire.dgl.distributed.tensor import DistTensor
from graphwire.optim import _joined, _of_all_ranks

StateDict = dict[str, Any]


def _share(policy: Any) -> torch.Tensor:
    """The ids whose state this trainer saves. The trainers of a part share its ids by id modulo their number; a trainer
    of several parts has all ids from its own part to the next trainer's."""
    parts, rank, world = policy.partition_book.num_partitions(), context.rank, context.world
    own = context.part_of(rank, parts)
    ids = torch.cat([policy.ids_of(part) for part in range(own, max(own + 1, context.part_of(rank + 1, parts)))])
    together = [one for one in range(world) if context.part_of(one, parts) == own]
    return ids[ids % len(together) == together.index(rank)]


@keywords
class DistSparseGradOptimizer:
    """The common part of both optimizers. params: a list of DistEmbedding; lr: the learning rate."""

    kind = ""

    def __init__(self, params: Sequence[DistEmbedding], lr: float, sync: bool, **options: Any):
        for table in params:
            if not isinstance(table, DistEmbedding):
                raise AssertionError(f"{type(self).__name__} only supports dgl.distributed.DistEmbedding")
        check_optimizer(self.kind, lr, "mean", **self._options_of(options))
        self._params, self._lr, self._defaults = list(params), lr, {"_lr": lr, **options}
        self.__dict__.update(options)
        self._rank, self._world_size = context.rank, context.world
        self._sync = checks.flag("sync", sync)
        self._clean_grad = False
        self._state: dict[str, Any] = {}
        for table in self._params:
            if table.name in self._state:
                raise AssertionError(f"{table.name} already registered in the optimizer")
            states = tuple(DistTensor.of_state(State(table.weight, self.kind, word)) for word in ARRAYS[self.kind])
            table._optm_state = states
            self._state[table.name] = states if len(states) > 1 else states[0]

    @staticmethod
    def _options_of(values: Any) -> dict[str, Any]:
        """The options of Tensor.push, from this optimizer's attributes."""
        found = {"eps": values["_eps"]}
        return {**found, "betas": (values["_beta1"], values["_beta2"])} if "_beta1" in values else found

    def __repr__(self) -> str:
        options = "".join(f", {name.strip('_')} {getattr(self, name)}" for name in self._defaults if name != "_lr")
        tables = ", ".join(table.name for table in self._params)
        return f"<dgl.distributed.optim.{type(self).__name__} of {tables}: lr {self._lr}{options}>"

    def zero_grad(self) -> None:
        """Makes the next step() clear the lists of rows that were read, as in DGL. Without zero_grad(), the lists
        stay."""
        self._clean_grad = True

    def step(self) -> None:
        """Pushes the gradients of the rows that were read."""
        shared = self._sync and context.world > 1
        for table in self._params:
            traced = [(ids, rows.grad.detach().cpu()) for ids, rows in table._trace if rows.grad is not None]
            ids = _joined([ids for ids, _ in traced], torch.empty(0, dtype=torch.int64))
            gradients = _joined([gradient for _, gradient in traced], torch.empty(0, table.embedding_dim))
            if shared:
                ids, gradients = _of_all_ranks(ids, gradients)
            if len(ids) and (not shared or context.rank == 0):
                table.weight.push(ids, gradients, kind=self.kind, lr=self._lr, combine="mean",
                                  **self._options_of(self.__dict__))
        if self._clean_grad:
            for table in self._params:
                table.reset_trace()
            self._clean_grad = False
        if shared:
            context.barrier()

    # --- The state. ---

    def _states(self, name: str) -> dict[str, DistTensor]:
        """{name of a tensor: the tensor}, the state of an embedding."""
        found = self._state[name]
        return {str(one.name): one for one in (found if isinstance(found, tuple) else (found,))}

    def local_state_dict(self) -> StateDict:
        """This trainer's share of the state: {"params": hyper-parameters and "world_size", "emb_states": {embedding:
        {"ids": ids, "states": {tensor: its rows of these ids}}}}."""
        found = {}
        for table in self._params:
            ids = _share(table.part_policy)
            found[table.name] = {"ids": ids, "states": {name: one[ids]
                                                        for name, one in self._states(table.name).items()}}
        return {"emb_states": found, "params": {"world_size": self._world_size, **self._defaults}}

    def load_local_state_dict(self, local_state_dict: StateDict) -> None:
        """Writes the state of some rows, and takes the hyper-parameters.

        Raises ValueError for the state of another optimizer, and KeyError for another embedding."""
        for table, saved in local_state_dict["emb_states"].items():
            states = self._states(table)
            if len(saved["states"]) != len(states):
                raise ValueError(f"loaded state dict has a different number of states of embedding {table}")
            for name, rows in saved["states"].items():
                if name not in states:
                    raise ValueError(f"loaded state dict contains a state {name} that can't be found in the optimizer "
                                     f"states: {', '.join(states)}")
                states[name][saved["ids"]] = rows
        self._defaults.update(local_state_dict["params"])
        self.__dict__.update(local_state_dict["params"])

    state_dict, load_state_dict = local_state_dict, load_local_state_dict

    def save(self, f: str | os.PathLike[str] | bytes) -> None:
        """Writes this trainer's share of the state to the file f_RANK, without the embeddings' rows. All trainers must
        call it."""
        context.barrier()
        torch.save(self.local_state_dict(), f"{os.fsdecode(f)}_{self._rank}")
        context.barrier()

    def load(self, f: str | os.PathLike[str] | bytes) -> None:
        """Reads the files that save has written, by the same number of trainers or another one. All trainers must call
        it. A trainer without a file warns, as in DGL. If f is a folder of Graph.checkpoint, the first trainer restores
        it."""
        path = os.fsdecode(f)
        context.barrier()
        if os.path.isdir(path):
            if context.rank == 0:
                context.open().restore(path, [table.weight._data.name for table in self._params])
        elif not os.path.exists(f"{path}_{self._rank}"):
            warnings.warn(f"File {path}_{self._rank} can't be found, load nothing.", stacklevel=2)
        else:
            saved = self._load_file(f"{path}_{self._rank}")
            for rank in range(self._rank + self._world_size, saved, self._world_size):
                self._load_file(f"{path}_{rank}")
        context.barrier()

    def _load_file(self, path: str) -> int:
        """Reads a file, and returns the number of trainers that have saved."""
        with reading(path, host.error_type(), what="no file of save()"):
            found = load_torch(path)
            world = int(found["params"].pop("world_size"))
        self.load_local_state_dict(found)
        return world


@keywords
class SparseAdagrad(DistSparseGradOptimizer):
    """Adagrad: s += g²; w -= lr · g / (√s + eps)."""

    kind = "adagrad"

    def __init__(self, params: Sequence[DistEmbedding], lr: float, eps: float = 1e-10, sync: bool = True):
        super().__init__(params, lr, sync, _eps=eps)


@keywords
class SparseAdam(DistSparseGradOptimizer):
    """Adam for the rows that a step reads. Each row counts its own steps."""

    kind = "adam"

    def __init__(self, params: Sequence[DistEmbedding], lr: float, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, sync: bool = True):
        check_optimizer(self.kind, lr, "mean", eps, betas)
        super().__init__(params, lr, sync, _eps=eps, _beta1=betas[0], _beta2=betas[1])
