"""What every site is: pages with addresses and links, and a search over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

__all__ = ["Link", "Page", "Result", "Site"]


class Link(NamedTuple):
    """A link of a page.

    Attributes:
        url: Where it leads: absolute, without fragment.
        text: What one would click, on one line.
        paragraph: The position of the paragraph in which it stands.
    """

    url: str
    text: str
    paragraph: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page as an agent reads it.

    Attributes:
        url: Its own address, after redirects.
        title: One line.
        paragraphs: Clean text, numbered by position from 1 when it is shown. A paragraph of
            code may have several lines; any other is one line.
        links: In the order of the text, each address once.
    """

    url: str
    title: str
    paragraphs: tuple[str, ...]
    links: tuple[Link, ...] = ()


class Result(NamedTuple):
    """One result of a search: the snippet holds the words that match, on one line."""

    url: str
    title: str
    snippet: str


@runtime_checkable
class Site(Protocol):
    """Pages that are found by searching and opened by their address.

    Safe to use from several threads. The same page may be opened again and again (to turn its
    pages, to find a text in it, to go back to it), so a slow site keeps its latest pages.
    """

    @property
    def name(self) -> str:
        """What this site is, with its settings; two that may differ have two names."""
        ...

    def search(self, query: str, page: int) -> Sequence[Result]:
        """Return one page of results, best first; none for a query without words.

        Args:
            query: Data, never syntax.
            page: From 1.

        Raises:
            BackendError: The index or server cannot answer.
        """
        ...

    def open(self, url: str) -> Page:
        """Return the page at an address; a fragment is ignored.

        Raises:
            PageError: The page cannot be shown, for a reason that an agent can act on: there is
                none, it is not text, it is too large, it may not be fetched.
            BackendError: The site itself cannot answer.
        """
        ...
