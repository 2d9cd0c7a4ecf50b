"""Temporary folders of the Python package: none remains, whatever ends their process."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import graphwire
import pytest
from graphwire._base.scratch import Scratch, descriptors

PACKAGE = Path(graphwire.__file__).parent
SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "SIGHUP": signal.SIGHUP, "SIGKILL": signal.SIGKILL}
ENDS = {"returns": "", "raises": "1 / 0", "exits": "os._exit(3)", "aborts": "os.abort()"}
# Programs that create a folder, then wait.
USES = {
    "held": "held = Scratch(); (held.path / 'sub').mkdir(); (held.path / 'sub/file').touch(); wait()",
    "context": """
with Scratch() as folder:
    (folder / "file").touch()
    wait()""",
    "from_pyg": """
import torch
from torch_geometric.data import Data
graph = graphwire.pyg.from_pyg(Data(edge_index=torch.randint(0, 50, (2, 200)), x=torch.randn(50, 4)))
assert graph.gather("x", [1]).shape == (1, 4)
wait()""",
    "unpack": """
import zipfile
from graphwire._files import unpack as _unpack
with zipfile.ZipFile(os.environ["TMPDIR"] + "/../a.zip", "w") as archive:
    archive.writestr("name", "text")
copy = _unpack._Limit.copy
_unpack._Limit.copy = lambda *arguments: (copy(*arguments), wait())
_unpack.unpack(os.environ["TMPDIR"] + "/../a.zip", os.environ["TMPDIR"] + "/folder")""",
    "save": """
from types import SimpleNamespace
from graphwire._graph import save as _save
_save._source = lambda *_: SimpleNamespace()
_save._WRITE[".csv"] = (lambda source, path, head: (open(path, "w").write("half"), wait()), None)
graphwire.save({}, os.environ["TMPDIR"] + "/rows.csv")""",
    "arrays": """
from graphwire._files import partition
partition.run = lambda *_: wait()
graphwire.partition_graph(([0, 1], [1, 0]), "small", 1, os.environ["TMPDIR"] + "/parts")"""}
HEAD = """
import os, signal, sys, graphwire
from graphwire._base.scratch import Scratch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
signal.signal(signal.SIGHUP, signal.SIG_DFL)
def wait():
    print("ready", flush=True)
    sys.stdin.readline()
    exec(sys.argv[1])
"""


def gone(folder):
    """Waits until the folder is empty, except for torch's own files."""
    while any(not path.name.startswith("torchinductor_") for path in folder.iterdir()):
        time.sleep(0.001)
    return True


def started(use, end, temporary):
    process = subprocess.Popen([sys.executable, "-c", HEAD + USES[use], end], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, "TMPDIR": str(temporary)})
    assert process.stdout.readline() == "ready\n" and any(temporary.rglob("*.tmp-*/*"))
    return process


@pytest.fixture
def temporary(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("use", "end"), [
    *[(use, end) for use in ("held", "context") for end in (*SIGNALS, *ENDS)],
    *[("save", end) for end in ("SIGTERM", "SIGKILL", "raises")],
    *[(use, end) for use in ("from_pyg", "unpack", "arrays") for end in ("SIGTERM", "raises")]])
def test_nothing_is_left(temporary, use, end):
    with started(use, ENDS.get(end, ""), temporary) as process:
        if end in SIGNALS:
            process.send_signal(SIGNALS[end])
        else:
            process.stdin.write("\n")
            process.stdin.close()
        process.wait()
        if end in ("returns", "raises"):
            assert not list(temporary.glob("*.tmp-*"))  # before the process has ended
    assert gone(temporary)


def test_a_graph_has_its_folder_until_it_is_gone(temporary, monkeypatch):
    """Forked children, which open it again, have it too."""
    import torch
    from torch_geometric.data import Data

    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    graph = graphwire.pyg.from_pyg(Data(edge_index=torch.randint(0, 50, (2, 200)), x=torch.arange(50.0)[:, None]))
    told, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.read(go_on[0], 1)
            os.write(told[1], b"y" if float(graph.gather("x", [7])) == 7 else b"n")
            os.read(go_on[0], 1)
        finally:
            os._exit(0)
    del graph
    os.write(go_on[1], b"1")
    assert os.read(told[0], 1) == b"y" and any(temporary.iterdir())
    os.write(go_on[1], b"1")
    os.waitpid(child, 0)
    assert gone(temporary)
    for end in (*told, *go_on):
        os.close(end)


def test_a_program_that_works_there_ends_before(temporary, tmp_path):
    """If the guard removed the folder while the program runs, the program's later files would stay."""
    program = tmp_path / "graphwire"
    program.write_text('#!/bin/sh\necho $$ >"$0.pid.new" && mv "$0.pid.new" "$0.pid"; exec sleep 1000\n')
    program.chmod(0o755)
    code = 'import graphwire, sys; graphwire.partition_graph(([0, 1], [1, 0]), "small", 1, sys.argv[1])'
    with subprocess.Popen([sys.executable, "-c", code, temporary / "parts"],
                          env={**os.environ, "GRAPHWIRE": str(program)}) as process:
        while not (number := Path(f"{program}.pid")).exists():
            time.sleep(0.001)
        process.terminate()
    assert any(temporary.rglob("*.np[yz]"))
    os.kill(int(number.read_text()), signal.SIGTERM)
    assert gone(temporary)


def guards_of(path):
    """Processes whose command line has the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended
            if os.fsencode(path) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def test_a_folder_that_ends_while_a_program_starts(temporary):
    """The descriptors that the program gets are open whatever ends the folder, and are closed after the context."""
    gc.collect()
    with descriptors() as others:  # of folders of other tests
        count = len(others) + 3
    before = set(os.listdir("/proc/self/fd"))
    closed, collected, kept = Scratch(temporary), Scratch(temporary), Scratch(temporary)
    loop = [collected]
    loop.append(loop)  # a garbage collection frees it
    with descriptors() as passed:
        closed.close()
        del loop, collected
        gc.collect()
        taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]  # numbers that are free are taken again
        assert len(passed) == count and not set(passed) & set(taken)
        script = "import os, sys; print(sum(os.path.exists(f'/proc/self/fd/{one}') for one in sys.argv[1:]))"
        found = subprocess.run([sys.executable, "-c", script, *map(str, passed)], pass_fds=passed, capture_output=True,
                               text=True, check=True)
        assert found.stdout == f"{count}\n"
    for one in taken:
        os.close(one)
    kept.close()
    assert set(os.listdir("/proc/self/fd")) <= before and gone(temporary)


def test_standard_descriptors_are_not_taken(temporary):
    """If the process has closed descriptors 0 to 2, a program's own are not among those that it gets."""
    script = ("import os; from graphwire._base.scratch import Scratch, descriptors\n"
              "for one in range(3): os.close(one)\n"
              f"folder = Scratch({str(temporary)!r})\n"
              "with descriptors() as passed: status = 0 if len(passed) == 1 and min(passed) > 2 else 1\n"
              "folder.close(); os._exit(status)")
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_the_next_one_sweeps(temporary, monkeypatch):
    """Removes folders of killed guards. Folders of a running process, of another name or host, and links stay."""
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with started("held", "", temporary) as process:
        (left,) = temporary.iterdir()
        for guard in guards_of(left):
            os.kill(guard, signal.SIGKILL)
        while guards_of(left):
            time.sleep(0.001)
        living = Scratch()
        assert left.is_dir() and living.path.is_dir()  # its process runs
        process.kill()
    name, link = re.sub("-[0-9a-f]{8}$", "-0a0b0c0d", left.name), temporary / f"{left.name[:-8]}0000000f"
    others = [temporary / name.replace("graphwire.", "other."), temporary / re.sub("-[0-9a-f]{8}-", "-00000000-", name),
              temporary / (name + "x")]
    for other in others:
        other.mkdir()
    link.symlink_to(others[0])
    with Scratch() as folder:
        assert set(temporary.iterdir()) == {folder, living.path, link, *others}
    living.close()
    assert set(temporary.iterdir()) == {link, *others}


def test_one_that_a_sweeper_has_taken_is_made_anew(temporary, monkeypatch):
    """Another process removes the folder between its creation and its lock."""
    make, taken = Path.mkdir, []

    def swept(path, *mode):
        make(path, *mode)
        if not taken:
            taken.append(path)
            path.rmdir()

    monkeypatch.setattr(Path, "mkdir", swept)
    with Scratch(temporary) as folder:
        assert folder.is_dir() and folder != taken[0]
    assert gone(temporary)


def test_without_a_shell(temporary, monkeypatch):
    """The process itself removes it."""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError()))
    with Scratch(temporary) as folder:
        assert folder.is_dir()
    assert gone(temporary)


def test_all_of_the_package_does_so():
    """The package creates no other temporary folder, and no file whose name has a process id. deploy/, which its wheel
    contains, is a separate package."""
    made = [f"{path.relative_to(PACKAGE)}: {line.strip()}" for path in PACKAGE.rglob("*.py")
            if not path.is_relative_to(PACKAGE / "deploy")
            for line in path.read_text().splitlines() if re.search(
                r"tempfile\.|mkdtemp|mkstemp|getpid\(\)\}|\.tmp[\"']", line)]
    assert [line for line in made if not line.startswith("_base/scratch.py: ")] == []
