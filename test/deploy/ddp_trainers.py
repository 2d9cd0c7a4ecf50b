"""PyTorch's own trainers on four hosts: examples/graphsage.py under torchrun, as launch.py starts it.

`./check python` runs this file (run.py ddp_trainers), with its environment's Python in GRAPHWIRE_PYTHON, because the
step `deploy` has no PyTorch.
"""

from __future__ import annotations

import json
import os
import subprocess
import unittest

from bed import TOP
from test_hosts import HOSTS, OnHosts

HERE = os.environ.get("GRAPHWIRE_PYTHON", str(TOP / "build/python/venv/bin/python"))
PYTHON = "/mnt/seen/bin/python3"  # on hosts, which cannot see this machine's home folder
TRAIN = "--num_epochs 2 --eval_every 2 --fan_out 4,3 --batch_size 64 --num_hidden 16 --log_every 0"
_ASK = "import sys; print(sys.base_prefix, *[path for path in sys.path if path.endswith('site-packages')])"


def ask_python() -> tuple[str, str]:
    """The folder of the environment's Python here, and its packages as hosts see them."""
    done = subprocess.run([HERE, "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
    base, *packages = done.stdout.split()
    return base, ":".join(path.replace(f"{TOP}/", "/mnt/top/") for path in packages)


class Ddp(OnHosts):
    """A trainer on each host. Gradients are averaged over the hosts' network, and rows come from all servers."""

    words_before: list[str]

    @classmethod
    def setUpClass(cls) -> None:
        """Hosts see that Python too."""
        cls.seen, packages = ask_python()
        # else gloo finds its network by the host's name, which no resolver here knows
        cls.words_before = ["--extra_envs", "GLOO_SOCKET_IFNAME=eth0", f"PYTHONPATH={packages}", "--"]
        super().setUpClass()

    def test_two_epochs(self) -> None:
        trainer = f"{PYTHON} /mnt/top/examples/graphsage.py {TRAIN} --metrics metrics.$GRAPHWIRE_JOB"
        result = self.launch(*self.words_before, trainer, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, rf"(?m)^\[trainer-10\.77\.0\.1-0\] .*{HOSTS} servers.*to learn from")
        self.assertRegex(result.stdout, r"test accuracy 0\.\d+")
        found = [list((host.home / "w").glob("metrics.*")) for host in self.bed.hosts]
        self.assertEqual([len(files) for files in found], [1, 0, 0, 0])  # only rank 0 prints it
        epochs = [json.loads(line) for line in found[0][0].read_text().splitlines()]
        self.assertLess(epochs[1]["loss"], epochs[0]["loss"])

    def test_an_exception_of_one_of_eight_ranks(self) -> None:
        """The other ranks lose their peer, and each host's torchrun prints a long report."""
        script = "import torch.distributed as d\nd.init_process_group('gloo')\n"
        script += "if d.get_rank() == 5: raise KeyError('no such thing')\nd.barrier()\n"
        for host in self.bed.hosts:
            (host.home / "w/raises.py").write_text(script)
        self.fails(
            r"^launch: host 2 \(10\.77\.0\.3\): trainer 5 ended with status 1: KeyError: 'no such thing'; "
            r"log: \S+/w/logs/\S+/trainer-10\.77\.0\.3-4\.log$",
            *("--num_trainers", "2", *self.words_before, f"{PYTHON} raises.py"),
            timeout=300,
        )


if __name__ == "__main__":
    unittest.main()
