"""Functions that torch.compile does not trace.

If a loop over a loader is inside a function that torch.compile compiles, dynamo traces the loader's code, down to the C
library, and fails: it cannot make guards of the library. These functions run as they are. Dynamo is not imported for
this, which takes a second: until a program imports it, nothing is traced.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, TypeVar, cast

Of = TypeVar("Of", bound=Callable[..., Any])


def eager(call: Of) -> Of:
    """The function, which runs untraced, with all that it calls."""
    untraced: list[Any] = []

    @functools.wraps(call)
    def run(*args: Any, **given: Any) -> Any:
        if not untraced:
            if "torch._dynamo" not in sys.modules:
                return call(*args, **given)
            untraced.append(sys.modules["torch._dynamo"].disable(call))
        return untraced[0](*args, **given)

    run._torchdynamo_disable = True  # type: ignore[attr-defined] # a compiled function calls it, and does not inline it
    return cast(Of, run)
