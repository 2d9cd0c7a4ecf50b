"""gwke_eval: the figures of a saved model (Graphwire's or DGL-KE's) on a dataset's test set.

The model's own dictionaries number the names. --num_proc processes share the batches of triples; the figures do not
depend on their number. The command writes no files.
"""

from __future__ import annotations

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch

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


def evaluate(args: argparse.Namespace) -> None:
    """Runs the command."""
    dataset, _ = _opened(args)
    _test_of(args, dataset)
    if args.num_proc == 1:
        ranks = _ranks(args, 0, 1)
    else:
        with ProcessPoolExecutor(args.num_proc, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(_ranks, args, rank, args.num_proc) for rank in range(args.num_proc)]
            ranks = np.sum([future.result() for future in futures], axis=0)
    print_figures("Test", report(ranks))
