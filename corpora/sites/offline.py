"""Sites whose pages are all at hand: made, generated or read from files, and searched by BM25."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Self
from urllib.parse import urldefrag

from ..documents import Corpus, Document
from ..errors import PageError
from ..retrieval import BM25Retriever, default_retriever
from ..site import Page, Result
from ..text import cut_text

__all__ = ["PAGE_SIZE", "OfflineSite", "PageCorpus", "snippet"]

PAGE_SIZE = 5
_LAST_PAGE = 20
_KEPT = 2_048
_SNIPPET_CHARS = 220
_MAX_WORDS = 24
_MAX_PLACES = 6  # of one word in one text that are looked at
_WORD = re.compile(r"\w+")


class PageCorpus(Corpus):
    """The pages of a site as documents: the id of a document is its address.

    Args:
        urls: Every page's address, in order.
        render: Gives the page at a position; must always give the same one.
        name: What the corpus is called.
        fingerprint: A stable hash of the content, if one is known without reading it all.
        again: Makes the site anew, for pickles; None to pickle the pages themselves.
    """

    def __init__(
        self,
        urls: Sequence[str],
        render: Callable[[int], Page],
        *,
        name: str,
        fingerprint: str | None = None,
        again: "Callable[[], OfflineSite] | None" = None,
    ) -> None:
        super().__init__(urls, self._document, name=name, fingerprint=fingerprint)
        self._page = render
        self._again = again

    def page(self, url: str) -> Page:
        """Return the page at an address; KeyError if there is none."""
        return self._page(self.position(url))

    def _document(self, position: int) -> Document:
        page = self._page(position)
        text = "\n\n".join(page.paragraphs)
        return Document(page.url, page.title, text, page.url, tuple(x.url for x in page.links))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle how the site is made, where that is known."""
        if self._again is not None:
            return _corpus_again, (self._again,)
        pages = tuple(map(self._page, range(len(self))))
        make = partial(PageCorpus, name=self.name, fingerprint=self.fingerprint)
        return make, (tuple(self.ids), pages.__getitem__)


def _corpus_again(again: "Callable[[], OfflineSite]") -> PageCorpus:
    return again().corpus


class OfflineSite:
    """A site over a corpus of pages, searched by the project's own BM25.

    Args:
        corpus: The pages.
        home: The address of the page to begin at.
        html: Gives the HTML of a page, for a person's browser.
    """

    page_size = PAGE_SIZE

    def __init__(self, corpus: PageCorpus, *, home: str, html: Callable[[str], str]) -> None:
        self.corpus = corpus
        self.home = home
        self._html = html
        self._known = frozenset(corpus.ids)
        self._lower = lru_cache(_KEPT)(self._lowered)

    @property
    def name(self) -> str:
        """The corpus, its content, and how it is searched."""
        return f"{self.corpus.name}({self.corpus.fingerprint[:16]},{self.retriever.name})"

    @property
    def retriever(self) -> BM25Retriever:
        """What ranks the pages; made when it is first asked."""
        return default_retriever(self.corpus)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same site: it is immutable, so copies of environments share it."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle how the site is made."""
        if self.corpus._again is not None:
            return self.corpus._again, ()
        return partial(OfflineSite, home=self.home, html=self._html), (self.corpus,)

    def __repr__(self) -> str:
        """Name the site and its size."""
        return f"<OfflineSite {self.corpus.name!r}: {len(self.corpus)} pages>"

    def search(self, query: str, page: int) -> list[Result]:
        """Return one page of results, best first, each with the part that fits the query best."""
        if not 1 <= page <= _LAST_PAGE:
            return []
        first = (page - 1) * self.page_size
        hits = self.retriever.search([query], first + self.page_size)[0][first:]
        words = _query_words(query)
        return [self._result(hit.document_id, words) for hit in hits]

    def open(self, url: str) -> Page:
        """Return the page at an address.

        Raises:
            PageError: There is none.
        """
        address = self.address(url)
        if address is None:
            raise PageError("not_found", f"There is no page at {url[:200]!r}; the link is dead.")
        return self.corpus.page(address)

    def address(self, url: str) -> str | None:
        """Return the address of the page that a URL stands for, or None."""
        url = urldefrag(url)[0]
        for candidate in (url, f"{url.rstrip('/')}/index.html", f"{url}.html"):
            if candidate in self._known:
                return candidate
        return None

    def html(self, url: str) -> str:
        """Return the HTML of a page; KeyError if there is none."""
        self.corpus.position(url)
        return self._html(url)

    def _result(self, url: str, words: tuple[str, ...]) -> Result:
        title, text, lower = self._lower(url)
        return Result(url, title, snippet(text, lower, words))

    def _lowered(self, url: str) -> tuple[str, str, str]:
        page = self.corpus.page(url)
        text = " ".join(" ".join(page.paragraphs).split())
        lower = text.lower()
        return page.title, text, lower if len(lower) == len(text) else text


@lru_cache(1_024)
def _query_words(query: str) -> tuple[str, ...]:
    words = (word.lower() for word in _WORD.findall(query[:2_000]))
    return tuple(dict.fromkeys(words))[:_MAX_WORDS]


def snippet(text: str, lower: str, words: Sequence[str]) -> str:
    """Return the part of a text in which most of the words stand, the earliest of several.

    Args:
        text: On one line.
        lower: The same in lower case.
        words: In lower case, each once; rarer words of the text count more.
    """
    found: list[tuple[int, str]] = []
    weights: dict[str, float] = {}
    for word in words:
        places = _places(lower, word)
        if places:
            weights[word] = 1 / len(places)
            found += [(place, word) for place in places]
    found.sort()
    best, start, end = 0.0, 0, 0
    inside: dict[str, int] = {}
    total = 0.0
    for place, word in found:
        while end < len(found) and found[end][0] + len(found[end][1]) <= place + _SNIPPET_CHARS:
            entering = found[end][1]
            inside[entering] = inside.get(entering, 0) + 1
            total += weights[entering] if inside[entering] == 1 else 0.0
            end += 1
        if total > best + 1e-9:
            best, start = total, place
        inside[word] = inside.get(word, 0) - 1
        total -= weights[word] if inside[word] == 0 else 0.0
    start = max(0, start - 24)
    begin = text.rfind(" ", 0, start) + 1 if start else 0
    cut = cut_text(text[begin : begin + _SNIPPET_CHARS + 80], _SNIPPET_CHARS + 40)
    return f"{'… ' if begin else ''}{cut}{' …' if begin + len(cut) < len(text) else ''}"


def _places(lower: str, word: str) -> list[int]:
    """Return where a word stands in a text, the first few places."""
    places: list[int] = []
    place, tries = lower.find(word), 0
    while place >= 0 and len(places) < _MAX_PLACES and tries < 4 * _MAX_PLACES:
        before, after = lower[place - 1 : place], lower[place + len(word) : place + len(word) + 1]
        if not (before.isalnum() or after.isalnum()):
            places.append(place)
        tries += 1
        place = lower.find(word, place + len(word))
    return places
