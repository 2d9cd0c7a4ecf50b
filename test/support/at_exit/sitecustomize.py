"""On PYTHONPATH in a test: a program that has used torch.distributed says as it ends how many threads of a process
group it leaves. Such a thread may ask for Python's lock while the interpreter goes, and then aborts the program: one
time in several, so that the threads are counted, and no abort is waited for. PyTorch 1.13 gives them no names: there 0
says nothing.
"""

import atexit
import sys
from pathlib import Path


def _count() -> None:
    if "torch.distributed" in sys.modules:
        names = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
        print(f"threads of a process group at exit: {names.count('pt_gloo_runloop')}", flush=True)


atexit.register(_count)
