"""The tools of a search environment: search, read, answer.

A tool of your own subclasses ``Tool``: a signature, and ``run``. A tool that asks the retriever
names its queries in ``queries``, so that a vector of environments can ask them all in one batch.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ..corpora.documents import Corpus, Document
from ..corpora.errors import BackendError, ConfigurationError
from ..corpora.retrieval import Hit
from ..corpora.text import cut_text
from .actions import Parameter, ToolSignature
from .summaries import best_sentences

__all__ = [
    "Answer",
    "QueryTool",
    "Read",
    "Search",
    "Tool",
    "ToolResult",
    "found_document",
    "titles",
]

MAX_QUERY_CHARS = 2_000
_EXAMPLES = 64
_MAX_ENTRIES = 2_048
_TITLE_CHARS = 80
_HEADING_CHARS = 320  # at most: rank, id, title, and the note that a text is cut
_LIKE_A_HEADING = re.compile(r"^(?=\d+\. \[)", re.MULTILINE)  # in a text: no real result
_LEAST_SHARE_CHARS = 80


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back.

    Attributes:
        observation: What the agent reads.
        documents: Ids of the documents shown.
        error: The code of what was wrong with the call, or None.
        answer: The answer, if the call ends the episode with one.
        citations: Ids of the documents that the answer names as its sources.
        supported: Those of them that were shown and state what the answer rests on.
    """

    observation: str
    documents: tuple[str, ...] = ()
    error: str | None = None
    answer: str | None = None
    citations: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()


class Tool(ABC):
    """One thing an agent may do. Stateless: all state is in the episode."""

    signature: ToolSignature

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same tool: it is stateless, so copies of environments share it."""
        return self

    def queries(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Return what the retriever is to be asked before ``run``."""
        return ()

    @abstractmethod
    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Do it, given one ranking for each of ``queries``. The arguments fit the signature."""


class QueryTool(Tool):
    """A tool that asks the retriever one query and shows what it found."""

    def queries(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Return the query, cut to 2,000 characters; none if it is blank."""
        query = cut_text(arguments["query"], MAX_QUERY_CHARS)
        return (query,) if query.strip() else ()

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Show the hits, best first; each document once."""
        if not rankings:
            return ToolResult(
                f"The query is empty. Write what to look for: {self.signature.usage}.",
                error="empty_query",
            )
        notice = ""
        if len(arguments["query"]) > MAX_QUERY_CHARS:
            notice = f"(Only the first {MAX_QUERY_CHARS} characters of the query were used.)\n"
        if not rankings[0]:
            return ToolResult(notice + "No results for this query. Try other words.")
        ids = tuple(dict.fromkeys(hit.document_id for hit in rankings[0]))
        result = self.show(ids, arguments["query"])
        return ToolResult(notice + result.observation, result.documents)

    @abstractmethod
    def show(self, ids: Sequence[str], query: str) -> ToolResult:
        """Show some documents, best first."""


def found_document(corpus: Corpus, document_id: str) -> Document:
    """Return a document that a retriever found; a BackendError if there is no such document."""
    try:
        return corpus[document_id]
    except KeyError:
        raise BackendError(f"the retriever gave {document_id!r}, no document") from None


class Search(QueryTool):
    """Finds documents by a query and shows the best.

    Args:
        corpus: Where the documents are.
        max_chars: The longest observation, in characters; each hit gets an equal share.
        k: How many hits are asked for.
        sentences: How many sentences of a hit to show, those that fit the query best; 0 for its
            text from the beginning.
    """

    def __init__(self, corpus: Corpus, *, max_chars: int, k: int, sentences: int = 0) -> None:
        self._corpus = corpus
        self._sentences = sentences
        self._share = max_chars // k - _HEADING_CHARS
        if self._share < _LEAST_SHARE_CHARS:
            raise ConfigurationError(
                f"max_observation_chars={max_chars} is too little for k={k} hits; "
                f"it needs {k * (_HEADING_CHARS + _LEAST_SHARE_CHARS)}"
            )
        self._entries: dict[str, str] = {}  # rendered hits, the latest few thousand
        query = Parameter("query", "What to look for, in a few words.", examples=titles(corpus))
        kept = f" Shows the {sentences} best sentences of each." if sentences else ""
        self.signature = ToolSignature(
            "search", f"Find the {k} documents that fit a query best.{kept}", (query,)
        )

    def show(self, ids: Sequence[str], query: str) -> ToolResult:
        """Show each document under its rank, id and title."""
        entries = (
            self._excerpt(document_id, query) if self._sentences else self._entry(document_id)
            for document_id in ids
        )
        shown = (f"{rank}. {entry}" for rank, entry in enumerate(entries, 1))
        return ToolResult("\n\n".join(shown), tuple(ids))

    def _excerpt(self, document_id: str, query: str) -> str:
        document = found_document(self._corpus, document_id)
        text = best_sentences(document.text, query, self._sentences)
        return f"{_heading(document)}\n{cut_text(_LIKE_A_HEADING.sub(' ', text), self._share)}"

    def _entry(self, document_id: str) -> str:
        entry = self._entries.get(document_id)
        if entry is None:
            if len(self._entries) >= _MAX_ENTRIES:
                self._entries.clear()
            entry = self._entries[document_id] = self._render(document_id)
        return entry

    def _render(self, document_id: str) -> str:
        document = found_document(self._corpus, document_id)
        text = _LIKE_A_HEADING.sub(" ", document.text)
        if len(text) > self._share:
            text = cut_text(text, self._share) + " … [cut: read it for the rest]"
        return f"{_heading(document)}\n{text}"


class Read(Tool):
    """Shows the whole text of one document, in pages if it is long.

    Args:
        corpus: Where the documents are.
        max_chars: The longest observation, in characters.
    """

    def __init__(self, corpus: Corpus, *, max_chars: int) -> None:
        self._corpus = corpus
        self._page_chars = max_chars - _HEADING_CHARS - _LEAST_SHARE_CHARS
        self.signature = ToolSignature(
            "read",
            "Read one document in full.",
            (
                Parameter(
                    "document_id",
                    "The id in square brackets in the search results.",
                    examples=tuple(corpus.ids[:_EXAMPLES]),
                ),
                Parameter("page", "Which page of a long document.", "integer", is_required=False),
            ),
        )

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Show the page of the document."""
        document_id = arguments["document_id"].strip().strip("[]")
        if document_id not in self._corpus:
            return ToolResult(
                f"There is no document {document_id[:40]!r}. Use an id that stands in square "
                "brackets in the search results: read(document_id).",
                error="unknown_document",
            )
        document = self._corpus[document_id]
        pages = max(1, -(-len(document.text) // self._page_chars))
        page = arguments.get("page", 1)
        if not 1 <= page <= pages:
            return ToolResult(
                f"Document {document_id[:40]!r} has pages 1 to {pages}, not {page}.",
                error="unknown_page",
            )
        start = (page - 1) * self._page_chars
        text = document.text[start : start + self._page_chars]
        label = f" (page {page} of {pages})" if pages > 1 else ""
        return ToolResult(f"{_heading(document)}{label}\n{text}", (document_id,))


class Answer(Tool):
    """Ends the episode with an answer."""

    signature = ToolSignature(
        "answer",
        "Give the final answer and end the episode.",
        (Parameter("text", "The answer, as short as possible."),),
    )

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Take the answer."""
        return ToolResult("The answer was taken; the episode is over.", answer=arguments["text"])


def _heading(document: Document) -> str:
    """Return the line above a text: the whole id, which can be read, and the title."""
    return f"[{document.id}] {cut_text(' '.join(document.title.split()), _TITLE_CHARS)}"


def titles(corpus: Corpus) -> tuple[str, ...]:
    """Return some titles, as queries that a sample may ask for."""
    titles = (document.title.strip() for document in corpus[:_EXAMPLES])
    return tuple(title[:80] for title in titles if title)
