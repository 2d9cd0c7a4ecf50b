"""The common part of the examples: options, the graph, ranks, checkpoints, progress, inference layer by layer.

begin() -> options, Ranks, an opened graph -> train() -> inference()

Options may be written with - or _, and have the names of DGL's examples. A script is one of several ranks if RANK and
WORLD_SIZE are set, as by torchrun. It uses servers if an option names them. Otherwise it is one process, which reads
the parts itself.

Errors: SystemExit with a line of text for options that do not fit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import time
import uuid
import warnings
from pathlib import Path

import graphwire
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # must be imported before a group exists: see Ranks.close
import torch.nn.functional as F

DEFAULT_PORT = 30050


def options(text):
    """A parser with the options of all examples."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    where = parser.add_argument_group("the graph")
    where.add_argument("--graph_name", help="fail unless the graph has this name")
    where.add_argument("--part_config", help="the graph's JSON or its folder")
    where.add_argument("--ip_config", help="a file of servers, one a line: host [port]; line i is the server of part i")
    where.add_argument("--servers", help="the servers' addresses instead of a file: host:port,host:port")
    where.add_argument("--key_file", help="the file of the servers' key; not needed on a server's host")
    where.add_argument("--transport", help="auto, tcp, shm or verbs")
    where.add_argument("--standalone", action="store_true", help="this process reads the parts itself")
    train = parser.add_argument_group("training")
    train.add_argument("--num_epochs", type=int, default=20)
    train.add_argument("--batch_size", type=int, default=1000)
    train.add_argument("--fan_out", default="10,10", help="neighbours of each hop, from the seeds outwards; -1: all")
    train.add_argument("--num_layers", type=int, help="must equal the number of hops in fan_out, which is the default")
    train.add_argument("--num_hidden", type=int, default=64)
    train.add_argument("--dropout", type=float, default=0.5)
    train.add_argument("--lr", type=float, default=0.003)
    train.add_argument("--num_gpus", type=int, default=-1, help="GPUs of this host to use; -1: train on the CPU")
    train.add_argument("--num_workers", type=int, default=0, help="threads that sample; 0: one for each processor")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--init_method", help="torch.distributed's init_method (default: env://)")
    out = parser.add_argument_group("output")
    out.add_argument("--log_every", type=int, default=20, help="steps between two lines; 0: no lines")
    out.add_argument("--eval_every", type=int, default=5, help="epochs between two evaluations")
    out.add_argument("--checkpoint", help="a file: training continues from it if it exists, and writes it")
    out.add_argument("--checkpoint_every", type=int, default=100, help="steps between two checkpoints")
    out.add_argument("--metrics", help="a file to write, with a JSON object in each line")
    out.add_argument("--plot", help="a PNG file to write, with the learning curve (needs matplotlib)")
    for flag, kind in (("num_servers", int), ("num_clients", int), ("local_rank", int), ("id", int)):
        parser.add_argument(f"--{flag}", type=kind, help=argparse.SUPPRESS)  # DGL's launcher and scripts pass them
    return parser


def read_options(parser, arguments=None):
    """Parses options, whose names may have - instead of _."""
    given = sys.argv[1:] if arguments is None else arguments
    same = []
    for word in given:
        name, equals, value = word.partition("=")
        same.append(name[:2] + name[2:].replace("-", "_") + equals + value if name.startswith("--") else word)
    return parser.parse_args(same)


def parse(parser, arguments=None):
    """Parses and checks the options of the examples that train. Raises SystemExit."""
    args = read_options(parser, arguments)
    args.fan_out = [int(count) for count in args.fan_out.split(",")]
    if args.num_layers and args.num_layers != len(args.fan_out):
        raise SystemExit(f"{args.num_layers} layers need as many numbers in --fan_out, not {len(args.fan_out)}")
    first = int(os.environ.get("RANK", 0)) == 0
    if args.plot and first:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:  # report it before the training, not after it
            raise SystemExit(f"--plot needs matplotlib: {error}") from error
    several, launched = int(os.environ.get("WORLD_SIZE", 1)) > 1, "GRAPHWIRE_IP_CONFIG" in os.environ
    if args.standalone and (several or launched):
        if not args.part_config:
            raise SystemExit("--standalone reads the parts itself: --part_config")
        if first:
            print("--standalone: every process reads the parts and trains separately; the servers and ranks of the "
                  "launcher are ignored", file=sys.stderr, flush=True)
    return args


def begin(parser, arguments=None):
    """Returns (options, Ranks, opened graph)."""
    args = parse(parser, arguments)
    ranks = Ranks(args)
    return args, ranks, open_graph(args, ranks)


def columns(graph, name):
    """{node type: number of columns} of the node types that have the feature `name`."""
    return {feature.type: feature.shape[1] if len(feature.shape) > 1 else 1
            for feature in graph.features if not feature.of_edges and feature.name == name}


def labelled(graph, args):
    """The node type whose labels are learned: --ntype, else the first type with labels."""
    target = args.ntype or next(iter(columns(graph, args.label)), None)
    if target is None:
        raise SystemExit(f'no node type has "{args.label}"; --label names another feature')
    return target


def servers_of(path):
    """The addresses in an ip_config file, as "host:port"."""
    found = []
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            host = f"[{words[0]}]" if ":" in words[0] and not words[0].startswith("[") else words[0]
            found.append(f"{host}:{words[1] if len(words) > 1 else DEFAULT_PORT}")
    return found


def open_graph(args, ranks):
    """Opens the graph: over the servers that options name, else over the launcher's servers, else from its folder."""
    servers = args.servers
    launched = "GRAPHWIRE_IP_CONFIG" in os.environ and not servers
    if args.ip_config and not servers and not launched:
        servers = servers_of(args.ip_config)
    if args.standalone:
        servers, launched = None, False
    if ranks.world > 1 and not servers and not launched:
        raise SystemExit("several trainers need servers: give --ip_config or --servers")
    graph = graphwire.open(None if launched else args.part_config, servers, key_file=args.key_file,
                           transport=args.transport, threads=args.num_workers, job=ranks.job)
    if args.graph_name and args.graph_name != graph.name:
        raise SystemExit(f"the graph is {graph.name}, not {args.graph_name}")
    return graph


class Ranks:
    """This process among the trainers: world, rank and device, and operations of all ranks."""

    def __init__(self, args):
        self.world, self.rank = 1, 0
        gpu = args.num_gpus > 0
        if gpu and not torch.cuda.is_available():
            raise SystemExit(f"--num_gpus {args.num_gpus}: PyTorch {torch.__version__} sees no GPU; -1 trains on the "
                             "processor")
        self.device = torch.device("cpu")
        if gpu:
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % args.num_gpus)
            torch.cuda.set_device(self.device)
        if int(os.environ.get("WORLD_SIZE", 1)) > 1 and not args.standalone:
            self.world, self.rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
            dist.init_process_group("nccl" if gpu else "gloo", init_method=args.init_method or "env://",
                                    world_size=self.world, rank=self.rank)
        self.seed = args.seed
        self.job = self.of_first(os.environ.get("GRAPHWIRE_JOB") or f"example-{uuid.uuid4().hex}")

    def of_first(self, thing):
        """Returns rank 0's `thing` on every rank."""
        things = [thing]
        if self.world > 1:
            dist.broadcast_object_list(things)
        return things[0]

    def random(self, epoch, step):
        """Seeds torch's random numbers by epoch, step and rank, so that a resumed job draws the same numbers as an
        uninterrupted one."""
        torch.manual_seed((((self.seed * 1000003 + epoch) * 1000003 + step) * 4099 + self.rank) % 2**63)

    def parallel(self, model, some_unused=False):
        """The model on the device, with gradients averaged over the ranks (DDP)."""
        model = model.to(self.device)
        if self.world == 1:
            return model
        return torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=some_unused)

    def joined(self, model):
        """A context for an epoch in which ranks may have unequal numbers of steps. After it, all ranks have the same
        model."""
        warnings.filterwarnings("ignore", ".*ranks have unequal numbers of steps")  # join() handles them
        return model.join() if self.world > 1 else contextlib.nullcontext()

    def together(self, optimizer, steps):
        """Called after an epoch: copies the optimizer's state from a rank with the most steps to all ranks. joined()
        does that for the model only, and the optimizers' moments would stay different."""
        every = [steps] * self.world
        if self.world > 1:
            dist.all_gather_object(every, steps)
        if min(every) < max(every):
            first = every.index(max(every))
            state = [on_processor(optimizer.state_dict()) if self.rank == first else None]
            dist.broadcast_object_list(state, first)
            optimizer.load_state_dict(state[0])

    def share(self, count):
        """This rank's range of `count` things."""
        return range(count * self.rank // self.world, count * (self.rank + 1) // self.world)

    def sum(self, tensor):
        """The sum of a tensor over all ranks, on the CPU."""
        if self.world > 1:
            tensor = tensor.to(self.device)
            dist.all_reduce(tensor)
        return tensor.cpu()

    def barrier(self):
        if self.world > 1:
            dist.barrier()

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def close(self):
        """Destroys the group and ends its threads. A thread that asks for the GIL while the interpreter ends would
        abort the program. No other object may refer to the group:

        - torch.distributed.nn.functional keeps the group that exists when it is imported, so this file imports it
          before a group exists;
        - the model of parallel() refers to the group, so the caller sets model = None before. The model would otherwise
          be freed later, and wait for such a thread while it holds the GIL.
        """
        if self.world > 1:
            dist.destroy_process_group()


def on_processor(state):
    """Copies the tensors of a state to the CPU, because other ranks cannot use this rank's GPU."""
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {name: on_processor(value) for name, value in state.items()}
    return type(state)(map(on_processor, state)) if isinstance(state, (list, tuple)) else state


class Inputs(torch.nn.Module):
    """The input rows of the first layer, all of width num_hidden.

    For node types with the feature, a linear layer computes the rows from it. For other types, the rows are those of a
    table on the servers, which has a row for each node, and which SparseAdam trains there.

    widths: {node type: width of the feature}.
    """

    def __init__(self, graph, args, widths):
        super().__init__()
        self.graph, self.args, self.widths = graph, args, widths
        self.linear = torch.nn.ModuleDict(
            {ntype: torch.nn.Linear(width, args.num_hidden) for ntype, width in widths.items()})

    def tables(self):
        """Makes ({node type: table}, the optimizer of the tables). The servers store the tables; the module's state
        does not hold them."""
        found = {ntype: graphwire.Embedding(self.graph, f"embedding/{ntype}", self.args.num_hidden, ntype=ntype,
                                            seed=self.args.seed)
                 for ntype in self.graph.ntypes if ntype not in self.widths}
        return found, graphwire.optim.SparseAdam(list(found.values()), self.args.sparse_lr, sync=self.args.sync)

    def forward(self, features, embedded):
        return {**embedded, **{ntype: self.linear[ntype](rows) for ntype, rows in features.items()}}


def input_options(parser):
    """Adds the options that Inputs uses."""
    parser.add_argument("--feature", default="feat")
    parser.add_argument("--sparse_lr", type=float, default=0.01, help="the learning rate of the tables")
    parser.add_argument("--sync", action="store_true",
                        help="combine the ranks' gradients of the tables in the order of the ranks")


def inputs_of(batch, tables, args):
    """({node type: rows of the feature}, {node type: rows of the table}) of a batch."""
    features = {ntype: rows[args.feature].float() for ntype, rows in batch.features.items() if args.feature in rows}
    return features, {ntype: table(batch.nodes[ntype], batch.seeds.device) for ntype, table in tables.items()}


def train(args, ranks, loader, optimizers, loss_of, evaluate, checkpoint):
    """Trains up to --num_epochs epochs, in which all ranks have equal steps.

    loss_of(batch) returns the loss. evaluate(number of trained epochs) returns {name: figure}. Returns the figures of
    the last evaluation, which a resumed job may have from its checkpoint.
    """
    while (epoch := (state := loader.state_dict())["epoch"]) < args.num_epochs:
        begun, total = time.time(), torch.zeros(2)
        for batch in progress(loader):
            ranks.random(batch.epoch, batch.step)
            loss = loss_of(batch)
            optimizers[0].zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            total += torch.tensor([loss.item() * batch.num_seeds, batch.num_seeds])
            if args.log_every and (batch.step + 1) % args.log_every == 0:
                ranks.say(f"epoch {epoch} step {batch.step}: loss {loss.item():.4f}")
            checkpoint.step(batch)
        total = ranks.sum(total)
        figures = {"loss": float(total[0] / total[1])}
        text = f"{epoch_of(state)}: {in_words(figures)}, {time.time() - begun:.2f} s"
        if (epoch + 1) % args.eval_every == 0 or epoch + 1 == args.num_epochs:
            checkpoint.found = evaluate(epoch + 1)
            figures.update(checkpoint.found)
            text += f"; {in_words(checkpoint.found)}"
        ranks.say(text)
        checkpoint.log.add(epoch=epoch, **figures)
        checkpoint.save()
    checkpoint.log.plot()
    return checkpoint.found


@torch.no_grad()
def inference(model, graph, ranks, args, features, ntypes, first):
    """Computes the last layer's output for all nodes of `ntypes`. Returns {node type: graphwire.Tensor}, for the types
    that edges lead to. The caller passes it to forget().

    It computes one layer for all nodes, and then the next layer. Each rank computes a share of the nodes, with all
    neighbours. The rows between two layers are in tensors on the servers too.

    first(batch): returns the input rows of the first layer.
    model.layer(number, block, rows): returns the output rows of a layer.
    """
    model.eval()
    rows = {}
    for number in range(len(model.layers)):
        found = {}
        for ntype in ntypes if number == len(model.layers) - 1 else graph.ntypes:
            share = ranks.share(graph.num_nodes(ntype))
            for batch in graphwire.NodeLoader(graph, share, [-1], ntype=ntype, batch_size=args.batch_size_eval,
                                              features=None if number else features, world=1, rank=0,
                                              device=ranks.device) if len(share) else ():
                if number == 0:
                    near = first(batch)
                else:
                    near = {kind: tensor[batch.nodes[kind]].to(ranks.device) for kind, tensor in rows.items()}
                out = model.layer(number, batch.blocks[0], near)
                if ntype in out:
                    if ntype not in found:
                        found[ntype] = graph.create_tensor(f"layer{number}/{ntype}", (0, out[ntype].shape[1]),
                                                           ntype=ntype)
                    found[ntype][batch.seeds] = out[ntype][batch.seed_rows]
        ranks.barrier()
        for ntype in graph.ntypes:  # another rank has made the tensor if a type has fewer nodes than ranks
            if ntype not in found and any(t["name"] == f"layer{number}/{ntype}" for t in graph.tensors):
                found[ntype] = graph.open_tensor(f"layer{number}/{ntype}")
        forget(graph, ranks, rows)
        rows = found
    model.train()
    return rows


def forget(graph, ranks, tensors):
    """Deletes tensors when every rank has finished using them."""
    ranks.barrier()
    for tensor in tensors.values() if ranks.rank == 0 else ():
        graph.delete_tensor(tensor.name)
    ranks.barrier()


def fitted(model, x, y, steps, tested):
    """Trains a model, which sees only single rows, to predict the classes y of the rows x. Returns its scores of
    `tested`."""
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(steps):
        some = torch.randint(len(x), (min(len(x), 5000),))
        loss = F.cross_entropy(model(x[some]), y[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return model(tested)


def begin_anew(path):
    """Opens a new file, in place of the one that a killed job may have left. A link of that name is not followed."""
    path.unlink(missing_ok=True)
    return open(path, "xb")


def write_rows(path, graph, ntype, tensor, count):
    """Writes a tensor with a row for each node of a type to a .npy file, `count` rows at a time.

    The rows are in the order of original ids, if these are 0 to nodes - 1, each once; else in the order of the graph's
    ids. Returns a text that names the order.
    """
    nodes = graph.num_nodes(ntype)
    blocks = [slice(begin, min(begin + count, nodes)) for begin in range(0, nodes, count)]
    seen = np.zeros(nodes, bool)
    original = graph.feature("orig_id", ntype) if ntype in columns(graph, "orig_id") else None
    for block in blocks if original is not None else ():
        ids = original[block].numpy()
        seen[ids[(ids >= 0) & (ids < nodes)]] = True
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.tmp")
    begin_anew(unfinished).close()
    out = np.lib.format.open_memmap(unfinished, "w+", np.float32, (nodes, tensor.shape[1]))
    by_original = bool(seen.all())
    for block in blocks:
        out[original[block].numpy() if by_original else block] = tensor[block].numpy()
    out.flush()
    os.replace(unfinished, path)
    return "original ids" if by_original else "the graph's ids"


def progress(loader):
    """The loader's batches. If tqdm is installed and the output is a terminal, rank 0 shows a progress bar."""
    try:
        from tqdm import tqdm
    except ImportError:
        return loader
    return tqdm(loader, total=len(loader), disable=True if loader.rank else None, leave=False, desc="training")


def at_epoch(loader, epoch):
    """Sets the loader's next epoch, and returns the loader. So the sampling of an evaluation depends on the training's
    epoch, and not on how often this process has evaluated: a resumed job gets the same figures."""
    loader.load_state_dict({"epoch": epoch, "step": 0, "plan": 0})
    return loader


def epoch_of(state):
    """Names the epoch that a loader begins. For an epoch that a killed job had begun, it also names the first step,
    because the figures are those of the remaining steps."""
    return f"epoch {state['epoch']}" + (f" from step {state['step']}" if state["step"] else "")


def in_words(figures):
    """Figures as text: floats with four digits, counts as they are."""
    return ", ".join(f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in figures.items())


class Log:
    """The lines of --metrics, and the plot of --plot."""

    def __init__(self, args, ranks, title):
        self.args, self.ranks, self.title, self.lines, self.start = args, ranks, title, [], time.time()

    def begin(self, lines=()):
        """Begins the log with the lines of a checkpoint, if any, and overwrites the file with them."""
        self.lines = list(lines)
        self.start = time.time() - max((line["seconds"] for line in self.lines), default=0)
        if self.ranks.rank == 0 and self.args.metrics:
            Path(self.args.metrics).write_text("".join(json.dumps(line) + "\n" for line in self.lines))

    def add(self, **values):
        line = {"seconds": round(time.time() - self.start, 3), **values}
        self.lines.append(line)
        if self.ranks.rank == 0 and self.args.metrics:
            with open(self.args.metrics, "a") as out:
                out.write(json.dumps(line) + "\n")

    def plot(self):
        """Draws all figures over the epochs, in one PNG file."""
        if self.ranks.rank != 0 or not self.args.plot:
            return
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4))
        names = {name for line in self.lines for name, value in line.items() if isinstance(value, float)}
        for name in sorted(names - {"seconds"}):
            points = [(line["epoch"], line[name]) for line in self.lines if name in line and "epoch" in line]
            axes.plot(*zip(*points), marker="o", markersize=3, label=name)
        axes.set(xlabel="epoch", title=self.title)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.tight_layout()
        figure.savefig(self.args.plot, dpi=120)


class Checkpoint:
    """Saves model, optimizer, loader and log in one file, which rank 0 writes and replaces atomically. All ranks load
    the same file.

    tables: {node type: Embedding}. They are saved in another folder, in the same place as the file; the file names the
    folder. With tables, all ranks must have equal steps, and they wait for each other.
    found: {name: figure} that the job keeps.
    """

    def __init__(self, args, ranks, model, optimizer, loader, log, graph=None, tables=None):
        self.graph, self.tables = graph, [table.tensor.name for table in (tables or {}).values()]
        self.log, self.found = log, {}
        self.path, self.every, self.ranks = args.checkpoint, args.checkpoint_every, ranks
        self.model, self.optimizer, self.loader = model, optimizer, loader

    def load(self):
        """Begins the log. If rank 0 has a checkpoint's file, restores its state on all ranks. Returns whether it does.
        Raises SystemExit for a file that does not fit."""
        saved = None
        if self.path and self.ranks.rank == 0 and Path(self.path).exists():
            saved = torch.load(self.path, map_location="cpu", weights_only=True)
        saved = self.ranks.of_first(saved)
        if saved is None:
            self.log.begin()
            return False
        parts = {"world", "model", "optimizer", "loader", "lines", "found"}
        if not isinstance(saved, dict) or not parts <= saved.keys():
            raise SystemExit(f"{self.path} is no checkpoint of this example, or one of an older version")
        if saved["world"] != self.ranks.world:
            raise SystemExit(f"{self.path} is of {saved['world']} trainers, and these are {self.ranks.world}")
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        self.log.begin(saved["lines"])
        self.found = saved["found"]
        if self.tables:
            if self.ranks.rank == 0:
                self.graph.restore(Path(self.path).with_name(Path(saved["tables"]).name), self.tables)
            self.ranks.barrier()
        return True

    def step(self, batch):
        """Called after each step: saves every --checkpoint_every steps, except at the last two steps of an epoch, which
        some ranks may not have."""
        if (batch.step + 1) % self.every == 0 and batch.step + 2 < len(self.loader):
            self.save()

    def save(self):
        if not self.path:
            return
        if self.tables:
            self.ranks.barrier()
        if self.ranks.rank == 0:
            self._write()
        if self.tables:
            self.ranks.barrier()

    def _write(self):
        state = self.loader.state_dict()
        saved = {"world": self.ranks.world, "model": self.model.state_dict(), "loader": state,
                 "optimizer": self.optimizer.state_dict(), "lines": self.log.lines, "found": self.found}
        if self.tables:
            folder = Path(f"{self.path}.tables-{state['epoch']}-{state['step']}")
            saved["tables"] = folder.name
            self.graph.checkpoint(folder, self.tables, replace=True)
        unfinished = Path(f"{self.path}.tmp")
        with begin_anew(unfinished) as file:
            torch.save(saved, file)
        os.replace(unfinished, self.path)
        own = re.compile(re.escape(Path(self.path).name) + r"\.tables-\d+-\d+")
        for old in Path(self.path).absolute().parent.iterdir():
            if own.fullmatch(old.name) and old.name != saved.get("tables"):
                shutil.rmtree(old)
