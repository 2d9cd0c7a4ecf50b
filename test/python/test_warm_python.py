"""test/support/warm_python.py, which runs the small cases: its processes end, and see, what Python's own do."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from conftest import TOP

WARM = TOP / "test/support/warm_python.py"
SHOWS = ("import os, sys, warnings; warnings.warn('shown'); print(sys.argv, os.getcwd(), os.environ['GIVEN'], "
         "sys.path, __name__, sys.executable, sys.stdin.read(), sorted(name for name in globals() if name[0] != '_'))")
WORDS = {
    "-c": ["-c", SHOWS, "one", "two words"], "-m": ["-m", "shows", "one"], "a file": ["shows.py", "one"],
    "no warnings": ["-W", "ignore", "-c", SHOWS], "an option": ["-I", "-c", "import sys; print(sys.flags.isolated)"],
    "no words": [], "status": ["-c", "raise SystemExit(3)"], "text": ["-c", "import sys; sys.exit('wrong')"],
    "an error": ["-c", "{}[5]"], "atexit": ["-c", "import atexit; atexit.register(print, 'last')"],
    "a signal": ["-c", "import os; os.kill(os.getpid(), 9)"], "no file": ["missing.py"]}


@pytest.fixture(scope="module")
def socket_of_server(tmp_path_factory):
    path = tmp_path_factory.mktemp("warm") / "socket"
    with subprocess.Popen([sys.executable, WARM, "serve", path, "json"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        yield path
        server.kill()


@pytest.fixture
def asks(socket_of_server, tmp_path, monkeypatch):
    monkeypatch.setenv("GIVEN", "größe")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shows.py").write_text(SHOWS)
    return ["python3", "-I", "-S", WARM, socket_of_server, sys.executable]


@pytest.mark.parametrize("name", WORDS)
def test_it_does_what_python_does(asks, name):
    def ran(command):
        done = subprocess.run([*command, *WORDS[name]], input="typed", capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr.splitlines()[-1:]

    ours, own = ran(asks), ran([sys.executable])
    assert ours[:2] == own[:2] and (ours[2] == own[2] or name == "no file")


def test_a_request_is_served_by_the_server(asks):
    done = subprocess.run([*asks, "-c", "import sys; print('json' in sys.modules)"], capture_output=True, text=True)
    assert done.stdout == "True\n"


def test_a_signal_reaches_the_process(asks):
    code = ("import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [15])\nprint('up', flush=True)\n"
            "signal.sigwait([15])\nsys.exit(9)")
    with subprocess.Popen([*asks, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 9
