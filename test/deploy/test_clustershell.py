"""Launches with ClusterShell, and launches on a desk without it."""

from __future__ import annotations

import os
import shutil
import signal

from bed import HOME, wait_for
from test_hosts import OnHosts

ITS_OWN = "-oForwardAgent=no"  # an option of ssh that only ClusterShell passes
BY_IT = ("--via", "clustershell")


# Kills an agent that does not end by itself, and waits for its end.
_GIVE_UP = """
import asyncio
from gwdeploy import clustershell, ip_config

async def main():
    reach = clustershell.ClusterShell(workspace="~", program="/mnt/program/graphwire")
    channel = await reach.connect(ip_config.parse("10.77.0.1")[0])
    await channel.stdout.readline()
    channel.kill()
    print(await asyncio.wait_for(channel.wait(), 60))

asyncio.run(main())
"""


class ByClusterShell(OnHosts):
    """Two hosts."""

    count = 2

    def ssh(self, word: str) -> int:
        """The number of ssh processes on the desk with this word."""
        return len(self.bed.desk.find("ssh", word))

    def test_trainers_read_all_parts(self) -> None:
        result = self.launch(*BY_IT, "--num_trainers", "2", self.epoch("--json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count('"epoch"'), 4, result.stdout)

    def test_failures_are_reported(self) -> None:
        trainer = '[ "$RANK" = 1 ] && echo bad luck && exit 7; exec sleep 900'
        self.fails(r"host 1 \(10\.77\.0\.2\): trainer 1 ended with status 7: bad luck; log: ", *BY_IT, trainer)
        key = self.bed.desk.home / ".ssh/id_ed25519"
        self.addCleanup(key.with_suffix(".away").rename, key)
        key.rename(key.with_suffix(".away"))
        self.fails(r"ssh is refused without a password", *BY_IT, "true")

    def test_more_hosts_than_are_reached_at_once(self) -> None:
        for more, words in (((), 0), (("--fanout", "1"), self.count)):
            process = self.begun(*more)
            self.assertEqual((self.ssh("agent"), self.ssh(ITS_OWN)), (self.count, words))
            os.kill(self.launcher(), signal.SIGKILL)
            process.communicate()
            gone = wait_for(lambda: not self.bed.left() and not self.ssh("agent"))
            self.assertTrue(gone, self.bed.left())

    def test_a_host_that_is_silent(self) -> None:
        process = self.begun(*BY_IT, "--silence", "5")
        self.addCleanup(self.bed.mend, self.bed.hosts[1])
        self.bed.cut(self.bed.hosts[1])
        self.ends(process, 1, r"host 1 \(10\.77\.0\.2\): silent", sessions=False)
        self.assertEqual(self.ssh("agent"), 0)

    def test_an_agent_that_was_given_up_has_ended(self) -> None:
        """Else a launch would wait for a lost host's last message."""
        result = self.bed.desk.run("env", "PYTHONPATH=/mnt/top/deploy", "python3", "-c", _GIVE_UP)
        self.assertEqual((result.stdout, result.stderr), ("-9\n", ""))
        self.nothing_left()

    def test_it_is_not_installed(self) -> None:
        without = self.bed.desk.run("python3", "-S", *self.words(*BY_IT, "true")[1:])
        self.assertEqual((without.returncode, len(without.stderr.splitlines())), (2, 1), without.stderr)
        self.assertIn("ClusterShell is not installed here", without.stderr)
        by_ssh = self.bed.desk.run("python3", "-S", *self.words("--fanout", "1", "true")[1:])
        self.assertEqual(by_ssh.returncode, 0, by_ssh.stderr)
        self.nothing_left()

    def test_half_of_it_is_installed(self) -> None:
        """A package without its modules, and a configuration that cannot be read: one line, and no hang."""
        desk = self.bed.desk
        package, config = desk.home / "half/ClusterShell", desk.home / ".local/etc/clustershell"
        for folder in (package, config):
            folder.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (config / "defaults.conf").write_text("[task.info]\nfanout: many\n")
        self.addCleanup(shutil.rmtree, desk.home / ".local")
        for path, says in (
            (f"{HOME}/half", "ModuleNotFoundError: No module named 'ClusterShell.Event'"),
            ("", "ValueError: invalid literal for int.*many"),
        ):
            with self.subTest(says=says):
                result = desk.run("env", f"PYTHONPATH={path}", *self.words(*BY_IT, "true"))
                self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 1), result.stderr)
                self.assertRegex(result.stderr, f"ClusterShell cannot be used here: {says}.*--via ssh")
        self.nothing_left()
