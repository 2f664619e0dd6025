"""Is an episode causally grounded: does each action use only what was seen before it?"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .trajectory import Trajectory

__all__ = ["ungrounded"]

# What can only be known from the question or an observation: names and longer numbers.
_SPECIFIC = re.compile(r"(?<!-)\b(?:[^\W\d_]*[A-ZÀ-ÖØ-Þ]\w*|\d{3,})\b")


def ungrounded(trajectory: Trajectory) -> list[str]:
    """Return the names and numbers that an action used before anything showed them.

    Example:
        >>> from seekgym.agents.rollouts import Turn
        >>> call = {"name": "search", "arguments": {"query": "Ada Ash"}}
        >>> turn = Turn(call, "Ada Ash was born in 1843.", 0.0, {})
        >>> ungrounded(Trajectory("e", {}, "", None, "t", "a", "Who knew Ada?", (turn,)))
        ['Ash']
    """
    seen = _words(trajectory.question)
    found: list[str] = []
    for turn in trajectory.turns:
        for text in _texts(turn.action):
            found += [word for word in _SPECIFIC.findall(text) if word.lower() not in seen]
        seen |= _words(turn.observation)
    return list(dict.fromkeys(found))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _texts(value: Any) -> Iterable[str]:
    """Give the texts of an action's arguments, or the action itself if it is a text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for argument in value.get("arguments", {}).values():
            if isinstance(argument, str):
                yield argument
