"""The consoles that commands print to."""

from rich.console import Console

__all__ = ["console", "errors"]

console = Console()
errors = Console(stderr=True)
