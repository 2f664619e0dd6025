"""Whether an agent's calls use only what it had seen before."""

import re
from collections.abc import Collection

from .calls import calls_of
from .trajectory import Trajectory

__all__ = ["ungrounded", "words"]

_WORD = re.compile(r"\w+")
_ARGUMENT_WORD = re.compile(r"(?<!-)\b\w+")  # not the options of a command
_COMMON = re.compile(r"\d{1,2}p?")  # small numbers, and lines that sed prints
_ANSWERS = frozenset(("yes", "no", "unknown"))
_COUNTED = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)


def words(text: str) -> list[str]:
    """Return the words of a text, without case.

    Example:
        >>> words("O'Neil's 2nd café")
        ['o', 'neil', 's', '2nd', 'café']
    """
    return [word.casefold() for word in _WORD.findall(text)]


def ungrounded(trajectory: Trajectory, vocabulary: Collection[str] = frozenset()) -> list[str]:
    """Return what calls used before anything showed it; see ``CausallyGrounded``.

    Example:
        >>> from seekgym.agents.rollouts import Turn
        >>> call = {"name": "search", "arguments": {"query": "Ada Ash"}}
        >>> turn = Turn(call, "Ada Ash was born in 1843.", 0.0, {})
        >>> ungrounded(Trajectory("e", {}, "", None, "t", "a", "Who knew Ada?", (turn,)))
        ['ash']
    """
    text = trajectory.question
    seen = {*words(text), *vocabulary}
    is_counted = _COUNTED.search(trajectory.question) is not None
    found: list[str] = []
    for turn, call in zip(trajectory.turns, calls_of(trajectory), strict=True):
        for value in call.arguments.values() if call else ():
            if not isinstance(value, str):
                continue
            if call is not None and call.name == "answer":
                needed = _needed_in_answer(value, is_counted=is_counted)
            else:
                needed = [word.casefold() for word in _ARGUMENT_WORD.findall(value) if _tells(word)]
                if not _is_shown(value.strip(), text, vocabulary):
                    found.append(value.strip())
            found += [word for word in needed if word not in seen]
        if turn.error is None:
            text += "\n" + turn.observation
            seen.update(words(turn.observation))
    return list(dict.fromkeys(found))


def _needed_in_answer(answer: str, *, is_counted: bool) -> list[str]:
    return [
        word
        for word in words(answer)
        if word not in _ANSWERS and not (is_counted and word.isdigit())
    ]


def _is_shown(value: str, text: str, vocabulary: Collection[str]) -> bool:
    """Tell whether an id or an address, if it is one, stands in a text as it is."""
    if not value or " " in value or not _tells(value):
        return True
    bare = value.strip("[]")
    if bare.casefold() in vocabulary:
        return True
    pattern = rf"(?<!\w){re.escape(bare)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _tells(word: str) -> bool:
    """Tell whether a word is a name or a number by its looks."""
    if _COMMON.fullmatch(word):
        return False
    return any(letter.isupper() or letter.isdigit() for letter in word)
