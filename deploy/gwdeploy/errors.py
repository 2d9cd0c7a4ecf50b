"""The errors that users see: one line that names the fault, its place, and what to do."""

from __future__ import annotations


class DeployError(Exception):
    """A command failed. The text is one line; `status` is the exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(" ".join(str(text).split("\n")))
        self.status = status


class UsageError(DeployError):
    """A command line or a file of the user is wrong: exit status 2."""

    def __init__(self, text: str) -> None:
        super().__init__(text, 2)


class Interrupted(DeployError):
    """A signal ended the command. The text reports whether all processes have ended."""

    def __init__(self, text: str = "interrupted") -> None:
        super().__init__(text, 130)
