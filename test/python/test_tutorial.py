"""docs/TUTORIAL.md, typed on a desk: files are saved as the tutorial says, and commands run in order, on two hosts in
namespaces with an sshd each (test/deploy/bed.py). Nothing is downloaded: the virtual environment gets this
interpreter's packages, and its pip checks the requested versions. The checkout is where the tutorial has it. The hosts
have the environment, and graphwire in no other place."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from conftest import TOP
from group_threads import AT_EXIT, left
from shared import need_root

sys.path.insert(0, str(TOP / "test/deploy"))

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ACCURACY = re.compile(r"(\d) trainers, .*test accuracy ([01]\.\d+) of 1800 people")
ON_HOST = "/mnt/program"
VENV = """#!/bin/sh
[ "${1:-} ${2:-}" = "-m venv" ] || exec /usr/bin/python3 "$@"
/usr/bin/python3 "$@" && ln -sf ~/stands-in/python ~/stands-in/pip "$3/bin/"
"""
COMMANDS = {"graphwire": f'exec {ON_HOST}/graphwire "$@"'}
COMMANDS.update({f"graphwire-{name}": f'exec ~/venv/bin/python3 ~/graphwire/deploy/{script}.py "$@"'
                 for name, script in (("launch", "launch"), ("copy", "copy_files"))})
PIP = """#!/bin/sh
[ "$1" = install ] && shift || exit 2
for word; do
    case $word in */*) test -f "$word/pyproject.toml" ;; *) "${0%/*}/python" -c "import $word" ;; esac || exit 1
    echo "pip has $word"
done
ln -sf ~/stands-in/graphwire* "${0%/*}/"
"""


def python_on_host():
    """The tutorial's ~/venv/bin/python: this interpreter, which may be in a folder that hosts do not see."""
    packages = [str(AT_EXIT)]
    packages += [path for path in (*os.environ.get("PYTHONPATH", "").split(":"), *sys.path) if "packages" in path or
                 Path(path, "graphwire").is_dir()]
    packages = [f"/mnt/top/{Path(path).relative_to(TOP)}" if Path(path).is_relative_to(TOP) else path
                for path in packages]
    interpreter = Path(os.path.realpath(sys.executable)).relative_to(os.path.realpath(sys.base_prefix))
    build = os.environ.get("GRAPHWIRE_BUILD", "")
    return (f"#!/bin/sh\nexport PYTHONPATH={':'.join(packages)} GRAPHWIRE_BUILD={build}\n"
            f'exec /mnt/seen/{interpreter} "$@"\n')


@pytest.fixture
def bed():
    need_root("hosts in namespaces")
    from bed import Bed

    made = Bed(2, seen=os.path.realpath(sys.base_prefix))
    try:
        for host in [*made.hosts, made.desk]:
            folder = host.home / ("stands-in" if host is made.desk else "venv/bin")
            folder.mkdir(parents=True)
            scripts = {"python": python_on_host(), "python3": VENV, "pip": PIP}
            scripts.update({name: f"#!/bin/sh\n{command}\n" for name, command in COMMANDS.items()})
            for name, script in scripts.items():
                (folder / name).write_text(script)
                (folder / name).chmod(0o755)
            (host.home / "graphwire").symlink_to("/mnt/top")
        made.reachable()
        yield made
    finally:
        made.end()


def test_the_tutorial(bed):
    found, installed, threads, path = [], 0, [], ""
    for kind, text in BLOCK.findall((TOP / "docs/TUTORIAL.md").read_text()):
        if kind == "python":
            name = text.split("\n")[0].removeprefix("# ")
            (bed.desk.home / "desk" / name).write_text(text)
            continue
        folder = "~/desk" if (bed.desk.home / "desk").exists() else "~"
        setting = f"set -eu; export PATH=~/stands-in:$PATH OMP_NUM_THREADS=1; {path}cd {folder}\n"
        done = bed.desk.shell(setting + text, timeout=1200)
        path += text if text.startswith("export PATH=") else ""  # a shell of its own runs each block
        assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
        found += ACCURACY.findall(done.stdout)
        threads += left(done.stdout)
        installed += done.stdout.count("pip has ")
    assert installed == 2
    assert len(threads) >= 3 and not any(threads), threads
    assert [trainers for trainers, _ in found] == ["1", "2"]
    assert all(float(accuracy) > 0.8 for _, accuracy in found), found
    from bed import wait_for

    assert wait_for(lambda: not bed.left(sessions=False)), bed.left(sessions=False)
