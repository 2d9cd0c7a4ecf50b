"""What the examples share: options, the graph, the ranks, checkpoints, progress.

Options are written with - or _ alike and have the names that DGL's examples use. A script is distributed where it is
started as a rank (RANK and WORLD_SIZE, as torchrun sets them), and reads servers where it is given them; without either
it is one process that reads the parts itself.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import graphwire
import torch
import torch.distributed as dist

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
    train.add_argument("--num_hidden", type=int, default=64)
    train.add_argument("--dropout", type=float, default=0.5)
    train.add_argument("--lr", type=float, default=0.003)
    train.add_argument("--num_gpus", type=int, default=-1, help="GPUs of this host; -1: the processor")
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


def parse(parser, arguments=None):
    """Options with - read as options with _."""
    given = sys.argv[1:] if arguments is None else arguments
    same = []
    for word in given:
        name, equals, value = word.partition("=")
        same.append(name[:2] + name[2:].replace("-", "_") + equals + value if name.startswith("--") else word)
    return parser.parse_args(same)


def servers_of(path):
    """The addresses in an ip_config file."""
    found = []
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            host = f"[{words[0]}]" if ":" in words[0] and not words[0].startswith("[") else words[0]
            found.append(f"{host}:{words[1] if len(words) > 1 else DEFAULT_PORT}")
    return found


def open_graph(args):
    servers = None
    if not args.standalone:
        servers = args.servers or (servers_of(args.ip_config) if args.ip_config else None)
    graph = graphwire.open(args.part_config, servers, key_file=args.key_file, transport=args.transport,
                           threads=args.num_workers)
    if args.graph_name and args.graph_name != graph.name:
        raise SystemExit(f"the graph is {graph.name}, not {args.graph_name}")
    return graph


class Ranks:
    """This process among the trainers: world, rank, device; sums over all of them."""

    def __init__(self, args):
        self.world, self.rank = 1, 0
        gpu = args.num_gpus > 0 and torch.cuda.is_available()
        self.device = torch.device("cpu")
        if gpu:
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % args.num_gpus)
            torch.cuda.set_device(self.device)
        if int(os.environ.get("WORLD_SIZE", 1)) > 1 and not args.standalone:
            self.world, self.rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
            dist.init_process_group("nccl" if gpu else "gloo", init_method=args.init_method or "env://",
                                    world_size=self.world, rank=self.rank)
        torch.manual_seed(args.seed + self.rank)

    def parallel(self, model, some_unused=False):
        """The model, with its gradients averaged over the ranks."""
        model = model.to(self.device)
        if self.world == 1:
            return model
        return torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=some_unused)

    def sum(self, tensor):
        """In place, over all ranks."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def close(self):
        if self.world > 1:
            dist.destroy_process_group()


class Log:
    """Lines of metrics, and their curve."""

    def __init__(self, args, ranks, title):
        self.args, self.ranks, self.title, self.lines, self.start = args, ranks, title, [], time.time()
        if ranks.rank == 0 and args.metrics and not (args.checkpoint and Path(args.checkpoint).exists()):
            Path(args.metrics).write_text("")

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
        for name in sorted({name for line in self.lines for name in line} - {"seconds", "epoch", "step"}):
            points = [(line["epoch"], line[name]) for line in self.lines if name in line and "epoch" in line]
            axes.plot(*zip(*points), marker="o", markersize=3, label=name)
        axes.set(xlabel="epoch", title=self.title)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.tight_layout()
        figure.savefig(self.args.plot, dpi=120)


class Checkpoint:
    """Model, optimizer, loader and random numbers of all ranks in one file, replaced as a whole."""

    def __init__(self, args, ranks, model, optimizer, loader):
        self.path, self.every, self.ranks = args.checkpoint, args.checkpoint_every, ranks
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.steps = 0

    def load(self):
        """Goes on from the file, where there is one; says whether it does."""
        if not self.path or not Path(self.path).exists():
            return False
        saved = torch.load(self.path, map_location="cpu")
        if saved["world"] != self.ranks.world:
            raise SystemExit(f"{self.path} is of {saved['world']} trainers, and these are {self.ranks.world}")
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        torch.set_rng_state(saved["random"][self.ranks.rank])
        return True

    def step(self):
        """After every step: saves when it is time."""
        self.steps += 1
        if self.path and self.steps % self.every == 0:
            self.save()

    def save(self):
        if not self.path:
            return
        random = [torch.get_rng_state()]
        if self.ranks.world > 1:
            random = [torch.empty_like(random[0]) for _ in range(self.ranks.world)]
            dist.all_gather(random, torch.get_rng_state())
        if self.ranks.rank == 0:
            with tempfile.NamedTemporaryFile(dir=Path(self.path).absolute().parent, delete=False) as file:
                torch.save({"world": self.ranks.world, "model": self.model.state_dict(),
                            "optimizer": self.optimizer.state_dict(), "loader": self.loader.state_dict(),
                            "random": random}, file)
            os.replace(file.name, self.path)
