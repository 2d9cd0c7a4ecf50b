"""A training step of a client: draws triples, pulls their rows, computes in torch, pushes the gradients.

    trainer = Trainer(store, model, loss, regularizer, batches, lr=0.25)
    for step in range(steps):
        parts = trainer.step(step)                            # {"pos_loss": …, "neg_loss": …, "loss": …, …}

A step never waits for other clients. staleness: how many steps ahead rows are pulled.

0  A step pulls its rows after the push of the step before, and waits for both.
1… One thread pulls and pushes in a fixed order, while the training thread computes. The thread pulls the rows of
   `staleness` steps ahead, then pushes this step's gradients, and only then pulls further rows. So the rows that a step
   computes with do not depend on timing. With async_push, another thread pushes, and pulls do not wait for it.

Errors: a step whose rows cannot be pulled may be called again, and pulls them again. If a push fails, the step that
waits for it raises the error once. The servers may have applied a part of that push, so it is not repeated.

As in DGL-KE, a step has one gradient for each head or tail of the batch, for each negative, and for each triple's
relation; a matrix has one for each relation of the batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor

from graphwire._base.native import Call, Workers
from graphwire.kge.batches import Batch, Batches
from graphwire.kge.losses import Loss, Regularizer
from graphwire.kge.models import Model, Relations
from graphwire.kge.store import Store

Pulled = tuple[Batch, tuple[Tensor, Optional[Tensor], Optional[Tensor]]]


class Seconds:
    """The training thread's time by name, and the processor time of pulls, pushes and the process. Pulls and pushes may
    run in any thread."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._moved = {"pull": 0.0, "push": 0.0}  # only one thread writes each value
        self._last = time.perf_counter()
        self._taken = self._processor()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.spent[name] = self.spent.get(name, 0.0) + now - self._last
        self._last = now

    def start(self) -> None:
        self._last = time.perf_counter()

    @contextmanager
    def moving(self, name: str) -> Iterator[None]:
        """A context around a pull or a push; adds the thread's processor time."""
        began = time.thread_time()
        yield
        self._moved[name] += time.thread_time() - began

    def _processor(self) -> dict[str, float]:
        return {**self._moved, "all": time.process_time()}

    def taken(self) -> tuple[dict[str, float], dict[str, float]]:
        """Returns, since the last call, the seconds by name, and the processor seconds of pull, push and "all": the
        process."""
        spent, self.spent = self.spent, {}
        before, self._taken = self._taken, self._processor()
        return spent, {name: value - before[name] for name, value in self._taken.items()}


WAITS = ("sample", "update")  # the training thread waits for rows, and for its last push


class Trainer:
    """Trains batch by batch.

    importance        float32 for each triple of `batches`, or None
    degree_negatives  the heads or tails of a chunk are negatives of the chunk's other triples too
    async_push        pulls do not wait for the push of the step before
    """

    def __init__(self, store: Store, model: Model, loss: Loss, regularizer: Regularizer, batches: Batches, *, lr: float,
                 staleness: int = 1, importance: Optional[np.ndarray] = None, degree_negatives: bool = False,
                 async_push: bool = False, device: str = "cpu"):
        self.store, self.model, self.loss, self.regularizer, self.batches = store, model, loss, regularizer, batches
        self.lr, self.staleness, self.degree_negatives, self.device = lr, staleness, degree_negatives, device
        self.importance = None if importance is None else torch.from_numpy(importance)
        self.seconds = Seconds()
        self._ahead: deque[tuple[int, Call]] = deque()
        self._puller = Workers(1) if staleness else None
        self._pusher = Workers(1) if async_push else self._puller
        self._pushing: Optional[Call] = None
        self.last_count = 0  # triples of the last step

    def flush(self) -> None:
        """Waits until every gradient is pushed; raises the error of a push that failed."""
        self._pushed()

    def close(self) -> None:
        """Waits for the pulls and the push in progress."""
        try:
            self.flush()
        finally:
            self._join()
            self._ahead.clear()

    # --- Rows ahead. ---

    def _pull(self, step: int) -> Pulled:
        batch = self.batches[step]
        with self.seconds.moving("pull"):
            return batch, self.store.pull(batch, pinned=self.device != "cpu")

    def _rows(self, step: int, last: int) -> Pulled:
        """Returns this step's rows, and starts the pulls of the steps ahead."""
        if self._puller is None:
            return self._pull(step)
        if self._ahead and self._ahead[0][0] not in (step, step + 1):
            self._ahead.clear()
        if self._ahead and self._ahead[0][0] == step + 1:  # this step's pull has failed
            self._ahead.appendleft((step, self._puller.submit(partial(self._pull, step))))
        begun = self._ahead[-1][0] if self._ahead else step - 1
        for ahead in range(begun + 1, min(step + self.staleness, last) + 1):
            self._ahead.append((ahead, self._puller.submit(partial(self._pull, ahead))))
        pull = self._ahead[0][1]
        try:
            pulled: Pulled = pull.wait()
        except BaseException:
            if pull.has_failed:
                self._ahead.popleft()
            raise
        self._ahead.popleft()
        return pulled

    def _settle(self) -> None:
        """Ensures that the pulls of the steps ahead come before this step's push. One thread for both does its work in
        order; with a thread for pushes, the training thread waits for the pulls."""
        if self._pusher is not self._puller:
            self._join()

    def _join(self) -> None:
        for _, pull in self._ahead:
            pull.join()

    def _pushed(self) -> None:
        if self._pushing is not None:
            try:
                self._pushing.wait()
            except BaseException:
                if not self._pushing.has_failed:
                    raise
                self._pushing = None
                raise
            self._pushing = None

    # --- A step. ---

    def step(self, number: int, last: Optional[int] = None) -> dict[str, float]:
        """Trains one batch. last: the number of the last step whose rows may be pulled ahead."""
        self.seconds.start()
        batch, (entities, vectors, matrices) = self._rows(number, number if last is None else last)
        self.last_count = batch.count
        self.seconds.lap("sample")
        leaves = self._leaves(batch, entities, vectors, matrices)
        total, parts = self._forward(batch, leaves)
        self.seconds.lap("forward")
        total.backward()
        values = {name: float(value) for name, value in parts.items()}
        if self.regularizer.active:
            rows = [leaf for leaf in (leaves["positive"], leaves["negative"], leaves["relation"]) if leaf is not None]
            if self.model.has_matrices and leaves["relation"] is None:
                rows.append(leaves["matrix"])
            values["regularization"] = float(self.regularizer(rows))
        self.seconds.lap("backward")
        self._settle()
        self._push(batch, leaves)
        self.seconds.lap("update")
        return values

    def _leaves(self, batch: Batch, entities: Tensor, vectors: Optional[Tensor],
                matrices: Optional[Tensor]) -> dict[str, Any]:
        def on_device(rows: Tensor) -> Tensor:
            return rows.to(self.device, non_blocking=True)

        def leaf(rows: Tensor, at: Optional[Tensor] = None) -> Tensor:
            return (rows if at is None else rows.index_select(0, on_device(at))).detach().requires_grad_()

        entities = on_device(entities)
        return {"positive": leaf(entities[:batch.positive_count]),
                "negative": leaf(entities, batch.negative_rows),
                "relation": None if vectors is None else leaf(on_device(vectors), batch.relation_rows),
                "matrix": None if matrices is None else leaf(on_device(matrices))}

    def _forward(self, batch: Batch, leaves: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        model, chunks = self.model, batch.chunks
        heads = leaves["positive"].index_select(0, batch.head_rows.to(self.device))
        tails = leaves["positive"].index_select(0, batch.tail_rows.to(self.device))
        relations = Relations(leaves["relation"], leaves["matrix"], batch.relation_rows.to(self.device))
        others = leaves["negative"].reshape(chunks, -1, model.entity_width)
        known, replaced = (tails, heads) if batch.side == "head" else (heads, tails)
        mask = None
        if self.degree_negatives:
            size = batch.count // chunks
            others = torch.cat([replaced.reshape(chunks, size, -1), others], 1)
            mask = torch.ones(size, others.shape[1], dtype=torch.bool, device=others.device)
            mask.fill_diagonal_(False)  # a triple is not its own negative
            mask = mask.expand(chunks, -1, -1)
        positive = model.bounded(model.score(heads, relations, tails)).reshape(chunks, -1)
        negative = model.bounded(model.against(batch.side, known, relations, others))
        weights = None
        if self.importance is not None:
            weights = self.importance[batch.positions].reshape(chunks, -1).to(self.device)
        return self.loss(positive, negative, weights, mask)

    def _push(self, batch: Batch, leaves: dict[str, Any]) -> None:
        def push() -> None:
            store, lr = self.store, self.lr
            ids = torch.cat([batch.entities[:batch.positive_count], batch.entities[batch.negative_rows]])
            with self.seconds.moving("push"):
                store.push(store.entity, ids, torch.cat([leaves["positive"].grad, leaves["negative"].grad]), lr)
                if leaves["relation"] is not None:
                    store.push(store.relation, batch.relations[batch.relation_rows], leaves["relation"].grad, lr)
                if leaves["matrix"] is not None:
                    store.push(store.matrix, batch.relations, leaves["matrix"].grad, lr)

        self._pushed()
        if self._pusher is None:
            push()
        else:
            self._pushing = self._pusher.submit(push)
