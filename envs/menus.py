"""Menus: what a text environment offers as a fixed list of choices, for numeric learners.

A menu is at most ``size`` choices, each a tool call with ``WIDTH`` features in [0, 1]. The choices
are made from the question and from the sentences read so far, never from gold, and stand in
alphabetical order, so that their place says nothing. The first place is always "wait", which is
legal only for an agent that is not asked to act.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .actions import ToolCall
from .summaries import Sentence, content_words, find_names

__all__ = [
    "FEATURES",
    "WIDTH",
    "Choice",
    "Clue",
    "answer_choices",
    "find_clues",
    "make_choice",
    "pack_menu",
    "sentence_objects",
    "sentence_subject",
]

KINDS = ("wait", "ask", "finish", "answer")
FEATURES = (
    *(f"is_{kind}" for kind in KINDS),
    "overlap",  # the share of the question's words that the choice's sentence holds
    "first",  # how early in the question the earliest of these words stands
    "subject_asked",  # the sentence is about something that the question names
    "subject_found",  # the sentence is about something that another sentence led to
    "is_new",  # the choice is not named in the question, and was not made before
)
WIDTH = len(FEATURES)
_MAX_VALUE_WORDS = 6
_CACHED = 8_192  # sentences whose parts are kept


class Choice(NamedTuple):
    """One choice of a menu.

    Attributes:
        label: What it is, for people.
        action: What it does.
        features: ``WIDTH`` numbers in [0, 1]; see ``FEATURES``.
    """

    label: str
    action: ToolCall
    features: tuple[float, ...]


class Clue(NamedTuple):
    """Something that sentences name, which may be asked for next or be the answer.

    Attributes:
        text: The name or value.
        features: overlap, first, subject_asked and subject_found of its best sentence.
        is_name: Whether it is a name, and no other value.
    """

    text: str
    features: tuple[float, float, float, float]
    is_name: bool


def find_clues(question: str, sentences: Iterable[Sentence]) -> list[Clue]:
    """Return what sentences say of what they are about, most promising first.

    That is the names after "is", and all that stands there if it is short.

    Args:
        question: What is asked.
        sentences: What was read.
    """
    best: dict[str, tuple[float, float, float, float]] = {}
    parts = [_scored(question, sentence) for sentence in dict.fromkeys(sentences)]
    names = {name for part in parts for name in part.names}
    for part in parts:
        features = (*part.features, float(part.subject in names))
        for text in part.texts:
            if text not in best or features > best[text]:
                best[text] = features
    clues = [
        Clue(text, features, text in names)
        for text, features in best.items()
        if text not in question
    ]
    return sorted(clues, key=lambda clue: (-sum(clue.features), clue.text))


def answer_choices(clues: Sequence[Clue], limit: int) -> list[Choice]:
    """Return the choices that answer with a clue; one says "unknown" if there is none."""
    if not clues:
        return [make_choice("answer", "unknown", "answer", {"text": "unknown"})]
    return [
        make_choice("answer", clue.text, "answer", {"text": clue.text}, clue.features)
        for clue in sorted(clues[:limit], key=lambda clue: clue.text)
    ]


def make_choice(
    kind: str,
    label: str,
    tool: str,
    arguments: dict[str, Any],
    clue: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    *,
    is_new: bool = True,
) -> Choice:
    """Return a choice with its features."""
    features = (*(float(kind == known) for known in KINDS), *clue, float(is_new))
    return Choice(f"{tool} {label}".strip(), {"name": tool, "arguments": arguments}, features)


def pack_menu(choices: Sequence[Choice], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of a menu and its mask.

    Returns:
        Features, float32, shape (size * WIDTH,); a mask, int8, shape (size,), in which place 0
        is "wait": 1 if there are no choices, and the choices follow from place 1.
    """
    features = np.zeros((size, WIDTH), dtype=np.float32)
    mask = np.zeros(size, dtype=np.int8)
    for place, choice in enumerate(choices[: size - 1], start=1):
        features[place] = choice.features
        mask[place] = 1
    mask[0] = not choices
    features[0, 0] = 1.0
    return features.reshape(-1), mask


class _Scored(NamedTuple):
    """What a sentence holds, and how it fits a question."""

    names: tuple[str, ...]
    texts: tuple[str, ...]  # names, and a value that is none
    subject: str
    features: tuple[float, float, float]  # overlap, first, subject_asked


@lru_cache(maxsize=_CACHED)
def _scored(question: str, sentence: Sentence) -> _Scored:
    place = _places(question)
    said = [place[word] for word in content_words(sentence.text) if word in place]
    overlap = len(said) / max(len(place), 1)
    first = 1 - min(said, default=len(place)) / max(len(place), 1)
    names, values = sentence_objects(sentence)
    subject = sentence_subject(sentence)
    return _Scored(names, names + values, subject, (overlap, first, float(subject in question)))


@lru_cache(maxsize=_CACHED)
def _places(question: str) -> dict[str, int]:
    """Return where each word of a question stands among its words."""
    return {word: number for number, word in enumerate(content_words(question))}


@lru_cache(maxsize=_CACHED)
def sentence_subject(sentence: Sentence) -> str:
    """Return what a sentence is about: the last name before "is", or its document's title."""
    before, is_found, _ = sentence.text.partition(" is ")
    named = find_names(before) if is_found else ()
    return named[-1] if named else sentence.title


@lru_cache(maxsize=_CACHED)
def sentence_objects(sentence: Sentence) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that a sentence says of its subject, and the value if it is no name."""
    before, _, after = sentence.text.partition(" is ")
    if not after:
        before, _, after = sentence.text.partition(" are ")
    named = find_names(after or before)
    value = after.rstrip(". ")
    is_value = 0 < len(value.split()) <= _MAX_VALUE_WORDS and value not in named
    return named, (value,) if is_value else ()
