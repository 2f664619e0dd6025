"""What gives a task away, and where a text does so.

The rules are those of the leak audits of Glasseek and of CaRR (arXiv:2601.06021), by whose rule no
text may share 13 words in a row with what a task forbids.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import urlsplit

from ..errors import ConfigurationError

__all__ = ["Leak", "LeakFinder", "LeakRules", "TaskSecrets"]

_FORBIDDEN_WORDS = 13
_QUESTION_WORDS = 8
_LEAST_QUESTION_WORDS = 5  # a shorter question stands in many texts
_KEY_WORDS = 3
_WORD = re.compile(r"\w+")
_MAX_SHOWN_CHARS = 160

_Words = tuple[str, ...]


class Leak(NamedTuple):
    """Why a page gives a task away: the rule's name, what was found, and for which task."""

    rule: str
    found: str
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class LeakRules:
    """What no page may be or hold, whatever the task.

    Attributes:
        domains: Hosts, with all hosts below them.
        patterns: Regular expressions, searched for in a page's address.
        canaries: Texts that mark a benchmark, found anywhere, in any case.
        forbidden: Texts of which no 13 words in a row may stand in a page; of one that is
            shorter, the whole.

    Raises:
        ConfigurationError: A pattern is no regular expression, or an entry is blank.
    """

    domains: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    canaries: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check each entry."""
        for name in ("domains", "patterns", "canaries", "forbidden"):
            values = getattr(self, name)
            if isinstance(values, str) or not all(value.strip() for value in values):
                raise ConfigurationError(
                    f"{name} must be a list of texts that are not blank, got {values!r:.100}"
                )
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigurationError(
                    f"patterns: {pattern!r} is no regular expression ({error})"
                ) from None


@dataclass(frozen=True, slots=True)
class TaskSecrets:
    """What no page may tell of one task: its question, its answers, and what else it forbids."""

    task_id: str
    question: str
    answers: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class LeakFinder:
    """Finds what gives tasks away, in time linear in the text.

    A text leaks, in this order, if it holds a canary; 13 words in a row of a forbidden text; a
    question word by word; or 8 words in a row of a question, and a gold answer of it too. Words
    are compared without case, accents and punctuation.

    Args:
        rules: What holds for every task.
        tasks: What each task must keep.

    Example:
        >>> task = TaskSecrets("t1", "Who built the tall tower of Ulm?", ("Ensinger",))
        >>> LeakFinder(LeakRules(), [task]).in_text("Q: who built the tall TOWER of Ulm")
        Leak(rule='question', found='who built the tall tower of ulm', task_id='t1')
    """

    def __init__(self, rules: LeakRules, tasks: Iterable[TaskSecrets] = ()) -> None:
        self._domains = {domain.lower().strip("."): domain for domain in rules.domains}
        self._patterns = [re.compile(pattern) for pattern in rules.patterns]
        self._canaries = [(_fold(canary), canary) for canary in rules.canaries]
        self._answers: dict[str, list[str]] = {}
        self._leaks: dict[_Words, list[tuple[int, Leak]]] = {}  # by run of words
        self._lengths: dict[_Words, set[int]] = {}  # of the runs that begin with some words
        for gram in _grams(rules.forbidden, _FORBIDDEN_WORDS):
            self._add(0, gram, Leak("13 words", " ".join(gram)))
        for task in tasks:
            self._add_task(task)
        self._key_lengths = sorted({len(key) for key in self._lengths})

    def in_address(self, url: str) -> Leak | None:
        """Return why a page may not be opened, by its address alone."""
        host = _host(url)
        labels = host.split(".")
        for start in range(len(labels)):
            if (domain := self._domains.get(".".join(labels[start:]))) is not None:
                return Leak("domain", domain)
        for pattern in self._patterns:
            if pattern.search(url):
                return Leak("pattern", pattern.pattern)
        return None

    def in_text(self, text: str) -> Leak | None:
        """Return why a text gives a task away, or None."""
        folded = _fold(text)
        for canary, shown in self._canaries:
            if canary in folded:
                return Leak("canary", shown)
        words = _WORD.findall(folded)
        runs = dict.fromkeys(self._matches(words))
        found = sorted((leak for run in runs for leak in self._leaks[run]), key=itemgetter(0))
        spaced = f" {' '.join(words)} " if found else ""
        stands = cache(lambda answer: f" {answer} " in spaced)
        for order, leak in found:
            if order < 2 or any(map(stands, self._answers[leak.task_id])):
                return leak._replace(found=leak.found[:_MAX_SHOWN_CHARS])
        return None

    def _add_task(self, task: TaskSecrets) -> None:
        question = _words(task.question)
        answers = (" ".join(_words(answer)) for answer in task.answers)
        self._answers[task.task_id] = [answer for answer in answers if answer]
        for gram in _grams(task.forbidden, _FORBIDDEN_WORDS):
            self._add(0, gram, Leak("13 words", " ".join(gram), task.task_id))
        if len(question) >= _LEAST_QUESTION_WORDS:
            self._add(1, question, Leak("question", " ".join(question), task.task_id))
        for gram in _grams([task.question], _QUESTION_WORDS):
            self._add(2, gram, Leak("question and answer", " ".join(gram), task.task_id))

    def _add(self, order: int, run: _Words, leak: Leak) -> None:
        self._leaks.setdefault(run, []).append((order, leak))
        self._lengths.setdefault(run[:_KEY_WORDS], set()).add(len(run))

    def _matches(self, words: Sequence[str]) -> Iterator[_Words]:
        """Give each run of words that leaks: looked up by its first words, then as a whole."""
        for length in self._key_lengths:
            for start in range(len(words) - length + 1):
                for size in self._lengths.get(tuple(words[start : start + length]), ()):
                    run = tuple(words[start : start + size])
                    if run in self._leaks:
                        yield run


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").strip(".")
    except ValueError:
        return ""


def _fold(text: str) -> str:
    """Return text without case and accents; compatible forms are one."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text)
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def _words(text: str) -> _Words:
    return tuple(_WORD.findall(_fold(text)))


def _grams(texts: Iterable[str], size: int) -> set[_Words]:
    """Return the runs of ``size`` words of each text; the whole of a shorter one."""
    found = set()
    for text in texts:
        words = _words(text)
        length = min(size, len(words))
        found |= {words[at : at + length] for at in range(len(words) - length + 1) if length}
    return found
