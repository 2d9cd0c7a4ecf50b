"""One client of a training job, from its rows to the results: gwke_train with one process, and each process of several.

    rows: created, or restored -> steps, with reports, validations and checkpoints -> rows and figures, by the first
    client

Clients meet only where a flag says so (--force_sync_interval, --valid, --checkpoint_interval) and at the end. Figures
of a ranking come from all of them, through a tensor of ranks.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch

import graphwire
from graphwire.kge import outputs
from graphwire.kge.batches import Batches, rounded
from graphwire.kge.data import Dataset, Triples
from graphwire.kge.losses import Loss, Regularizer
from graphwire.kge.models import make
from graphwire.kge.ranking import Known, Ranking, report
from graphwire.kge.store import POLL_SECONDS, Store
from graphwire.kge.training import WAITS, Trainer

CACHE_BYTES = 1 << 30  # rows of entities that a ranking keeps
CHECKPOINT = "checkpoint"


def sampled(triples: Triples, share: float) -> Triples:
    """A share of triples, drawn once; the same for every client and command, whatever --seed a training has."""
    if share >= 1:
        return triples
    at = np.random.default_rng([0, len(triples)]).integers(0, len(triples), max(1, int(len(triples) * share)))
    return Triples(triples.head[at], triples.relation[at], triples.tail[at])


def candidates_of(args: argparse.Namespace, dataset: Dataset) -> Optional[np.ndarray]:
    """Whom --neg_sample_size_eval ranks against, by the dictionary's numbers; None: everybody. The same for every
    client and command."""
    if args.neg_sample_size_eval < 0 or args.neg_sample_size_eval >= dataset.num_entities:
        return None
    draw = np.random.default_rng([0, 1])
    if args.no_eval_filter:
        return draw.integers(0, dataset.num_entities, args.neg_sample_size_eval)
    return draw.choice(dataset.num_entities, args.neg_sample_size_eval, replace=False)


def print_figures(what: str, figures: dict[str, float]) -> None:
    print(f"-------------- {what} result --------------")
    for name, value in figures.items():
        print(f"{what} average {name}: {value}")
    print("-----------------------------------------", flush=True)


class Client:
    """dataset: None where nothing is evaluated and its size is told otherwise. folder: the results' (the first client's
    alone is written to)."""

    def __init__(self, args: argparse.Namespace, graph: graphwire.Graph, num_relations: int, folder: Path,
                 dataset: Optional[Dataset], names: tuple[str, str], rank: int = 0, world: int = 1):
        torch.set_num_threads(args.num_thread)
        self.args, self.graph, self.folder, self.dataset = args, graph, folder, dataset
        self.rank, self.world, self.names = rank, world, names
        gpu = args.gpu[rank % len(args.gpu)]
        self.device = "cpu" if gpu < 0 else f"cuda:{gpu}"
        self.model = make(args.model_name, args.hidden_dim, args.gamma, args.double_ent, args.double_rel)
        self.store = Store(graph, self.model, num_relations, seed=args.seed, rank=rank, world=world)
        self.known: Optional[Known] = None
        self.seconds_before = 0.0  # of training, up to the checkpoint that is gone on from

    def run(self) -> Optional[dict[str, float]]:
        """The whole of it; the test set's figures, where they are asked for."""
        start = self._begin()
        trainer = self._trainer()
        began = time.perf_counter()
        try:
            self._train(trainer, start)
        finally:
            trainer.close()
        self.store.barrier()
        if self.rank == 0:
            print(f"training takes {time.perf_counter() - began} seconds", flush=True)
            self._write()
        figures = None
        if self.args.test:
            assert self.dataset is not None and self.dataset.test is not None
            figures = self._evaluate(self.dataset.test, "test")
            if self.rank == 0:
                print_figures("Test", figures)
                outputs.write_json(self.folder / "test.json", figures)
        self.store.barrier()
        return figures

    # --- Before. ---

    def _begin(self) -> int:
        """Makes the rows, or takes them from the checkpoint; the step that comes next."""
        checkpoint = self.folder / CHECKPOINT
        restored = bool(self.args.resume) and checkpoint.is_dir()
        if restored and self.rank == 0:
            self.graph.restore(checkpoint)
        self.store.barrier()
        self.store.create()
        step = int(np.asarray(self.store.step[:])[0, 0]) if restored or self.world > 1 else 0
        if self.rank == 0:
            outputs.write_json(self.folder / "config.json", outputs.config_of(
                self.args, self.folder, *self.names, self.world))
            self.curve = outputs.Curve(self.folder, step)
            self.seconds_before = self.curve.seconds
            if restored:
                print(f"goes on at step {step} of {self.args.max_step}", flush=True)
            elif self.args.resume:
                print(f"{self.folder} has no checkpoint (--checkpoint_interval): begins at step 0 of "
                      f"{self.args.max_step}", flush=True)
        return step

    def _trainer(self) -> Trainer:
        args = self.args
        own = self.store.own_triples(getattr(args, "rel_part", False) and self.world > 1, args.has_edge_importance)
        if not len(own):
            raise ValueError(f"client {self.rank} of {self.world} has no triples: fewer clients")
        size = rounded(args.batch_size, args.neg_sample_size)
        if self.rank == 0 and size != args.batch_size:
            print(f"batch size ({args.batch_size}) is incompatible to the negative sample size "
                  f"({args.neg_sample_size}). Change the batch size to {size}")
        self.batches = Batches(own.head, own.relation, own.tail, batch_size=size, chunk_size=args.neg_sample_size,
                               negatives=args.neg_sample_size, entities=self.store.negative_range(),
                               others=self.store.negative_others(own), seed=args.seed, stream=self.rank)
        return Trainer(self.store, self.model, Loss(
            args.loss_genre, margin=args.margin, adversarial=args.neg_adversarial_sampling,
            temperature=args.adversarial_temperature, pairwise=args.pairwise),
            Regularizer(args.regularization_coef, args.regularization_norm), self.batches, lr=args.lr,
            staleness=args.staleness, importance=own.importance, degree_negatives=args.neg_deg_sample,
            async_push=args.async_update, device=self.device)

    # --- Training. ---

    def _next_stop(self, step: int) -> int:
        """The last step before clients meet: no rows are pulled ahead of it, so that a job that goes on from a
        checkpoint goes on as this one does."""
        args, stop = self.args, self.args.max_step
        for every in (args.force_sync_interval, args.checkpoint_interval, args.eval_interval if args.valid else 0):
            if every > 0:
                stop = min(stop, (step // every + 1) * every)
        return stop

    def _train(self, trainer: Trainer, start: int) -> None:
        args, since = self.args, time.perf_counter()
        began = since - self.seconds_before
        sums: dict[str, float] = {}
        steps = triples = 0
        for step in range(start, args.max_step):
            stop = self._next_stop(step)
            values = trainer.step(step, stop - 1)
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value
            steps, triples, done = steps + 1, triples + trainer.last_count, step + 1
            if done % args.log_interval == 0 or done == args.max_step:
                now = time.perf_counter()
                self._report(done, {name: value / steps for name, value in sums.items()}, steps, now - since,
                             triples / (now - since), trainer, now - began)
                sums, steps, triples, since = {}, 0, 0, now
            if done == stop:
                self._meet(trainer, done, time.perf_counter() - began)

    def _report(self, step: int, means: dict[str, float], steps: int, seconds: float, speed: float, trainer: Trainer,
                all_seconds: float) -> None:
        """DGL-KE's lines, of every client; the first one's are the curve."""
        head = f"[{self.rank}]"
        for name, value in means.items():
            print(f"{head}[Train]({step}/{self.args.max_step}) average {name}: {value}")
        spent, processor = trainer.seconds.taken()
        per_processor = speed * seconds / processor["all"]
        print(f"{head}[Train] {steps} steps take {seconds:.3f} seconds, {speed:.0f} triples/s, {per_processor:.0f} "
              "triples per processor second")
        print(head + ", ".join(f"{name}: {value:.3f}" for name, value in spent.items()))
        waited = sum(spent.get(name, 0.0) for name in WAITS) / sum(spent.values())
        print(f"{head}rows: a step waits {waited:.1%} of its time for them; of {1e3 * processor['all'] / steps:.2f} "
              f"processor ms a step {processor['pull'] / processor['all']:.1%} pull and "
              f"{processor['push'] / processor['all']:.1%} push", flush=True)
        if self.rank == 0:
            self.curve.add(step=step, seconds=f"{all_seconds:.3f}", triples_per_second=f"{speed:.0f}",
                           triples_per_processor_second=f"{per_processor:.0f}", **means)

    def _meet(self, trainer: Trainer, step: int, seconds: float) -> None:
        """Validates, then writes the checkpoint: what goes on from it has all that its step had to tell."""
        args = self.args
        trainer.flush()
        self.store.barrier()
        if args.valid and step % args.eval_interval == 0:
            assert self.dataset is not None and self.dataset.valid is not None
            figures = self._evaluate(self.dataset.valid, f"valid{step}")
            if self.rank == 0:
                for name, value in figures.items():
                    print(f"[0]Valid average {name}: {value}", flush=True)
                self.curve.add(step=step, seconds=f"{seconds:.3f}", **figures)
            self.store.barrier()
        if args.checkpoint_interval and step % args.checkpoint_interval == 0:
            if self.rank == 0:
                self.store.step[[0]] = np.array([[step]], np.int64)
                self.graph.checkpoint(self.folder / CHECKPOINT, self.store.names, replace=True)
            self.store.barrier()

    # --- After. ---

    def _write(self) -> None:
        if not self.args.no_save_emb:
            outputs.save(self.folder, self.args.dataset, self.store)
            print(f"Save model to {self.folder}", flush=True)
        self.curve.draw()

    def _evaluate(self, triples: Triples, what: str) -> dict[str, float]:
        """The figures of all clients' ranks: each ranks its batches, writes them where all see them, and waits."""
        dataset, args = self.dataset, self.args
        assert dataset is not None
        if self.known is None and not args.no_eval_filter:
            self.known = Known(dataset)
        order = np.empty(self.store.num_entities, np.int64)
        order[self.store.numbers()] = np.arange(self.store.num_entities)
        triples = sampled(triples, args.eval_percent)
        ranking = Ranking(
            self.model, self._entity_rows(order), self.store.relations_of, dataset.num_entities, self.known,
            batch_size=args.batch_size_eval, candidates=candidates_of(args, dataset),
            degree_candidates=args.neg_deg_sample_eval, mean_ties=args.mean_ties, device=self.device)
        ranks = ranking.ranks(triples, self.rank, self.world)
        if self.world > 1:
            ranks = self._collected(ranks, what)
        return report(ranks)

    def _entity_rows(self, order: np.ndarray) -> Any:
        """Rows by the dictionary's numbers; kept, where they fit."""
        if 4 * len(order) * self.model.entity_width > CACHE_BYTES:
            return lambda numbers: self.store.entity_rows(order[numbers])
        rows = self.store.entity_rows(order)
        return lambda numbers: rows[torch.from_numpy(numbers)]

    def _collected(self, ranks: np.ndarray, what: str) -> np.ndarray:
        """Everybody's ranks: a rank is 1 or more, so that 0 is one that has not come yet."""
        name = f"kge.ranks.{what}"
        shared = self.graph.create_tensor(name, ranks.shape, "float64")
        own = np.flatnonzero(ranks[:, 0])
        shared[own] = ranks[own]
        while shared.count_nonzero() < ranks.size:
            time.sleep(POLL_SECONDS)
        found = np.asarray(shared[:])
        self.store.barrier()
        if self.rank == 0:
            self.graph.delete_tensor(name)
        return found
