"""Errors that suggest the right keyword for a wrong one.

    @keywords of a function or a class -> NodeLoader(graph, batch_sise=5)
        -> TypeError: NodeLoader() has no argument 'batch_sise': did you mean 'batch_size'?

Python suggests names by itself from version 3.13 on. Signatures stay as they are written, for type checkers, help and
completion.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error line about an unknown word: the most similar known word, else all known words."""
    words = list(known)
    near = difflib.get_close_matches(word, words, 1)
    if near:
        return f": did you mean {near[0]!r}?"
    return f"; its arguments are {', '.join(words)}" if words else ""


def names_of_arguments(call: Callable[..., Any]) -> list[str]:
    """The names of the arguments of a function or class."""
    return [one.name for one in inspect.signature(call).parameters.values()
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


def _of_function(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a check of keywords before each call; the function itself if it takes no keywords, or any."""
    given = list(inspect.signature(call).parameters.values())
    known = dict.fromkeys(one.name for one in given if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
                          and one.name != "self")
    if not known or any(one.kind is one.VAR_KEYWORD for one in given):
        return call
    name = call.__qualname__.replace(".__init__", "")

    @functools.wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        if named and not named.keys() <= known.keys():
            wrong = next(word for word in named if word not in known)
            raise TypeError(f"{name}() has no argument {wrong!r}{suggestion(wrong, known)}")
        return call(*arguments, **named)

    checked.__signature__ = inspect.signature(call)  # type: ignore[attr-defined]  # for inspect.getfullargspec
    return checked


def keywords(of: _T) -> _T:
    """Decorates a function, or the constructor and the public methods of a class."""
    if not isinstance(of, type):
        return _of_function(of)  # type: ignore[return-value]
    for name, member in list(vars(of).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(of, name, _of_function(member))
    return of
