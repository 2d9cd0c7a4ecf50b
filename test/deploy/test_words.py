"""Tests without hosts: ip_config.txt, command lines, the trainers' command and environment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from bed import PROGRAM
from gwdeploy import cluster, command, environment, ip_config, parts, process, reach
from gwdeploy.errors import DeployError, UsageError
from gwdeploy.job import Job, new_job
from gwdeploy.kept import find_kept
from gwdeploy.options import parse_launch

BASE = ["--workspace", "~/w/", "--part_config", "g/g.json", "--ip_config", "ip.txt"]


class IpConfig(unittest.TestCase):
    """ip_config.txt."""

    def test_all_columns(self) -> None:
        hosts = ip_config.parse("10.0.0.1\n10.0.0.2 30051 # one\n\n# none\nnode-3 30052 4\n[fe80::1] 1\n::2\n")
        found = [(h.index, h.address, h.port, h.servers, h.listen) for h in hosts]
        self.assertEqual(
            found,
            [
                (0, "10.0.0.1", 30050, None, "10.0.0.1:30050"),
                (1, "10.0.0.2", 30051, None, "10.0.0.2:30051"),
                (2, "node-3", 30052, 4, "node-3:30052"),
                (3, "fe80::1", 1, None, "[fe80::1]:1"),
                (4, "::2", 30050, None, "[::2]:30050"),
            ],
        )

    def test_refused(self) -> None:
        for text, says in (
            ("", "no host"),
            ("# only\n", "no host"),
            ("10.0.0.1 0", "port"),
            ("10.0.0.1 65536", "port"),
            ("10.0.0.1 port", "port"),
            ("10.0.0.1 1 2 3", "4 columns"),
            ("10.0.0.1 1 0", "servers"),
            ("300.1.1.1", "neither"),
            ("10.0.0.1:30050", "a space comes before the port: 10.0.0.1 30050"),
            ("node-3:30050 30051", "a space comes before the port: node-3 30050"),
            ("[fd00::1]:30050", r"a space comes before the port: \[fd00::1\] 30050"),
            ("-x", "neither"),
            ("\u200b10.0.0.1", r'"\\u200b10\.0\.0\.1" is neither'),  # an invisible character is written as its escape
            ("10.0.0.1\n\ufeff10.0.0.2", r'"\\ufeff10'),
            ("a;b", "neither"),
            ("a\na", "line 1 already"),
            ("::1\n0:0::1", "line 1 already"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(UsageError, says):
                ip_config.parse(text)

    def test_a_byte_order_mark(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "ip.txt")
            path.write_text("10.0.0.1 5\r\n10.0.0.2\r\n", encoding="utf-8-sig")
            found = [(host.address, host.port) for host in ip_config.read(str(path))]
            self.assertEqual(found, [("10.0.0.1", 5), ("10.0.0.2", 30050)])
            path.write_text("10.0.0.1", encoding="utf-16")
            with self.assertRaisesRegex(UsageError, "not text"):
                ip_config.read(str(path))

    def test_one_machine_takes_an_address_twice(self) -> None:
        self.assertEqual(len(ip_config.parse("127.0.0.1 1\n127.0.0.1 2", one_machine=True)), 2)
        with self.assertRaisesRegex(UsageError, "already"):
            ip_config.parse("127.0.0.1 1\n127.0.0.1 1", one_machine=True)


class Names(unittest.TestCase):
    """Names of jobs: `cluster.py logs` uses the last one."""

    def test_they_sort_as_jobs_began(self) -> None:
        second = 10**9
        for later in (1000, second // 2, second, 3600 * second):
            with mock.patch("time.time_ns", side_effect=(7 * second, 7 * second + later)):
                with mock.patch("secrets.token_hex", side_effect=("ffffff", "000000")):
                    first, last = new_job(), new_job()
            self.assertLess(first, last, later)

    def test_the_hour_that_comes_twice(self) -> None:
        before, after = 1792889940, 1792890060  # around the end of daylight saving time, 2026-10-25 01:00 UTC
        with mock.patch.dict(os.environ, {"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}):
            self.addCleanup(time.tzset)
            time.tzset()
            with mock.patch("time.time_ns", side_effect=(before * 10**9, after * 10**9)):
                self.assertLess(new_job(), new_job())


class Options(unittest.TestCase):
    """launch.py's command line."""

    def test_options_before_and_behind_the_command(self) -> None:
        for words in (
            [*BASE, "--num-trainers", "2", "run me"],
            ["run me", *BASE, "--num_trainers=2"],
            [*BASE, "--num_trainers", "2", "--extra_envs", "A=1", "B=x=y z", "run me"],
            [*BASE, "--extra_envs", "A=1", "B=x=y z", "--num_trainers", "2", "run me"],
            [*BASE, "--extra_envs=A=1", "run me", "--num-trainers", "2"],
        ):
            with self.subTest(words=words):
                options = parse_launch(words)
                self.assertEqual((options.command, options.num_trainers), ("run me", 2))
        self.assertEqual(parse_launch([*BASE, "--extra_envs", "A=1", "B=x=y z", "c"]).extra_envs, ["A=1", "B=x=y z"])

    def test_all_of_dgls(self) -> None:
        words = "--ssh_port 23 --ssh_username u --verbose --num_samplers 4 --num_servers 3 --num_server_threads 2"
        words += " --num_omp_threads 5 --graph_format csr --keep_alive --server_name long_live"
        options = parse_launch([*BASE, *words.split(), "c"])
        self.assertEqual((options.ssh_port, options.ssh_username, options.num_samplers), (23, "u", 4))
        self.assertEqual((options.num_servers, options.num_server_threads, options.num_omp_threads), (3, 2, 5))
        self.assertEqual((options.graph_format, options.keep_alive, options.server_name), ("csr", True, "long_live"))

    def test_refused(self) -> None:
        for words, says in (
            (BASE, "command"),
            ([*BASE[2:], "c"], "workspace"),
            ([*BASE, "c", "--num_trainers", "0"], "at least 1"),
            ([*BASE, "c", "--num_samplers", "-1"], "at least 0"),
            ([*BASE, "c", "d"], "unrecognized"),
            ([*BASE, " "], "empty"),
            ([*BASE, "c", "--server_name", "a b"], "characters"),
            ([*BASE, "c", "--ssh_port", "65536"], "at most 65535"),
            ([*BASE, "c", "--silence", "0"], "above 0"),
            ([*BASE, "c", "--disk_cache", "1Gi"], "--disk_cache without --on_disk"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(UsageError, says):
                parse_launch(words)


class Addresses(unittest.TestCase):
    """Hosts report how they resolve their own names."""

    def check(self, text: str, *own: tuple[str, str, bool]) -> None:
        """own: for each host, its network, the address of its own name there, and whether that is loopback."""

        async def run() -> None:
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "ip.txt").write_text(text)
                job = Job(parse_launch([*BASE[2:], "--workspace", folder, "--scheduler", "local", "c"]))
            for (network, address, loopback), host in zip(own, job.hosts):
                answer = {"network": network, "address": address, "loopback": loopback}
                job.agents.append(mock.Mock(host=host, ask=mock.AsyncMock(return_value=answer)))
            await job._check_addresses()

        asyncio.run(run())

    def test_loopback_is_for_hosts_that_are_one(self) -> None:
        self.check("127.0.0.1 1\n127.0.0.1 2\n", ("n", "127.0.0.1", True), ("n", "127.0.0.1", True))
        self.check("a\n", ("n", "127.0.1.1", True))
        self.check("a\nb\n", ("n", "10.0.0.1", False), ("m", "", False))
        with self.assertRaisesRegex(DeployError, r"^host 1 \(b\): its own name b means ::1 .* b in its /etc/hosts"):
            self.check("a\nb\n", ("n", "10.0.0.1", False), ("m", "::1", True))
        with self.assertRaisesRegex(DeployError, r"^host 0 \(127.0.0.1\): 127.0.0.1 is loopback.* into ip.txt$"):
            self.check("127.0.0.1\nb\n", ("n", "127.0.0.1", True), ("m", "10.0.0.2", False))


class Graphs(unittest.TestCase):
    """The JSON of a graph for a copy."""

    def refused(self, config: Path, pattern: str) -> None:
        with self.assertRaisesRegex(UsageError, pattern):
            parts.read(str(config))

    def test_versions(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "g.json")
            Path(folder, "a.npy").touch()
            Path(folder, "a.xxh").touch()
            graph = {"format": "graphwire-1", "graph_name": "g", "num_parts": 1, "part-0": {"k": {"file": "a.npy"}}}
            for minor in ({}, {"minor": 1}, {"minor": 9, "new": [1]}):  # array files of newer versions are copied too
                config.write_text(json.dumps({**graph, **minor}))
                self.assertEqual(parts.read(folder).parts, [["a.npy", "a.xxh"]])
            config.write_text(json.dumps({**graph, "format": "graphwire-2"}))
            self.refused(config, "graphwire-2, but this launcher reads graphwire-1: use the Graphwire version")
            config.write_text(json.dumps({**graph, "format": "dgl"}))
            self.refused(config, "not a graph that graphwire partition made")

    def test_pipes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(Path(folder, "g.json"))
            self.refused(Path(folder), "it is not a file")
            with self.assertRaisesRegex(UsageError, "it is not a file"):
                process.read_key(str(Path(folder, "g.json")))


class Command(unittest.TestCase):
    """Where torchrun is inserted."""

    RUN = "-m torch.distributed.run --nproc_per_node=2 --nnodes=3 --node_rank=1 --master_addr=h0 --master_port=9 "

    def wrapped(self, text: str) -> str:
        return command.torchrun(text, 2, 3, 1, "h0", 9)

    def test_in_front_of_the_script(self) -> None:
        for before, behind in (
            ("python3 ", "train.py --a 'b c' \"d $E\""),
            ("python3 -u -W ignore ", "train.py"),
            ("/opt/my/python3.11 ", "-m pkg.train --x"),
            ("cd a && python ", "t.py; echo python3 x.py"),
            ("A=1 B='c d' python3 ", "t.py"),
            ("exec python3 ", "'a b.py'"),
            ("env A=1 python3 ", "t.py"),
            ("(python3 ", "t.py)"),
            ("numactl -N 0 --membind=0 python3 ", "t.py"),
            ("cd a && nohup /usr/bin/time -v conda run -n env python ", "-m pkg.train"),
            ("OMP_NUM_THREADS=2 taskset -c 0-3 nice -n 5 python3.11 -u ", "t.py | tee log"),
        ):
            with self.subTest(before=before):
                self.assertEqual(self.wrapped(before + behind), before + self.RUN + behind)

    def test_without_torchrun_each_trainer_is_a_process(self) -> None:
        hosts = ip_config.parse("a\nb")
        words = [*BASE, "--num_trainers", "2", "python3 t.py"]
        with mock.patch("sys.executable", "/usr/bin/python3"):  # the system's Python has no environment of its own
            plain = parse_launch([*words, "--no_torchrun", "--dgl", "off"])
            found = process.trainer_commands(plain, hosts, hosts[1], 9)
        self.assertEqual(found, [(0, "python3 t.py"), (1, "python3 t.py")])
        ((local, text),) = process.trainer_commands(parse_launch(words), hosts, hosts[1], 9)
        self.assertIsNone(local)
        self.assertIn("--node_rank=1", text)

    def test_the_launchers_environment_is_first_in_the_path(self) -> None:
        """Compared with the shell: on a host that has the environment, and on one that lacks it."""
        with tempfile.TemporaryDirectory(prefix="it's a ") as folder:
            own, lacks = Path(folder, "venv/bin"), Path(folder, "none/bin")
            own.mkdir(parents=True)
            for name in ("python3", "graphwire"):
                (own / name).write_text(f"#!/bin/sh\necho own {name} $1\n")
                (own / name).chmod(0o755)
            for place, first in ((own, "own"), (lacks, "other")):
                with mock.patch("sys.executable", str(place / "python3")):
                    words = [*BASE, "--no_torchrun", "--dgl", "off", "false; graphwire a && exec python3 b"]
                    hosts = ip_config.parse("a")
                    own_path = [*words, "--extra_envs", "PATH=/x"]
                    ((_, text),) = process.trainer_commands(parse_launch(words), hosts, hosts[0], 9)
                    ((_, given),) = process.trainer_commands(parse_launch(own_path), hosts, hosts[0], 9)
                self.assertEqual(given, words[-1], "the user's own PATH stays")
                elsewhere = Path(folder, "elsewhere")
                elsewhere.mkdir(exist_ok=True)
                for name in ("python3", "graphwire"):
                    (elsewhere / name).write_text(f"#!/bin/sh\necho other {name} $1\n")
                    (elsewhere / name).chmod(0o755)
                env = {"PATH": f"{elsewhere}:/usr/bin:/bin"}
                out = subprocess.check_output(["sh", "-c", text], env=env, text=True)
                self.assertEqual(out.splitlines(), [f"{first} graphwire a", f"{first} python3 b"])

    def test_scripts_that_import_dgl(self) -> None:
        """Compared with the shell, with a Python that prints its arguments."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "python3").write_text('#!/bin/sh\n[ "$1" = -c ] && { [ -e has ]; exit; }\necho "$@"\n')
            Path(folder, "python3").chmod(0o755)
            for name, text, by_dgl in (
                ("a.py", "import os\nimport dgl\n", True),
                ("b.py", "    from dgl.distributed import DistGraph\n", True),
                ("c.py", "import torch, dgl as d\n", True),
                ("d.py", "# import dgl\nimport dglke\n", False),
                ("e e.py", "import dgl.nn.pytorch as dglnn\n", True),
                ("there_is_none.py", "", False),
            ):
                if text:
                    Path(folder, name).write_text(text)
                for mode, expected, has in (("auto", "dgl" if by_dgl else "", False), ("as-is", "dgl", False),
                                            ("auto", "dgl" if by_dgl else "when_dgl", True), ("off", "", True)):
                    Path(folder, "has").unlink(missing_ok=True)
                    if has:
                        Path(folder, "has").touch()
                    for before in ("", self.RUN):
                        with self.subTest(name=name, mode=mode, before=before):
                            text = command.with_dgl(f"cd . && ./python3 -u '{name}' \"x y\"", mode)
                            text = self.wrapped(text) if before else text
                            words = ["sh", "-c", text]
                            out = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
                            runner = f"-m graphwire.{expected} " if expected else ""
                            self.assertEqual(out.strip(), f"-u {before}{runner}{name} x y")
                            text = command.with_dgl("cd . && ./python3 -u -m some.module x", mode)
                            words = ["sh", "-c", self.wrapped(text) if before else text]
                            out = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
                            runner = runner if mode != "auto" else "-m graphwire.when_dgl " if has else ""
                            self.assertEqual(out.strip(), f"-u {before}{runner}-m some.module x")

    def test_graphwires_own_programs_run_as_they_are(self):
        """None of them imports dgl; kge's jobs are found by their command lines."""
        for text in ("python3 -m graphwire.kge client --x 1", "cd a && X=1 python3 -u -m graphwire.bench"):
            self.assertEqual(command.with_dgl(text, "auto"), text)
        self.assertIn("when_dgl", command.with_dgl("python3 -m graphwired.train", "auto"))

    def test_left_alone(self) -> None:
        for text in (
            "graphwire epoch",
            "./python3train x",
            "echo python3 t.py",
            "python3 -c 'print(1)'",
            "python3 -m torch.distributed.run t.py",
            "torchrun t.py",
        ):
            with self.subTest(text=text):
                self.assertFalse(command.runs_under_torchrun(text))
                self.assertEqual(self.wrapped(text), text)

    def test_scripts_that_are_not_seen(self) -> None:
        """Each Python of the command finds the launcher's sitecustomize first. The command keeps its PYTHONPATH, its
        arguments, its line numbers and its status."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "train.sh").write_text('echo "$PYTHONPATH" "$@"; exit 3\n')
            for text, said in (("sh ./train.sh 'a b'", "a b"), ("# x\ncd . && X=1 sh ./train.sh 1", "1"),
                               ("(sh train.sh); exit 3", ""), ("bash train.sh graphwire.dgl", "graphwire.dgl"),
                               ("cat <<END >f; sh train.sh\nEND", "")):
                for mode, its in (("auto", "/job dir"), ("as-is", "/job dir"), ("off", "")):
                    for own in ("", "/own"):
                        with self.subTest(text=text, mode=mode, own=own):
                            env = {"PATH": os.environ["PATH"], "PYTHONPATH": own, "GRAPHWIRE_AT_START": "/job dir"}
                            run = subprocess.run(["sh", "-c", command.with_dgl(text, mode)], cwd=folder, text=True,
                                                 capture_output=True, env=env)
                            path = ":".join(filter(None, [its, own]))
                            self.assertEqual((run.stdout.strip(), run.stderr, run.returncode),
                                             (f"{path} {said}".strip(), "", 3))
        self.assertEqual(command.with_dgl("./x", "auto").count("\n"), 0)

    def test_the_shell_hands_quotes_to_the_script(self) -> None:
        """Compared with the shell itself, with a Python whose torchrun prints its arguments."""
        text = f"""{sys.executable} -c 'import sys; print(sys.argv[1:])' "a 'b" 'c "d' e\\ f"""
        plain = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout
        self.assertEqual(plain.strip(), repr(["a 'b", 'c "d', "e f"]))
        self.assertTrue(self.wrapped("""python3 t.py "a 'b" 'c "d' e\\ f""").endswith("""t.py "a 'b" 'c "d' e\\ f"""))


class Environment(unittest.TestCase):
    """The variables GRAPHWIRE_* and DGL_*."""

    def test_clients_are_counted_as_dgl_counts_them(self) -> None:
        options = parse_launch([*BASE, "--num_trainers", "3", "--num_samplers", "4", "--extra_envs", "A=b c", "x"])
        found = environment.of_trainers(options, 5, {"KEY_FILE": "/k", "NAME": ""}, 64)
        expected = {"DGL_NUM_CLIENT": "75", "DGL_ROLE": "client", "DGL_DIST_MODE": "distributed", "A": "b c"}
        expected.update(OMP_NUM_THREADS="10", GRAPHWIRE_KEY_FILE="/k", GRAPHWIRE_SAMPLERS="4", DGL_CONF_PATH="g/g.json")
        for name, value in expected.items():
            self.assertEqual(found.get(name), value, name)
        self.assertNotIn("GRAPHWIRE_NAME", found)
        self.assertEqual(environment.threads_of_trainer(options, 2), 1)

    def test_extra_envs_are_names_and_values(self) -> None:
        for text in ("A", "=b", "1A=b", "A B=c", "\u00e9=1", "\u0661=1", "A\u200b=1", "A-B=1", "A\n=1"):
            with self.subTest(text=text), self.assertRaisesRegex(UsageError, "NAME=VALUE"):
                parse_launch([*BASE, f"--extra_envs={text}", "x"])
        options = parse_launch([*BASE, "--extra_envs", "_a1=gr\u00f6\u00dfe", "B==", "x"])
        self.assertEqual((environment.extra(options)["_a1"], environment.extra(options)["B"]), ("gr\u00f6\u00dfe", "="))

    def test_a_servers_name_is_what_serve_takes(self) -> None:
        """Each character, and the lengths around the most, are refused where `graphwire serve` refuses them."""
        names = [f"a{chr(code)}" for code in range(1, 256)] + ["", ".", "..", "a" * 64, "a" * 65, "a.b+c-d_e"]
        for name in names:
            words = [PROGRAM, "serve", "--part-config", "/nowhere", "--part", "0", f"--name={name}"]
            said = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            try:
                parse_launch([*BASE, f"--server_name={name}", "x"])
                here = True
            except UsageError:
                here = False
            with self.subTest(name=name):
                self.assertEqual(here, said.returncode != 2, said.stderr)


class Kept(unittest.TestCase):
    """Which kept servers a job uses, and its messages about others."""

    def look(self, change: dict, *words: str) -> object:
        record = {"port": 30050, "kept": True, "name": "n", "graph_id": "1f", "parts": 2, "version": "1", "key": "ab"}
        record.update(pid=7, job="j")
        found = [{"servers": [dict(record, part=i, **change)]} for i in range(2)]
        options = parse_launch([*BASE, *words, "x"])
        return find_kept(options, ip_config.parse("a\nb"), {"name": "g", "id": "1f", "parts": 2}, "1", found)

    def test_taken(self) -> None:
        for words in ((), ("--server_name", "n")):
            kept = self.look({}, *words)
            self.assertEqual((kept.name, kept.key, kept.pids), ("n", b"\xab", [7, 7]))  # type: ignore[attr-defined]
        self.assertIsNone(self.look({"port": 1}))

    def test_refused(self) -> None:
        for change, says in (
            ({"graph_id": "2f"}, "the graph 2f"),
            ({"parts": 3}, "parts 3"),
            ({"version": "0"}, "version 0"),
            ({"kept": False}, "of job j"),
            ({"key": ""}, "keys"),
        ):
            with self.subTest(change=change), self.assertRaisesRegex(DeployError, says):
                self.look(change)
        with self.assertRaisesRegex(DeployError, 'is not "m"'):
            self.look({}, "--server_name", "m")


class Doctor(unittest.IsolatedAsyncioTestCase):
    """cluster.py doctor."""

    async def test_many_servers_have_their_time(self) -> None:
        """Longer than --timeout, and an agent does not end because of the silence."""
        options = cluster.parse(["doctor", "--ip_config", "x", "--timeout", "7", "--measure", "500"])
        asked = cluster.Asked(ip_config.parse("a")[0], options, reach.Reach("~"))
        asked.agent.ask = mock.AsyncMock(return_value={"servers": []})  # type: ignore[method-assign]
        asked.run = mock.AsyncMock(return_value=["well"])  # type: ignore[method-assign]
        asked._ends["doctor"] = {"status": 0}
        self.assertEqual(await asked.doctor([f"h{i}:30050" for i in range(64)]), ["well"])
        _, words, work_s = asked.run.call_args.args
        self.assertIn("--measure 500", " ".join(words))
        self.assertGreaterEqual(work_s, 64 * 2 * 0.5)
        (setup,) = [call for call in asked.agent.ask.call_args_list if call.args[0] == "setup"]
        self.assertGreater(setup.kwargs["silence_ms"], 1000 * (7 + work_s))


class Reach(unittest.TestCase):
    """The meaning of ssh's errors."""

    def test_explained(self) -> None:
        host = ip_config.parse("h")[0]
        for said, means in (
            ("Host key verification failed.", "ssh-keyscan -p 22 h"),
            ("u@h: Permission denied (publickey,password).", "ssh-copy-id -p 22 u@h"),
            ("ssh: connect to host h port 22: Connection refused", "sshd"),
            ("Connection timed out during banner exchange", "does not answer in time"),
            ("graphwire: not found", "--program"),
            ("kex_exchange_identification: read: reset", "read: reset"),
        ):
            with self.subTest(said=said):
                self.assertIn(means, reach.explain(host, 22, "u@h", [said], 255))


if __name__ == "__main__":
    unittest.main()
