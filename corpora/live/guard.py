"""A guard against pages that give a task away, and what it looks for.

The rules are those of the leak audits of Glasseek and of CaRR (arXiv:2601.06021), whose rule is
that no text may share 13 words in a row with what a task forbids.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from ..errors import ConfigurationError, PageError
from ..site import Page, Result, Site
from ..tasks import Task

__all__ = ["Hidden", "Leak", "LeakGuard", "LeakRules", "find_leak"]

GRAM_WORDS = 13
_QUESTION_GRAM_WORDS = 8
_LEAST_QUESTION_WORDS = 5  # a shorter question stands in many texts
_WORD = re.compile(r"\w+")
_MAX_SHOWN_CHARS = 160


class Leak(NamedTuple):
    """Why a text gives a task away: the rule's name, and what was found."""

    rule: str
    found: str


class Hidden(NamedTuple):
    """One page or result that a guard hid: for which task, where, and why."""

    task_id: str
    url: str
    rule: str
    found: str


@dataclass(frozen=True)
class LeakRules:
    """What no page may be or hold.

    Attributes:
        domains: Hosts, with all hosts below them.
        patterns: Regular expressions, searched for in a page's address.
        canaries: Texts that mark a benchmark, found anywhere, in any case.
        forbidden: Texts of which no 13 words in a row may stand in a page; of one that is
            shorter, the whole.
        question: What is asked; empty for none.
        answers: The gold answers.

    Raises:
        ConfigurationError: A pattern is no regular expression, or an entry is blank.
    """

    domains: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    canaries: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    question: str = ""
    answers: tuple[str, ...] = ()
    _compiled: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check each entry."""
        for name in ("domains", "patterns", "canaries", "forbidden"):
            values = getattr(self, name)
            if isinstance(values, str) or not all(v.strip() for v in values):
                raise ConfigurationError(
                    f"{name} must be a list of texts that are not blank, got {values!r:.100}"
                )
        try:
            compiled = tuple(re.compile(pattern) for pattern in self.patterns)
        except re.error as error:
            raise ConfigurationError(
                f"patterns: {error.pattern!r} is no regular expression ({error})"
            ) from None
        object.__setattr__(self, "_compiled", compiled)

    def leak_of_address(self, url: str) -> Leak | None:
        """Return why a page may not be opened, by its address alone."""
        host = _host(url)
        for domain in self.domains:
            bare = domain.lower().strip(".")
            if host == bare or host.endswith("." + bare):
                return Leak("domain", domain)
        for pattern in self._compiled:
            if pattern.search(url):
                return Leak("pattern", pattern.pattern)
        return None


def find_leak(text: str, rules: LeakRules) -> Leak | None:
    """Return why a text gives a task away, or None; linear in the text.

    In this order: a canary; 13 words of a forbidden text; the question word by word; 8 words of
    the question in a row, where a gold answer stands in the text too. Words are compared without
    case, marks and punctuation.

    Example:
        >>> rules = LeakRules(question="Who built the tall tower of Ulm?", answers=("Ensinger",))
        >>> find_leak("Q: who built the tall TOWER of Ulm", rules)
        Leak(rule='question', found='who built the tall tower of ulm')
    """
    folded = _fold(text)
    for canary in rules.canaries:
        if _fold(canary) in folded:
            return Leak("canary", canary)
    words = _WORD.findall(folded)
    for rule, grams in _grams_of(rules):
        found = _first_gram(words, grams)
        if found is None:
            continue
        if rule != "question and answer" or _first_gram(words, _answer_grams(rules.answers)):
            return Leak(rule, found[:_MAX_SHOWN_CHARS])
    return None


class LeakGuard:
    """A site without the pages that give a task away.

    It is a site itself, with the rules that hold for every task; ``for_task`` gives the site as
    one task may see it. What is hidden looks like a page that is not there; ``hidden`` tells
    what it was, and why.

    Args:
        site: Any site.
        rules: What holds for every task.
        forbidden: Further forbidden texts, by task id.

    Example:
        >>> from seekgym.corpora.site import Page
        >>> class OnePage:
        ...     name = "one page"
        ...     def search(self, query, page): return ()
        ...     def open(self, url): return Page(url, "Answers", ("canary 4b1d",))
        >>> guard = LeakGuard(OnePage(), LeakRules(canaries=("CANARY 4b1d",)))
        >>> guard.open("http://a.example/")
        Traceback (most recent call last):
        seekgym.corpora.errors.PageError: This page is not available.
        >>> guard.hidden[0].rule
        'canary'
    """

    def __init__(
        self,
        site: Site,
        rules: LeakRules | None = None,
        *,
        forbidden: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.rules = rules or LeakRules()
        self._site = site
        self._forbidden = {task: tuple(texts) for task, texts in (forbidden or {}).items()}
        self._task_id = ""
        self._hidden: dict[Hidden, None] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What this site is: the site behind it, guarded by these rules."""
        return f"{self._site.name}, guarded ({self.rules!r}, {self._forbidden!r})"

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """What was hidden, for every task, each once, in the order in which it was met."""
        with self._lock:
            return tuple(self._hidden)

    def for_task(self, task: Task) -> "LeakGuard":
        """Return the site as a task may see it; what it hides is noted here too."""
        rules = self.rules
        own = LeakRules(
            domains=rules.domains,
            patterns=rules.patterns,
            canaries=rules.canaries,
            forbidden=(*rules.forbidden, *self._forbidden.get(task.id, ())),
            question=task.question,
            answers=task.answers,
        )
        guard = LeakGuard(self._site, own)
        guard._task_id = task.id
        guard._hidden, guard._lock = self._hidden, self._lock
        return guard

    def search(self, query: str, page: int) -> Sequence[Result]:
        """Return one page of results without those that leak; see ``Site.search``."""
        results = self._site.search(query, page)
        return tuple(result for result in results if not self._hides_result(result))

    def open(self, url: str) -> Page:
        """Return the page at an address; see ``Site.open``.

        Raises:
            PageError: It cannot be shown, or, with the code ``hidden``, is not to be.
        """
        self._check(url, self.rules.leak_of_address(url))
        page = self._site.open(url)
        self._check(page.url, self.rules.leak_of_address(page.url))
        self._check(page.url, find_leak("\n".join((page.title, *page.paragraphs)), self.rules))
        return page

    def _hides_result(self, result: Result) -> bool:
        leak = self.rules.leak_of_address(result.url) or find_leak(
            f"{result.title}\n{result.snippet}", self.rules
        )
        self._note(result.url, leak)
        return leak is not None

    def _check(self, url: str, leak: Leak | None) -> None:
        self._note(url, leak)
        if leak is not None:
            raise PageError("hidden", "This page is not available.")

    def _note(self, url: str, leak: Leak | None) -> None:
        if leak is not None:
            with self._lock:
                self._hidden[Hidden(self._task_id, url, *leak)] = None


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").strip(".")
    except ValueError:
        return ""


def _fold(text: str) -> str:
    """Return text without case and marks: compatible forms are one, accents are gone."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text)
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def _words(text: str) -> list[str]:
    return _WORD.findall(_fold(text))


_Grams = Mapping[int, frozenset[tuple[str, ...]]]  # by length


def _grams(texts: Iterable[str], size: int) -> _Grams:
    """Return the runs of ``size`` words of each text; the whole of a shorter one."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for text in texts:
        words = _words(text)
        length = min(size, len(words))
        for start in range(len(words) - length + 1 if length else 0):
            found.setdefault(length, set()).add(tuple(words[start : start + length]))
    return {length: frozenset(grams) for length, grams in sorted(found.items())}


@lru_cache(maxsize=256)
def _grams_of(rules: LeakRules) -> tuple[tuple[str, _Grams], ...]:
    """Return for each rule the runs of words that break it."""
    asked = len(_words(rules.question))
    whole = _grams([rules.question], asked) if asked >= _LEAST_QUESTION_WORDS else {}
    parts = _grams([rules.question], _QUESTION_GRAM_WORDS) if asked >= 2 else {}
    return (
        ("13 words", _grams(rules.forbidden, GRAM_WORDS)),
        ("question", whole),
        ("question and answer", parts),
    )


@lru_cache(maxsize=256)
def _answer_grams(answers: tuple[str, ...]) -> _Grams:
    """Return each answer as one run of words."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for answer in answers:
        words = tuple(_words(answer))
        if words:
            found.setdefault(len(words), set()).add(words)
    return {length: frozenset(grams) for length, grams in found.items()}


def _first_gram(words: Sequence[str], grams: _Grams) -> str | None:
    """Return the first run of words that is one of the grams, or None."""
    for length, wanted in grams.items():
        runs = zip(*(islice(words, start, None) for start in range(length)), strict=False)
        for run in runs:
            if run in wanted:
                return " ".join(run)
    return None
