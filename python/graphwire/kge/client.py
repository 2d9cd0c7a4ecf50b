"""One client of a training job: the only process of gwke_train, or one of several.

    create or restore the rows -> steps, with reports, validations and checkpoints -> the first client writes rows and
    figures

Clients wait for each other at the end, and where a flag asks for it: --force_sync_interval, --valid,
--checkpoint_interval. All clients compute ranks; a shared tensor collects the ranks, and each client computes the
figures from it.
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
from graphwire.kge.data import Dataset, Triples, write_json
from graphwire.kge.dictionaries import write_sealed
from graphwire.kge.losses import Loss, Regularizer
from graphwire.kge.models import make
from graphwire.kge.ranking import Known, Ranking, report
from graphwire.kge.store import POLL_SECONDS, Store
from graphwire.kge.training import WAITS, Trainer

CACHE_BYTES = 1 << 30  # a ranking keeps all entity rows in memory if they fit into this
CHECKPOINT = "checkpoint"


def sampled(triples: Triples, share: float) -> Triples:
    """Draws a share of the triples, with replacement. The draw is the same for every client and command, and does not
    depend on --seed."""
    if share >= 1:
        return triples
    at = np.random.default_rng([0, len(triples)]).integers(0, len(triples), max(1, int(len(triples) * share)))
    return Triples(triples.head[at], triples.relation[at], triples.tail[at])


def candidates_of(args: argparse.Namespace, dataset: Dataset) -> Optional[np.ndarray]:
    """Draws the candidates of --neg_sample_size_eval, as numbers of the dictionary; None stands for all entities. The
    draw is the same for every client and command."""
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
    """dataset: None if the client evaluates nothing. folder: for the results; only the first client (rank 0) writes.
    names: file names of the two dictionaries, for config.json."""

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
        self.seconds_before = 0.0  # seconds of training before the checkpoint that this run resumes from

    def run(self) -> Optional[dict[str, float]]:
        """Trains and writes the results. Returns the test set's figures with --test, else None."""
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
                write_json(self.folder / "test.json", figures)
        self.store.barrier()
        return figures

    # --- Before the training. ---

    def _begin(self) -> int:
        """Creates the rows, or restores them from the checkpoint. Returns the number of the first step."""
        checkpoint = self.folder / CHECKPOINT
        restored = bool(self.args.resume) and checkpoint.is_dir()
        if restored and self.rank == 0:
            self.graph.restore(checkpoint)
        self.store.barrier()
        self.store.create()
        step = int(np.asarray(self.store.step[:])[0, 0]) if restored or self.world > 1 else 0
        if self.rank == 0:
            write_sealed(self.folder / "config.json", outputs.config_of(
                self.args, self.folder, *self.names, self.world))
            self.curve = outputs.Curve(self.folder, step)
            self.seconds_before = self.curve.seconds
            if restored:
                print(f"goes on at step {step} of {self.args.max_step}", flush=True)
            elif self.args.resume:
                print(f"{self.folder} has no checkpoint (--checkpoint_interval): the training begins at step 0 of "
                      f"{self.args.max_step}", flush=True)
        return step

    def _trainer(self) -> Trainer:
        args = self.args
        own = self.store.own_triples(getattr(args, "rel_part", False) and self.world > 1, args.has_edge_importance)
        if not len(own):
            raise ValueError(f"client {self.rank} of {self.world} has no triples: use fewer clients")
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
        """Returns the next step at which clients wait for each other. The trainer pulls no rows for steps beyond it:
        so a job resumed from a checkpoint computes the same as this job."""
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
        """Prints DGL-KE's lines for this client. The first client adds its figures to the curve."""
        head = f"[{self.rank}]"
        for name, value in means.items():
            print(f"{head}[Train]({step}/{self.args.max_step}) average {name}: {value}")
        spent, processor = trainer.seconds.taken()
        per_processor = speed * seconds / processor["all"]
        print(f"{head}[Train] {steps} steps take {seconds:.3f} seconds, {speed:.0f} triples/s, {per_processor:.0f} "
              "triples per processor second")
        print(head + ", ".join(f"{name}: {value:.3f}" for name, value in spent.items()))
        waited = sum(spent.get(name, 0.0) for name in WAITS) / sum(spent.values())
        print(f"{head}rows: a step waits {waited:.1%} of its time for them; a step takes "
              f"{1e3 * processor['all'] / steps:.2f} processor ms: {processor['pull'] / processor['all']:.1%} pull, "
              f"{processor['push'] / processor['all']:.1%} push", flush=True)
        if self.rank == 0:
            self.curve.add(step=step, seconds=f"{all_seconds:.3f}", triples_per_second=f"{speed:.0f}",
                           triples_per_processor_second=f"{per_processor:.0f}", **means)

    def _meet(self, trainer: Trainer, step: int, seconds: float) -> None:
        """Validates, then writes the checkpoint. With this order a resumed job need not repeat the validation of the
        checkpoint's step."""
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

    # --- After the training. ---

    def _write(self) -> None:
        if not self.args.no_save_emb:
            outputs.save(self.folder, self.args.dataset, self.store)
            print(f"Save model to {self.folder}", flush=True)
        self.curve.draw()

    def _evaluate(self, triples: Triples, what: str) -> dict[str, float]:
        """Computes the figures of all clients' ranks. Each client ranks its own batches and shares the ranks; then it
        waits for the ranks of the others."""
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
        """Returns a function that reads rows by the dictionary's numbers; it keeps all rows if they fit."""
        if 4 * len(order) * self.model.entity_width > CACHE_BYTES:
            return lambda numbers: self.store.entity_rows(order[numbers])
        rows = self.store.entity_rows(order)
        return lambda numbers: rows[torch.from_numpy(numbers)]

    def _collected(self, ranks: np.ndarray, what: str) -> np.ndarray:
        """Collects the ranks of all clients. A rank is at least 1, so 0 marks a rank that no client has written."""
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
