"""Whether an agent's calls use only what it had seen before."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .calls import TurnCall
from .trajectory import Trajectory

__all__ = ["is_grounded", "ungrounded", "words"]

_WORD = re.compile(r"\w+")
_ANSWERS = frozenset(("yes", "no", "unknown"))
_COUNTED = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)


def words(text: str) -> list[str]:
    """Return the words of a text, without case.

    Example:
        >>> words("O'Neil's 2nd café")
        ['o', 'neil', 's', '2nd', 'café']
    """
    return [word.casefold() for word in _WORD.findall(text)]


def is_grounded(
    trajectory: Trajectory,
    calls: Sequence[TurnCall | None],
    *,
    vocabulary: Collection[str] = frozenset(),
) -> bool:
    """Tell whether each call uses only what was seen before; see ``CausallyGrounded``."""
    text = trajectory.question
    seen = {*words(text), *vocabulary}
    is_counted = _COUNTED.search(trajectory.question) is not None
    for turn, call in zip(trajectory.turns, calls, strict=True):
        for value in call.arguments.values() if call else ():
            if not isinstance(value, str):
                continue
            if call is not None and call.name == "answer":
                needed = _needed_in_answer(value, is_counted=is_counted)
            else:
                needed = {word.casefold() for word in _WORD.findall(value) if _is_telling(word)}
                if not _is_shown(value.strip(), text, vocabulary):
                    return False
            if not needed <= seen:
                return False
        if turn.error is None:
            text += "\n" + turn.observation
            seen.update(words(turn.observation))
    return True


def _needed_in_answer(answer: str, *, is_counted: bool) -> set[str]:
    return {
        word
        for word in words(answer)
        if word not in _ANSWERS and not (is_counted and word.isdigit())
    }


def _is_shown(value: str, text: str, vocabulary: Collection[str]) -> bool:
    """Tell whether an id or an address, if it is one, stands in a text as it is."""
    if not value or " " in value or not _is_telling(value):
        return True
    bare = value.strip("[]")
    if bare.casefold() in vocabulary:
        return True
    pattern = rf"(?<!\w){re.escape(bare)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _is_telling(word: str) -> bool:
    """Tell whether a word is a name or a number by its looks."""
    return any(letter.isupper() or letter.isdigit() for letter in word)


# What can only be known from the question or an observation: names and longer numbers.
_SPECIFIC = re.compile(r"(?<!-)\b(?:[^\W\d_]*[A-ZÀ-ÖØ-Þ]\w*|\d{3,})\b")


def ungrounded(trajectory: Trajectory) -> list[str]:
    """Return the names and numbers that an action used before anything showed them.

    A number in the answer may have been worked out, so only its names count.

    Example:
        >>> from seekgym.agents.rollouts import Turn
        >>> call = {"name": "search", "arguments": {"query": "Ada Ash"}}
        >>> turn = Turn(call, "Ada Ash was born in 1843.", 0.0, {})
        >>> ungrounded(Trajectory("e", {}, "", None, "t", "a", "Who knew Ada?", (turn,)))
        ['Ash']
    """
    seen = _word_set(trajectory.question)
    found: list[str] = []
    for turn in trajectory.turns:
        for text in _texts(turn.action):
            words = _SPECIFIC.findall(text)
            if _is_answer(turn.action):
                words = [word for word in words if not word.isdigit()]
            found += [word for word in words if word.lower() not in seen]
        seen |= _word_set(turn.observation)
    return list(dict.fromkeys(found))


def _is_answer(action: Any) -> bool:
    return isinstance(action, Mapping) and action.get("name") == "answer"


def _word_set(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _texts(value: Any) -> Iterable[str]:
    """Give the texts of an action's arguments, or the action itself if it is a text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for argument in value.get("arguments", {}).values():
            if isinstance(argument, str):
                yield argument
