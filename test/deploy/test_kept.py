"""Kept servers: two jobs at once on one set of them, refusals, and cluster.py on the same hosts."""

from __future__ import annotations

import json
import os
import signal
import unittest

from bed import HANG_S, ON_HOST, wait_for
from test_hosts import HOSTS, OnHosts

CLUSTER = ["python3", "/mnt/top/deploy/cluster.py"]


class Kept(OnHosts):
    """The tests run in this order with one set of servers: the first test starts it, the last one ends it."""

    def setUp(self) -> None:
        """Kept servers run."""
        if not self.servers():
            result = self.bed.desk.run(*self.words("--keep_alive", "--server_name", "long_live", "true"))
            self.assertEqual(result.returncode, 0, result.stderr)
        self.pids = self.servers()
        self.assertEqual(len(self.pids), HOSTS)

    def servers(self) -> list[int]:
        """The servers' pids."""
        return [pid for host in self.bed.hosts for pid in host.find("serve", "--part-config")]

    def agents_of_jobs(self) -> list[int]:
        """Agents other than those of kept servers."""
        return [
            pid
            for host in self.bed.hosts
            for pid, text in host.processes().items()
            if "graphwire agent" in text and "--keep" not in text
        ]

    def cluster(self, *words: str, status: int = 0) -> str:
        result = self.bed.desk.run(*CLUSTER, *words, "--program", ON_HOST, "--ip_config", "w/ip.txt")
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def job(self, *more: str) -> list[str]:
        """A launch that names neither --keep_alive nor a server."""
        return self.words("--num_trainers", "1", *more, f"{self.epoch('--json')}; echo name $GRAPHWIRE_NAME")

    def still_there(self) -> None:
        """No launch has ended or replaced a server, and none has left another process."""
        self.assertTrue(wait_for(lambda: not self.agents_of_jobs()), self.bed.left())
        self.assertEqual(self.servers(), self.pids)

    def test_two_jobs_at_once(self) -> None:
        jobs = [self.bed.desk.start(*self.job()) for _ in range(2)]
        for job in jobs:
            output, errors = job.communicate(timeout=HANG_S)
            self.assertEqual(job.returncode, 0, errors)
            self.assertEqual(output.count("name long_live"), HOSTS)
        self.still_there()

    def tensors(self) -> list[list[str]]:
        """The names of the tensors that each server has."""
        rows = [json.loads(line) for line in self.cluster("status", "--json").splitlines()]
        return [[tensor["name"] for tensor in row["servers"][0]["stat"]["tensors"]] for row in rows]

    def test_a_jobs_tensors_end_with_it(self) -> None:
        trainer = "python3 /mnt/top/test/deploy/tensor_trainer.py /mnt/program/libgraphwire.so"
        done = self.bed.desk.run(*self.words("--num_trainers", "1", "--no_torchrun", trainer))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.tensors(), [["kept"]] * HOSTS)
        process = self.begun("--no_torchrun", trainer=f"{trainer} && exec sleep 900")
        names = self.tensors()
        self.assertEqual([sorted(on_host) for on_host in names], [["kept", "of-job"]] * HOSTS)
        os.kill(self.launcher(), signal.SIGINT)
        process.communicate(timeout=HANG_S)
        self.assertEqual(self.tensors(), [["kept"]] * HOSTS)
        self.still_there()

    def test_its_name_is_taken_another_refused(self) -> None:
        self.assertEqual(self.bed.desk.run(*self.job("--server_name", "long_live")).returncode, 0)
        result = self.bed.desk.run(*self.job("--server_name", "other"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, 'kept server "long_live" on port 30050 is not "other"')
        self.still_there()

    def test_a_job_that_fails_or_is_killed_leaves_them(self) -> None:
        self.assertEqual(self.bed.desk.run(*self.words("--num_trainers", "1", "exit 3")).returncode, 1)
        self.still_there()
        process = self.begun()
        os.kill(self.launcher(), 9)
        process.communicate(timeout=HANG_S)
        self.still_there()

    def test_a_kept_server_that_dies_is_told(self) -> None:
        process = self.begun()
        host = self.bed.hosts[1]
        os.kill(host.find("serve", "--part-config")[0], 9)
        _, errors = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors, rf"{host.address}.*kept server of part 1 has ended")
        # No other server learns of the job's end from a process that still waits for the dead server.
        logs = self.bed.hosts[0].shell("ls -1 w/logs/$(LC_ALL=C ls -1 w/logs | tail -n 1)").stdout.split()
        self.assertEqual(logs, ["trainer-10.77.0.1-0.log"])
        result = self.bed.desk.run(*self.job())
        self.assertRegex(result.stderr, rf"{host.address}.*has no kept server, and 3 of 4")
        self.cluster("stop", "long_live")
        self.nothing_left()

    def test_cluster_status(self) -> None:
        table = self.cluster("status").splitlines()
        self.assertEqual(len(table), 1 + HOSTS)
        for host, line in zip(self.bed.hosts, table[1:]):
            self.assertRegex(line, rf"^{host.address} +kept +long_live +{host.index}/{HOSTS} ")
        rows = [json.loads(line) for line in self.cluster("status", "--json").splitlines()]
        for row in rows:
            (server,) = row["servers"]
            self.assertEqual(server["stat"]["name"], "long_live")
            self.assertNotIn("key", server)
        self.still_there()

    def test_cluster_logs_and_doctor(self) -> None:
        self.assertEqual(self.bed.desk.run(*self.words("echo said by $RANK")).returncode, 0)
        text = self.cluster("logs", "--workspace", "~/w")
        for rank in range(HOSTS):
            self.assertIn(f"said by {rank}", text)
        found = [json.loads(line) for line in self.cluster("doctor", "--json", "--measure", "50").splitlines()]
        for host in found:
            report = json.loads("\n".join(host["doctor"]))
            ways = [one["name"] for one in report["findings"] if one["section"] == "servers"]
            self.assertEqual(len([way for way in ways if way.endswith("tcp")]), HOSTS, ways)
        self.still_there()

    def test_cluster_says_who_is_away(self) -> None:
        self.bed.cut(self.bed.hosts[2])
        try:
            self.in_time_for_others(
                lambda seconds: self.cluster("status", "--timeout", seconds, status=1),
                r"\n10\.77\.0\.1 +kept .*\n.*\n10\.77\.0\.3 +not reached",
            )
        finally:
            self.bed.mend(self.bed.hosts[2])
            self.bed.reachable()

    def test_zz_stop(self) -> None:
        self.assertRegex(self.cluster("stop", "nobody", status=1), r"\Acluster: no host has a server .*\n\Z")
        self.still_there()
        text = self.cluster("stop", "long_live")
        self.assertEqual(text.count("has ended"), HOSTS)
        self.nothing_left()


if __name__ == "__main__":
    unittest.main()
