"""The tools of the web: search, open, find, expand, back, answer.

A tool is stateless; what an agent has open and where it came from is a ``Place``, which the
episode keeps, so that an episode can be copied, pickled, left and come back to.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

from ..corpora.errors import BackendError, PageError
from ..corpora.pages import plain_line
from ..corpora.retrieval import Hit
from ..corpora.site import Page, Result, Site
from ..corpora.text import cut_text
from .actions import Parameter, ToolSignature
from .tools import MAX_QUERY_CHARS, Tool, ToolResult
from .web_pages import (
    UNTRUSTED,
    Shown,
    find_in_page,
    page_parts,
    show_page,
    show_results,
)

__all__ = ["BrokenSite", "Browser", "Place", "WebTool", "web_tools"]

_NUMBER = re.compile(r"\d{1,6}")
_LINK_NUMBER = re.compile(r"\[?[Ll](\d{1,6})\]?")
_RANK = re.compile(r"\[?(\d{1,6})\]?\.?")
_SCHEME = re.compile(r"[a-zA-Z][\w+.-]*:")
_MAX_CITATIONS = 50
_PARTS_KEPT = 512


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent is.

    Attributes:
        url: The page that is open, or None.
        part: Which part of it.
        history: The pages before it, each with its part.
        results: The addresses of the last results, by rank from ``first_rank``.
        first_rank: The rank of the first of them.
        page_error: Why the page asked for in this turn was not shown, or None.
        citations: What the answer named as its sources.
        supported: Those of them that count.
    """

    url: str | None = None
    part: int = 1
    history: tuple[tuple[str, int], ...] = ()
    results: tuple[str, ...] = ()
    first_rank: int = 1
    page_error: str | None = None
    citations: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()


class Browser:
    """What all tools share: the site, and how much of a page is shown at once.

    Args:
        site: Where the pages are.
        max_chars: The longest observation.
    """

    def __init__(self, site: Site, *, max_chars: int) -> None:
        self.site = site
        self.max_chars = max_chars
        self._parts: dict[str, tuple[Page, tuple[Shown, ...]]] = {}

    def parts(self, page: Page) -> tuple[Shown, ...]:
        """Return the parts of a page."""
        kept = self._parts.get(page.url)
        if kept is None or (kept[0] is not page and kept[0] != page):
            if len(self._parts) >= _PARTS_KEPT:
                self._parts.clear()
            kept = self._parts[page.url] = (page, page_parts(page, self.max_chars))
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the parts that were made."""
        return {**self.__dict__, "_parts": {}}


class BrokenSite:
    """Fails whatever it is asked, as a server that is gone would."""

    name = "broken"

    def search(self, query: str, page: int) -> Sequence[Result]:
        """Raise a BackendError."""
        raise BackendError("this site is broken on purpose")

    def open(self, url: str) -> Page:
        """Raise a BackendError."""
        raise BackendError("this site is broken on purpose")


class WebTool(Tool):
    """A tool that goes from place to place.

    Args:
        browser: What it uses.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    @abstractmethod
    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        """Do it, and say where that leads."""

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Do it from nowhere."""
        return self.go(arguments, Place())[0]

    def _wrong(self, code: str, reason: str, place: Place) -> tuple[ToolResult, Place]:
        return ToolResult(f"{reason} {self.signature.usage}.", error=code), place

    def _show(self, url: str, part: int, place: Place) -> tuple[ToolResult, Place]:
        """Show a part of a page; the place stays the same where there is nothing to show."""
        browser = self._browser
        try:
            page = browser.site.open(url)
        except PageError as error:
            return ToolResult(error.reason), replace(place, page_error=error.code)
        parts = browser.parts(page)
        if not 1 <= part <= len(parts):
            reason = f"The page has parts 1 to {len(parts)}, not {part}:"
            return self._wrong("unknown_page", reason, place)
        there = replace(place, url=page.url, part=part)
        return ToolResult(show_page(page, parts, part), (page.url,)), there


class _Search(WebTool):
    signature = ToolSignature(
        "search",
        "Find pages; shows rank, title, address and a snippet of each.",
        (
            Parameter("query", "What to look for, in a few words."),
            Parameter("page", "Which page of the results, from 1.", "integer", is_required=False),
        ),
    )

    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        query, page = cut_text(arguments["query"], MAX_QUERY_CHARS), arguments.get("page", 1)
        if not query.strip():
            return self._wrong("empty_query", "The query is empty; write what to look for:", place)
        if page < 1:
            return self._wrong("unknown_page", "Results have pages from 1:", place)
        unique: dict[str, Result] = {}
        for result in self._browser.site.search(query, page):
            unique.setdefault(result.url, result)
        results = list(unique.values())
        if not results:
            more = "more " if page > 1 else ""
            return ToolResult(f"No {more}results for this query. Try other words."), place
        known = place.results if page > 1 else ()
        first = place.first_rank + len(known) if known else 1
        urls = tuple(result.url for result in results)
        text = show_results(results, first)
        if len(arguments["query"]) > MAX_QUERY_CHARS:
            text = f"(Only the first {MAX_QUERY_CHARS} characters were searched for.)\n{text}"
        return ToolResult(text), replace(place, results=urls, first_rank=first)


class _Open(WebTool):
    signature = ToolSignature(
        "open",
        "Open a page: numbered paragraphs and links.",
        (
            Parameter(
                "url",
                "An address; or the rank of a result, such as 2; or the number of a link of the "
                "open page, such as L3.",
                examples=("1", "2", "3", "L1", "L2"),
            ),
            Parameter("page", "Which part of a long page, from 1.", "integer", is_required=False),
        ),
    )

    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        wanted = arguments["url"].strip().strip("<>")
        url: str | None = None
        if match := _RANK.fullmatch(wanted):
            url = _ranked(place, int(match[1]))
            if url is None:
                return self._wrong("unknown_rank", f"No result has the rank {match[1]}:", place)
        elif match := _LINK_NUMBER.fullmatch(wanted):
            url = self._linked(int(match[1]), place)
            if url is None:
                reason = f"No link of the open page has the number L{match[1]}:"
                return self._wrong("unknown_link", reason, place)
        elif wanted:
            url = _absolute(wanted, place.url)
        if url is None:
            return self._wrong("empty_url", "The address is empty or cannot be read:", place)
        result, there = self._show(url, arguments.get("page", 1), place)
        if there.url is not None and result.documents and place.url not in (None, there.url):
            there = replace(there, history=(*place.history, (str(place.url), place.part)))
        return result, there

    def _linked(self, number: int, place: Place) -> str | None:
        if place.url is None:
            return None
        links = self._browser.site.open(place.url).links
        return links[number - 1].url if 1 <= number <= len(links) else None


class _Find(WebTool):
    signature = ToolSignature(
        "find",
        "Find a text in the open page: exactly, or most of its words close together.",
        (Parameter("text", "What to find."),),
    )

    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        text = cut_text(arguments["text"], MAX_QUERY_CHARS)
        if place.url is None:
            return self._wrong("no_open_page", "No page is open; open one first, then:", place)
        if not text.strip():
            return self._wrong("empty_text", "The text is empty; write what to find:", place)
        page = self._browser.site.open(place.url)
        parts = self._browser.parts(page)
        found = find_in_page(page, text)
        if not found:
            return ToolResult("The open page does not hold this text."), place
        lines = [
            f"[{hit.paragraph + 1}] (page {_part_of(parts, hit.paragraph)}) {plain_line(hit.text)}"
            for hit in found
        ]
        return ToolResult("\n".join((UNTRUSTED, *lines)), (page.url,)), place


class _Expand(WebTool):
    signature = ToolSignature(
        "expand",
        "Show the beginning of the full text of some results, after a search.",
        (Parameter("ranks", "Their ranks, such as: 1, 3", examples=("1", "1, 2", "2, 3")),),
    )

    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        ranks = dict.fromkeys(map(int, _NUMBER.findall(arguments["ranks"][:200])))
        urls = {rank: url for rank in ranks if (url := _ranked(place, rank)) is not None}
        if not urls or len(urls) < len(ranks):
            return self._wrong("unknown_rank", "Give ranks of the last search's results:", place)
        share = self._browser.max_chars // len(urls) - len(UNTRUSTED) - 80
        shown, fault = [], None
        documents: dict[str, None] = {}
        for rank, url in urls.items():
            try:
                page = self._browser.site.open(url)
            except PageError as error:
                shown.append(f"{rank}. {error.reason}")
                fault = error.code
                continue
            first = page_parts(page, share)
            shown.append(f"{rank}. {show_page(page, first, 1)}")
            documents[page.url] = None
        return ToolResult("\n\n".join(shown), tuple(documents)), replace(place, page_error=fault)


class _Back(WebTool):
    signature = ToolSignature("back", "Go back to the page that was open before.", ())

    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        if not place.history:
            return self._wrong("no_page_before", "There is no page to go back to:", place)
        *before, (url, part) = place.history
        return self._show(url, part, replace(place, history=tuple(before)))


class _Answer(WebTool):
    signature = ToolSignature(
        "answer",
        "Give the final answer, with its sources, and end the episode.",
        (
            Parameter("text", "The answer, as short as possible."),
            Parameter(
                "citations",
                "The addresses of the opened pages that state what it rests on, with spaces "
                "between them.",
                is_required=False,
            ),
        ),
    )

    def go(self, arguments: Mapping[str, Any], place: Place) -> tuple[ToolResult, Place]:
        cited = tuple(_cited(arguments.get("citations", "")))
        text = "The answer was taken; the episode is over."
        return ToolResult(text, answer=arguments["text"], citations=cited), place


def web_tools(browser: Browser) -> tuple[WebTool, ...]:
    """Return the tools, over one browser."""
    kinds = (_Search, _Open, _Find, _Expand, _Back, _Answer)
    return tuple(kind(browser) for kind in kinds)


def _ranked(place: Place, rank: int) -> str | None:
    index = rank - place.first_rank
    return place.results[index] if 0 <= index < len(place.results) else None


def _part_of(parts: Sequence[Shown], paragraph: int) -> int:
    return next((n for n, part in enumerate(parts, start=1) if paragraph < part.end), 1)


def _absolute(url: str, base: str | None) -> str | None:
    try:
        return urljoin(base, url) if base and not _SCHEME.match(url) else url
    except ValueError:
        return None


def _cited(text: str) -> list[str]:
    """Return the addresses of a list that is set apart by spaces or commas, each once."""
    words = [word.strip(",;<>") for word in text.split()]
    found: list[str] = []
    for word in words:  # a comma may stand in an address
        found += re.split(r",(?=[a-zA-Z][\w+.-]*://)", word)
    clean = dict.fromkeys(word.partition("#")[0] for word in found if word)
    return list(clean)[:_MAX_CITATIONS]
