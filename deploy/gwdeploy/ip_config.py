"""Reads ip_config.txt: one host a line, `address [port [servers]]`; the host of line i serves part i.

Comments (#), empty lines and a byte order mark are skipped. An address is IPv4, IPv6 (with or without brackets) or a
name.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re

from .errors import UsageError
from .names import visible

PORT = 30050
_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
_WITH_PORT = re.compile(r"^(?P<host>[^:]+|\[[^]]+\]):(?P<port>[0-9]*)$")
_LINE_MAX = 1024
_HOSTS_MAX = 4096


@dataclasses.dataclass(frozen=True)
class Host:
    """A line of the file."""

    index: int
    address: str  # without brackets
    port: int = PORT
    servers: int | None = None  # the third column, which DGL-KE's files have

    @property
    def label(self) -> str:
        """The address as part of a file's name."""
        return re.sub(r"[^A-Za-z0-9.-]", "_", self.address)

    @property
    def listen(self) -> str:
        """ADDR:PORT, as `graphwire serve --listen` takes it."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    def __str__(self) -> str:
        return f"host {self.index} ({self.address})"


def _number(text: str, what: str, least: int, most: int, where: str) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise UsageError(f'{where}: "{visible(text)}" is not a {what} ({least} to {most})')
    return int(text)


def _address(text: str, where: str) -> str:
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        port = _WITH_PORT.match(text)
        if port:
            raise UsageError(
                f'{where}: "{visible(text)}": a space comes before the port: {port.group("host")} {port.group("port")}'
            ) from None
        if not _NAME.match(text) or len(text) > 253 or re.fullmatch(r"[0-9.]+", text):
            raise UsageError(f'{where}: "{visible(text)}" is neither an address nor the name of a host') from None
        return text


def _host(index: int, line: str, where: str) -> Host:
    fields = line.split()
    if len(fields) > 3:
        raise UsageError(f"{where}: {len(fields)} columns; a line is: address [port [servers]]")
    return Host(
        index=index,
        address=_address(fields[0], where),
        port=_number(fields[1], "port", 1, 65535, where) if len(fields) > 1 else PORT,
        servers=_number(fields[2], "number of servers", 1, 1024, where) if len(fields) > 2 else None,
    )


def parse(text: str, path: str = "ip_config.txt", one_machine: bool = False) -> list[Host]:
    """Returns the hosts of a file's text. Refuses an address that occurs twice. On one machine, refuses only an address
    that occurs twice with the same port."""
    hosts: list[Host] = []
    seen: dict = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        where = f"{path}:{number}"
        if len(line) > _LINE_MAX or len(hosts) == _HOSTS_MAX:
            raise UsageError(f"{where}: the file has more than {_HOSTS_MAX} hosts, or the line is too long")
        host = _host(len(hosts), line, where)
        same = (host.address, host.port) if one_machine else host.address
        if same in seen:
            raise UsageError(f"{where}: {host.address} is on line {seen[same]} already: a host serves one part")
        seen[same] = number
        hosts.append(host)
    if not hosts:
        raise UsageError(f"{path}: the file has no host")
    return hosts


def read(path: str, one_machine: bool = False) -> list[Host]:
    """Returns the hosts of a file."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return parse(file.read(1 << 22), path, one_machine)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'the file is not text'}") from None


def text_of(hosts: list[Host]) -> str:
    """Returns the file for trainers: a line `address port` for each host."""
    return "".join(f"{host.address} {host.port}\n" for host in hosts)
