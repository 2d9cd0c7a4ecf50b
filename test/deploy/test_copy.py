"""copy_files.py on hosts, and the five steps of DGL's example with its own command lines."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import unittest

from bed import HANG_S, HOME, ON_HOST, wait_for
from gate import Gate
from test_hosts import HOSTS, OnHosts, make_graph

COPY = ["python3", "/mnt/top/deploy/copy_files.py", "--program", ON_HOST]


class Copying(OnHosts):
    """A graph on the desk, and hosts without any part of it."""

    @classmethod
    def setUpClass(cls) -> None:
        """The desk has the graph, and a folder of scripts."""
        super().setUpClass()
        if os.geteuid() != 0:
            return
        desk = cls.bed.desk.home
        shutil.move(str(cls.parts), str(desk / "g"))
        (desk / "code").mkdir()
        (desk / "code/train.sh").write_text("echo trained by $RANK of $WORLD_SIZE\n")
        for host in cls.bed.hosts:
            shutil.rmtree(host.home / "w")

    def setUp(self) -> None:
        """The hosts are empty."""
        for host in self.bed.hosts:
            shutil.rmtree(host.home / "new", ignore_errors=True)

    def words(self, *more: str) -> list[str]:
        """A copy, as a user types it on the desk."""
        return [
            *COPY,
            "--workspace",
            "~/new",
            "--rel_data_path",
            "data/x",
            "--part_config",
            "g",
            "--script_folder",
            "code",
            "--ip_config",
            "w/ip.txt",
            *more,
        ]

    def copy(self, *more: str, status: int = 0) -> str:
        result = self.launch(*more)
        self.assertEqual(result.returncode, status, result.stderr + result.stdout)
        return result.stdout + result.stderr

    def is_whole(self) -> None:
        """Each host has exactly its own part."""
        for host in self.bed.hosts:
            have = sorted(str(path.relative_to(host.home / "new")) for path in (host.home / "new").rglob("*.*"))
            have = [name for name in have if not name.startswith("logs/")]  # of an earlier launch
            want = ["code/train.sh", "ip.txt", "data/x/rmat.json"]
            part = self.bed.desk.home / f"g/part{host.index}"
            want += [f"data/x/{path.relative_to(self.bed.desk.home / 'g')}" for path in part.rglob("*.*")]
            self.assertEqual(have, sorted(want))
            for name in want[3:]:
                original = self.bed.desk.home / "g" / name.removeprefix("data/x/")
                self.assertEqual((host.home / "new" / name).read_bytes(), original.read_bytes())

    def sent(self, text: str) -> list[tuple[int, int]]:
        """(files, bytes) sent to each host."""
        found = re.findall(r"host (\d) .*; (\d+) files, (\d+) bytes sent by \w+; verified", text)
        self.assertEqual(len(found), HOSTS, text)
        return [(int(files), int(count)) for _, files, count in sorted(found)]

    def test_all_of_it_and_then_nothing(self) -> None:
        for more in ((), ("--with_tar",)):
            self.setUp()
            first = self.sent(self.copy(*more))
            self.is_whole()
            self.assertTrue(all(files > 10 and count > 10000 for files, count in first), first)
            self.assertEqual(self.sent(self.copy(*more)), [(0, 0)] * HOSTS)

    def test_lists_of_all_parts(self) -> None:
        """Each host gets what its server needs to hold the lists of all parts, and no rows of other parts."""
        for more in ((), ("--with_tar",)):
            self.setUp()
            self.sent(self.copy("--lists", *more))
            for host in self.bed.hosts:
                graph = host.home / "new/data/x"
                self.assertEqual(sorted(path.parts[-4] for path in graph.rglob("feat.npy")), [f"part{host.index}"])
                words = [ON_HOST, "serve", "--part-config", "new/data/x", "--part", str(host.index), "--lists", "all"]
                server = host.start(*words, "--listen", "127.0.0.1:0")
                assert server.stdout
                line = server.stdout.readline()
                for pid in host.find("serve --part-config new/data/x"):
                    os.kill(pid, 15)
                server.communicate(timeout=HANG_S)
                self.assertRegex(line, f"^serving part {host.index} of .* in lists of other parts, ")
        self.assertEqual(self.sent(self.copy("--lists")), [(0, 0)] * HOSTS)

    def test_rsync_and_tar_agree_on_what_is_there(self) -> None:
        self.copy()
        self.assertEqual(self.sent(self.copy("--with_tar")), [(0, 0)] * HOSTS)

    def test_cut_off(self) -> None:
        """A copy that ends halfway leaves no valid graph; the next copy does not send the arrived files again."""
        for more in ((), ("--with_tar",)):
            self.setUp()
            host = self.bed.hosts[1]
            listener = host.home / "new/data/x"
            process = self.bed.desk.start(*self.words(*more))
            self.assertTrue(wait_for(lambda listener=listener: listener.exists()))  # type: ignore[misc]
            self.bed.cut(host)
            self.addCleanup(self.bed.mend, host)
            for pid in self.bed.desk.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            process.communicate(timeout=HANG_S)
            self.bed.mend(host)
            self.assertTrue(wait_for(lambda: not self.bed.left(sessions=False)), self.bed.left())
            had_config = (listener / "rmat.json").exists()
            if not had_config:
                result = self.bed.desk.run(
                    "python3",
                    "/mnt/top/deploy/launch.py",
                    "--program",
                    ON_HOST,
                    "--workspace",
                    "~/new",
                    "--part_config",
                    "data/x/rmat.json",
                    "--ip_config",
                    "w/ip.txt",
                    "true",
                )
                self.assertEqual(result.returncode, 1)
            self.bed.reachable()
            result = self.bed.desk.run(*self.words(*more))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.sent(result.stdout)
            self.is_whole()
        self.assertTrue(wait_for(lambda: not self.bed.left()), self.bed.left())

    def copier(self) -> int:
        """The pid of copy_files.py, at a moment when none of its forks is about to run another program."""
        found: list[int] = []

        def alone() -> bool:
            found[:] = self.bed.desk.find("python3", "copy_files.py")
            return len(found) == 1

        self.assertTrue(wait_for(alone), found)
        return found[0]

    def test_the_copier_dies(self) -> None:
        """Killed while files are being sent, which would take long: no process of the copy remains."""
        parts = [self.bed.desk.home / f"g/part{host.index}/node/_N/feat.npy" for host in self.bed.hosts]
        for more in ((), ("--with_tar",)):
            self.setUp()
            with Gate(parts) as gate:
                process = self.bed.desk.start(*self.words(*more))
                self.assertTrue(gate.held(HOSTS), "nothing is copied")
                if not more:
                    self.assertEqual(self.sweeps(), [False] * HOSTS)
                os.kill(self.copier(), 9)
                gone = wait_for(lambda: not self.bed.left() and not self.bed.desk.processes(), 30)
                self.assertTrue(gone, f"{self.bed.left()} {self.bed.desk.processes()}")
            process.communicate(timeout=HANG_S)
            self.assertFalse(any((host.home / "new/data/x/rmat.json").exists() for host in self.bed.hosts))
        self.leaves_what_is_not_its_own()

    def sweeps(self) -> list[bool]:
        """For each host, whether a copy would remove files in the part's temporary folder."""
        folders = [f"new/data/x/.graphwire-copy-{host.index}" for host in self.bed.hosts]
        return [host.shell(f"flock -n {folder} true").returncode == 0 for host, folder in zip(self.bed.hosts, folders)]

    def test_half_of_a_file_goes_with_the_next_copy(self) -> None:
        """Files that a killed rsync left, of the part and of the scripts. Files in use by another copy stay."""
        self.copy()
        halves = [host.home / "new" / to / f".graphwire-copy-{host.index}/half.AbCdEf"
                  for host in self.bed.hosts for to in ("data/x", "")]
        for path in halves:
            path.parent.mkdir()
            path.write_text("half")
        held, command = halves[0], "echo held; exec sleep 900"
        holder = self.bed.hosts[0].start("flock", "-s", "new/data/x/.graphwire-copy-0", "sh", "-c", command)
        assert holder.stdout
        self.assertEqual(holder.stdout.readline(), "held\n")
        result = self.bed.desk.run(*self.words())
        self.assertEqual(result.returncode, 0, result.stderr)
        left = [path for path in halves if path.parent.exists()]
        for pid in self.bed.hosts[0].find("sleep 900"):
            os.kill(pid, 9)
        holder.communicate(timeout=HANG_S)
        self.assertEqual(left, [held])
        self.copy()
        self.is_whole()

    def leaves_what_is_not_its_own(self) -> None:
        """The next copy removes what killed ones left in /tmp. Files in use, and files of other users, stay."""
        desk, names = self.bed.desk, "gw-sockets-held gw-sockets-others gw-sockets-dead"
        desk.shell(f"cd /tmp && mkdir {names} && chown nobody gw-sockets-others")
        holder = desk.start("flock", "/tmp/gw-sockets-held", "sh", "-c", "echo held; exec sleep 900")
        assert holder.stdout
        self.assertEqual(holder.stdout.readline(), "held\n")
        self.copy()
        left = desk.shell("cd /tmp && echo gw-sockets-*").stdout
        for pid in desk.find("sleep 900"):
            os.kill(pid, 9)
        holder.communicate(timeout=HANG_S)
        self.assertEqual(left, "gw-sockets-held gw-sockets-others\n")

    def test_damage_is_found_and_mended(self) -> None:
        self.copy()
        for more in ((), ("--with_tar",)):
            path = self.bed.hosts[2].home / "new/data/x/part2/node/_N/feat.npy"
            stat = path.stat()
            with open(path, "r+b") as file:
                file.seek(5000)
                file.write(b"other")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            sent = self.sent(self.copy(*more))
            self.assertGreater(sent[2][1], 0)
            self.assertEqual(sent[1], (0, 0))
            self.is_whole()

    def test_another_graph_takes_its_place(self) -> None:
        self.copy()
        other = self.bed.desk.home / "other"
        other.mkdir()
        make_graph(other, HOSTS, seed=2)
        try:
            self.sent(self.copy("--part_config", "other/g/rmat.json"))
            for host in self.bed.hosts:
                self.assertEqual(
                    (host.home / "new/data/x/rmat.json").read_bytes(), (other / "g/rmat.json").read_bytes()
                )
        finally:
            shutil.rmtree(other)
        self.copy()
        self.is_whole()

    def test_a_host_that_is_away(self) -> None:
        self.bed.cut(self.bed.hosts[2])
        try:
            self.in_time_for_others(
                lambda seconds: self.copy("--timeout", seconds, status=1),
                rf"(?s)^(host \d .*verified\n){{{HOSTS - 1}}}"
                r"copy_files: host \d \(10\.77\.0\.3\).*(no answer|in time|no route)",
            )
        finally:
            self.bed.mend(self.bed.hosts[2])
            self.bed.reachable()

    def test_refused(self) -> None:
        for more, says in (
            (("--workspace", "~nobody-here/w"), "did you mean ~/nobody-here/w"),
            (("--rel_data_path", "../x"), "a folder in the workspace"),
            (("--part_config", "none.json"), "No such file"),
            (("--script_folder", "none"), "no such folder"),
        ):
            with self.subTest(more=more):
                result = self.bed.desk.run(*self.words(*more))
                self.assertNotEqual(result.returncode, 0)
                self.assertRegex(result.stderr, says)
        (self.bed.desk.home / "three.txt").write_text("10.77.0.1\n10.77.0.2\n10.77.0.3\n")
        result = self.bed.desk.run(*self.words("--ip_config", "three.txt"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("4 parts, and three.txt 3 hosts", result.stderr)

    def test_a_disk_is_full(self) -> None:
        host = self.bed.hosts[1]
        host.shell("mkdir -p new; mount -t tmpfs -o size=64k tmpfs new")
        try:
            text = self.copy(status=1)
            self.assertRegex(text, r"copy_files: .*10\.77\.0\.2.*No space left")
            self.assertEqual(host.shell("ls new/data/x/*.json").returncode, 2)
        finally:
            host.shell("umount new")


class FiveSteps(OnHosts):
    """DGL's GraphSAGE example (../shared/dgl-scripts/README.md): its steps as printed, up to the trainer."""

    def test_typed_as_printed(self) -> None:
        desk = self.bed.desk
        for host in self.bed.hosts:
            shutil.rmtree(host.home / "w")
        script = f"""set -e
        mkdir -p ~/dgl ~/dgl_code
        ln -s /mnt/top/deploy ~/dgl/tools
        printf '10.77.0.1\\n10.77.0.2\\n10.77.0.3\\n10.77.0.4\\n' >ip_config.txt
        {ON_HOST} generate rmat --scale 12 --features 16 --labels 4 --train-share 0.5 --out whole
        {ON_HOST} partition whole --num_parts 4 --balance_train --balance_edges --method metis --out data
        mv data/rmat.json data/ogb-product.json
        echo '{ON_HOST} epoch --json' >~/dgl_code/train_dist.sh
        python3 ~/dgl/tools/copy_files.py \\
        --ip_config ip_config.txt \\
        --workspace ~/graphsage \\
        --rel_data_path ogb-product \\
        --part_config data/ogb-product.json \\
        --script_folder ~/dgl_code --program {ON_HOST} 1>&2
        python3 ~/dgl/tools/launch.py \\
        --workspace ~/graphsage/ \\
        --num_trainers 1 \\
        --num_samplers 4 \\
        --num_servers 1 \\
        --part_config ogb-product/ogb-product.json \\
        --ip_config ip_config.txt \\
        "sh dgl_code/train_dist.sh --graph_name ogb-product --ip_config ip_config.txt --num_servers 1" \\
        --program {ON_HOST}
        """
        result = desk.shell(script, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [json.loads(line.split("] ", 1)[1]) for line in result.stdout.splitlines() if '"epoch"' in line]
        self.assertEqual(len(rows), HOSTS)
        for host in self.bed.hosts:
            left = host.shell("cd graphsage; ls; ls ogb-product").stdout.split()
            self.assertEqual(
                left, ["dgl_code", "ip_config.txt", "logs", "ogb-product", "ogb-product.json", f"part{host.index}"]
            )
            self.assertFalse((host.home / HOME.lstrip("/")).exists())
        self.nothing_left()


if __name__ == "__main__":
    unittest.main()
