"""Every exception that seekgym raises on purpose.

The tree::

    SeekgymError
    ├── CorpusError (a ValueError)         data that cannot be used: file, line and field
    ├── ConfigurationError (a ValueError)  an argument that cannot be used, and the way out
    ├── CommandError (a ValueError)        a shell command that is not allowed, and why
    ├── PageError (a ValueError)           a page that cannot be shown, and why
    ├── ScoringError (a ValueError)        a score that cannot be computed
    ├── BackendError (a RuntimeError)      a retriever or server failed: not the agent's fault
    ├── TokenError (a ValueError)          tokens that are not those that a model read and drew
    └── MissingExtraError (an ImportError) an optional dependency is not installed
"""

import difflib
from collections.abc import Iterable
from typing import NoReturn

__all__ = [
    "BackendError",
    "CommandError",
    "ConfigurationError",
    "CorpusError",
    "MissingExtraError",
    "PageError",
    "ScoringError",
    "SeekgymError",
    "TokenError",
    "raise_unknown",
]


class SeekgymError(Exception):
    """Be the root of the tree: catch this to catch all that seekgym raises on purpose."""


class CorpusError(SeekgymError, ValueError):
    """Say which data cannot be used, with file, line and field."""


class ConfigurationError(SeekgymError, ValueError):
    """Say which argument cannot be used, what was given and what would do."""


class CommandError(SeekgymError, ValueError):
    """Say why a shell command is not run: a stable ``code`` and a sentence for the agent."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        """Return the sentence."""
        return self.reason


class PageError(SeekgymError, ValueError):
    """Say why a page cannot be shown: a stable ``code`` and a sentence for the agent."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        """Return the sentence."""
        return self.reason


class ScoringError(SeekgymError, ValueError):
    """Say why no score can be computed, for example because no gold answer is usable."""


class BackendError(SeekgymError, RuntimeError):
    """Say which backend failed. An environment turns it into ``info["failure"]``."""


class TokenError(SeekgymError, ValueError):
    """Say which token of a trajectory does not fit the model that played."""


class MissingExtraError(SeekgymError, ImportError):
    """Say which extra to install."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'seekgym[{extra}]'")


def raise_unknown(what: str, name: object, known: Iterable[str], beside: str = "") -> NoReturn:
    """Raise a ConfigurationError that suggests the closest known name.

    Args:
        what: What kind of name it is.
        name: The name that was given.
        known: The names that would do.
        beside: Says that others would do too, in words that begin with a space.
    """
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ConfigurationError(f"unknown {what} {name!r}; {hint}known{beside}: {', '.join(names)}")
