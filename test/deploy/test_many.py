"""Many hosts: 64 small ones, launched and stopped with a trainer that does nothing."""

from __future__ import annotations

from test_hosts import OnHosts


class Many(OnHosts):
    """64 hosts on one machine."""

    count = 64
    weight = 100  # see run.py

    def test_launch_and_stop(self) -> None:
        result = self.launch("--num_trainers", "1", "--num_servers", "1", "true", timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)

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
