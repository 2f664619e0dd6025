"""What a person sees while a run trains: a bar and one line of figures."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["TrainingDisplay"]

_PLAIN_EVERY_S = 10.0


class TrainingDisplay:
    """A progress bar with one live line; a plain line every 10 seconds if this is no terminal.

    Args:
        console: Where it is shown.
        title: What is being done.
        total: When it is done, in the unit that ``show`` counts: steps, or seconds.

    Example:
        >>> with TrainingDisplay(Console(), title="ppo", total=300) as display:
        ...     display.show(30, {"return": 0.5, "step": 2048})
        ppo 10% | return 0.5 | step 2,048
    """

    def __init__(self, console: Console, *, title: str, total: float) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._is_live = console.is_terminal
        self._last: float | None = None
        self._bar = Progress(
            TextColumn(title, markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=console,
            disable=not self._is_live,
        )
        self._task = self._bar.add_task(title, total=total, figures="")

    def __enter__(self) -> Self:
        """Begin to show."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last line where it is."""
        self._bar.stop()

    def show(self, done: float, values: Mapping[str, float | int | str | None]) -> None:
        """Show how much is done, and figures; those that are None are left out."""
        figures = [f"{name} {_short(v)}" for name, v in values.items() if v is not None]
        if self._is_live:
            self._bar.update(self._task, completed=done, figures="  ".join(figures))
            return
        now = time.monotonic()
        if self._last is None or now - self._last >= _PLAIN_EVERY_S:
            self._last = now
            share = f"{self._title} {min(1.0, done / self._total):.0%}"
            text = " | ".join([share, *figures])
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _short(value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
