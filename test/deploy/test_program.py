"""copy_files.py --with_program: hosts without Graphwire get the bundle, and need no other package."""

from __future__ import annotations

import glob
import io
import os
import shutil
import tarfile
import unittest
from pathlib import Path

from bed import ON_HOST, TOP
from gwdeploy import program
from gwdeploy.errors import UsageError
from test_hosts import LAUNCH, OnHosts


def bundles() -> list[str]:
    return glob.glob(str(TOP / "build/release/graphwire-*.tar.gz"))


def tarball(path: Path, script: str) -> Path:
    """A bundle whose program is a script."""
    with tarfile.open(path, "w:gz") as tar:
        entry = tarfile.TarInfo("graphwire-9/bin/graphwire")
        entry.mode, entry.size = 0o755, len(script)
        tar.addfile(entry, io.BytesIO(script.encode()))
    return path


@unittest.skipUnless(bundles(), "no bundle was built: cmake --build build/release --target bundle")
class WithProgram(OnHosts):
    """Two hosts; the desk has the bundle and the graph."""

    count = 2

    @classmethod
    def setUpClass(cls) -> None:
        """Only the desk has the graph."""
        super().setUpClass()
        if os.geteuid() != 0:
            return
        shutil.move(str(cls.parts), str(cls.bed.desk.home / "g"))
        for host in cls.bed.hosts:
            shutil.rmtree(host.home / "w")

    def copy(self, *more: str) -> tuple[int, str]:
        """Status and text of a copy with an invalid program; the last --with_program counts."""
        words = ["python3", "/mnt/top/deploy/copy_files.py", "--workspace", "~/new", "--rel_data_path", "data"]
        words += ["--part_config", "g", "--ip_config", "w/ip.txt", "--with_program", *more]
        result = self.bed.desk.run(*words)
        self.nothing_left()
        return result.returncode, result.stdout + result.stderr

    def version(self, index: int) -> str:
        return self.bed.hosts[index].shell("new/.graphwire/bin/graphwire --version").stdout.strip()

    def test_a_host_needs_nothing_but_sshd(self) -> None:
        """Servers and trainers run the copied program; the second copy sends nothing."""
        wanted = self.bed.desk.run(ON_HOST, "--version").stdout.strip()
        self.assertEqual(self.bed.hosts[0].shell("command -v graphwire").stdout, "")
        for host in self.bed.hosts:
            host.shell("rm -rf new")
        status, text = self.copy()
        self.assertEqual((status, text.count("; verified; the program is there (")), (0, 2), text)
        self.assertEqual([self.version(0), self.version(1)], [wanted, wanted])
        words = [*LAUNCH, "--workspace", "~/new", "--part_config", "data", "--ip_config", "w/ip.txt"]
        result = self.bed.desk.run(*words, "~/new/.graphwire/bin/graphwire epoch --steps 3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("parts: 1 mapped on this host, 0 by RDMA, 1 over TCP"), 2, result.stdout)
        status, text = self.copy()
        self.assertEqual((status, text.count("; verified; the program was there")), (0, 2), text)

    def test_a_broken_program_replaces_nothing(self) -> None:
        """A program that fails on the host, and a truncated tarball: one line, and the old program stays."""
        self.assertEqual(self.copy()[0], 0)
        wanted = self.version(0)
        machine = os.uname().machine
        broken = tarball(
            self.bed.desk.home / f"graphwire-9-linux-{machine}.tar.gz", "#!/bin/sh\necho no glibc >&2\nexit 1\n"
        )
        status, text = self.copy(broken.name)
        self.assertEqual((status, text.count("copy_files: host ")), (1, 2), text)
        self.assertIn("no glibc", text)
        whole = Path(bundles()[0]).read_bytes()
        short = self.bed.desk.home / f"graphwire-8-linux-{machine}.tar.gz"
        short.write_bytes(whole[: len(whole) // 2])
        status, text = self.copy(short.name)
        self.assertEqual((status, text.count("copy_files: host ")), (1, 2), text)
        self.assertEqual([self.version(0), self.version(1)], [wanted, wanted])
        left = self.bed.hosts[0].shell("ls -d new/.graphwire*").stdout.split()
        self.assertEqual(left, ["new/.graphwire"])

    def test_another_machine(self) -> None:
        """The bundle's name says for which machine it is."""
        other = tarball(self.bed.desk.home / "graphwire-9-linux-sparc64.tar.gz", "")
        status, text = self.copy(other.name)
        self.assertEqual((status, text.count("is for sparc64")), (1, 2), text)


class Words(unittest.TestCase):
    """Refusals before any host is contacted."""

    def test_refused(self) -> None:
        """Invalid names, and files that do not exist."""
        for path, says in (
            ("/nowhere/graphwire-1-linux-x86_64.tar.gz", "No such file"),
            ("graphwire.tar.gz", "a bundle is named"),
            ("/proc/self/cmdline", "a bundle is named"),
        ):
            with self.subTest(path=path), self.assertRaisesRegex(UsageError, says):
                program.read(path)
