"""Step 1: the hosts' devices, firmware, link, GIDs and limits, by the kernel's files and `graphwire doctor`."""

from __future__ import annotations

import json
from typing import NamedTuple

from card.host import Host, words
from card.run_state import Run

INSTALL = "sudo apt install ibverbs-utils perftest (Debian, Ubuntu), sudo dnf install libibverbs-utils perftest (RHEL)"

# The kernel's files about all devices, and the limits, in few processes: an emulated host starts them slowly.
_LOOK = r"""
if cd /sys/class/infiniband 2>/dev/null; then
	grep -s . */fw_ver */hca_type */board_id */device/numa_node */device/current_link_speed \
		*/device/current_link_width */ports/*/state */ports/*/phys_state */ports/*/rate */ports/*/link_layer \
		*/ports/*/lid */ports/*/gids/* */ports/*/gid_attrs/types/* */ports/*/gid_attrs/ndevs/*
	for net in */device/net/*; do [ ! -e "$net" ] || echo "$net:"; done
fi
ip -o -4 addr show
echo "kernel: $(uname -r)"
echo "locked memory: $(ulimit -l) KiB (hard $(ulimit -H -l))"
echo "open files: $(ulimit -n) (hard $(ulimit -H -n))"
grep HugePages_ /proc/meminfo
"""
_COUNTERS = r"grep -s . /sys/class/infiniband/*/ports/*/hw_counters/* /sys/class/infiniband/*/ports/*/counters/* | cat"
# Counters that a sound fabric leaves at zero, by parts of their names.
_BAD = (
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "implied_nak_seq_err",
    "rnr_nak_retry_err",
    "req_cqe_error",
    "resp_cqe_error",
    "symbol_error",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "link_error_recovery",
    "retry_exceeded_err",
    "rcvd_seq_err",
    "duplicate_request",
)
_READY = "4"  # ACTIVE, in ports/N/state


class Look(NamedTuple):
    """A host's devices, as the kernel describes them."""

    files: dict[str, str]  # under /sys/class/infiniband
    nets: list[tuple[str, str]]  # device and interface, in the order of GIDs
    addresses: dict[str, list[str]]  # of interfaces
    other: list[str]  # kernel and limits


def look(host: Host) -> Look:
    found = Look({}, [], {}, [])
    for line in host.must(_LOOK).splitlines():
        name, _, value = line.partition(":")
        cells = line.split()
        device = name.partition("/")[0]
        if "/device/net/" in name:
            found.nets.append((device, name.rsplit("/", 1)[1]))
        elif "/" in name:
            found.files[name] = value.strip()
            if "/gid_attrs/ndevs/" in name:
                found.nets.append((device, value.strip()))
        elif name.isdigit() and len(cells) > 3:
            found.addresses.setdefault(cells[1], []).append(cells[3].partition("/")[0])
        else:
            found.other.append(line)
    return found


def choose(host: Host, device: str) -> str:
    """Sets the host's device, interface and address: those of --device, else the first active port with an IPv4
    address. Returns "" or what is missing."""
    seen = look(host)
    existing = sorted({name.partition("/")[0] for name in seen.files})
    if not existing:
        return "no RDMA device"
    if device and device not in existing:
        return f"no RDMA device {device}; devices: {' '.join(existing)}"
    active = {
        name.partition("/")[0]
        for name, value in seen.files.items()
        if name.endswith("/state") and value.startswith(_READY)
    }
    rows = [
        (name, net, address)
        for name, net in dict.fromkeys(seen.nets)
        for address in seen.addresses.get(net, [])
        if device in ("", name) and host.address in ("", address)
    ]
    if not rows:
        return f"no RDMA device ({' '.join(existing)}) has an interface with " + (host.address or "an IPv4 address")
    rows.sort(key=lambda row: row[0] not in active)
    host.device, host.netdev, host.address = rows[0]
    return "" if host.device in active else f"no port of {host.device} is active"


def missing_remedy(missing: str) -> str:
    """What to do if a host has no device that can be used."""
    if missing.startswith("no RDMA device") and "(" not in missing:
        return (
            "ibv_devinfo must list a device: sudo modprobe mlx5_ib (or the card's driver) and sudo modprobe -a "
            "ib_uverbs rdma_ucm; to try Soft-RoCE: sudo modprobe rdma_rxe && "
            "sudo rdma link add rxe0 type rxe netdev NETDEV"
        )
    if "address" in missing or "interface" in missing:
        return "give the device's interface an address: sudo ip addr add ADDRESS/24 dev NETDEV (InfiniBand: IPoIB)"
    return "sudo ip link set dev NETDEV up; on InfiniBand a subnet manager must run (sminfo)"


def counters(host: Host) -> dict[str, int]:
    """The devices' counters by file."""
    found = {}
    for line in host.sh(_COUNTERS).out.splitlines():
        name, _, value = line.partition(":")
        if value.strip().isdigit():
            found[name] = int(value)
    return found


def compare_counters(run: Run, host: Host, before: dict[str, int]) -> None:
    """Reports counters of errors that rose since `before`. The faults that this program makes come later."""
    after = counters(host)
    rose = {name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)}
    bad = {name: n for name, n in rose.items() if any(part in name.rsplit("/", 1)[1] for part in _BAD)}
    run.report.attach(f"{host.name}: counters that rose", "\n".join(f"{name} +{n}" for name, n in sorted(rose.items())))
    if bad:
        run.report.note(
            f"{host.name}: errors that the device counted meanwhile: "
            + ", ".join(f"{name.rsplit('/', 1)[1]} +{n}" for name, n in sorted(bad.items())),
            'docs/RDMA.md, "Lossless RoCE", and the cables and switch of this port',
        )
    elif after:
        run.report.ok(f"{host.name}: no counter of errors rose ({len(after)} counters)")
    else:
        run.report.note(f"{host.name}: the device has no counters", "compare the switch's counters instead")


def _doctor(run: Run, host: Host) -> None:
    done = host.sh(f"{words(host.program)} doctor --json", run.left(60))
    try:
        findings: list[dict] = json.loads(done.out)["findings"]
    except (ValueError, KeyError):
        run.report.not_ok(f"{host.name}: graphwire doctor: {done.why()}", "run it by hand: graphwire doctor")
        return
    run.report.attach(
        f"{host.name}: graphwire doctor",
        "\n".join(f"{f['section']}: {f['status']} {f['name']}: {f['value']}" for f in findings),
    )
    for finding in findings:
        text = f"{host.name}: {finding['name']}: {finding['value']}"
        costs = f" ({finding['costs']})" if finding["costs"] else ""
        if finding["status"] in ("warning", "problem"):
            tell = run.report.not_ok if finding["status"] == "problem" else run.report.note
            tell(text + costs, finding["fix"] or 'docs/RDMA.md, "Tuning"')
        elif finding["section"] == "RDMA" or finding["name"] in ("locked memory", "open files"):
            run.report.line(f"   {text}")


def _facts(seen: Look) -> list[str]:
    """The lines about devices and limits; a GID with its type and interface on one line."""
    lines = []
    for name, value in seen.files.items():
        if "/gid_attrs/" in name:
            continue
        if "/gids/" in name:
            attributes = name.replace("/gids/", "/gid_attrs/%s/")
            kinds = [seen.files.get(attributes % kind, "") for kind in ("types", "ndevs")]
            if value.replace(":", "").strip("0") and any(kinds):
                lines.append(f"{name}: {value} {' '.join(kinds)}")
        elif value:
            lines.append(f"{name}: {value}")
    return lines + seen.other


def check(run: Run) -> None:
    """The step."""
    for host in run.hosts:
        run.report.ok(f"{host.name}: device {host.device}, interface {host.netdev}, address {host.address}")
        for line in _facts(look(host)):
            run.report.line(f"   {host.name}: {line}")
        _doctor(run, host)
        verbose = host.sh("command -v ibv_devinfo >/dev/null && ibv_devinfo -v", run.left(20))
        if verbose.rc == 0:
            run.report.attach(f"{host.name}: ibv_devinfo -v", verbose.out)
        elif verbose.rc != 124:
            run.report.note(f"{host.name}: no ibv_devinfo: the report lacks the device's limits", INSTALL)
