"""The cause of a trainer's failure: the output of Python itself for each kind of end, with other lines after or
between."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bed import HANG_S
from gwdeploy import cause, failures
from gwdeploy.ip_config import Host
from gwdeploy.process import Process

# Programs, and the causes that must be reported.
KINDS = {
    "raise ValueError('no such thing')": "ValueError: no such thing",
    "class Own(Exception): pass\nraise Own('mine')": r"(__main__\.)?Own: mine",
    "raise RuntimeError": "RuntimeError",
    "raise ValueError('first\\n\\tsecond\\n\\tthird')": r"ValueError: first \| second \| third",
    "raise ValueError('\\nNot equal')": r"ValueError: \| Not equal",
    "import json; json.loads('x')": r"json\.decoder\.JSONDecodeError: Expecting value: .*",
    "import torch_that_is_not_there": "ModuleNotFoundError: No module named 'torch_that_is_not_there'",
    "try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e": "RuntimeError: outer",
    "try:\n    {}['a']\nexcept KeyError:\n    raise RuntimeError('outer')": "RuntimeError: outer",
    "x = 1\ndef (:\n": "SyntaxError: invalid syntax",
    "if 1:\nx = 1\n": "IndentationError: expected an indented block.*",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "print('of stdout'); raise TypeError('not this type')": r"TypeError: not this type( \| of stdout)?",
    "class A:\n    def __del__(self): 1 / 0\na = A()\nraise OSError(2, 'gone')": r"OSError: \[Errno 2\] gone|"
    r"FileNotFoundError: \[Errno 2\] gone",
    "import atexit\natexit.register(lambda: 1 / 0)\nraise ValueError('first')": r"ValueError: first( \| .*)?",
    "import logging\ntry:\n    1 / 0\nexcept ZeroDivisionError: logging.exception('goes on')\n"
    "print('on', flush=True)\nraise ValueError('the end')": "ValueError: the end",
    "import warnings\nwarnings.warn('careful')\nraise ValueError('after it')": "ValueError: after it",
    "from concurrent.futures import ProcessPoolExecutor as P\nwith P(1) as p: p.submit(int, 'x').result()": (
        "ValueError: invalid literal for int.*"
    ),
    "import multiprocessing as m\np = m.get_context('fork').Process(target=int, args=('x',))\np.start(); p.join()\n"
    "raise SystemExit(p.exitcode)": r"ValueError: invalid literal for int.*",
    "import threading\nt = threading.Thread(target=int, args=('x',)); t.start(); t.join()\n"
    "import queue; queue.Queue().get(timeout=0)": r"ValueError: invalid literal for int.*",
    "import sys; print('line'); sys.exit('a text for you')": r"(line \| )?a text for you( \| line)?",
    "import faulthandler, ctypes; faulthandler.enable(); ctypes.string_at(0)": r"Fatal Python error: Segmentation fault"
    r" \| File \".*\", line \d+ in .*",
}

_TRACEBACK = """Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/x/torch/distributed/run.py", line 1032, in <module>
    main()
  File "/x/torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: """


def torchrun(log: str, rank: int, status: int) -> list[str]:
    """torchrun's report at its end. log: the beginning of its log's lines."""
    one = "  time      : 2026-01-01_00:00:00\n  host      : node\n  rank      : {0} (local_rank: {0})\n"
    one += "  exitcode  : {1} (pid: 12) {2}\n  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received\n"
    text = f"{log}Sending process 12 closing signal SIGTERM\n"
    text += f"{log}failed (exitcode: {status}) local_rank: {rank} (pid: 13) of binary: /usr/bin/python3\n{_TRACEBACK}\n"
    text += f"{'=' * 60}\nt.py FAILED\n{'-' * 60}\nFailures:\n[1]:\n{one.format(9, -15, '(SIGTERM)')}"
    text += f"{'-' * 60}\nRoot Cause (first observed failure):\n[0]:\n{one.format(rank, status, '')}{'=' * 60}"
    return text.split("\n")


LOGS = (
    "W1125 19:57:28.583000 24683 torch/distributed/elastic/multiprocessing/api.py:1028] ",
    "[2024-01-01 12:00:00,000] torch.distributed.elastic.multiprocessing.api: [ERROR] ",
    "ERROR:torch.distributed.elastic.multiprocessing.api:",
)
_BEHIND = (
    "[W1125 19:57:28.1 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called\n"
    "[rank0]:[W1125 19:57:28.1 socket.cpp:767] [c10d] The client socket has failed to connect to [::1]:1\n"
    "/usr/lib/python3/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: 1 leaked semaphore\n"
    "  warnings.warn('resource_tracker: There appear to be %d '\n"
    "Process SpawnProcess-1:\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3/multiprocessing/spawn.py", line 122, in spawn_main\nKeyboardInterrupt'
).split("\n")


def run(script: str) -> tuple[list[str], str]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t.py").write_text(script)
        words = ["timeout", str(HANG_S), sys.executable, "t.py"]
        done = subprocess.run(words, cwd=folder, stdout=-1, stderr=subprocess.STDOUT, text=True, check=False)
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return done.stdout.splitlines(), how


class Kinds(unittest.TestCase):
    """Each kind of end alone, and with the output of each other kind after it."""

    kinds: dict[str, tuple[list[str], str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.kinds = {script: run(script) for script in KINDS}

    def test_alone_and_under_torchrun(self) -> None:
        for script, wanted in KINDS.items():
            lines, how = self.kinds[script]
            kind, number = how.split()
            status = -int(number) if kind == "signal" else int(number)
            with self.subTest(script):
                self.assertNotEqual(status, 0)
                found = cause.find([*["epoch 1"] * 50, *lines], how)
                self.assertRegex(found.text, rf"^(epoch 1 \| )*({wanted})$")
                for log in LOGS:
                    found = cause.find([*lines, *torchrun(log, 1, status)], "status 1", 2)
                    self.assertRegex(found.text, f"^({wanted})$")
                    self.assertEqual((found.rank, found.how), (1, how))

    def test_other_output_behind_it(self) -> None:
        for script, wanted in KINDS.items():
            lines, how = self.kinds[script]
            if "sys.exit" in script or "Fatal" in wanted:
                continue  # this line looks like any other output
            with self.subTest(script):
                self.assertRegex(cause.find([*lines, *_BEHIND], how).text, f"^({wanted})$")
                buffered = [f"  epoch {i}: loss {i / 7:.3f}" for i in range(200)]
                self.assertRegex(cause.find([*lines, "", *buffered], how).text, f"^({wanted})$")

    def test_two_ranks_among_each_other(self) -> None:
        """Line by line: with PyTorch's marks and torchrun's report, each line belongs to its rank."""
        chance = random.Random(7)
        for first, wanted in KINDS.items():
            second = chance.choice(list(KINDS))
            if "sys.exit" in first or "Fatal" in wanted:
                continue
            ranks = [[f"[rank0]: {line}" for line in self.kinds[first][0]]]
            ranks.append([f"[rank1]: {line}" for line in self.kinds[second][0]])
            mixed: list[str] = []
            while ranks[0] or ranks[1]:
                mixed.append(chance.choice([rank for rank in ranks if rank]).pop(0))
            with self.subTest(first=first, second=second):
                found = cause.find([*mixed, *torchrun(LOGS[0], 0, 1)], "status 1", 2)
                self.assertRegex(found.text, f"^({wanted})$")

    def test_the_same_twice_without_marks(self) -> None:
        """Two ranks make the same mistake before they have a process group."""
        chance = random.Random(8)
        for script, wanted in KINDS.items():
            if not script.startswith(("raise", "import json", "import torch")):
                continue  # with several exceptions, a line's rank is unknown
            left = [list(self.kinds[script][0]), list(self.kinds[script][0])]
            mixed: list[str] = []
            while left[0] or left[1]:
                mixed.append(chance.choice([rank for rank in left if rank]).pop(0))
            with self.subTest(script):
                self.assertRegex(cause.find(mixed, "status 1", 2).text, f"^({wanted.split(' ')[0]})")


class Signals(unittest.TestCase):
    """If a signal ended the process, an exception that it logged before is not the cause."""

    def test_what_was_logged_is_not_the_cause(self) -> None:
        lines = ["Traceback (most recent call last):", '  File "t.py", line 1, in f', "ValueError: caught", "and on"]
        for how in ("signal 9", "status 137", "signal 15"):
            self.assertIsNone(cause.find(lines, how).fault, how)
        self.assertEqual(cause.find(lines, "status 1").text, "ValueError: caught | and on")
        found = cause.find(torchrun(LOGS[0], 3, -9), "status 1", 4)
        self.assertEqual((found.text, found.rank, found.how), ("", 3, "signal 9"))

    def test_an_abort_of_cplusplus(self) -> None:
        lines = ["terminate called after throwing an instance of 'Own'", "  what():  out of it", "Aborted"]
        self.assertIn("what():  out of it", cause.find(lines, "signal 6").text)
        raised = ["Traceback (most recent call last):", '  File "t.py", line 1, in <module>', "ValueError: the cause"]
        for how in ("signal 6", "status 134"):  # a process that ends by an exception may crash while it ends
            self.assertEqual(cause.find([*raised, *lines[:2]], how).text, "ValueError: the cause")

    def test_nothing(self) -> None:
        self.assertEqual(cause.find([], "status 1").text, "")
        self.assertEqual(cause.find(["Traceback (most recent call last):"], "status 1").fault, None)


class First(unittest.TestCase):
    """The first failure among several trainers."""

    def setUp(self) -> None:
        """Four trainers on two hosts, one process each."""
        self.number = 0
        hosts = [Host(0, "a"), Host(1, "b")]
        self.trainers = [Process(hosts[rank // 2], f"t{rank}", f"trainer {rank}", {}) for rank in range(4)]

    def says(self, rank: int, *lines: str) -> None:
        for line in lines:
            self.number += 1
            self.trainers[rank].said(self.number, line)

    def raises(self, rank: int, text: str) -> None:
        self.says(rank, "Traceback (most recent call last):", '  File "t.py", line 1, in <module>', text)

    def ends(self, rank: int, **how: int) -> None:
        self.number += 1
        self.trainers[rank].ended = {"log": f"/l/t{rank}.log", **how}
        self.trainers[rank].end_number = self.number

    def told(self) -> str:
        return failures.first(self.trainers, 1).text

    def test_the_first_end_is_not_always_the_cause(self) -> None:
        """A rank that lost its peer may end before that peer does."""
        self.raises(2, "ValueError: the cause")
        self.raises(0, "RuntimeError: Connection closed by peer [10.0.0.2]:1")
        self.ends(0, status=1)
        self.assertEqual(self.told(), "host 1 (b): trainer 2 failed: ValueError: the cause; log: ")
        self.ends(2, status=1)
        told = "host 1 (b): trainer 2 ended with status 1: ValueError: the cause; log: /l/t2.log"
        self.assertEqual(self.told(), told)

    def test_one_that_was_killed_without_a_word(self) -> None:
        self.raises(0, "RuntimeError: Connection closed by peer [10.0.0.2]:1")
        self.ends(0, status=1)
        self.assertTrue(failures.first(self.trainers, 1).cause.follows)
        self.ends(3, signal=9)
        self.assertEqual(self.told(), "host 1 (b): trainer 3 ended with signal 9 without a word; log: /l/t3.log")

    def test_one_that_goes_on_is_not_it(self) -> None:
        self.raises(1, "ValueError: caught")
        self.says(1, "goes on")
        self.raises(3, "KeyError: 'x'")
        self.ends(3, status=1)
        self.assertIn("trainer 3 ended with status 1: KeyError: 'x'", self.told())

    def test_ranks_of_torchrun(self) -> None:
        hosts = [Host(0, "a"), Host(1, "b")]
        self.trainers = [Process(host, "t", f"trainers from {2 * host.index}", {}, several=True) for host in hosts]
        self.raises(1, "[rank3]: ValueError: no")  # only this line has a mark; the rank is that of the report
        self.says(1, *torchrun(LOGS[0], 3, 1))
        self.ends(1, status=1)
        self.assertRegex(self.told(), r"^host 1 \(b\): trainer 3 ended with status 1: .*; log: /l/t1.log$")
        self.says(0, "Killed")
        self.ends(0, signal=9)
        self.assertIn("trainer 3", self.told())


if __name__ == "__main__":
    unittest.main()
