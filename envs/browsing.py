"""Tools of environments in which searching and opening are two steps: snippets, then pages."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..corpora.documents import Corpus, Document
from ..corpora.errors import ConfigurationError
from ..corpora.retrieval import Hit
from ..corpora.text import cut_text
from .actions import Parameter, ToolSignature
from .tools import QueryTool, Tool, ToolResult, found_document, titles

__all__ = ["Access", "SnippetSearch"]

_SNIPPET_CHARS = 200
_HIT_CHARS = 700  # at most: rank, title, address and snippet
_WORD = re.compile(r"\w+")
_EXAMPLES = 64


class SnippetSearch(QueryTool):
    """Finds documents by a query and shows title, address and a snippet of each.

    A snippet is not the document: what is found still has to be opened, so a search shows no
    documents as far as evidence goes.

    Args:
        corpus: Where the documents are; each has a url.
        max_chars: The longest observation, in characters.
        k: How many hits are asked for.
    """

    def __init__(self, corpus: Corpus, *, max_chars: int, k: int) -> None:
        if max_chars < k * _HIT_CHARS:
            raise ConfigurationError(
                f"max_observation_chars={max_chars} is too little for k={k} hits; "
                f"it needs {k * _HIT_CHARS}"
            )
        self._corpus = corpus
        self.signature = ToolSignature(
            "search",
            f"Find the {k} pages that fit a query best; shows a snippet of each.",
            (Parameter("query", "What to look for, in a few words.", examples=titles(corpus)),),
        )

    def show(self, ids: Sequence[str], query: str) -> ToolResult:
        """Show each document under its rank and title."""
        words = {word.lower() for word in _WORD.findall(query)}
        shown = (f"{rank}. {self._entry(each, words)}" for rank, each in enumerate(ids, 1))
        return ToolResult("\n\n".join(shown))

    def _entry(self, document_id: str, words: set[str]) -> str:
        document = found_document(self._corpus, document_id)
        title = cut_text(" ".join(document.title.split()), 80)
        return f"{title}\n{document.url}\n{_snippet(document, words)}"


class Access(Tool):
    """Opens one page by its address, in parts if it is long.

    Args:
        corpus: Where the documents are.
        ids: The id of the document at each address.
        max_chars: The longest observation, in characters.
    """

    def __init__(self, corpus: Corpus, *, ids: Mapping[str, str], max_chars: int) -> None:
        self._corpus = corpus
        self._ids = ids
        self._page_chars = max_chars - 600  # what is left beside the heading
        examples = tuple(list(ids)[:_EXAMPLES])
        self.signature = ToolSignature(
            "access",
            "Open a page.",
            (
                Parameter("url", "An address from the search results.", examples=examples),
                Parameter("page", "Which part of a long page.", "integer", is_required=False),
            ),
        )

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Show the page."""
        document_id = self._ids.get(arguments["url"].strip())
        if document_id is None:
            return ToolResult(
                f"There is no page at {arguments['url'][:200]!r}. Use an address from the search "
                "results: access(url).",
                error="unknown_url",
            )
        document = self._corpus[document_id]
        parts = max(1, -(-len(document.text) // self._page_chars))
        part = arguments.get("page", 1)
        if not 1 <= part <= parts:
            return ToolResult(f"The page has parts 1 to {parts}, not {part}.", error="unknown_page")
        start = (part - 1) * self._page_chars
        label = f" (part {part} of {parts})" if parts > 1 else ""
        title = cut_text(" ".join(document.title.split()), 80)
        text = document.text[start : start + self._page_chars]
        return ToolResult(f"{title}{label}\n{document.url}\n{text}", (document_id,))


def _snippet(document: Document, words: set[str]) -> str:
    """Return the part of a text in which most words of the query stand, the earliest of several."""
    text = " ".join(document.text.split())
    places = [m.start() for m in _WORD.finditer(text) if m[0].lower() in words]
    best, start = 0, 0
    for number, place in enumerate(places):
        inside = sum(other < place + _SNIPPET_CHARS for other in places[number:])
        if inside > best:
            best, start = inside, place
    start = max(0, start - 20)
    before = "… " if start else ""
    cut = cut_text(text[start:], _SNIPPET_CHARS)
    return f"{before}{cut}{' …' if start + len(cut) < len(text) else ''}"
