"""What the examples share: options, the graph, the ranks, checkpoints, progress, inference layer by layer.

Options are written with - or _ alike and have the names that DGL's examples use. A script is distributed where it is
started as a rank (RANK and WORLD_SIZE, as torchrun sets them), and reads servers where it is given them; without either
it is one process that reads the parts itself.
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
import torch.distributed.nn.functional  # before there is a group: Ranks.close tells why
import torch.nn.functional as F

DEFAULT_PORT = 30050


def options(text):
    """A parser with the options of all examples."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    where = parser.add_argument_group("the graph")
    where.add_argument("--graph_name", help="checked against the graph's name")
    where.add_argument("--part_config", help="the graph's JSON or its folder")
    where.add_argument("--ip_config", help="a file of servers, one a line: host [port]; part i is line i's")
    where.add_argument("--servers", help="the same here: host:port,host:port")
    where.add_argument("--key_file", help="the servers' key; found by itself on this host")
    where.add_argument("--transport", help="auto, tcp, shm or verbs")
    where.add_argument("--standalone", action="store_true", help="one process that reads the parts itself")
    train = parser.add_argument_group("training")
    train.add_argument("--num_epochs", type=int, default=20)
    train.add_argument("--batch_size", type=int, default=1000)
    train.add_argument("--fan_out", default="10,10", help="neighbours of each hop, from the seeds outwards; -1: all")
    train.add_argument("--num_layers", type=int, help="as many as fan_out has hops, which is the default")
    train.add_argument("--num_hidden", type=int, default=64)
    train.add_argument("--dropout", type=float, default=0.5)
    train.add_argument("--lr", type=float, default=0.003)
    train.add_argument("--num_gpus", type=int, default=-1, help="GPUs of this host that are used; -1: the processor")
    train.add_argument("--num_workers", type=int, default=0, help="threads that sample; 0: one per processor")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--init_method", help="how ranks meet: torch.distributed's (default: env://)")
    out = parser.add_argument_group("output")
    out.add_argument("--log_every", type=int, default=20, help="steps between two lines; 0: none")
    out.add_argument("--eval_every", type=int, default=5, help="epochs between two evaluations")
    out.add_argument("--checkpoint", help="a file to go on from, written as training goes")
    out.add_argument("--checkpoint_every", type=int, default=100, help="steps between two checkpoints")
    out.add_argument("--metrics", help="a file of JSON objects, one a line")
    out.add_argument("--plot", help="a PNG of the learning curve (needs matplotlib)")
    for flag, kind in (("num_servers", int), ("num_clients", int), ("local_rank", int), ("id", int)):
        parser.add_argument(f"--{flag}", type=kind, help=argparse.SUPPRESS)  # DGL's launcher and scripts pass them
    return parser


def read_options(parser, arguments=None):
    """Options with - read as options with _."""
    given = sys.argv[1:] if arguments is None else arguments
    same = []
    for word in given:
        name, equals, value = word.partition("=")
        same.append(name[:2] + name[2:].replace("-", "_") + equals + value if name.startswith("--") else word)
    return parser.parse_args(same)


def parse(parser, arguments=None):
    """The options of the examples that train."""
    args = read_options(parser, arguments)
    args.fan_out = [int(count) for count in args.fan_out.split(",")]
    if args.num_layers and args.num_layers != len(args.fan_out):
        raise SystemExit(f"{args.num_layers} layers need as many numbers in --fan_out, not {len(args.fan_out)}")
    first = int(os.environ.get("RANK", 0)) == 0
    if args.plot and first:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:  # now, and not when everything has been computed
            raise SystemExit(f"--plot needs matplotlib: {error}") from error
    several, launched = int(os.environ.get("WORLD_SIZE", 1)) > 1, "GRAPHWIRE_IP_CONFIG" in os.environ
    if args.standalone and (several or launched):
        if not args.part_config:
            raise SystemExit("--standalone reads the parts itself: --part_config")
        if first:
            print("--standalone: every process reads the parts and trains for itself; servers and trainers that a "
                  "launcher has started are ignored", file=sys.stderr, flush=True)
    return args


def begin(parser, arguments=None):
    """Options, ranks, graph."""
    args = parse(parser, arguments)
    ranks = Ranks(args)
    return args, ranks, open_graph(args, ranks)


def columns(graph, name):
    """{node type: columns}, of the types that have the feature `name`."""
    return {feature.type: feature.shape[1] if len(feature.shape) > 1 else 1
            for feature in graph.features if not feature.of_edges and feature.name == name}


def labelled(graph, args):
    """The node type whose labels are learned."""
    target = args.ntype or next(iter(columns(graph, args.label)), None)
    if target is None:
        raise SystemExit(f'no node type has "{args.label}"; --label names another feature')
    return target


def servers_of(path):
    """The addresses in an ip_config file."""
    found = []
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            host = f"[{words[0]}]" if ":" in words[0] and not words[0].startswith("[") else words[0]
            found.append(f"{host}:{words[1] if len(words) > 1 else DEFAULT_PORT}")
    return found


def open_graph(args, ranks):
    """From the servers that are named; else as this script was launched; else from the folder."""
    servers = args.servers
    launched = "GRAPHWIRE_IP_CONFIG" in os.environ and not servers
    if args.ip_config and not servers and not launched:
        servers = servers_of(args.ip_config)
    if args.standalone:
        servers, launched = None, False
    if ranks.world > 1 and not servers and not launched:
        raise SystemExit("several trainers share what the servers hold: --ip_config or --servers")
    graph = graphwire.open(None if launched else args.part_config, servers, key_file=args.key_file,
                           transport=args.transport, threads=args.num_workers, job=ranks.job)
    if args.graph_name and args.graph_name != graph.name:
        raise SystemExit(f"the graph is {graph.name}, not {args.graph_name}")
    return graph


class Ranks:
    """This process among the trainers: world, rank, device; sums over all of them."""

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
        """What the first rank gave, on every rank."""
        things = [thing]
        if self.world > 1:
            dist.broadcast_object_list(things)
        return things[0]

    def random(self, epoch, step):
        """Random numbers of a step depend on where it is, so that a job which goes on draws what it would have."""
        torch.manual_seed((((self.seed * 1000003 + epoch) * 1000003 + step) * 4099 + self.rank) % 2**63)

    def parallel(self, model, some_unused=False):
        """The model, with its gradients averaged over the ranks."""
        model = model.to(self.device)
        if self.world == 1:
            return model
        return torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=some_unused)

    def joined(self, model):
        """Around an epoch: ranks may have unequal numbers of steps, and have the same model after it."""
        warnings.filterwarnings("ignore", ".*ranks have unequal numbers of steps")  # which are no harm here
        return model.join() if self.world > 1 else contextlib.nullcontext()

    def together(self, optimizer, steps):
        """After an epoch: every rank has the optimizer of one that made the most steps, as joined() sees to for the
        model. Its moments would differ for good."""
        every = [steps] * self.world
        if self.world > 1:
            dist.all_gather_object(every, steps)
        if min(every) < max(every):
            first = every.index(max(every))
            state = [on_processor(optimizer.state_dict()) if self.rank == first else None]
            dist.broadcast_object_list(state, first)
            optimizer.load_state_dict(state[0])

    def share(self, count):
        """This rank's of `count` things."""
        return range(count * self.rank // self.world, count * (self.rank + 1) // self.world)

    def sum(self, tensor):
        """Over all ranks."""
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
        """Ends the group and its threads, of which one that asks for Python's lock as the interpreter goes would abort
        the program. Nobody else may have the group by then: not torch.distributed.nn.functional, which keeps the one it
        finds as it is imported, and not what parallel() gave (model = None), which would wait, as it goes, for such a
        thread, and hold the lock."""
        if self.world > 1:
            dist.destroy_process_group()


def on_processor(state):
    """The same with its tensors in the processor's memory: a rank's GPU is none of the others'."""
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {name: on_processor(value) for name, value in state.items()}
    return type(state)(map(on_processor, state)) if isinstance(state, (list, tuple)) else state


class Inputs(torch.nn.Module):
    """What the first layer takes, all of one width: the feature through a linear layer, and for types that lack it rows
    of a table in the servers, one for each node, which SparseAdam trains there. widths: of the feature, by type."""

    def __init__(self, graph, args, widths):
        super().__init__()
        self.graph, self.args, self.widths = graph, args, widths
        self.linear = torch.nn.ModuleDict(
            {ntype: torch.nn.Linear(width, args.num_hidden) for ntype, width in widths.items()})

    def tables(self):
        """The tables, and the optimizer that trains them; they are the servers', and no part of the module's state."""
        found = {ntype: graphwire.Embedding(self.graph, f"embedding/{ntype}", self.args.num_hidden, ntype=ntype,
                                            seed=self.args.seed)
                 for ntype in self.graph.ntypes if ntype not in self.widths}
        return found, graphwire.optim.SparseAdam(list(found.values()), self.args.sparse_lr, sync=self.args.sync)

    def forward(self, features, embedded):
        return {**embedded, **{ntype: self.linear[ntype](rows) for ntype, rows in features.items()}}


def input_options(parser):
    """Those of Inputs."""
    parser.add_argument("--feature", default="feat")
    parser.add_argument("--sparse_lr", type=float, default=0.01, help="of the tables")
    parser.add_argument("--sync", action="store_true", help="combine the ranks' gradients of the tables in order")


def inputs_of(batch, tables, args):
    """A batch's rows of the feature, and of the tables."""
    features = {ntype: rows[args.feature].float() for ntype, rows in batch.features.items() if args.feature in rows}
    return features, {ntype: table(batch.nodes[ntype], batch.seeds.device) for ntype, table in tables.items()}


def train(args, ranks, loader, optimizers, loss_of, evaluate, checkpoint):
    """Epochs of equal steps for all ranks, up to --num_epochs. evaluate: called with the number of epochs that were
    trained. Returns what it found last, in this job or the one that it goes on from."""
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
    """What the last of model.layers gives for all nodes of `ntypes`: {node type: tensor of the servers}, of types that
    edges lead to.

    One layer for all nodes, then the next; each rank a share of the nodes, with all neighbours. What lies between is in
    tensors too. first(batch): what the first layer takes; model.layer(number, block, rows): what a layer gives.
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
        for ntype in graph.ntypes:  # of types that have fewer nodes than there are ranks
            if ntype not in found and any(t["name"] == f"layer{number}/{ntype}" for t in graph.tensors):
                found[ntype] = graph.open_tensor(f"layer{number}/{ntype}")
        forget(graph, ranks, rows)
        rows = found
    model.train()
    return rows


def forget(graph, ranks, tensors):
    """Deletes tensors, once every rank is done with them."""
    ranks.barrier()
    for tensor in tensors.values() if ranks.rank == 0 else ():
        graph.delete_tensor(tensor.name)
    ranks.barrier()


def fitted(model, x, y, steps, tested):
    """Scores of `tested`, by a model of rows alone that learns the classes y of the rows x."""
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


def write_rows(path, graph, ntype, tensor, count):
    """A tensor's rows, one for each node of a type, as a .npy file, `count` at a time.

    A node's row is that of its original id, where these are 0 to nodes - 1, each once; else that of the graph's id.
    Returns which.
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
    out = np.lib.format.open_memmap(unfinished, "w+", np.float32, (nodes, tensor.shape[1]))
    by_original = bool(seen.all())
    for block in blocks:
        out[original[block].numpy() if by_original else block] = tensor[block].numpy()
    out.flush()
    os.replace(unfinished, path)
    return "original ids" if by_original else "the graph's ids"


def progress(loader):
    """Its batches, with a bar of the first rank on a terminal, where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return loader
    return tqdm(loader, total=len(loader), disable=True if loader.rank else None, leave=False, desc="training")


def at_epoch(loader, epoch):
    """The loader, which gives this epoch next. What evaluation draws depends on how far training is, and not on how
    often this process has evaluated: a job that goes on finds what it would have."""
    loader.load_state_dict({"epoch": epoch, "step": 0, "plan": 0})
    return loader


def epoch_of(state):
    """Which epoch a loader is about to give, and of one that a killed job had begun, from where: its figures are those
    of the rest."""
    return f"epoch {state['epoch']}" + (f" from step {state['step']}" if state["step"] else "")


def in_words(figures):
    """Figures are floats, counts are not."""
    return ", ".join(f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in figures.items())


class Log:
    """Lines of metrics, and their curve."""

    def __init__(self, args, ranks, title):
        self.args, self.ranks, self.title, self.lines, self.start = args, ranks, title, [], time.time()

    def begin(self, lines=()):
        """From nothing; or from the lines that a checkpoint has, which are all that the file holds then."""
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
        """Every figure that was logged by epoch, as one PNG."""
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
    """Model, optimizer, loader and log in one file of the first rank, replaced as a whole; the same for all ranks.

    tables: {node type: Embedding} of a graph; saved too, in a folder beside the file, which names it. Ranks that have
    some have equal steps, and wait for each other. found: figures that the job keeps, by name.
    """

    def __init__(self, args, ranks, model, optimizer, loader, log, graph=None, tables=None):
        self.graph, self.tables = graph, [table.tensor.name for table in (tables or {}).values()]
        self.log, self.found = log, {}
        self.path, self.every, self.ranks = args.checkpoint, args.checkpoint_every, ranks
        self.model, self.optimizer, self.loader = model, optimizer, loader

    def load(self):
        """Begins the log; goes on from the first rank's file, where it has one, and says whether it does."""
        saved = None
        if self.path and self.ranks.rank == 0 and Path(self.path).exists():
            saved = torch.load(self.path, map_location="cpu")
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
        """After every step: saves when it is time, but for the last ones, which not every rank may have."""
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
        unfinished = f"{self.path}.tmp"  # of a job that was killed too
        torch.save(saved, unfinished)
        os.replace(unfinished, self.path)
        own = re.compile(re.escape(Path(self.path).name) + r"\.tables-\d+-\d+")
        for old in Path(self.path).absolute().parent.iterdir():
            if own.fullmatch(old.name) and old.name != saved.get("tables"):
                shutil.rmtree(old)
