"""The consoles that commands print to."""

import re

from rich.console import Console

__all__ = ["console", "errors", "printable"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

console = Console()
errors = Console(stderr=True)


def printable(text: str) -> str:
    """Return text that can do nothing to a terminal: control characters become U+FFFD."""
    return _CONTROL.sub("\ufffd", text)
