"""The flags of all commands: DGL-KE 0.1.2's, with its abbreviations, meanings and defaults, and a few of Graphwire's
own.

One table; docs/KGE.md prints it, and a test holds it against DGL-KE's list. A flag that a command does not know, and
one that it cannot honour as it was started, is refused (UsageError). Two are ignored as DGL-KE ignores them:
--eval_interval without --valid, and --data_path of predict without --raw_data.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Optional

from graphwire import _checks
from graphwire.kge.losses import GENRES
from graphwire.kge.models import NAMES

COMMANDS = ("partition", "train", "dist_train", "eval", "predict", "emb_sim")
DATA = ("partition", "train", "dist_train", "eval")
TRAIN = ("train", "dist_train")
SCORED = ("train", "dist_train", "eval")
INFER = ("predict", "emb_sim")


class UsageError(Exception):
    """Flags that make no sense; the text says which and why."""


class Flag(NamedTuple):
    """names: as they are given; commands: that have it; options: of argparse; own: Graphwire's, not DGL-KE's."""

    names: tuple[str, ...]
    commands: tuple[str, ...]
    help: str
    options: dict[str, Any]
    own: bool = False


class _Dataset(argparse.Action):
    """--dataset, whose default means nothing for one's own files."""

    given = False

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: Optional[str] = None) -> None:
        self.given = True
        setattr(namespace, self.dest, values)


def _flag(names: str, commands: tuple[str, ...], text: str, own: bool = False, **options: Any) -> Flag:
    return Flag(tuple(names.split()), commands, text, options, own)


def _switch(names: str, commands: tuple[str, ...], text: str, own: bool = False, **options: Any) -> Flag:
    return _flag(names, commands, text, own, action="store_true", **options)


FLAGS = (
    # Data.
    _flag("--data_path", (*DATA, "predict"), "the folder of the datasets, or of one's own files", default="data"),
    _flag("--dataset", DATA, "a built-in dataset's name; any name for one's own files, which need one", default="FB15k",
          action=_Dataset),
    _flag("--format", DATA, "built_in, udd_XYZ or raw_udd_XYZ; XYZ: the order of h, r and t", default="built_in"),
    _flag("--data_files", (*DATA, *INFER), "file names, as the format says", nargs="+"),
    _flag("--delimiter", DATA, "between the columns of data files", default="\t"),
    _switch("--has_edge_importance", DATA, "the fourth column of udd and raw_udd weighs a triple's loss"),
    _flag("-k --num-parts --num_parts", ("partition",), "how many parts", type=int, required=True),
    # Model.
    _flag("--model_name", TRAIN, "the score function", default="TransE", choices=NAMES),
    _flag("--hidden_dim", TRAIN, "elements of a row", type=int, default=400),
    _flag("-g --gamma", TRAIN, "of TransE, TransR and RotatE, and of the initial range", type=float, default=12.0),
    _switch("-de --double_ent", TRAIN, "rows of entities are twice as wide"),
    _switch("-dr --double_rel", TRAIN, "rows of relations are twice as wide"),
    _flag("--model_name", ("eval",), "without this and the next ones: as config.json says", choices=NAMES),
    _flag("--hidden_dim", ("eval",), "elements of a row", type=int),
    _flag("-g --gamma", ("eval",), "of the training", type=float),
    _switch("-de --double_ent", ("eval",), "rows of entities are twice as wide", default=None),
    _switch("-dr --double_rel", ("eval",), "rows of relations are twice as wide", default=None),
    # Loss.
    _flag("--loss_genre", TRAIN, "the loss", default="Logsigmoid", choices=GENRES),
    _flag("-m --margin", TRAIN, "of the Hinge loss", type=float, default=1.0),
    _switch("-pw --pairwise", TRAIN, "compare each positive with each of its negatives"),
    _switch("-adv --neg_adversarial_sampling", TRAIN, "weigh negatives by their scores' softmax"),
    _flag("-a --adversarial_temperature", TRAIN, "of that softmax", type=float, default=1.0),
    _flag("-rc --regularization_coef", TRAIN, "of the rows' norm; 0: none", type=float, default=0.000002),
    _flag("-rn --regularization_norm", TRAIN, "which norm; 0: none", type=int, default=3),
    # Steps.
    _flag("--max_step", TRAIN, "steps of each client", type=int, default=80000),
    _flag("--batch_size", TRAIN, "triples of a step; rounded up to whole chunks", type=int, default=1024),
    _flag("--neg_sample_size", TRAIN, "negatives of each chunk of as many triples", type=int, default=256),
    _switch("--neg_deg_sample", TRAIN, "the other heads or tails of the chunk are negatives too"),
    _flag("--lr", TRAIN, "of the row-wise Adagrad", type=float, default=0.01),
    _flag("--force_sync_interval", TRAIN, "clients wait for each other every so many steps; -1: never", type=int,
          default=-1),
    _switch("--async_update", TRAIN, "rows of further steps do not wait for this step's push"),
    _switch("--rel_part", ("train",), "with --num_proc: most relations are one client's alone"),
    _flag("-log --log_interval", TRAIN, "steps between two reports", type=int, default=1000),
    # Evaluation.
    _switch("--valid", TRAIN, "evaluate the validation set while training"),
    _flag("--eval_interval", TRAIN, "steps between two validations", type=int, default=10000),
    _switch("--test", TRAIN, "evaluate the test set in the end"),
    _flag("--batch_size_eval", SCORED, "triples that are ranked at once", type=int, default=8),
    _flag("--neg_sample_size_eval", SCORED, "candidates of a ranking; -1: all entities", type=int, default=-1),
    _switch("--neg_deg_sample_eval", SCORED,
            "the other heads or tails of the batch are candidates too; only with --no_eval_filter"),
    _flag("--eval_percent", SCORED, "the share of the triples that is evaluated, 1 for all", type=float, default=1.0),
    _switch("--no_eval_filter", SCORED, "known triples stay among the candidates"),
    # Where it runs.
    _flag("--num_proc", ("train", "eval"), "clients on this machine", type=int, default=1),
    _flag("--num_thread", SCORED, "threads that a client computes with", type=int, default=1),
    _flag("--gpu", SCORED, "devices, -1: none; the clients take them in turn, and are at least as many", type=int,
          nargs="+", default=[-1]),
    _switch("--mix_cpu_gpu", SCORED, "rows in memory, computation on --gpu: what is always done with --gpu"),
    _flag("--path", ("dist_train",), "the workspace on every host, where logs and results go"),
    _flag("--ip_config", ("dist_train",), 'the hosts: "address port servers" a line; servers: threads of a server',
          required=True),
    _flag("--ssh_key", ("dist_train",), "private key for ssh"),
    _flag("--num_client_proc", ("dist_train",), "clients on each host", type=int, default=1),
    # Results.
    _flag("--save_path", TRAIN, "where MODEL_DATASET_N/ is made", default="ckpts"),
    _switch("--no_save_emb --no_save_embed", TRAIN, "do not write the rows"),
    _flag("--model_path", ("eval", "predict"), "a folder that train wrote", default="ckpts"),
    # Inference.
    _flag("--format", ("predict",), "h_r_t; * in the place of one or two: all of them", required=True),
    _flag("--format", ("emb_sim",), "l_r, l_*, *_r or *: *: all of them", required=True),
    _switch("--raw_data", INFER, "data files have names, not numbers"),
    _flag("--exec_mode", ("predict",), "what the best are of", default="all",
          choices=("triplet_wise", "all", "batch_head", "batch_rel", "batch_tail")),
    _flag("--exec_mode", ("emb_sim",), "what the best are of", default="all",
          choices=("pairwise", "all", "batch_left")),
    _flag("--topK --topk", INFER, "how many", type=int, default=10),
    _flag("--score_func", ("predict",), "of the score x: x, or log sigma(x)", default="none",
          choices=("none", "logsigmoid")),
    _flag("--sim_func", ("emb_sim",), "the likeness", default="cosine",
          choices=("cosine", "l2", "l1", "dot", "ext_jaccard")),
    _flag("--output", INFER, "the table that is written", default="result.tsv"),
    _flag("--entity_mfile", ("predict",), "names of entities; without: as the model's config.json says"),
    _flag("--rel_mfile", ("predict",), "names of relations, likewise"),
    _flag("--mfile", ("emb_sim",), "names of the rows"),
    _flag("--emb_file", ("emb_sim",), "the rows, .npy", required=True),
    _flag("--gpu", INFER, "device, -1: none", type=int, default=-1),
    # Graphwire's own.
    _flag("--method", ("partition",), "metis cuts few triples; random takes any size", True, default="metis",
          choices=("metis", "random")),
    _flag("--memory", ("partition",), "that METIS may take, as 20Gi; without: what is free", True),
    _flag("--seed", TRAIN, "of rows, batches and negatives: the same seed, the same training (one client)", True,
          type=int, default=0),
    _flag("--staleness", TRAIN, "pull rows so many steps ahead", True, type=int, default=1),
    _flag("--checkpoint_interval", TRAIN, "steps between two checkpoints; clients wait for each other; 0: none", True,
          type=int, default=0),
    _flag("--resume", TRAIN, "go on in this folder, from its last checkpoint", True),
    _flag("--ssh_port", ("dist_train",), "sshd's port; without: as ~/.ssh/config says", True, type=int),
    _flag("--via", ("dist_train",), "whose loop runs ssh (launch.py --help)", True,
          choices=("auto", "ssh", "clustershell")),
    _flag("--program", ("dist_train",), "graphwire on the hosts; without: .graphwire/bin in --path, then PATH", True),
    _flag("--scheduler", ("dist_train",), "ssh; local: all hosts are this machine; slurm: the allocation's nodes", True,
          default="ssh", choices=("ssh", "local", "slurm")),
    _switch("--mean_ties", SCORED, "equal candidates: the middle of their ranks, not the last", True),
)


class Parser(argparse.ArgumentParser):
    """argparse, with exceptions. Names may be shortened, as DGL-KE's may: to what only one of its flags begins with,
    whatever Graphwire's own flags are called."""

    def __init__(self, command: str):
        super().__init__(f"gwke_{command}")
        self._own: list[argparse.Action] = []
        for flag in FLAGS:
            if command in flag.commands:
                action = self.add_argument(*flag.names, help=flag.help.replace("%", "%%"), **flag.options)
                if flag.own:
                    self._own.append(action)

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """argparse's: what a shortened name may stand for; one of each flag."""
        found = {id(some[0]): some for some in super()._get_option_tuples(option_string)}
        return [some for some in found.values() if some[0] not in self._own] or list(found.values())

    def dataset_given(self) -> bool:
        """Whether --dataset was, of what was parsed."""
        return any(isinstance(action, _Dataset) and action.given for action in self._actions)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}; {self.prog} --help")


def parse(command: str, words: Sequence[str]) -> argparse.Namespace:
    """The flags of a command; raises UsageError."""
    parser = Parser(command)
    args = parser.parse_args(words)
    try:
        if command in DATA and args.format != "built_in" and not parser.dataset_given():
            raise ValueError(f"--format {args.format} needs --dataset, a name for your own data")
        _check(command, args)
    except ValueError as error:
        raise UsageError(f"gwke_{command}: {error}") from error
    return args


# What numbers a flag takes: from the first to the last; of fractions any that is finite.
_INTEGERS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("num_parts", "hidden_dim", "batch_size", "neg_sample_size", "batch_size_eval", "num_proc",
                     "num_thread", "num_client_proc", "topK"), (1, 2**31 - 1)),
    "ssh_port": (1, 65535),
    **dict.fromkeys(("max_step", "log_interval", "eval_interval"), (1, 2**62)),
    "regularization_norm": (0, 2**31 - 1), "staleness": (0, 2**31 - 1), "checkpoint_interval": (0, 2**62),
    "force_sync_interval": (-1, 2**62), "seed": (0, _checks.U64 - 2)}  # the model's tensors have it, and the next two
_NUMBERS: dict[str, float] = {
    "lr": 0, "regularization_coef": 0, "gamma": -math.inf, "margin": -math.inf, "adversarial_temperature": -math.inf}


def _check_numbers(args: argparse.Namespace) -> None:
    for name, (low, high) in _INTEGERS.items():
        if getattr(args, name, None) is not None:
            _checks.integer(f"--{name}", getattr(args, name), low, high)
    for name, least in _NUMBERS.items():
        if getattr(args, name, None) is not None:
            _checks.number(f"--{name}", getattr(args, name), least)


def _check(command: str, args: argparse.Namespace) -> None:
    _check_numbers(args)
    if command in DATA:
        _check_data(args)
    if command == "partition" and args.memory and args.method == "random":
        raise ValueError("--memory goes with --method metis")
    if command in SCORED:
        _check_scored(args)
    if command in TRAIN:
        _check_train(command, args)
    if command in INFER and args.gpu >= 0:
        _check_gpus([args.gpu])
    if command == "predict" and not args.raw_data and (args.entity_mfile or args.rel_mfile):
        raise ValueError("--entity_mfile and --rel_mfile go with --raw_data")


def _check_data(args: argparse.Namespace) -> None:
    built_in = args.format == "built_in"
    if not built_in and not args.data_files:
        raise ValueError(f"--format {args.format} needs --data_files")
    if built_in and args.delimiter != "\t":
        raise ValueError("--delimiter goes with --format udd_XYZ or raw_udd_XYZ")


def _check_gpus(gpus: Sequence[int]) -> None:
    import torch

    there = torch.cuda.device_count()
    for gpu in gpus:
        if gpu >= there:
            raise ValueError(f"--gpu {gpu}: this machine has {there} of them")


def _check_scored(args: argparse.Namespace) -> None:
    if args.neg_deg_sample_eval and not args.no_eval_filter:
        raise ValueError("--neg_deg_sample_eval goes with --no_eval_filter only")
    if not 0 < args.eval_percent <= 1:
        raise ValueError(f"--eval_percent is above 0 and at most 1, not {args.eval_percent}")
    if args.neg_sample_size_eval == 0 or args.neg_sample_size_eval < -1:
        raise ValueError("--neg_sample_size_eval is -1 or above 0")
    if args.mix_cpu_gpu and min(args.gpu) < 0:
        raise ValueError("--mix_cpu_gpu needs --gpu")
    if min(args.gpu) < 0 and args.gpu != [-1]:
        raise ValueError("--gpu is -1, or names devices")
    if args.gpu != [-1]:
        _check_gpus(args.gpu)
    if len(args.gpu) > 1:
        clients = "num_client_proc" if hasattr(args, "num_client_proc") else "num_proc"
        setattr(args, clients, max(getattr(args, clients), len(args.gpu)))
        if getattr(args, clients) % len(args.gpu):
            raise ValueError(f"--{clients} is a multiple of the {len(args.gpu)} of --gpu, not {getattr(args, clients)}")


def _check_train(command: str, args: argparse.Namespace) -> None:
    from graphwire.kge.losses import Loss
    from graphwire.kge.models import make

    make(args.model_name, args.hidden_dim, args.gamma, args.double_ent, args.double_rel)
    Loss(args.loss_genre, adversarial=args.neg_adversarial_sampling, pairwise=args.pairwise)
    if args.adversarial_temperature != 1.0 and not args.neg_adversarial_sampling:
        raise ValueError("-a goes with -adv")
    if args.margin != 1.0 and args.loss_genre != "Hinge":
        raise ValueError("-m goes with --loss_genre Hinge")
    if command == "train" and args.rel_part and args.num_proc == 1:
        raise ValueError("--rel_part needs --num_proc above 1")


# Of a training that goes on: where its data lies, how long it takes, what it reports and evaluates, where it runs, what
# it leaves. The number of clients is compared by itself: num_client_proc is that of a host.
MAY_CHANGE = frozenset((
    "data_path", "max_step", "force_sync_interval", "log_interval", "checkpoint_interval", "resume",
    "valid", "eval_interval", "test", "batch_size_eval", "neg_sample_size_eval", "neg_deg_sample_eval", "eval_percent",
    "no_eval_filter", "mean_ties", "num_proc", "num_thread", "gpu", "mix_cpu_gpu", "save_path", "no_save_emb"))


def changed(config: Mapping[str, Any], args: argparse.Namespace) -> list[str]:
    """What makes `args` another training than that of a config.json, flag by flag. What either does not have is its
    default there: train and dist_train differ in a few flags, and all that dist_train alone has may change."""
    found = []
    for name, default in vars(Parser("train").parse_args([])).items():
        was, now = config.get(name, default), getattr(args, name, default)
        if name not in MAY_CHANGE and was != now:
            found.append(f"its --{name} was {was!r}, not {now!r}")
    return found


def _default(flag: Flag) -> str:
    default = flag.options.get("default")
    if flag.options.get("required"):
        return "must be given"
    if "choices" in flag.options:
        return " / ".join(f"**{some}**" if some == default else some for some in flag.options["choices"])
    return "" if default is None else f"`{default!r}`" if isinstance(default, str) else str(default)


def table() -> str:
    """The table of docs/KGE.md: DGL-KE's flags, then Graphwire's own."""
    lines = ["| flag | commands | default | is |", "|---|---|---|---|"]
    for flag in sorted(FLAGS, key=lambda some: some.own):
        names = ", ".join(f"`{name}`" for name in flag.names)
        text = flag.help + (" (Graphwire)" if flag.own else "")
        lines.append(f"| {names} | {', '.join(flag.commands)} | {_default(flag)} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
