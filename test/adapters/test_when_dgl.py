"""python -m graphwire.when_dgl: a program gets Graphwire if one of its modules imports dgl; others run as ever."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from graphwire.dgl.host import is_installed

sys.path.append(str(Path(__file__).resolve().parents[2] / "deploy"))
from gwdeploy import command

OPENS = "import dgl\nfrom dgl.distributed import DistGraph\nprint('opened by', DistGraph.__module__, dgl.__name__)\n"
LOOKS = 2 * "from importlib.util import find_spec\nassert find_spec('dgl')\n"  # as libraries do that can work without


def run(folder, *words, **environment):
    (folder / "lib").mkdir(exist_ok=True)
    path = os.pathsep.join(filter(None, [environment.pop("first", ""), str(folder), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run([sys.executable, "-W", "ignore", "-m", *words], cwd=folder, capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": path, **environment})


@pytest.mark.parametrize("runner", ["graphwire.when_dgl", "graphwire.dgl"])
def test_through_a_package(tmp_path, runner):
    """As a script and as a module, with its arguments; and an error at the end of it is the program's own."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "framework.py").write_text(LOOKS + OPENS)
    (tmp_path / "train.py").write_text(
        "import sys\nfrom lib import framework\nprint(sys.argv, __name__)\nsys.exit(5)\n")
    for words, name in ((["train.py", "a", "-m"], "train.py"), (["-m", "train", "a", "-m"], "train.py")):
        done = run(tmp_path, runner, *words)
        assert done.returncode == 5, done.stderr
        assert "opened by graphwire.dgl.distributed.graph " in done.stdout
        assert f"{name}', 'a', '-m'] __main__" in done.stdout


def at_start(folder, *words, first=""):
    """Runs Python in a shell script, where the launcher does not see it."""
    (folder / "train.sh").write_text(shlex.join([sys.executable, "-W", "ignore", *words]))
    path = os.pathsep.join(filter(None, [first, os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(["sh", "-c", command.with_dgl("sh ./train.sh", "auto")], cwd=folder, capture_output=True,
                          text=True, timeout=120, env={**os.environ, "HOME": str(folder), "PYTHONPATH": path})


@pytest.mark.parametrize("words", [["-c", LOOKS + OPENS], ["-m", "graphwire.dgl", "train.py"]], ids=["-c", "-m"])
def test_each_python_of_a_command(tmp_path, words):
    """Also one that graphwire.dgl runs already."""
    (tmp_path / "train.py").write_text(LOOKS + OPENS)
    done = at_start(tmp_path, *words)
    assert "opened by graphwire.dgl.distributed.graph " in done.stdout, done.stderr


def test_a_host_has_a_sitecustomize(tmp_path):
    """It runs as before; and a Python that imports no dgl imports nothing of Graphwire."""
    (tmp_path / "its").mkdir()
    (tmp_path / "its" / "sitecustomize.py").write_text("import sys\nsys.customized = __name__, __file__\n")
    done = at_start(tmp_path, "-c", "import sys\nprint(sys.customized, [x for x in sys.modules if 'graphwire' in x])",
                    first=str(tmp_path / "its"))
    assert done.stdout == f"('sitecustomize', '{tmp_path / 'its' / 'sitecustomize.py'}') []\n", done.stderr


def test_a_python_without_graphwire(tmp_path):
    """One line reports it, and the program goes on with the dgl that it has."""
    (tmp_path / "its" / "dgl").mkdir(parents=True)
    (tmp_path / "its" / "dgl" / "__init__.py").write_text("own = 1\n")
    (tmp_path / "its" / "graphwire").mkdir()
    (tmp_path / "its" / "graphwire" / "__init__.py").write_text("")  # has no when_dgl
    done = at_start(tmp_path, "-c", "import dgl; print(dgl.own)",
                    first=str(tmp_path / "its"))
    assert done.stdout == "1\n" and "has no graphwire" in done.stderr and len(done.stderr.splitlines()) == 1


def test_without_dgl_nothing_is_imported(tmp_path):
    (tmp_path / "plain.py").write_text(
        "import sys, os\nprint('torch' in sys.modules, 'graphwire.dgl' in sys.modules, sys.argv[1:], "
        "os.path.samefile(sys.path[0], '.'), __file__)\n")
    done = run(tmp_path, "graphwire.when_dgl", "plain.py", "x")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.split("\n")[0] == (
        "False False ['x'] True plain.py")


def test_a_dgl_that_cannot_be_imported(tmp_path):
    """The subset takes its place, and a line reports it."""
    (tmp_path / "broken" / "dgl").mkdir(parents=True)
    (tmp_path / "broken" / "dgl" / "__init__.py").write_text("raise OSError('for another torch')\n")
    (tmp_path / "train.py").write_text(OPENS)
    done = run(tmp_path, "graphwire.when_dgl", "train.py", first=str(tmp_path / "broken"))
    assert "opened by graphwire.dgl.distributed.graph graphwire.dgl.subset" in done.stdout, done.stderr
    assert "dgl is installed and cannot be imported (for another torch)" in done.stderr


@pytest.mark.skipif(not is_installed(), reason="dgl is not installed")
def test_an_installed_dgl_stays(tmp_path):
    (tmp_path / "train.py").write_text(
        f"import dgl.nn\n{OPENS}print(dgl.__spec__.name, dgl.nn.SAGEConv.__module__, dgl.is_graphwire_installed)\n")
    done = run(tmp_path, "graphwire.when_dgl", "train.py")
    assert "dgl dgl.nn.pytorch.conv.sageconv True" in done.stdout, done.stderr


def test_no_program(tmp_path):
    for words, status, text in (([], 2, "usage: python -m graphwire"), (["-h"], 0, "usage"),
                                (["nowhere.py"], 2, "nowhere.py: no such script; usage")):
        done = run(tmp_path, "graphwire.when_dgl", *words)
        assert done.returncode == status and text in (done.stdout if status == 0 else done.stderr)
