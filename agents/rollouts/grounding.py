"""Whether an agent's calls use only what it had seen before."""

import re
from collections.abc import Collection, Sequence

from .calls import TurnCall
from .trajectory import Trajectory

__all__ = ["is_grounded", "words"]

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
