"""The flags of all commands: DGL-KE 0.1.2's, with its abbreviations, meanings and defaults, and a few of Graphwire's.

All flags are in one table, FLAGS. docs/KGE.md contains the table, and a test compares it with DGL-KE's list. A command
refuses unknown flags, and flags that have no effect in combination with the others (UsageError). Two flags are ignored,
as in DGL-KE: --eval_interval without --valid, and --data_path of predict without --raw_data.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Optional

from graphwire._base import checks
from graphwire.kge.losses import GENRES
from graphwire.kge.models import NAMES

COMMANDS = ("partition", "train", "dist_train", "eval", "predict", "emb_sim")
DATA = ("partition", "train", "dist_train", "eval")
TRAIN = ("train", "dist_train")
SCORED = ("train", "dist_train", "eval")
INFER = ("predict", "emb_sim")


class UsageError(Exception):
    """Flags are unknown, out of range or contradictory; the text names the flag and the reason."""


class Flag(NamedTuple):
    """A flag. names: with their dashes; commands: the commands that have the flag; options: for argparse's
    add_argument(); own: a flag of Graphwire that DGL-KE does not have."""

    names: tuple[str, ...]
    commands: tuple[str, ...]
    help: str
    options: dict[str, Any]
    own: bool = False


class _Dataset(argparse.Action):
    """The action of --dataset; it records whether the flag was given. The default makes no sense for the user's own
    files."""

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
    _flag("--data_path", (*DATA, "predict"), "the folder of the datasets, or of your own files", default="data"),
    _flag("--dataset", DATA, "the name of a built-in dataset; your own files need a name too, any name",
          default="FB15k", action=_Dataset),
    _flag("--format", DATA, "built_in, udd_XYZ or raw_udd_XYZ; XYZ: the order of h, r and t", default="built_in"),
    _flag("--data_files", (*DATA, *INFER), "file names; --format determines their number and order", nargs="+"),
    _flag("--delimiter", DATA, "the character between the columns of data files", default="\t"),
    _switch("--has_edge_importance", DATA, "the fourth column of udd and raw_udd files weighs the triple's loss"),
    _flag("-k --num-parts --num_parts", ("partition",), "the number of parts", type=int, required=True),
    # Model.
    _flag("--model_name", TRAIN, "the score function", default="TransE", choices=NAMES),
    _flag("--hidden_dim", TRAIN, "the number of elements of a row", type=int, default=400),
    _flag("-g --gamma", TRAIN, "the margin gamma of TransE, TransR and RotatE; sets the initial range of all models",
          type=float, default=12.0),
    _switch("-de --double_ent", TRAIN, "rows of entities are twice as wide"),
    _switch("-dr --double_rel", TRAIN, "rows of relations are twice as wide"),
    _flag("--model_name", ("eval",), "the score function; default of this and the next four: config.json's value",
          choices=NAMES),
    _flag("--hidden_dim", ("eval",), "the number of elements of a row", type=int),
    _flag("-g --gamma", ("eval",), "the training's gamma", type=float),
    _switch("-de --double_ent", ("eval",), "rows of entities are twice as wide", default=None),
    _switch("-dr --double_rel", ("eval",), "rows of relations are twice as wide", default=None),
    # Loss.
    _flag("--loss_genre", TRAIN, "the loss", default="Logsigmoid", choices=GENRES),
    _flag("-m --margin", TRAIN, "the margin of the Hinge loss", type=float, default=1.0),
    _switch("-pw --pairwise", TRAIN, "compare each positive with each of its negatives"),
    _switch("-adv --neg_adversarial_sampling", TRAIN, "weigh negatives by the softmax of their scores"),
    _flag("-a --adversarial_temperature", TRAIN, "the temperature of the softmax of -adv", type=float, default=1.0),
    _flag("-rc --regularization_coef", TRAIN, "the coefficient of the regularization; 0: no regularization", type=float,
          default=0.000002),
    _flag("-rn --regularization_norm", TRAIN, "the norm of the regularization; 0: no regularization", type=int,
          default=3),
    # Steps.
    _flag("--max_step", TRAIN, "steps of each client", type=int, default=80000),
    _flag("--batch_size", TRAIN, "triples of a step; rounded up to a multiple of --neg_sample_size", type=int,
          default=1024),
    _flag("--neg_sample_size", TRAIN, "triples of a chunk, and negatives that the chunk shares", type=int, default=256),
    _switch("--neg_deg_sample", TRAIN, "the other heads or tails of the chunk are negatives too"),
    _flag("--lr", TRAIN, "the learning rate of the row-wise Adagrad", type=float, default=0.01),
    _flag("--force_sync_interval", TRAIN, "steps after which clients wait for each other; -1: never", type=int,
          default=-1),
    _switch("--async_update", TRAIN, "the rows of the next steps do not wait for this step's push"),
    _switch("--rel_part", ("train",), "with --num_proc: one client has all triples of a relation, for most relations"),
    _flag("-log --log_interval", TRAIN, "steps between two reports", type=int, default=1000),
    # Evaluation.
    _switch("--valid", TRAIN, "evaluate the validation set while training"),
    _flag("--eval_interval", TRAIN, "steps between two validations", type=int, default=10000),
    _switch("--test", TRAIN, "evaluate the test set after the training"),
    _flag("--batch_size_eval", SCORED, "triples that are ranked at once", type=int, default=8),
    _flag("--neg_sample_size_eval", SCORED, "the number of candidates of a ranking; -1: all entities", type=int,
          default=-1),
    _switch("--neg_deg_sample_eval", SCORED,
            "the other heads or tails of the batch are candidates too; only with --no_eval_filter"),
    _flag("--eval_percent", SCORED, "the share of the triples to evaluate; 1: all", type=float, default=1.0),
    _switch("--no_eval_filter", SCORED, "candidates may make known triples"),
    # Where it runs.
    _flag("--num_proc", ("train", "eval"), "clients on this machine", type=int, default=1),
    _flag("--num_thread", SCORED, "threads of each client for computation", type=int, default=1),
    _flag("--gpu", SCORED, "GPUs, dealt out to the clients in turn; each GPU has a client; -1: no GPU", type=int,
          nargs="+", default=[-1]),
    _switch("--mix_cpu_gpu", SCORED, "rows in main memory, computation on --gpu; always so with --gpu"),
    _flag("--path", ("dist_train",), "the workspace on every host, for logs and results"),
    _flag("--ip_config", ("dist_train",), 'a file of hosts, lines "address port servers"; servers: a server\'s threads',
          required=True),
    _flag("--ssh_key", ("dist_train",), "the private key for ssh"),
    _flag("--num_client_proc", ("dist_train",), "clients on each host", type=int, default=1),
    # Results.
    _flag("--save_path", TRAIN, "the folder for the results; the training makes MODEL_DATASET_N/ there",
          default="ckpts"),
    _switch("--no_save_emb --no_save_embed", TRAIN, "do not write the rows"),
    _flag("--model_path", ("eval", "predict"), "a folder that train wrote", default="ckpts"),
    # Inference.
    _flag("--format", ("predict",), "h_r_t: a data file for each letter; * instead of a letter: all of them",
          required=True),
    _flag("--format", ("emb_sim",), "l_r, l_*, *_r or *; a letter: a data file; *: all rows", required=True),
    _switch("--raw_data", INFER, "data files have names, not numbers"),
    _flag("--exec_mode", ("predict",), "best of line i of each file, of all, or for each head, relation or tail",
          default="all", choices=("triplet_wise", "all", "batch_head", "batch_rel", "batch_tail")),
    _flag("--exec_mode", ("emb_sim",), "best of line i of both files, of all pairs, or for each left row",
          default="all", choices=("pairwise", "all", "batch_left")),
    _flag("--topK --topk", INFER, "the number of results", type=int, default=10),
    _flag("--score_func", ("predict",), "print the score x, or log sigma(x)", default="none",
          choices=("none", "logsigmoid")),
    _flag("--sim_func", ("emb_sim",), "the similarity", default="cosine",
          choices=("cosine", "l2", "l1", "dot", "ext_jaccard")),
    _flag("--output", INFER, "the file for the results", default="result.tsv"),
    _flag("--entity_mfile", ("predict",), "a file with the names of entities; default: the model's"),
    _flag("--rel_mfile", ("predict",), "a file with the names of relations; default: the model's"),
    _flag("--mfile", ("emb_sim",), "a file with the names of the rows; default: the model's"),
    _flag("--emb_file", ("emb_sim",), "the .npy file of the rows", required=True),
    _flag("--gpu", INFER, "the GPU; -1: no GPU", type=int, default=-1),
    # Graphwire's own.
    _flag("--method", ("partition",), "metis cuts few triples; random works for any size", True, default="metis",
          choices=("metis", "random")),
    _flag("--memory", ("partition",), "the memory for METIS, for example 20Gi; default: the free memory", True),
    _flag("--seed", TRAIN, "seeds rows, batches and negatives; with one client the seed determines the result", True,
          type=int, default=0),
    _flag("--staleness", TRAIN, "how many steps ahead rows are pulled", True, type=int, default=1),
    _flag("--checkpoint_interval", TRAIN,
          "steps between two checkpoints, where clients wait for each other; 0: no checkpoint", True, type=int,
          default=0),
    _flag("--resume", TRAIN, "continue the training in this folder from its last checkpoint", True),
    _flag("--ssh_port", ("dist_train",), "sshd's port; default: from ~/.ssh/config", True, type=int),
    _flag("--via", ("dist_train",), "how ssh is run on the hosts (launch.py --help)", True,
          choices=("auto", "ssh", "clustershell")),
    _flag("--program", ("dist_train",),
          "the program graphwire on the hosts; default: in .graphwire/bin in --path, then in the PATH", True),
    _flag("--scheduler", ("dist_train",), "ssh; local: all hosts are this machine; slurm: the allocation's nodes", True,
          default="ssh", choices=("ssh", "local", "slurm")),
    _switch("--mean_ties", SCORED, "a triple gets the middle of the ranks of its ties, not the last", True),
)


class Parser(argparse.ArgumentParser):
    """argparse's parser, which raises UsageError. As in DGL-KE, a name may be shortened if only one flag of DGL-KE
    begins with it; Graphwire's own flags do not count."""

    def __init__(self, command: str):
        super().__init__(f"gwke_{command}")
        self._own: list[argparse.Action] = []
        for flag in FLAGS:
            if command in flag.commands:
                action = self.add_argument(*flag.names, help=flag.help.replace("%", "%%"), **flag.options)
                if flag.own:
                    self._own.append(action)

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Overrides argparse's: returns the flags that a shortened name may stand for, each once."""
        found = {id(some[0]): some for some in super()._get_option_tuples(option_string)}
        return [some for some in found.values() if some[0] not in self._own] or list(found.values())

    def dataset_given(self) -> bool:
        """Whether --dataset was given."""
        return any(isinstance(action, _Dataset) and action.given for action in self._actions)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}; {self.prog} --help")


def parse(command: str, words: Sequence[str]) -> argparse.Namespace:
    """Parses and checks the flags of a command; raises UsageError."""
    parser = Parser(command)
    args = parser.parse_args(words)
    try:
        if command in DATA and args.format != "built_in" and not parser.dataset_given():
            raise ValueError(f"--format {args.format} needs --dataset, a name for your own data")
        _check(command, args)
    except ValueError as error:
        raise UsageError(f"gwke_{command}: {error}") from error
    return args


# The range of each integer flag, first and last, and the least value of each fraction; fractions must be finite.
_INTEGERS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("num_parts", "hidden_dim", "batch_size", "neg_sample_size", "batch_size_eval", "num_proc",
                     "num_thread", "num_client_proc", "topK"), (1, 2**31 - 1)),
    "ssh_port": (1, 65535),
    **dict.fromkeys(("max_step", "log_interval", "eval_interval"), (1, 2**62)),
    "regularization_norm": (0, 2**31 - 1), "staleness": (0, 2**31 - 1), "checkpoint_interval": (0, 2**62),
    "force_sync_interval": (-1, 2**62), "seed": (0, checks.U64 - 2)}  # tensors use the seed and the next two
_NUMBERS: dict[str, float] = {
    "lr": 0, "regularization_coef": 0, "gamma": -math.inf, "margin": -math.inf, "adversarial_temperature": -math.inf}


def _check_numbers(args: argparse.Namespace) -> None:
    for name, (low, high) in _INTEGERS.items():
        if getattr(args, name, None) is not None:
            checks.integer(f"--{name}", getattr(args, name), low, high)
    for name, least in _NUMBERS.items():
        if getattr(args, name, None) is not None:
            checks.number(f"--{name}", getattr(args, name), least)


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

    count = torch.cuda.device_count()
    for gpu in gpus:
        if gpu >= count:
            raise ValueError(f"--gpu {gpu}: this machine has {count} GPUs")


def _check_scored(args: argparse.Namespace) -> None:
    if args.neg_deg_sample_eval and not args.no_eval_filter:
        raise ValueError("--neg_deg_sample_eval needs --no_eval_filter")
    if not 0 < args.eval_percent <= 1:
        raise ValueError(f"--eval_percent must be above 0 and at most 1, not {args.eval_percent}")
    if args.neg_sample_size_eval == 0 or args.neg_sample_size_eval < -1:
        raise ValueError("--neg_sample_size_eval must be -1 or above 0")
    if args.mix_cpu_gpu and min(args.gpu) < 0:
        raise ValueError("--mix_cpu_gpu needs --gpu")
    if min(args.gpu) < 0 and args.gpu != [-1]:
        raise ValueError("--gpu must be -1, or the numbers of GPUs")
    if args.gpu != [-1]:
        _check_gpus(args.gpu)
    if len(args.gpu) > 1:
        clients = "num_client_proc" if hasattr(args, "num_client_proc") else "num_proc"
        setattr(args, clients, max(getattr(args, clients), len(args.gpu)))
        if getattr(args, clients) % len(args.gpu):
            raise ValueError(f"--{clients} must be a multiple of the {len(args.gpu)} GPUs of --gpu, not "
                             f"{getattr(args, clients)}")


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


# The flags that may differ when a training is resumed. They set where the data is, when the training ends, what it
# reports and evaluates, where it runs, and which files it writes. results_folder() compares the number of clients,
# because num_client_proc is the number on one host.
MAY_CHANGE = frozenset((
    "data_path", "max_step", "force_sync_interval", "log_interval", "checkpoint_interval", "resume",
    "valid", "eval_interval", "test", "batch_size_eval", "neg_sample_size_eval", "neg_deg_sample_eval", "eval_percent",
    "no_eval_filter", "mean_ties", "num_proc", "num_thread", "gpu", "mix_cpu_gpu", "save_path", "no_save_emb"))


def changed(config: Mapping[str, Any], args: argparse.Namespace) -> list[str]:
    """Returns a text for each flag that makes `args` another training than config.json's. A flag that one side lacks
    has its default there: train and dist_train differ in a few flags. All flags that only dist_train has may change."""
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
    """Returns the table of docs/KGE.md: DGL-KE's flags, then Graphwire's own."""
    lines = ["| flag | commands | default | meaning |", "|---|---|---|---|"]
    for flag in sorted(FLAGS, key=lambda some: some.own):
        names = ", ".join(f"`{name}`" for name in flag.names)
        text = flag.help + (" (Graphwire)" if flag.own else "")
        lines.append(f"| {names} | {', '.join(flag.commands)} | {_default(flag)} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
