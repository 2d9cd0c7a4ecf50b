"""docs/DEPLOY.md's tables of options, compared with the scripts' --help and with DGL's and DGL-KE's options. Every
option of the originals is on the left of a table. Each of our other options is in the text after the tables, by the
script's name. The page lists no option that does not exist. Also what all scripts share: their standard files."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest

from bed import HANG_S, PROGRAM, TOP

_OPTION = re.compile(r"--[a-z][a-z0-9_]*")
# Of DGL 0.6 to 1.1.3 (launch.py, copy_files.py) and of DGL-KE 0.1 (dist_train.py; KGE.md has its others).
DGL_LAUNCH = """--ssh_port --ssh_username --workspace --num_trainers --num_omp_threads --num_samplers --num_servers
--part_config --ip_config --num_server_threads --graph_format --extra_envs --keep_alive --server_name""".split()
DGL_COPY = "--ssh_port --ssh_username --workspace --rel_data_path --part_config --script_folder --ip_config".split()
KGE = "--path --ssh_key --ip_config --num_client_proc".split()


def options_of(*words: str) -> set[str]:
    script, *more = words
    command = [sys.executable, str(TOP / f"deploy/{script}.py"), *more, "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    found = set(re.findall(r"(?m)^  (?:-h, )?(--[a-z][a-z0-9_]*)", printed))
    return found - {"--help"}


class Tables(unittest.TestCase):
    """The section of the document."""

    section: str

    @classmethod
    def setUpClass(cls) -> None:
        text = (TOP / "docs/DEPLOY.md").read_text()
        cls.section = text.split("\n## Every option against DGL's and DGL-KE's\n")[1].split("\n## ")[0]

    def rows(self, heading: str) -> list[tuple[str, str]]:
        """The columns of the table with this heading."""
        table = self.section.split(f"| {heading} | here |\n|---|---|\n")[1].split("\n\n")[0]
        rows = [line.strip("|").split(" | ", 1) for line in table.splitlines()]
        self.assertTrue(rows and all(len(row) == 2 for row in rows), rows)
        return [(left, right) for left, right in rows]

    def left(self, heading: str) -> list[str]:
        """The options on the left of a table."""
        return [name for left, _ in self.rows(heading) for name in _OPTION.findall(left)]

    def only_here(self, script: str) -> list[str]:
        """The options that the text gives as this script's own."""
        (text,) = re.findall(rf"(?ms)^- `{script}`: (.*?)(?=\n- |\n\n|\Z)", self.section)
        return _OPTION.findall(text)

    def holds(self, script: str, heading: str, originals: list[str]) -> None:
        """One script's table and list."""
        left, own, real = self.left(heading), self.only_here(script), options_of(script)
        self.assertEqual(sorted(left), sorted(originals))
        self.assertEqual(set(originals) - real, set())
        self.assertEqual(sorted(own), sorted(real - set(originals)))

    def test_launch(self) -> None:
        self.holds("launch", "DGL `launch.py`", DGL_LAUNCH)

    def test_copy_files(self) -> None:
        self.holds("copy_files", "DGL `copy_files.py`", DGL_COPY)

    def test_cluster(self) -> None:
        commands = ("status", "stop", "logs", "doctor")
        real = set().union(*[options_of("cluster", command) for command in commands])
        self.assertEqual(sorted(self.only_here("cluster")), sorted(real))

    def test_dgl_ke(self) -> None:
        """Each of its options is replaced by one of launch.py's."""
        heading, real = "DGL-KE `dglke_dist_train`", options_of("launch")
        self.assertEqual(sorted(self.left(heading)), sorted(KGE))
        for left, right in self.rows(heading):
            names = _OPTION.findall(right) or _OPTION.findall(left)
            self.assertEqual(set(names) - real, set(), left)

    def test_transports(self) -> None:
        """The launcher offers the same transports as the server, in the same order."""
        helps = {}
        for command, value in (
            ([sys.executable, str(TOP / "deploy/launch.py")], r"--transport \{([a-z,]+)\}"),
            ([PROGRAM, "serve"], r"--transport=([a-z|]+)"),
        ):
            printed = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=True)
            helps[command[-1]] = re.findall(value, printed.stdout)[0].replace("|", ",")
        self.assertEqual(len(set(helps.values())), 1, helps)
        self.assertIn("tcp", helps["serve"].split(","))


class StandardFiles(unittest.TestCase):
    """Of a script that begins with some of them closed."""

    def test_closed_standard_files(self) -> None:
        """With descriptors 0 to 2 closed, no socket gets their numbers, and children have them too."""
        script = '''
import asyncio, os, socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
from gwdeploy import main
async def work(words):
    links = "import os; os.write(3, b' '.join(os.readlink(b'/proc/self/fd/%d' % one) for one in range(3)))"
    child = subprocess.run([sys.executable, "-c", links], pass_fds=[3])
    print("lost", file=sys.stderr)
    return 7 if child.returncode == 0 and socket.socket().fileno() > 3 else 1
os._exit(main.run("name", work, []))
'''
        with tempfile.TemporaryFile() as told:
            command = 'exec 3<&"$1"; exec "$2" -c "$3" "$4" <&- >&- 2>&-'
            words = ["sh", "-c", command, "sh", str(told.fileno()), sys.executable, script, str(TOP / "deploy")]
            done = subprocess.run(words, pass_fds=[told.fileno()], timeout=HANG_S)
            told.seek(0)
            self.assertEqual((done.returncode, told.read().decode()), (7, "/dev/null /dev/null /dev/null"))


if __name__ == "__main__":
    unittest.main()
