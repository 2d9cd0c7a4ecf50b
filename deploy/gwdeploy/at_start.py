"""The sitecustomize of the trainers' Pythons, if the launcher sees no Python script in the trainers' command (a shell
script, a torchrun of the command's own). The launcher sends this file to each host's agent, which writes it into the
folder of the job, and the command puts the folder into PYTHONPATH (command.py).

    any Python of the command starts -> it looks for dgl -> graphwire.when_dgl, which waits for an import of dgl

The file also runs in Pythons that are no trainers. So it imports nothing of Graphwire before a program looks for dgl,
and old Pythons can read it. A sitecustomize of the host runs too.

Errors: a Python that has dgl and cannot import graphwire prints one line and goes on with DGL.
"""

import sys


def _install():  # type: ignore[no-untyped-def]
    import atexit
    import os
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    class FirstLook:
        """An import hook that waits until a program looks for dgl."""

        watches_dgl = True

        def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
            if fullname != "dgl" or "graphwire.dgl" in sys.modules:  # graphwire.dgl imports the installed dgl itself
                return None
            sys.meta_path[:] = [one for one in sys.meta_path if one is not self]
            try:
                from graphwire import when_dgl
            except ImportError as error:
                others = [one for one in sys.meta_path if hasattr(one, "find_spec")]
                specs = (finder.find_spec(fullname, path, target) for finder in others)
                spec = next((one for one in specs if one is not None), None)
                if spec is not None:
                    sys.stderr.write("graphwire: " + sys.executable + " imports dgl and cannot import graphwire (" +
                                     str(error) + "): DGL waits for servers of its own\n")
                return spec
            atexit.register(when_dgl.finish)
            return when_dgl.watch().find_spec(fullname, path, target)

    def run_the_hosts():  # type: ignore[no-untyped-def]
        here = os.path.dirname(os.path.abspath(__file__))
        spec = PathFinder.find_spec("sitecustomize", [one for one in sys.path if os.path.abspath(one) != here])
        if spec is not None and spec.loader is not None:
            sys.modules["sitecustomize"] = module = module_from_spec(spec)
            spec.loader.exec_module(module)

    sys.meta_path.insert(0, FirstLook())
    run_the_hosts()


if sys.version_info[0] > 2:  # noqa: UP036
    _install()
