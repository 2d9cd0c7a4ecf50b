"""Python whose processes are forked from one that has imported the heavy packages: to import them takes longer than a
small script's own work.

    warm_python.py serve SOCKET MODULE…   imports the modules, prints "ready", then forks a process for each request
    warm_python.py SOCKET PYTHON WORD…    a request: runs `PYTHON WORD…`, and ends as it does

The process of a request has the words, environment, working folder and standard files of the one that asked, and ends
as any interpreter does. It is a child of the server, and has the server's namespaces, control group and limits. PYTHON
itself runs requests with an option other than -W ignore, and all requests if no server listens.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

FILES = 4  # stdin, stdout, stderr, the working folder


def receive(at: socket.socket) -> bytes:
    """Everything until the other end stops to send."""
    parts = []
    while part := at.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def ask(path: str, python: str, words: list[str]) -> None:
    import json

    options = []
    rest = list(words)
    while rest[:1] == ["-W"] and len(rest) > 1:
        options.append(rest[1])
        rest = rest[2:]
    at = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        known = rest and (rest[0] in ("-c", "-m") or not rest[0].startswith("-"))
        if not known or set(options) - {"ignore"}:
            raise OSError("an option that the server does not know")
        at.connect(path)
    except OSError:
        os.execv(python, [python, *words])
    # Signals reach the process while this one waits.
    child = 0
    held = []

    def pass_on(number: int, _frame: object) -> None:
        if child:
            os.kill(child, number)
        else:
            held.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    socket.send_fds(at, [b"x"], [0, 1, 2, folder])
    at.sendall(json.dumps([python, options, rest, dict(os.environ)]).encode("utf-8", "surrogateescape"))
    at.shutdown(socket.SHUT_WR)
    child = int.from_bytes(at.recv(8), "little")
    for number in held:
        os.kill(child, number)
    said = at.recv(8)
    if len(said) < 8:
        sys.exit("warm_python: the server ended")
    status = int.from_bytes(said, "little")
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def become(python: str, options: list[str], words: list[str], environment: dict[str, str]) -> None:
    """Makes this process what `python -W OPTION… WORD…` is, and runs that. The names of this module are gone then."""
    import os
    import runpy
    import sys
    import warnings

    os.environ.clear()
    os.environ.update(environment)
    sys.executable = python
    sys.warnoptions[:] = options
    for option in options:
        warnings.simplefilter(option)  # type: ignore[arg-type]
    sys.path[:1] = []  # the server's own folder
    at = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = at + [path for path in sys.path if path not in at]
    main = sys.modules["__main__"]
    for name in [name for name in vars(main) if not name.startswith("__")]:
        delattr(main, name)
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), vars(main))
    elif words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        if not os.path.exists(words[0]):
            print(f"{python}: can't open file {words[0]!r}", file=sys.stderr)
            sys.exit(2)
        sys.argv = list(words)
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        main.__file__ = words[0]
        with open(words[0], "rb") as file:
            exec(compile(file.read(), words[0], "exec"), vars(main))


def serve(path: str, modules: list[str]) -> tuple[str, list[str], list[str], dict[str, str]]:
    """Returns in the process of each request."""
    import importlib
    import json
    import select

    for name in modules:
        importlib.import_module(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print("ready", flush=True)
    asked: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while asked:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    break
                with asked.pop(child) as at:
                    at.sendall(status.to_bytes(8, "little"))
        if listener not in ready:
            continue
        at, _ = listener.accept()
        _, files, _, _ = socket.recv_fds(at, 1, FILES)
        request = json.loads(receive(at).decode("utf-8", "surrogateescape"))
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            for number in range(3):
                os.dup2(files[number], number)
            os.fchdir(files[3])
            for open_file in [*files, woken, wakes]:
                os.close(open_file)
            for other in [listener, at, *asked.values()]:
                other.close()
            return tuple(request)
        asked[child] = at
        for open_file in files:
            os.close(open_file)
        at.sendall(child.to_bytes(8, "little"))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _request = serve(sys.argv[2], sys.argv[3:])
        become(*_request)
    else:
        ask(sys.argv[1], sys.argv[2], sys.argv[3:])
