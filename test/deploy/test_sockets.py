"""Folders for sockets, when several launchers of one user start, work and die on a machine at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
# Makes and leaves folders; prints whether each was whole to the end. The last one is used until the input ends.
LAUNCHER = """import os, sys
sys.path.insert(0, sys.argv[1])
from gwdeploy import sockets
sockets._PLACE = sys.argv[2]
for last in [False] * 40 + [True]:
    with sockets.folder() as path:
        open(path + "/s0", "w").close()
        if last:
            print(path, flush=True)
            sys.stdin.read()
        if os.listdir(path) != ["s0"]:
            sys.exit(f"{path} has changed")
"""


class Sockets(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="gwbed-"))
        self.addCleanup(shutil.rmtree, self.place)

    def start(self) -> subprocess.Popen:
        launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, DEPLOY, self.place], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launcher.communicate)
        self.addCleanup(launcher.kill)
        return launcher

    def folders(self) -> set[str]:
        return {str(path) for path in self.place.iterdir()}

    def test_several_at_once(self) -> None:
        """Each keeps its folder to its end. What killed ones leave, the next one removes, and nothing else."""
        launchers = [self.start() for _ in range(6)]
        paths = [launcher.stdout.readline().strip() for launcher in launchers if launcher.stdout]
        self.assertEqual(self.folders(), {*paths})
        for launcher in launchers[:3]:
            os.kill(launcher.pid, signal.SIGKILL)
            launcher.communicate()
        self.assertEqual(self.folders(), {*paths})
        later = self.start()
        assert later.stdout
        its = later.stdout.readline().strip()
        self.assertEqual(self.folders(), {*paths[3:], its})
        for launcher in (*launchers[3:], later):
            self.assertEqual((launcher.communicate()[1], launcher.returncode), ("", 0))
        self.assertEqual(self.folders(), set())


if __name__ == "__main__":
    unittest.main()
