"""What to do when an episode outgrows the context: compaction policies.

A compaction decides what of the past a policy still sees. The tokens already sampled keep the
context that they were sampled under: they stay in their segment, and a new segment begins.
After the context folding of Glasseek, FoldAct and ReSum.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...corpora.errors import ConfigurationError, raise_unknown

__all__ = [
    "COMPACTIONS",
    "Compaction",
    "DropOldest",
    "KeepLast",
    "Past",
    "Summarize",
    "get_compaction",
]


@dataclass(frozen=True, slots=True)
class Past:
    """One past turn.

    Attributes:
        reply: The ids that the policy wrote.
        rest: The ids from there to the next reply: the observation.
        is_dropped: Whether ``rest`` stands for an observation that was dropped.
    """

    reply: tuple[int, ...]
    rest: tuple[int, ...]
    is_dropped: bool = False

    @property
    def size(self) -> int:
        """How many tokens it takes."""
        return len(self.reply) + len(self.rest)


class Compaction(ABC):
    """Makes a past fit.

    Attributes:
        name: What ``get_compaction`` takes.
        summary_tokens: How long a summary the policy writes before; 0 for none.
    """

    name: ClassVar[str]
    summary_tokens: int = 0

    @abstractmethod
    def compact(self, past: Sequence[Past], room: int, notice: Sequence[int]) -> list[Past]:
        """Return what is kept of the past, in order.

        Args:
            past: The turns so far.
            room: How many tokens they may take.
            notice: The ids that stand for a dropped observation.
        """


@dataclass(frozen=True)
class DropOldest(Compaction):
    """Drops the oldest observations, and only if that is not enough the oldest turns."""

    name: ClassVar[str] = "drop-oldest"

    def compact(self, past: Sequence[Past], room: int, notice: Sequence[int]) -> list[Past]:
        """Return all turns, the oldest without their observations."""
        kept = list(past)
        for index, turn in enumerate(kept[:-1]):
            if _size(kept) <= room:
                break
            if len(notice) < len(turn.rest):
                kept[index] = Past(turn.reply, tuple(notice), is_dropped=True)
        return _fitting(kept, room)


@dataclass(frozen=True)
class KeepLast(Compaction):
    """Keeps the last turns alone.

    Attributes:
        turns: How many.
    """

    name: ClassVar[str] = "keep-last"
    turns: int = 2

    def __post_init__(self) -> None:
        """Check the number."""
        if self.turns < 1:
            raise ConfigurationError(f"KeepLast: turns must be at least 1, got {self.turns}")

    def compact(self, past: Sequence[Past], room: int, notice: Sequence[int]) -> list[Past]:
        """Return the last turns."""
        return _fitting(list(past[-self.turns :]), room)


@dataclass(frozen=True)
class Summarize(Compaction):
    """Lets the policy write a summary, and keeps nothing else but the last turn.

    Attributes:
        summary_tokens: The longest summary.
    """

    name: ClassVar[str] = "summarize"
    summary_tokens: int = 128

    def __post_init__(self) -> None:
        """Check the number."""
        if self.summary_tokens < 1:
            raise ConfigurationError(
                f"Summarize: summary_tokens must be at least 1, got {self.summary_tokens}"
            )

    def compact(self, past: Sequence[Past], room: int, notice: Sequence[int]) -> list[Past]:
        """Return the last turn, if it fits."""
        return _fitting(list(past[-1:]), room)


COMPACTIONS: dict[str, type[Compaction]] = {
    compaction.name: compaction for compaction in (DropOldest, KeepLast, Summarize)
}


def get_compaction(compaction: str | Compaction) -> Compaction:
    """Return a compaction by name, with its defaults.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if isinstance(compaction, Compaction):
        return compaction
    if compaction not in COMPACTIONS:
        raise_unknown("compaction", compaction, COMPACTIONS)
    return COMPACTIONS[compaction]()


def _size(past: Sequence[Past]) -> int:
    return sum(turn.size for turn in past)


def _fitting(kept: list[Past], room: int) -> list[Past]:
    """Return the last of the turns that fit."""
    while kept and _size(kept) > room:
        kept = kept[1:]
    return kept
