"""Hosts that are not one hop of IPv4 away: IPv6 addresses in ip_config.txt, and a gateway in the user's ssh
configuration."""

from __future__ import annotations

import json
import shutil
import unittest

from bed import ON_HOST
from test_copy import COPY
from test_hosts import OnHosts
from test_kept import CLUSTER

ALL_PARTS = "parts: 1 mapped on this host, 0 by RDMA, 1 over TCP"


class Networks(OnHosts):
    """Two hosts. Launches read all parts; copies are verified."""

    count = 2

    def copies(self, hosts: str, *more: str) -> None:
        """A copy to the hosts of this list works, and a second copy sends nothing."""
        shutil.copytree(self.parts, self.bed.desk.home / "g", dirs_exist_ok=True)
        words = [*COPY, "--workspace", "~/new", "--rel_data_path", "x", "--part_config", "g", "--ip_config", hosts]
        for host in self.bed.hosts:
            shutil.rmtree(host.home / "new", ignore_errors=True)
        for sent in (r"[1-9]\d*", "0"):
            result = self.bed.desk.run(*words, *more)
            self.assertEqual(result.returncode, 0, result.stderr)
            for index in range(self.count):
                self.assertRegex(result.stdout, rf"host {index} .*; {sent} files, {sent} bytes sent by \w+; verified")
        self.nothing_left()

    def launches(self, hosts: str) -> None:
        trainer = f"{self.epoch()} && echo $RANK meets at $MASTER_ADDR"
        result = self.launch("--ip_config", hosts, trainer)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count(ALL_PARTS), self.count, result.stdout)

    def test_ipv6(self) -> None:
        """With and without brackets, with and without a port. No connection uses IPv4."""
        one, two = (host.address6 for host in self.bed.hosts)
        (self.bed.desk.home / "w/six.txt").write_text(f"{one}\n[{two}] 30055 3\n")
        for host in [*self.bed.hosts, self.bed.desk]:
            done = host.shell(f"ip addr del {host.address}/16 dev eth0")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.addCleanup(host.shell, f"ip addr add {host.address}/16 dev eth0")
        self.launches("six.txt")
        for more in ((), ("--with_tar",)):
            self.copies("w/six.txt", *more)
        kept = self.words("--ip_config", "six.txt", "--keep_alive", "--server_name", "six", "true")
        result = self.bed.desk.run(*kept)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(list((self.bed.hosts[1].home / "w/logs").glob("*/server-fd77__2-1.log")))
        words = ["--program", ON_HOST, "--ip_config", "w/six.txt"]
        rows = self.bed.desk.run(*CLUSTER, "status", "--json", *words).stdout.splitlines()
        stats = [json.loads(row)["servers"][0]["stat"] for row in rows]
        self.assertEqual([stat["name"] for stat in stats], ["six", "six"])
        doctor = self.bed.desk.run(*CLUSTER, "doctor", "--measure", "50", *words)
        self.assertIn("[fd77::2]:30055", doctor.stdout)
        stopped = self.bed.desk.run(*CLUSTER, "stop", "six", *words)
        self.assertEqual((stopped.returncode, stopped.stdout.count("has ended")), (0, 2), stopped.stderr)
        self.nothing_left()

    def test_a_gateway(self) -> None:
        """The desk has no route to host 0; ~/.ssh/config names a gateway."""
        desk, (behind, gateway) = self.bed.desk, self.bed.hosts
        desk.shell(f"ip route add unreachable {behind.address}/32")
        self.addCleanup(desk.shell, f"ip route del unreachable {behind.address}/32")
        self.fails(rf"host 0 \({behind.address}\): there is no route to it", "true")
        config = desk.home / ".ssh/config"
        config.write_text(f"Host {behind.address}\n    ProxyJump {gateway.address}\n")
        self.addCleanup(config.unlink)
        self.launches("ip.txt")
        self.copies("w/ip.txt")


if __name__ == "__main__":
    unittest.main()
