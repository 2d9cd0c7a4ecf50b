"""The commands: gwke_NAME, dglke_NAME, and python -m graphwire.kge NAME.

Exit status: 0 for success, 1 for a failure (a line on stderr names the cause), 2 for wrong usage, 130 for an
interrupt.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, Optional

from graphwire._base import checks
from graphwire._base.escape import plain
from graphwire._base.native import GraphwireError
from graphwire._base.program import ProgramError
from graphwire._base.scratch import Scratch
from graphwire.kge import dictionaries, flags
from graphwire.kge.data import BUILT_IN, DataError, Dataset, Dictionaries, Sink, load


def load_of(args: argparse.Namespace, train_to: Optional[Sink] = None,
            numbers: Optional[Dictionaries] = None) -> Dataset:
    """The dataset that a command names."""
    return load(args.data_path, args.dataset, args.format, delimiter=args.delimiter, files=args.data_files,
                has_edge_importance=args.has_edge_importance, train_to=train_to, numbers=numbers)


def check_sets(args: argparse.Namespace) -> None:
    """Raises DataError before a training whose validation or test set does not exist. --data_files names either all
    three sets or the training set only."""
    if args.format == "built_in" or len(args.data_files or ()) != (1 if args.format.startswith("raw_") else 3):
        return
    if args.valid:
        raise DataError(f"--valid: {args.dataset} has no validation set")
    if args.test:
        raise DataError(f"--test: {args.dataset} has no test set")


def results_folder(args: argparse.Namespace, num_clients: int) -> Path:
    """Makes a new folder; with --resume returns that folder. Raises DataError unless the folder's training had the same
    options and the same number of clients."""
    from graphwire.kge.outputs import new_folder

    if not args.resume:
        return new_folder(args.save_path, args.model_name, args.dataset)
    folder = Path(args.resume)
    try:
        config = dictionaries.read_config(folder)
    except DataError as error:
        raise DataError(f"--resume {folder}: no training can be resumed here: {error}") from error
    if config is None:
        raise DataError(f"--resume {folder}: no training can be resumed here: config.json does not exist")
    others, clients = flags.changed(config, args), config.get("num_clients", num_clients)
    if clients != num_clients:
        others.append(f"it had {clients} client{'' if clients == 1 else 's'}, not {num_clients}")
    if others:
        raise DataError(f"--resume {folder}: {'; '.join(others)}")
    return folder


def names_of(args: argparse.Namespace) -> tuple[str, str]:
    """File names of the dictionaries, for config.json."""
    if args.format == "built_in":
        return BUILT_IN[args.dataset][:2] if args.dataset in BUILT_IN else ("", "")
    return ("entities.tsv", "relations.tsv") if args.format.startswith("raw_") else tuple(args.data_files[:2])


def num_relations_of(args: argparse.Namespace) -> int:
    """Reads the number of relations from the files of gwke_partition: from that of the parts, else from DGL-KE's."""
    from graphwire.kge.partition import parts_folder

    recorded = dictionaries.num_relations_of_parts(parts_folder(args.data_path, args.dataset))
    if recorded is not None:
        return recorded
    path = Path(args.data_path) / args.dataset / "partition_0" / "relation_count.txt"
    try:
        return checks.integer("relations", int(path.read_text(encoding="ascii")), 1, 2**31 - 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: this is not a file that gwke_partition wrote: {error}") from error


def numbers_of_parts(args: argparse.Namespace) -> Optional[Dictionaries]:
    """Returns the dictionaries that number the entities and relations in the servers' parts. Returns None if this
    client does not need them: the data's own files contain numbers, or the client reads no triples by name."""
    from graphwire.kge.partition import parts_folder

    parts = parts_folder(args.data_path, args.dataset)
    numbers = dictionaries.of(parts)
    if numbers is None and dictionaries.recorded(args.data_path, args.format):
        numbers = dictionaries.of_model(parts, args.data_path, args.format, os.environ.get("RANK", "0") == "0")
    if numbers is None and args.format.startswith("raw_") and (args.test or args.valid):
        raise DataError(f"{parts} has no {' and '.join(dictionaries.NAMED)}, which number its entities: copy the "
                        "complete folder from the host of gwke_partition, or partition again")
    return numbers


def keep_numbers_of_parts(folder: Path, dataset: Optional[Dataset], numbers: Optional[Dictionaries]) -> None:
    """Stores the parts' dictionaries with the results. Raises DataError if a resumed training has other
    dictionaries."""
    own = dictionaries.of(folder)
    if own is not None and numbers is not None:
        own.check_same(numbers)
    elif own is None and numbers is not None:
        numbers.copy(folder)
    elif own is None and dataset is not None:
        dictionaries.keep(dataset, folder)


def partition(args: argparse.Namespace, _words: Sequence[str]) -> int:
    from graphwire.kge.partition import partition

    partition(args, lambda train_to: load_of(args, train_to))
    return 0


def train(args: argparse.Namespace, words: Sequence[str]) -> int:
    import graphwire
    from graphwire.kge.client import Client
    from graphwire.kge.store import build

    numbers, folder = None, results_folder(args, args.num_proc) if args.resume else None
    if folder is not None:
        numbers = dictionaries.of_model(folder, args.data_path, args.format)
    check_sets(args)
    dataset = load_of(args, numbers=numbers)
    folder = folder or results_folder(args, args.num_proc)
    if dictionaries.of(folder) is None:
        dictionaries.keep(dataset, folder)
    print(f"{dataset.name}: {dataset.num_entities} entities, {dataset.num_relations} relations, {len(dataset.train)} "
          f"triples; results: {folder}", flush=True)
    if args.num_proc > 1:
        from graphwire.kge.local import train_local

        train_local(args, dataset, folder, words)
        return 0
    with Scratch(prefix="gwke") as scratch:
        build(dataset, scratch / "graph")
        with graphwire.open(scratch / "graph") as graph:
            Client(args, graph, dataset.num_relations, folder, dataset, names_of(args)).run()
    return 0


def client(words: Sequence[str]) -> int:
    """Runs one process of a job, in the environment that a launcher sets. words:

    train FOLDER RELATIONS FLAGS  the folder of the results, and the number of relations
    dist_train - FLAGS            the first client makes the folder
    """
    import graphwire
    from graphwire.kge.client import Client

    command, place, *rest = words
    num_relations = int(rest.pop(0)) if command == "train" else None
    args = flags.parse(command, rest)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    check_sets(args)
    numbers = dictionaries.of(place) if place != "-" else numbers_of_parts(args)
    dataset = load_of(args, numbers=numbers) if args.test or args.valid else None
    folder = Path(args.resume or "") if rank else results_folder(args, world) if place == "-" else Path(place)
    if place == "-" and not rank:
        keep_numbers_of_parts(folder, dataset, numbers)
    if num_relations is None:
        num_relations = num_relations_of(args) if dataset is None else dataset.num_relations
    with graphwire.open() as graph:
        Client(args, graph, num_relations, folder, dataset, names_of(args), rank, world).run()
    return 0


def dist_train(args: argparse.Namespace, words: Sequence[str]) -> int:
    from graphwire.kge.dist_train import dist_train

    return dist_train(args, words)


def evaluate(args: argparse.Namespace, _words: Sequence[str]) -> int:
    from graphwire.kge.evaluate import evaluate

    evaluate(args)
    return 0


def predict(args: argparse.Namespace, _words: Sequence[str]) -> int:
    from graphwire.kge.predict import predict

    predict(args)
    return 0


def emb_sim(args: argparse.Namespace, _words: Sequence[str]) -> int:
    from graphwire.kge.similar import emb_sim

    emb_sim(args)
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace, Sequence[str]], int]] = {
    "partition": partition, "train": train, "dist_train": dist_train, "eval": evaluate, "predict": predict,
    "emb_sim": emb_sim}


def run(command: str, words: Sequence[str]) -> int:
    """Runs a command and returns its exit status."""
    try:
        return client(words) if command == "client" else COMMANDS[command](flags.parse(command, words), words)
    except flags.UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except (GraphwireError, DataError, ProgramError, OSError, ValueError, MemoryError) as error:
        print(f"gwke_{command}: {plain(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def script() -> int:
    """Entry point of gwke_NAME and dglke_NAME: the program's name gives the command."""
    return run(Path(sys.argv[0]).name.partition("_")[2], sys.argv[1:])


def main(words: Sequence[str] | None = None) -> int:
    """Entry point of python -m graphwire.kge COMMAND …"""
    words = sys.argv[1:] if words is None else words
    if words and words[0] in ("-h", "--help"):
        print(f"usage: python -m graphwire.kge {{{','.join(flags.COMMANDS)}}} …; each with --help")
        return 0
    if not words or words[0] not in (*COMMANDS, "client"):
        print(f"usage: python -m graphwire.kge {{{','.join(flags.COMMANDS)}}} …; each with --help", file=sys.stderr)
        return 2
    return run(words[0], words[1:])
