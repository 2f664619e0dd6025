"""A guard before any site: pages that give a task away are not there."""

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..errors import PageError
from ..site import Page, Result, Site
from ..tasks import Task
from .leaks import Leak, LeakFinder, LeakRules, TaskSecrets

__all__ = ["Hidden", "LeakGuard"]


class Hidden(NamedTuple):
    """One page or result that a guard hid: where, by which rule, what was found, of which task."""

    url: str
    rule: str
    found: str
    task_id: str


class LeakGuard:
    """A site without the pages that give its tasks away.

    What is hidden looks like a page that is not there: a result is left out, and a page gives a
    ``PageError`` with the code ``hidden``. ``hidden`` tells what it was, and why. A page that
    gives one task away is hidden from all, so what a page shows depends on nothing but the page.

    Args:
        site: Any site.
        rules: What holds for every task.
        tasks: The tasks whose questions and answers no page may tell.
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
        tasks: Iterable[Task] = (),
        forbidden: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._site = site
        self._rules = rules or LeakRules()
        texts = forbidden or {}
        secrets = tuple(
            TaskSecrets(task.id, task.question, task.answers, tuple(texts.get(task.id, ())))
            for task in tasks
        )
        self._finder = LeakFinder(self._rules, secrets)
        told = hashlib.sha256(repr((self._rules, secrets)).encode("utf-8", "replace")).hexdigest()
        self._name = f"{site.name}, guarded {told[:16]}"
        self._hidden: dict[Hidden, None] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What this site is: the site behind it, and a hash of the rules."""
        return self._name

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """What was hidden, each once, in the order in which it was met."""
        with self._lock:
            return tuple(self._hidden)

    def search(self, query: str, page: int = 1) -> Sequence[Result]:
        """Return one page of results without those that leak; see ``Site.search``."""
        results = self._site.search(query, page)
        return tuple(result for result in results if not self._hides(result))

    def open(self, url: str) -> Page:
        """Return the page at an address; see ``Site.open``.

        Raises:
            PageError: It cannot be shown, or, with the code ``hidden``, is not to be.
        """
        self._check(url, self._finder.in_address(url))
        page = self._site.open(url)
        self._check(page.url, self._finder.in_address(page.url))
        self._check(page.url, self._finder.in_text("\n".join((page.title, *page.paragraphs))))
        return page

    def __deepcopy__(self, memo: dict[int, object]) -> "LeakGuard":
        """Return the same guard, so that copies of environments share it."""
        return self

    def __getstate__(self) -> dict[str, object]:
        """Leave out the lock, which cannot travel."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take another lock."""
        vars(self).update(state, _lock=threading.Lock())

    def _hides(self, result: Result) -> bool:
        text = f"{result.title}\n{result.snippet}"
        leak = self._finder.in_address(result.url) or self._finder.in_text(text)
        self._note(result.url, leak)
        return leak is not None

    def _check(self, url: str, leak: Leak | None) -> None:
        self._note(url, leak)
        if leak is not None:
            raise PageError("hidden", "This page is not available.")

    def _note(self, url: str, leak: Leak | None) -> None:
        if leak is not None:
            with self._lock:
                self._hidden[Hidden(url, *leak)] = None
