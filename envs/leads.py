"""Leads: what sentences name that a question may be after, and how far each has led.

A question such as "Who is the brother of the friend of Ann Lee?" names somebody and says by which
words to go on, innermost first: friend, then brother. A sentence about Ann Lee that holds "friend"
leads on to whom it names; the share of the question's words that were used up on the way is a
lead's progress. It is computed from the texts of the question and of the observations alone.
"""

import re
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from .menus import sentence_objects, sentence_subject
from .summaries import Sentence, content_words, find_names

__all__ = ["BUCKETS", "Lead", "find_leads", "question_names", "relation_words", "word_buckets"]

BUCKETS = 8
_NUMBER = re.compile(r"\b(?:\d{1,2} )?[A-Z][a-z]+ (?:\d{1,2}, )?\d{4}\b|\b\d[\d,.]*\d\b|\b\d\b")
_CACHED = 8_192  # sentences whose parts are kept
_KINDS_OF = {  # words that articles put more precisely
    "child": ("son", "daughter"),
    "sibling": ("brother", "sister"),
    "parent": ("mother", "father"),
    "spouse": ("wife", "husband"),
}


class Lead(NamedTuple):
    """A name or value, with what speaks for it.

    Attributes:
        text: The name or value; a name of the question is a lead too.
        is_name: Whether it is a name, and no other value.
        is_asked: Whether the question names it.
        progress: The share of the question's words that led to it, innermost first.
        used: How many words that is.
        overlap: The share of the question's words that its best sentence holds.
        first: How early in the question the earliest of these words stands.
        is_subject_asked: That sentence is about something that the question names.
        is_subject_found: It is about something that another sentence names.
        turn: In which turn the sentence was read first, from 1; 0 for a name of the question.
        buckets: ``word_buckets`` of the sentence.
    """

    text: str
    is_name: bool
    is_asked: bool
    progress: float
    used: int
    overlap: float = 0.0
    first: float = 0.0
    is_subject_asked: bool = False
    is_subject_found: bool = False
    turn: int = 0
    buckets: tuple[int, ...] = ()

    @property
    def order(self) -> tuple[float | str, ...]:
        """What leads are sorted by, most promising first."""
        speaks = self.is_subject_asked + self.is_subject_found + self.overlap + self.first
        return (-self.progress, -speaks, self.text)


def find_leads(
    question: str, sentences: Mapping[Sentence, int], *, is_prose: bool = False
) -> list[Lead]:
    """Return the leads, most promising first.

    Args:
        question: What is asked.
        sentences: What was read, each with the turn in which it was read first.
        is_prose: Whether anything that a sentence names may be a lead, and dates and numbers;
            else what stands after "is".
    """
    path = _path(question)
    parts = [(_read(question, each, is_prose), turn) for each, turn in sentences.items()]
    used = _follow(path, question_names(question), [part for part, _ in parts])
    found = {name for part, _ in parts for name in part.names}
    best: dict[str, Lead] = {}
    for part, turn in parts:
        for text in part.texts:
            lead = Lead(
                text,
                text in found,
                text in question,
                used.get(text, 0) / max(1, len(path)),
                used.get(text, 0),
                part.overlap,
                part.first,
                part.subject in question,
                part.subject in found,
                turn,
                part.buckets,
            )
            if text not in best or lead.order < best[text].order:
                best[text] = lead
    for name in question_names(question) or (question,):
        best[name] = Lead(name, True, True, 0.0, 0)
    return sorted(best.values(), key=lambda lead: lead.order)


@lru_cache(maxsize=_CACHED)
def question_names(question: str) -> tuple[str, ...]:
    """Return what a question names, in order.

    Example:
        >>> question_names("Who is the friend of Ann Lee?")
        ('Ann Lee',)
    """
    return find_names(question)


def relation_words(question: str, used: int) -> str:
    """Return the next word of a question to go on by, after so many; empty if there is none.

    Example:
        >>> relation_words("Who is the brother of the friend of Ann Lee?", 0)
        'friend'
    """
    path = _path(question)
    return path[used] if used < len(path) else ""


def word_buckets(question: str, text: str) -> tuple[int, ...]:
    """Return the buckets, of ``BUCKETS``, of the words that a text shares with a question."""
    asked = set(content_words(question))
    shared = {_plain(word) for word in content_words(text) if word in asked}
    return tuple(sorted({zlib.crc32(word.encode()) % BUCKETS for word in shared}))


class _Read(NamedTuple):
    """What a sentence holds, and how it fits a question."""

    subject: str
    names: tuple[str, ...]
    texts: tuple[str, ...]
    words: frozenset[str]  # those that a path may use up
    overlap: float
    first: float
    buckets: tuple[int, ...]


@lru_cache(maxsize=_CACHED)
def _read(question: str, sentence: Sentence, is_prose: bool) -> _Read:
    asked = {word: place for place, word in enumerate(content_words(question))}
    said = [asked[word] for word in content_words(sentence.text) if word in asked]
    size = max(1, len(asked))
    names, values = sentence_objects(sentence)
    subject = sentence_subject(sentence)
    if is_prose:
        names = tuple(dict.fromkeys((*names, *find_names(sentence.text))))
        values = (*values, *(match[0] for match in _NUMBER.finditer(sentence.text)))
    return _Read(
        subject,
        names,
        tuple(dict.fromkeys(names + values)),
        frozenset(map(_plain, content_words(sentence.text))),
        len(said) / size,
        1 - min(said, default=size) / size,
        word_buckets(question, sentence.text),
    )


@lru_cache(maxsize=_CACHED)
def _path(question: str) -> tuple[str, ...]:
    """Return the words of a question that are no part of a name, innermost first."""
    rest = question
    for name in question_names(question):
        rest = rest.replace(name, " ")
    words = (word for word in rest.replace("?", " ").split())
    kept = [_plain(part) for word in words for part in content_words(word)]
    return tuple(reversed(kept))


def _follow(path: tuple[str, ...], names: Iterable[str], parts: Iterable[_Read]) -> dict[str, int]:
    """Return how many words of the path were used up on the way to each name or value."""
    about: dict[str, list[_Read]] = {}
    for part in parts:
        about.setdefault(part.subject, []).append(part)
    used = dict.fromkeys(names, 0)
    waiting = list(used)
    while waiting:
        subject = waiting.pop()
        for part in about.get(subject, ()):
            reached = _use(path, used[subject], part.words)
            for text in part.texts if reached > used[subject] else ():
                if reached > used.get(text, 0) and text != subject:
                    used[text] = reached
                    waiting.append(text)
    return used


def _use(path: tuple[str, ...], place: int, words: frozenset[str]) -> int:
    """Return how far a path goes on by the words of one sentence, each word once."""
    left = set(words)
    while place < len(path):
        fitting = next((w for w in (path[place], *_KINDS_OF.get(path[place], ())) if w in left), "")
        if not fitting:
            break
        left.discard(fitting)
        place += 1
    return place


def _plain(word: str) -> str:
    """Return a word without the ending of a plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
