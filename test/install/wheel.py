"""wheel.py FOLDER [--without-metis]: what a user does after `pip install graphwire`, with the wheel's own program.
Without torch, if the environment has none. The Python of the environment that has the wheel runs it: for
test/check/python.sh, and in empty roots for test/slow/soak/roots.sh. Prints a line for each test.

    partition_graph in memory -> serve both parts -> an epoch over the servers, the same as from the files
    -> the console scripts, a launch, a copy of the program, python -m -> what is missing is named in one line
"""

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import graphwire
import numpy as np

BIN = Path(sys.executable).parent
KGE = [f"{prefix}_{name}" for prefix in ("gwke", "dglke")
       for name in ("partition", "train", "dist_train", "eval", "predict", "emb_sim")]
failures = []


def holds(what, true, why=""):
    print(f"{'ok' if true else 'not ok'} - wheel, Python {sys.version_info[0]}.{sys.version_info[1]}: {what}"
          + ("" if true else f": {why}"), flush=True)
    if not true:
        failures.append(what)


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)


def prints(what, pattern, *words, status=0):
    done = run(*words)
    text = done.stdout + done.stderr
    holds(what, done.returncode == status and pattern in text, f"{words} ended with {done.returncode}: {text[-500:]}")


def one_line(what, pattern, *words):
    """A refusal: status 1, one line on stderr, and that line has the pattern."""
    done = run(*words)
    lines = done.stderr.strip().splitlines()
    holds(what, done.returncode == 1 and len(lines) == 1 and pattern in lines[0],
          f"{words} ended with {done.returncode}: {done.stderr[-800:]}")


def served(folder):
    """Starts the console script for both parts; returns the processes and their addresses."""
    servers = [subprocess.Popen([BIN / "graphwire", "serve", "--part-config", folder, "--part", str(part), "--listen",
                                 "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) for part in (0, 1)]
    ready = [next(line for line in server.stdout if line.startswith("serving part")) for server in servers]
    return servers, [line.split(" at ")[1].split(": ")[0] for line in ready]


def epoch(graph):
    loader = graphwire.NodeLoader(graph, None, [4, 3], features="feat", batch_size=64, seed=7)
    return [np.array(batch.x).tobytes() for batch in loader]


def main(folder, metis):
    os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"  # as after `. venv/bin/activate`
    random = np.random.default_rng(1)
    src, dst = random.integers(0, 500, (2, 4000))
    features = {"feat": random.random((500, 8), dtype=np.float32)}
    for method in ("metis", "random"):
        try:
            graphwire.partition_graph((src, dst), "g", 2, folder / method, method=method, node_features=features)
            holds(f"partition_graph by {method}", method == "random" or metis, "it was built without METIS")
        except RuntimeError as error:
            holds("partition_graph names METIS", not metis and "was built without METIS" in str(error), error)
    parts = folder / ("metis" if metis else "random")
    servers, addresses = served(parts)
    try:
        with graphwire.open(parts) as files, graphwire.open(parts, servers=addresses) as graph:
            batches = epoch(graph)
            holds("an epoch over two servers has the files' bytes", len(batches) == 8 and batches == epoch(files))
    finally:
        for server in servers:
            server.terminate()
        holds("the servers end well", [server.wait() for server in servers] == [0, 0])
    version = f"graphwire {graphwire.__version__}"
    prints("graphwire --version", version, BIN / "graphwire", "--version")
    prints("python -m graphwire", version, sys.executable, "-m", "graphwire", "--version")
    prints("graphwire's status is the program's", "GRAPH", BIN / "graphwire", "partition", status=2)
    for name in ("launch", "copy", "cluster"):
        prints(f"graphwire-{name} --help", f"graphwire-{name} [", BIN / f"graphwire-{name}", "--help")
    with socket.create_server(("127.0.0.1", 0)) as free:
        (folder / "ip_config.txt").write_text(f"127.0.0.1 {free.getsockname()[1]}\n")
    graphwire.partition_graph((src, dst), "g", 1, folder / "one", node_features=features)
    prints("graphwire-launch runs the wheel's servers", "mini-batches", BIN / "graphwire-launch",
           "--scheduler", "local", "--workspace", folder, "--ip_config", folder / "ip_config.txt",
           "--num_servers", "1", "--num_trainers", "1", "--part_config", "one/g.json", "graphwire epoch --fanouts 3,3")
    prints("graphwire-copy --with_program copies the wheel's program", "the program is there", BIN / "graphwire-copy",
           "--scheduler", "local", "--workspace", folder / "copied", "--rel_data_path", "data", "--part_config",
           folder / "one", "--ip_config", folder / "ip_config.txt", "--with_program")
    prints("the copy runs", version, folder / "copied/.graphwire/bin/graphwire", "--version")
    if importlib.util.find_spec("torch") is None:
        told = "needs torch, and this Python does not have it"
        for name in KGE:
            one_line(f"{name} names torch", told, BIN / name, "--help")
        for module in ("graphwire.kge", "graphwire.dgl"):
            one_line(f"python -m {module} names torch", told, sys.executable, "-m", module, "--help")
    else:
        for name in KGE:
            prints(f"{name} --help", "--data_path", BIN / name, "--help")
    # Without the packages of this environment: `-S` leaves out site-packages, and the wheel alone is added again.
    lone = folder / "lone"
    lone.mkdir()
    for name in ("graphwire", "graphwire_commands.py"):
        os.symlink(Path(graphwire.__file__).parents[1] / name, lone / name)
    told = "graphwire needs cffi, and this Python does not have it"
    lonely = ["env", f"PYTHONPATH={lone}", sys.executable, "-S"]
    for module in ("graphwire", "graphwire.bench", "graphwire.dgl", "graphwire.kge"):
        one_line(f"python -m {module} names cffi", told, *lonely, "-m", module, "--help")
    for name in ("gwke_train", "dglke_eval"):
        one_line(f"{name} names cffi", told, *lonely, "-c", f"import sys; sys.argv = ['{name}', '--help']\n"
                 "import graphwire_commands; sys.exit(graphwire_commands.kge())")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--without-metis" not in sys.argv))
