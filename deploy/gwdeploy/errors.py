"""The one kind of error that users see: a line that says what, where, and what to do."""

from __future__ import annotations


class DeployError(Exception):
    """Something that keeps a command from being done. Its text is one line."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(" ".join(str(text).split("\n")))
        self.status = status


class UsageError(DeployError):
    """A command line or a file of the user's that is wrong: exit status 2."""

    def __init__(self, text: str) -> None:
        super().__init__(text, 2)


class Interrupted(DeployError):
    """A signal told us to end. Its text says what became of that which ran."""

    def __init__(self, text: str = "interrupted") -> None:
        super().__init__(text, 130)
