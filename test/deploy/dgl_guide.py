"""The guide of DGL's GraphSAGE example (../shared/dgl-scripts/README.md), typed as printed on a desk with four
hosts: partition, copy, launch supervised and unsupervised, standalone. The scripts are DGL's, unmodified.

`./check adapters` runs this file (run.py dgl_guide), with its environment's Python in GRAPHWIRE_PYTHON and folders of
further packages in GRAPHWIRE_BESIDE; dgl is the one in these folders, else the subset. Addresses are the bed's. Scripts
that launch.py does not start get `-m graphwire.dgl`. The graph is a part of facebook's. If GRAPHWIRE_GUIDE is set, all
output is printed; "whole": the graph is all of facebook.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unittest

from bed import TOP, Bed
from ddp_trainers import HERE, ask_python
from shared import given
from test_hosts import HOSTS, OnHosts

WHOLE = os.environ.get("GRAPHWIRE_GUIDE") == "whole"
PRINTED = "GRAPHWIRE_GUIDE" in os.environ
NODES = 22470 if WHOLE else 6000
MOST_FREQUENT = 0.31  # the share of the most frequent label among the nodes
STEP_S = 3000 if WHOLE else 900  # time limit of a step


class Guide(OnHosts):
    """The tests run in order: each step uses the results of the steps before it."""

    @classmethod
    def setUpClass(cls) -> None:
        """Hosts whose python3 has PyTorch; and a desk with a checkout of DGL's examples, and the data set."""
        if os.geteuid() != 0:
            return
        cls.scripts, facebook = given("dgl-scripts"), given("data/facebook/facebook.npz")
        seen, packages = ask_python()
        beside = os.environ.get("GRAPHWIRE_BESIDE", "").replace(f"{TOP}/", "/mnt/top/")
        cls.bed = Bed(
            HOSTS,
            seen=seen,
            environment={
                "PATH": "/mnt/seen/bin:/mnt/program:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "PYTHONPATH": ":".join(filter(None, (beside, packages))),
                "GLOO_SOCKET_IFNAME": "eth0",  # no resolver here knows the hosts' names
                "DGLBACKEND": "pytorch",
                "OMP_NUM_THREADS": "1",  # threads that wait actively would wait for each other here
            },
        )
        cls.addClassCleanup(cls.bed.end)
        home = cls.bed.desk.home
        examples = home / "dgl/examples/pytorch/graphsage"
        shutil.copytree(cls.scripts, examples / "experimental")
        (examples / "experimental/load_graph.py").rename(examples / "load_graph.py")
        (home / "dgl/tools").symlink_to("/mnt/top/deploy")
        (examples / "experimental/ip_config.txt").unlink()
        (examples / "experimental/ip_config.txt").write_text("".join(f"{host.address}\n" for host in cls.bed.hosts))
        folder = TOP / "test/adapters/ogb_folder.py"
        dataset = examples / "experimental/dataset/ogbn_products"
        subprocess.run([HERE, folder, facebook, dataset, str(NODES)], check=True, timeout=STEP_S)
        cls.bed.reachable()

    def typed(self, says: str) -> str:
        """Types the block of the guide that contains this text. Returns its output."""
        blocks = re.findall(r"(?ms)^```bash\n(.*?)^```", (self.scripts / "README.md").read_text())
        (block,) = [block for block in blocks if re.search(says, block)]
        block = re.sub(r"(?m)^python3 (?=\w)", "python3 -m graphwire.dgl ", block)
        script = f"set -e; export PYTHONPATH=$PYTHONPATH:..; cd ~/dgl/examples/pytorch/graphsage/experimental\n{block}"
        result = self.bed.desk.shell(script, timeout=STEP_S)
        if PRINTED:
            print(f"$ {block}{result.stdout}", flush=True)
        self.assertEqual(result.returncode, 0, result.stdout[-2000:] + result.stderr[-3000:])
        self.nothing_left()
        return result.stdout

    def losses_fall(self, text: str) -> None:
        """Of all trainers together: the last quarter of the losses is below the first."""
        losses = [float(loss) for loss in re.findall(r"Loss ([0-9.]+)", text)]
        quarter = max(1, len(losses) // 4)
        self.assertLess(sum(losses[-quarter:]), sum(losses[:quarter]), text[-3000:])

    def test_1_partition(self) -> None:
        text = self.typed(r"partition_graph\.py.*--num_parts 4")
        self.assertRegex(text, rf"\|V\|={NODES}, \|E\|=\d+")
        self.assertRegex(text, rf"train: {NODES * 6 // 10}, valid: {NODES // 5}, test: {NODES // 5}")

    def test_2_copy(self) -> None:
        self.typed(r"^mkdir ~/dgl_code")
        self.typed(r"copy_files\.py")
        for host in self.bed.hosts:
            there = host.shell("cd graphsage; ls; ls ogb-product dgl_code").stdout.split()
            self.assertEqual(
                there,
                ["dgl_code", "ip_config.txt", "ogb-product", "dgl_code:", "train_dist.py", "train_dist_unsupervised.py"]
                + ["ogb-product:", "ogb-product.json", f"part{host.index}"],
            )

    def test_3_launch_supervised(self) -> None:
        text = self.typed(r"dgl_code/train_dist\.py (?!.*--num_gpus)")
        self.assertEqual(text.count("parent ends"), HOSTS)
        own = [int(count) for count in re.findall(r"part \d, train: (\d+) ", text)]
        self.assertEqual(sum(own), NODES * 6 // 10)  # trainers do not share what they learn about nodes
        self.losses_fall(text)
        accuracy = [float(found) for found in re.findall(r"Test Acc ([0-9.]+)", text)]
        self.assertEqual(len(accuracy), HOSTS * 6)
        self.assertGreater(sum(accuracy[-HOSTS:]) / HOSTS, 0.55 if WHOLE else MOST_FREQUENT + 0.06)

    def test_4_launch_unsupervised(self) -> None:
        text = self.typed(r"dgl_code/train_dist_unsupervised\.py")
        self.assertEqual(text.count("parent ends"), HOSTS)
        self.losses_fall(text)
        self.assertRegex(text, r"eval acc 0\.\d+; test acc 0\.\d+")

    def test_5_standalone(self) -> None:
        self.typed(r"partition_graph\.py.*--num_parts 1")
        self.losses_fall(self.typed(r"train_dist\.py.*--standalone"))
        text = self.typed(r"train_dist_unsupervised\.py.*--standalone")
        self.losses_fall(text)
        self.assertRegex(text, r"eval acc 0\.\d+; test acc 0\.\d+")


if __name__ == "__main__":
    unittest.main()
