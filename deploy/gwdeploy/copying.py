"""copy_files.py: copies a graph's parts, the list of hosts and a folder of scripts to all hosts, a few hosts at a time.

    make the workspace, remove another graph's JSON -> (the program) -> the part's files; meanwhile scripts and ip
    config -> verify -> the JSON

Each step is one command on the host, because for a small part the commands take most of the time.

The JSON comes last, by a rename. An interrupted copy has no JSON, so no program takes it for a graph. rsync sends the
files if both sides have it, else tar; files of the same size and time are not sent. The host verifies the files against
the digests in the part; if they differ, the copy sends the part again once, comparing contents.

rsync writes each file into a temporary folder first, and holds a lock on the folder. Each line of the ip config has its
own temporary folder. A killed rsync leaves half a file there; the next copy empties a folder whose lock is free.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import functools
import os
import re
import shlex
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from . import parts, program, sockets
from .errors import DeployError, UsageError
from .ip_config import Host
from .ip_config import read as read_ip_config
from .names import COPY
from .options import Parser, add_ssh, reach, seconds
from .reach import Local, home_of

_OUTPUT_MAX = 1 << 22
_FANOUT = 8
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_OF_SSH = (255, 12)  # exit statuses of ssh, and of rsync over ssh, when the connection fails
_SENT = re.compile(r"Total transferred file size: ([0-9,.]+)")
_LOCKED = 'exec 9<"$0" && flock -s -w 5 9; exec "$@"'  # sh: runs a command that holds the lock of a folder
_FILES = re.compile(r"Number of regular files transferred: ([0-9,.]+)")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parses copy_files.py's command line."""
    parser = Parser(
        prog=COPY,
        description="Copy each part of a graph to its host, with the list of hosts and the scripts.",
        epilog=f"Example: {COPY} --ip_config ip_config.txt --workspace ~/sage --rel_data_path data --part_config "
        "parts/g.json --script_folder ~/code. Leaves WORKSPACE/{ip_config.txt, code/, data/} on each host. "
        "Run it again after an interruption. Exit status: 0 all is copied and verified, 1 a copy failed (a line for "
        "each host), 2 wrong usage.",
    )
    group = parser.add_argument_group("as DGL's copy_files.py")
    group.add_argument("--workspace", required=True, metavar="DIR", help="the working folder, on every host")
    group.add_argument("--rel_data_path", required=True, metavar="DIR", help="the graph's folder in the workspace")
    group.add_argument("--part_config", required=True, metavar="JSON", help="the graph here: its JSON, or its folder")
    group.add_argument("--script_folder", metavar="DIR", help="a folder here, or in the workspace here, to copy too")
    group.add_argument("--ip_config", required=True, metavar="FILE", help="the file of hosts; copied too")
    group = parser.add_argument_group("Graphwire's own")
    group.add_argument(
        "--silence", type=seconds, default=60.0, metavar="S", help="a host that is silent for so long is lost (60)"
    )
    group.add_argument(
        "--with_program",
        nargs="?",
        const="",
        metavar="FILE",
        help="copy the program too, from its bundle (build/release/graphwire-*.tar.gz), to WORKSPACE/.graphwire",
    )
    group.add_argument(
        "--lists",
        action="store_true",
        help="copy to each host the neighbour lists of all parts too, for launch.py --lists all",
    )
    group.add_argument("--no_verify", action="store_true", help="do not verify the files on the hosts")
    group.add_argument("--with_tar", action="store_true", help="do not use rsync")
    group.add_argument("--dry_run", action="store_true", help="print what would be copied, and copy nothing")
    add_ssh(parser)
    parser.set_defaults(fanout=_FANOUT)
    return parser.parse(words)


class Copy:
    """One copy to all hosts."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.local = options.scheduler == "local"
        self.hosts = read_ip_config(options.ip_config, self.local)
        self.graph = parts.read(options.part_config)
        self.scripts = _scripts(options) if options.script_folder else None
        self.bundle = None if options.with_program is None else program.read(options.with_program)
        self.reach = reach(options, len(self.hosts))
        _check_relative(options.rel_data_path)
        if len(self.graph.parts) != len(self.hosts):
            raise UsageError(
                f"{self.graph.config} has {len(self.graph.parts)} parts, and {options.ip_config} {len(self.hosts)} "
                "hosts: each part needs a line, part i goes to line i"
            )

    def files(self, part: int) -> list[str]:
        """Returns the files for the host of a part."""
        found = list(self.graph.parts[part])
        for number, names in enumerate(self.graph.lists if self.options.lists else ()):
            found += names if number != part else ()
        return found

    def plan(self) -> list[str]:
        """Returns a line for each host: what a copy would send."""
        lines = []
        for host in self.hosts:
            lines.append(
                f"{host}: part {host.index} ({len(self.graph.parts[host.index])} files, "
                f"{self.graph.sizes[host.index]} bytes) to {self.options.workspace}/{self.options.rel_data_path}"
                + (", and the lists of the other parts" if self.options.lists else "")
                + (f", {self.scripts}" if self.scripts else "")
                + (f", {self.bundle.name}" if self.bundle else "")
            )
        return lines

    async def run(self, report: Callable[[str], None]) -> list[DeployError]:
        """Copies to all hosts. report: called with a line for each host that has all files. Returns the failures."""
        limit = asyncio.Semaphore(self.options.fanout)
        with sockets.folder() as folder:

            async def one(host: Host) -> DeployError | None:
                async with limit:
                    target = Target(self, host, folder)
                    try:
                        report(await target.copy())
                        return None
                    except DeployError as error:
                        return error
                    finally:
                        await target.close()

            found = await asyncio.gather(*[one(host) for host in self.hosts])
        return [error for error in found if error]


class Target:
    """One host that receives a copy. All its ssh sessions share one connection, which close() ends."""

    def __init__(self, copy: Copy, host: Host, folder: str) -> None:
        self.copy_of, self.host, self.options = copy, host, copy.options
        self.socket = None if copy.local else os.path.join(folder, f"s{host.index}")
        self.workspace = ""
        self.sent_files = self.sent_bytes = 0
        self.by_rsync = False

    # --- Running things. ---

    async def _call(self, words: Sequence[str], what: str, stdin: bytes | None = None, quick: bool = True) -> str:
        """Runs a command here and returns its output. quick: the command must end within --timeout."""
        process = await _start(words, DEVNULL if stdin is None else PIPE, PIPE)
        try:
            limit = self.options.timeout if quick else None
            out, errors = await asyncio.wait_for(process.communicate(stdin), limit)
        except asyncio.TimeoutError:
            raise DeployError(f"{self.host}: no answer to {what} within {self.options.timeout:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 15)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(process.wait(), 2.0)
        if process.returncode != 0:
            raise self._failure(what, errors, process.returncode)
        return out[:_OUTPUT_MAX].decode("utf-8", "replace")

    def _failure(self, what: str, errors: bytes, status: int | None) -> DeployError:
        """Makes an error from stderr: explains ssh's own failures, and quotes other programs' lines."""
        said = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
        if status in _OF_SSH or not said:
            return self.copy_of.reach.failure(self.host, said, status)
        shown = [line for line in said if not line.startswith("rsync error: ")] or said
        return DeployError(f"{self.host}: {what}: {' | '.join(shown[:3])}")

    async def _on_host(self, script: str, what: str, stdin: bytes | None = None, quick: bool = True) -> str:
        words = self.copy_of.reach.shell(self.host, "set -e; " + script, self.socket)
        return await self._call(words, what, stdin, quick)

    async def close(self) -> None:
        """Ends the shared connection."""
        if self.socket and os.path.exists(self.socket):
            words = [*self.copy_of.reach.ssh(self.socket), "-O", "exit", self.copy_of.reach.to(self.host)]
            with contextlib.suppress(DeployError, OSError):
                await self._call(words, "the end")

    # --- The steps. ---

    async def copy(self) -> str:
        """Copies all files; returns a line of report."""
        graph, part = self.copy_of.graph, self.host.index
        await self._prepare()
        program_text = await self._send_program()
        await self._make_temporary()
        await _together(self._send_part(by_content=False), self._send_rest())
        verified = await self._place_config()
        return (
            f"{self.host}: part {part}: {len(graph.parts[part])} files, {graph.sizes[part]} bytes there; "
            f"{self.sent_files} files, {self.sent_bytes} bytes sent by {'rsync' if self.by_rsync else 'tar'}; "
            f"{verified}{program_text}"
        )

    async def _send_program(self) -> str:
        """Sends the bundle unless the host already has it. Returns the words for the report."""
        bundle = self.copy_of.bundle
        if not bundle:
            return ""
        said = (await self._on_host(bundle.look(self.workspace), "looking at the program")).split()
        if len(said) != 2 or said[0] != bundle.machine:
            raise DeployError(f"{self.host}: it is {' '.join(said[:1])}, but {bundle.name} is for {bundle.machine}")
        if said[1] == bundle.digest:
            return "; the program was there"
        await self._on_host(bundle.unpack(self.workspace), f"unpacking {bundle.name}", bundle.content, quick=False)
        return f"; the program is there ({len(bundle.content)} bytes sent)"

    async def _prepare(self) -> None:
        """Makes the folders, removes another graph's JSON, and finds out whether the host has rsync."""
        home, refuse, rest = home_of(self.options.workspace)
        config = shlex.quote(f"{self.options.rel_data_path}/{self.copy_of.graph.config_name}")
        script = f'{home}; {refuse}; w={rest}; mkdir -p "$w"/{shlex.quote(self.options.rel_data_path)}; cd "$w"; '
        script += f"cmp -s - {config} || rm -f {config}; pwd; command -v rsync >/dev/null && echo rsync || echo tar"
        said = await self._on_host(script, f"making {self.options.workspace}", self.copy_of.graph.text)
        lines = said.splitlines()
        if len(lines) < 2:
            raise DeployError(f"{self.host}: the host's shell printed too few lines: {lines}")
        self.workspace = lines[-2]
        self.by_rsync = lines[-1] == "rsync" and shutil.which("rsync") is not None and not self.options.with_tar

    async def _make_temporary(self) -> None:
        """Makes the temporary folders, and empties those that a killed copy left. A step that fails before leaves
        none."""
        script = ""
        for path in map(shlex.quote, self._temporary()):
            script += f"mkdir -p {path}; flock -n {path} find {path} -mindepth 1 -delete || :; "
        await self._on_host(script, "making temporary folders")

    def _temporary_of(self, to: str) -> str:
        """Returns the temporary folder for a folder in the workspace."""
        return os.path.join(self.workspace, to, f".graphwire-copy-{self.host.index}")

    def _temporary(self) -> list[str]:
        """Returns both temporary folders: for the part's files, and for scripts and ip config."""
        return [self._temporary_of(to) for to in (self.options.rel_data_path, ".")]

    async def _send_rest(self) -> None:
        """Sends the scripts and the list of hosts."""
        if self.copy_of.scripts:
            await self._send(os.path.dirname(self.copy_of.scripts), [os.path.basename(self.copy_of.scripts)], ".")
        folder, name = os.path.split(os.path.abspath(self.options.ip_config))
        await self._send(folder, [name], ".")

    async def _send_part(self, by_content: bool) -> None:
        graph = self.copy_of.graph
        await self._send(graph.folder, self.copy_of.files(self.host.index), self.options.rel_data_path, by_content)

    async def _send(self, folder: str, names: list[str], to: str, by_content: bool = False) -> None:
        """Sends files or folders (names in a folder here) to a folder in the host's workspace."""
        if self.by_rsync:
            await self._rsync(folder, names, to, by_content)
        else:
            await self._tar(folder, names, to, by_content)

    async def _rsync(self, folder: str, names: list[str], to: str, by_content: bool) -> None:
        reach_by = self.copy_of.reach
        words = ["rsync", "-rlpt", "--stats", "--files-from=-", "--from0", "--partial-dir=.graphwire-partial"]
        words += ["--protect-args", "--omit-dir-times", f"--timeout={max(1, round(self.options.silence))}"]
        words += [f"--temp-dir={self._temporary_of(to)}"]
        locked = ["sh", "-c", _LOCKED, self._temporary_of(to)]
        words += ["--checksum"] if by_content else []
        target = f"{self.workspace}/{to}/"
        if not isinstance(reach_by, Local):
            words += ["-e", shlex.join(reach_by.ssh(self.socket)), f"--rsync-path={shlex.join([*locked, 'rsync'])}"]
            locked = []
            address = f"[{self.host.address}]" if ":" in self.host.address else self.host.address
            target = f"{reach_by.user + '@' if reach_by.user else ''}{address}:{target}"
        listed = b"".join(os.fsencode(name) + b"\0" for name in names)
        text = await self._call([*locked, *words, folder + "/", target], f"rsync of {folder}", listed, quick=False)
        for pattern, name in ((_SENT, "sent_bytes"), (_FILES, "sent_files")):
            match = pattern.search(text)
            number = int(re.sub(r"[,.]", "", match.group(1))) if match else 0
            setattr(self, name, getattr(self, name) + number)

    async def _tar(self, folder: str, names: list[str], to: str, by_content: bool) -> None:
        """Sends the files whose size or time differs on the host. This includes files of an interrupted copy."""
        files = [name for one in names for name in _walk(folder, one)]
        present = {} if by_content else await self._list(to)
        changed = []
        for name in files:
            stat = os.stat(os.path.join(folder, name))
            if present.get(name) != (stat.st_size, int(stat.st_mtime)):
                changed.append(name)
                self.sent_bytes += stat.st_size
        self.sent_files += len(changed)
        if changed:
            await self._stream(folder, changed, to)

    async def _list(self, to: str) -> dict[str, tuple[int, int]]:
        script = f"cd {shlex.quote(self.workspace)}/{shlex.quote(to)}; find . -type f -exec stat -c '%s %Y %n' {{}} +"
        found = {}
        for line in (await self._on_host(script, "looking at what is there", quick=False)).splitlines():
            fields = line.split(" ", 2)
            if len(fields) == 3 and fields[0].isdigit() and fields[1].isdigit():
                found[fields[2][2:]] = (int(fields[0]), int(fields[1]))
        return found

    async def _stream(self, folder: str, names: list[str], to: str) -> None:
        reading, writing = os.pipe()
        listed = b"".join(os.fsencode(name) + b"\0" for name in names)
        words = ["tar", "-C", folder, "--null", "-T", "-", "-cf", "-"]
        here = await _start(words, PIPE, writing)
        os.close(writing)
        script = f"set -e; cd {shlex.quote(self.workspace)}/{shlex.quote(to)}; tar -xf -"
        words = self.copy_of.reach.shell(self.host, script, self.socket)
        there = await _start(words, reading, DEVNULL)
        os.close(reading)
        try:
            ends = await asyncio.gather(here.communicate(listed), there.communicate())
        finally:
            for process in (here, there):
                if process.returncode is None:
                    process.kill()
        for process, (_, errors) in zip((there, here), reversed(ends)):
            if process.returncode != 0:
                raise self._failure(f"tar of {folder}", errors, process.returncode)

    # --- Whether it arrived. ---

    async def _place_config(self) -> str:
        """Verifies the part and places the JSON. If the verification fails, sends the part again by content and tries
        once more."""
        try:
            return await self._place_once()
        except DeployError:
            if self.options.no_verify:
                raise
            await self._send_part(by_content=True)
            return await self._place_once()

    async def _place_once(self) -> str:
        """Writes the JSON under a temporary name in the graph's folder, verifies the part by it, then renames it."""
        text, name = self.copy_of.graph.text, shlex.quote(self.copy_of.graph.config_name)
        script = f"cd {shlex.quote(f'{self.workspace}/{self.options.rel_data_path}')}; c=.verify.json; "
        script += "trap 'rm -f \"$c\"' EXIT; "
        script += f'cat >"$c"; [ $(wc -c <"$c") -eq {len(text)} ]; '
        if self.options.no_verify:
            script += "said='not verified'; "
        else:
            script += f'{self.copy_of.reach.find_program(optional=True)}; said=verified; if [ -n "$g" ]; then '
            script += f'"$g" verify --quiet --part {self.host.index} "$c" >&2; '
            script += "else said='not verified: graphwire is not there yet'; fi; "
        script += f'if ! cmp -s "$c" {name}; then sync -d "$c" 2>/dev/null || sync; mv -f "$c" {name}; fi; '
        script += f'rmdir {shlex.join(self._temporary())} || :; echo "$said"'
        return (await self._on_host(script, "verifying", text, quick=False)).splitlines()[-1]


async def _together(*of: Coroutine[Any, Any, None]) -> None:
    """Runs all at once; the first failure cancels the others."""
    tasks = [asyncio.ensure_future(one) for one in of]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _start(words: Sequence[str], stdin: int, stdout: int) -> asyncio.subprocess.Process:
    """Starts a program whose messages are in English, and which ends with this process."""
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=stdin,
        stdout=stdout,
        stderr=PIPE,
        start_new_session=True,
        preexec_fn=functools.partial(_die_with, os.getpid()),
        env=dict(os.environ, LC_ALL="C"),
    )


def _die_with(parent: int) -> None:
    """Runs in a new process: the kernel kills it when its parent ends. Otherwise rsync would go on to the end of its
    file."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before prctl()


def _walk(folder: str, name: str) -> list[str]:
    """Returns the file of a name, or all files below a folder."""
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        return [name]
    found = []
    for where, _, names in os.walk(path):
        found += [os.path.relpath(os.path.join(where, one), folder) for one in names]
    return sorted(found)


def _check_relative(path: str) -> None:
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise UsageError(f"--rel_data_path {path}: it must be a folder in the workspace, without .. and leading / or ~")


def _scripts(options: argparse.Namespace) -> str:
    path = os.path.expanduser(options.script_folder)
    if not os.path.isdir(path):
        path = os.path.join(os.path.expanduser(options.workspace), options.script_folder)
    if not os.path.isdir(path):
        raise UsageError(f"--script_folder {options.script_folder}: no such folder, here or in the workspace")
    return os.path.abspath(path)


async def copy_all(options: argparse.Namespace, report: Callable[[str], Any]) -> list[DeployError]:
    """Copies to all hosts and returns the failures; with --dry_run, only reports the plan."""
    copy = Copy(options)
    if options.dry_run:
        for line in copy.plan():
            report(line)
        return []
    return await copy.run(report)
