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

once = pytest.mark.slow  # an installed dgl changes nothing here
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
    (folder / "job").mkdir()
    (folder / "job" / "sitecustomize.py").write_text(command.AT_START)  # as the agent does
    path = os.pathsep.join(filter(None, [first, os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(["sh", "-c", command.with_dgl("sh ./train.sh", "auto")], cwd=folder, capture_output=True,
                          text=True, timeout=120, env={**os.environ, "GRAPHWIRE_AT_START": str(folder / "job"),
                                                       "PYTHONPATH": path})


@pytest.mark.parametrize("words", [["-c", LOOKS + OPENS], ["-m", "graphwire.dgl", "train.py"],
                                   ["-m", "graphwire.when_dgl", "train.py"]], ids=["-c", "dgl", "when_dgl"])
def test_each_python_of_a_command(tmp_path, words):
    """Also one that graphwire.dgl or graphwire.when_dgl runs already."""
    (tmp_path / "train.py").write_text(LOOKS + OPENS)
    done = at_start(tmp_path, *words)
    assert "opened by graphwire.dgl.distributed.graph " in done.stdout, done.stderr


@once
@pytest.mark.parametrize("its", ["import sys\nsys.customized = __name__, __file__\n", "raise ValueError('its own')\n",
                                 "package", "import sys\nsys.customized = sys.modules[__name__].__file__\n"],
                         ids=["module", "raises", "package", "itself"])
def test_a_host_has_a_sitecustomize(tmp_path, its):
    """It runs as before, once; and a Python that imports no dgl imports nothing of Graphwire, and waits for dgl."""
    place = tmp_path / "its" / "sitecustomize.py"
    place.parent.mkdir()
    if its == "package":
        place = place.with_suffix("") / "__init__.py"
        place.parent.mkdir()
        (place.parent / "part.py").write_text("import sys\nsys.customized = __file__\n")
        its = "from . import part\n"
    place.write_text(f"print('runs')\n{its}")
    done = at_start(tmp_path, "-c", "import sys, sitecustomize\nprint(getattr(sys, 'customized', ''))\n"
                    "print([x for x in sys.modules if 'graphwire' in x], type(sys.meta_path[0]).__name__)",
                    first=str(tmp_path / "its"))
    lines = done.stdout.splitlines()
    if "raise" in its:  # Python reports the error; import finds no module
        assert "its own" in done.stderr and lines[:1] == ["runs"]
    else:
        assert str(tmp_path / "its" / "sitecustomize") in lines[1]
        assert (lines[0], lines[2], done.stderr) == ("runs", "[] FirstLook", "")


def test_a_python_without_graphwire(tmp_path):
    """If it has dgl, one line reports it, and the program goes on with this dgl. If it has none, nothing is printed."""
    its = tmp_path / "its"
    (its / "graphwire").mkdir(parents=True)
    (its / "graphwire" / "__init__.py").write_text("")  # has no when_dgl
    if not is_installed():
        done = at_start(tmp_path, "-c", LOOKS.replace("assert", "assert not"), first=str(its))
        assert (done.returncode, done.stderr) == (0, "")
        (tmp_path / "job" / "sitecustomize.py").unlink()
        (tmp_path / "job").rmdir()
    (its / "dgl").mkdir()
    (its / "dgl" / "__init__.py").write_text("own = 1\n")
    done = at_start(tmp_path, "-c", "import dgl; print(dgl.own)", first=str(its))
    assert done.stdout == "1\n" and "cannot import graphwire" in done.stderr and len(done.stderr.splitlines()) == 1


@once
def test_an_editable_dgl(tmp_path):
    """A finder of another package's finds dgl, as after pip install --editable."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "__init__.py").write_text("raise OSError('it is this one')\n")
    (tmp_path / "train.py").write_text(f"""import sys
from importlib.util import spec_from_file_location
class Editable:
    def find_spec(name, path=None, target=None):
        return spec_from_file_location("dgl", {str(tmp_path / 'source' / '__init__.py')!r}) if name == "dgl" else None
sys.meta_path.insert(1, Editable)
{OPENS}""")
    done = run(tmp_path, "graphwire.when_dgl", "train.py")
    assert "cannot be imported (it is this one)" in done.stderr


@once
def test_without_dgl_nothing_is_imported(tmp_path):
    (tmp_path / "plain.py").write_text(
        "import sys, os\nprint('torch' in sys.modules, 'graphwire.dgl' in sys.modules, sys.argv[1:], "
        "os.path.samefile(sys.path[0], '.'), __file__)\n")
    done = run(tmp_path, "graphwire.when_dgl", "plain.py", "x")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.split("\n")[0] == (
        "False False ['x'] True plain.py")


@once
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


@once
def test_no_program(tmp_path):
    for words, status, text in (([], 2, "usage: python -m graphwire"), (["-h"], 0, "usage"),
                                (["nowhere.py"], 2, "nowhere.py: no such script; usage")):
        done = run(tmp_path, "graphwire.when_dgl", *words)
        assert done.returncode == status and text in (done.stdout if status == 0 else done.stderr)
