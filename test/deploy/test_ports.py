"""Rendezvous ports that other programs have taken, and ports of the trainers' own."""

from __future__ import annotations

import shutil
import sys
import unittest

from gwdeploy import cause
from test_cause import LOGS, torchrun
from test_local import OnThisMachine

_NO_PORT = """
import sys
port = next(word for word in sys.argv if "master_port" in word).partition("=")[2]
if "--node_rank=0" in sys.argv:
    open("runs", "a").write(port + "\\n")
    raise RuntimeError(f"The server socket has failed to bind to [::]:{port} (errno: 98 - Address already in use).")
"""
_OWN_PORT = """
import socket
open("own_port.runs", "a").write("x")
with socket.socket() as taken, socket.socket() as mine:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    mine.bind(taken.getsockname())
"""


class Texts(unittest.TestCase):
    """A port is lost if PyTorch's exception about this port ended torchrun itself, or rank 0 without torchrun."""

    texts = (  # of PyTorch 2 and of 1.13
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: {}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "RuntimeError: The server socket has failed to listen on any local network address. The server socket has "
        "failed to bind to [::]:{} (errno: 98 - Address already in use).",
    )
    others = (
        "OSError: [Errno 98] Address already in use",
        "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', {}): address already in use",
        "RuntimeError: metrics: cannot listen on {}: Address already in use",
        "torch.distributed.DistNetworkError: The client socket has failed to connect to 10.0.0.1:{}: EADDRINUSE",
    )

    def lost(self, text: str, port: int, *behind: str) -> bool:
        """Whether a trainer that raises `text`, with lines after it, lost the port."""
        raised = ["Traceback (most recent call last):", '  File "t.py", line 1, in <module>', "    main()", text]
        return cause.find(["epoch 1", *raised, *behind], "status 1").lost_port(port)

    def test_pytorchs_own_text_of_this_port(self) -> None:
        for text in self.texts:
            self.assertTrue(self.lost(text.format(29500), 29500))
            self.assertTrue(self.lost(text.format(29500), 29500, "an output that was buffered"))
            for other in (2950, 9500, 295000, 98):
                self.assertFalse(self.lost(text.format(29500), other), other)

    def test_texts_of_other_programs(self) -> None:
        for text in self.others:
            self.assertFalse(self.lost(text.format(29500), 29500), text)
        for text in self.texts:
            lines = [text.format(29500), "and goes on"]  # printed, or logged, and not raised
            self.assertFalse(cause.find(lines, "status 1").lost_port(29500))
            self.assertFalse(self.lost("ValueError: " + text.format(29500), 29500))

    def test_a_trainer_whose_own_store_takes_the_port(self) -> None:
        """torchrun's report says that a trainer failed, so torchrun itself had the port."""
        for text in self.texts:
            self.assertFalse(self.lost(text.format(29500), 29500, *torchrun(LOGS[0], 0, 1)))


class Launches(OnThisMachine):
    """What the launcher does and says."""

    def test_rendezvous_ports_that_are_all_taken(self) -> None:
        """A stand-in for torchrun never gets its port. The last line has what it said at first."""
        code = self.work / "torch/distributed"
        code.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, code.parent)
        for package in (code.parent, code):
            (package / "__init__.py").write_text("")
        (code / "run.py").write_text(_NO_PORT)
        runs = self.work / "runs"
        self.fails(
            r"^launch: other programs have taken each of 4 rendezvous ports; at first: host 0 .*: RuntimeError: The "
            r"server socket has failed to bind to \[::\]:\d+ \(errno: 98 - Address already in use\)\.",
            *("--extra_envs", "PYTHONPATH=.", "--", f"{sys.executable} t.py"),
        )
        self.assertEqual(len(set(runs.read_text().split())), 4)

    def test_a_port_of_the_trainers_own(self) -> None:
        """The trainer runs once, and its exception is the cause."""
        (self.work / "own_port.py").write_text(_OWN_PORT)
        self.fails(
            r"^launch: host 0 \(127.0.0.1\): trainer 0 ended with status 1: OSError: .*Address already in use; log: ",
            *("--no_torchrun", f'[ "$RANK" = 0 ] || exec sleep 900; {sys.executable} own_port.py'),
        )
        self.assertEqual((self.work / "own_port.runs").read_text(), "x")
