"""BM25 with the operators of a refined query: terms that title or contents must or must not hold.

The clauses are tantivy's query objects. No query is ever written as text and parsed, so that no
character of a question or of a term is syntax.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import tantivy

from ..documents import Corpus, Document
from ..errors import BackendError, ConfigurationError, raise_unknown
from .base import Hit
from .bm25 import BM25Retriever

__all__ = ["Clause", "Field", "FieldedQuery", "FieldedRetriever", "Sign", "fielded_retriever"]

Sign = Literal["add", "require", "forbid"]
Field = Literal["title", "contents", "any"]
_FIELDS: dict[Field, str] = {"any": "text", "title": "title", "contents": "contents"}
_OCCURS: dict[Sign, tantivy.Occur] = {
    "add": tantivy.Occur.Should,
    "require": tantivy.Occur.Must,
    "forbid": tantivy.Occur.MustNot,
}
_lock = threading.Lock()


class Clause(NamedTuple):
    """One refinement of a query.

    Attributes:
        sign: ``add`` counts the term, ``require`` keeps only documents with it and counts it,
            ``forbid`` drops documents with it.
        field: Where the term is looked for: ``title``, ``contents`` (what is not the title), or
            ``any``.
        term: A term of the index, as ``Analyzer`` gives it.
    """

    sign: Sign
    field: Field
    term: str


@dataclass(frozen=True, slots=True)
class FieldedQuery:
    """A query and what was added to it.

    Attributes:
        text: The words that it began with, any text.
        clauses: The refinements. An added term that the text holds too counts twice, as in
            Lucene.
    """

    text: str
    clauses: tuple[Clause, ...] = ()


class FieldedRetriever(BM25Retriever):
    """Ranks a corpus by BM25 for words and clauses.

    A query without clauses gives the ranking of ``BM25Retriever``. A document's score is the sum
    of BM25 over the words and the added and required terms, each in its own field.

    Args:
        corpus: What to rank; ``BM25Retriever`` says what else may be given.
    """

    _fields: ClassVar[tuple[str, ...]] = tuple(_FIELDS.values())
    _format: ClassVar[int | str] = "fields-1"

    @property
    def name(self) -> str:
        """What this retriever is, with the settings that decide its rankings."""
        return f"fielded-{super().name}"

    def rank(self, queries: Sequence[FieldedQuery], k: int) -> list[list[Hit]]:
        """Return for each query at most k hits, best first, ties by order in the corpus.

        Raises:
            ConfigurationError: k is below 1, or a clause has an unknown sign or field.
            BackendError: The index cannot be read.
        """
        if k < 1:
            raise ConfigurationError(f"k must be at least 1, got {k}")
        searcher = self._current_searcher()
        try:
            return [self._best(searcher, self._parsed(query), k) for query in queries]
        except (OSError, ValueError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise BackendError(f"the index of {self.corpus.name!r} failed: {error}") from error

    def frequency(self, term: str, field: Field = "any") -> int:
        """Return how many documents hold a term in a field."""
        return int(self._current_searcher().doc_freq(_FIELDS[field], term))

    def _parsed(self, query: FieldedQuery) -> tantivy.Query:
        clauses = [self._clause(term) for term in self._query_terms(query.text)]
        for sign, field, term in query.clauses:
            if sign not in _OCCURS:
                raise_unknown("sign", sign, _OCCURS)
            if field not in _FIELDS:
                raise_unknown("field", field, _FIELDS)
            found = tantivy.Query.term_query(self._schema, _FIELDS[field], term, "freq")
            clauses.append((_OCCURS[sign], found))
        return tantivy.Query.boolean_query(clauses)

    def _texts(self, document: Document) -> tuple[str, ...]:
        return (f"{document.title}\n{document.text}", document.title, document.text)


def fielded_retriever(corpus: Corpus) -> FieldedRetriever:
    """Return the fielded retriever of a corpus, made once for each corpus object.

    Environments over the same corpus so share one read-only index; it goes with the corpus.
    """
    with _lock:
        held: dict[str, Any] = corpus.__dict__
        if "_fielded_retriever" not in held:
            held["_fielded_retriever"] = FieldedRetriever(corpus)
        made: FieldedRetriever = held["_fielded_retriever"]
        return made
