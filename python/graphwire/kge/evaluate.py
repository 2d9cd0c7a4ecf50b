"""gwke_eval: the figures of a saved model (Graphwire's or DGL-KE's) on a dataset's test set.

The model's own dictionaries number the names. --num_proc processes share the batches of triples; the figures do not
depend on their number. The command writes no files.
"""

from __future__ import annotations

import argparse
import multiprocessing
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch

from graphwire._base.program import ProgramError
from graphwire.kge import dictionaries
from graphwire.kge.client import candidates_of, print_figures, sampled
from graphwire.kge.data import DataError, Dataset, Triples, load
from graphwire.kge.outputs import Saved
from graphwire.kge.ranking import Known, Ranking, report


def _ranks(args: argparse.Namespace, rank: int, world: int) -> np.ndarray:
    """Computes the ranks of one process' batches; the rows of other processes' batches are 0."""
    torch.set_num_threads(args.num_thread)
    dataset, saved = _opened(args, False)
    gpu = args.gpu[rank % len(args.gpu)]
    ranking = Ranking(
        saved.model, saved.entity_rows, saved.relations_of, dataset.num_entities,
        None if args.no_eval_filter else Known(dataset), batch_size=args.batch_size_eval,
        candidates=candidates_of(args, dataset), degree_candidates=args.neg_deg_sample_eval, mean_ties=args.mean_ties,
        device="cpu" if gpu < 0 else f"cuda:{gpu}")
    return ranking.ranks(_test_of(args, dataset), rank, world)


def _test_of(args: argparse.Namespace, dataset: Dataset) -> Triples:
    if dataset.test is None:
        raise DataError(f"{dataset.name} has no test set")
    return sampled(dataset.test, args.eval_percent)


def _opened(args: argparse.Namespace, warns: bool = True) -> tuple[Dataset, Saved]:
    """Opens the dataset and the model. warns: compares the model's digests, and warns of a model without digests or
    dictionaries."""
    saved = Saved(args.model_path, args.model_name, args.dataset, hidden_dim=args.hidden_dim, gamma=args.gamma,
                  double_ent=args.double_ent, double_rel=args.double_rel, checks=warns)
    numbers = dictionaries.of_model(saved.folder, args.data_path, args.format, warns)
    dataset = load(args.data_path, args.dataset, args.format, delimiter=args.delimiter, files=args.data_files,
                   has_edge_importance=args.has_edge_importance, numbers=numbers)
    if (len(saved.entity), len(saved.relation)) != (dataset.num_entities, dataset.num_relations):
        raise DataError(f"{args.model_path} has {len(saved.entity)} entities and {len(saved.relation)} relations, but "
                        f"{dataset.name} has {dataset.num_entities} and {dataset.num_relations}")
    return dataset, saved


def _send_ranks(args: argparse.Namespace, rank: int, writes: Connection) -> None:
    """The work of one process: sends its ranks, or its exception."""
    found: Any
    try:
        found = _ranks(args, rank, args.num_proc)
    except Exception as error:
        found = error
    writes.send(found)


def _received(reads: Any, process: Any) -> np.ndarray:
    """What a process has sent. Raises its exception, or ProgramError if the process has died."""
    try:
        found = reads.recv()
    except EOFError:
        process.join()
        raise ProgramError(f"a process of --num_proc ended with status {process.exitcode}") from None
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, np.ndarray)
    return found


def _ranks_of_all(args: argparse.Namespace) -> np.ndarray:
    """Computes the ranks in processes. Raises the first error of one, and ends the others. The executors of
    concurrent.futures would wait for ever for a thread of theirs that gets no memory at its start."""
    context = multiprocessing.get_context("spawn")
    processes: dict[Any, Any] = {}
    ranks: np.ndarray | int = 0
    try:
        for rank in range(args.num_proc):
            reads, writes = context.Pipe(False)
            process = context.Process(target=_send_ranks, args=(args, rank, writes), daemon=True)
            processes[reads] = process
            process.start()
            writes.close()  # the process has it now: its death ends recv()
        while processes:
            for ready in wait(list(processes)):
                ranks = ranks + _received(ready, processes[ready])
                processes.pop(ready).join()
    finally:
        for process in processes.values():
            if process.pid is not None:
                process.terminate()
                process.join()
    assert isinstance(ranks, np.ndarray)
    return ranks


def evaluate(args: argparse.Namespace) -> None:
    """Runs the command."""
    dataset, _ = _opened(args)
    _test_of(args, dataset)
    ranks = _ranks(args, 0, 1) if args.num_proc == 1 else _ranks_of_all(args)
    print_figures("Test", report(ranks))
