"""Many hosts: 64 small ones, launched and stopped with a trainer that does nothing."""

from __future__ import annotations

import time

from test_hosts import OnHosts


class Many(OnHosts):
    """64 hosts on one machine."""

    count = 64

    def test_launch_and_stop(self) -> None:
        began = time.monotonic()
        result = self.launch("--num_trainers", "1", "--num_servers", "1", "true", timeout=300)
        took = time.monotonic() - began
        self.assertEqual(result.returncode, 0, result.stderr)
        print(f"note: 64 hosts launch and stop in {took:.1f} s", flush=True)

    def test_one_of_them_fails(self) -> None:
        self.fails(
            r"host 37 \(10\.77\.0\.38\): trainer 37 ended with status 1",
            "--num_trainers",
            "1",
            "--num_servers",
            "1",
            '[ "$RANK" = 37 ] && exit 1; exec sleep 300',
            timeout=300,
        )
