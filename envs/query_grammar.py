"""A grammar of query refinements, and the terms that it is filled with.

A query grows by clauses, and a clause by productions, the left-most first (Adolphs et al. 2022,
"Boosting Search Engines with Interactive Agents"; HARE, arXiv:2209.15469)::

    Q -> stop | W Q | + F W Q | - F W Q        go no further, add, require, forbid
    F -> title | contents                      where a required or forbidden term stands
    W -> question 1..n | titles 1..n | contents 1..n

Each production has a fixed place in a ``Discrete`` space; which are legal now is a mask.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np

from ..corpora.documents import Corpus
from ..corpora.retrieval import Analyzer, Clause, FieldedRetriever

__all__ = ["SOURCES", "Grammar", "Query", "Reading", "Term", "TermReader", "query_text"]

Symbol = Literal["Q", "F", "W"]
Source = Literal["question", "titles", "contents"]
SOURCES: tuple[Source, ...] = ("question", "titles", "contents")
STOP = 0
_SIGNS: dict[int, Literal["add", "require", "forbid"]] = {1: "add", 2: "require", 3: "forbid"}
_FIELDS: dict[int, Literal["title", "contents"]] = {4: "title", 5: "contents"}
_FIRST_TERM = 6
_RULES = ("stop", "add", "require", "forbid", "title", "contents")
_WORD = re.compile(r"\w+")
_CACHED = 4_096  # documents whose terms are kept
_CACHED_TERMS = 65_536  # terms whose frequencies are kept


class Term(NamedTuple):
    """A term that may fill a clause.

    Attributes:
        text: The term as the index has it.
        word: The first word that it was read in, for people.
        source: Where it was read: in the question, in titles or in contents.
        weight: Its tf-idf, by which the terms of a source are chosen and ordered.
        idf: How rare it is in the corpus: ``ln(1 + (N - n + 0.5) / (n + 0.5))``.
    """

    text: str
    word: str
    source: Source
    weight: float
    idf: float


class Query(NamedTuple):
    """A query as it is being derived.

    Attributes:
        clauses: Those that are complete.
        sign: That of the clause at work, or None.
        field: Where its term is to stand, or None.
    """

    clauses: tuple[Clause, ...] = ()
    sign: Literal["add", "require", "forbid"] | None = None
    field: Literal["title", "contents", "any"] | None = None

    @property
    def symbol(self) -> Symbol:
        """The left-most symbol that is still to be replaced."""
        if self.sign is None:
            return "Q"
        return "F" if self.field is None else "W"

    @property
    def used(self) -> frozenset[str]:
        """The terms of its clauses."""
        return frozenset(clause.term for clause in self.clauses)


class Grammar:
    """The productions over at most so many terms of each source, in a fixed order.

    Args:
        terms: How many terms of each source there are at most.
    """

    def __init__(self, terms: int) -> None:
        self.terms = terms
        self.size = _FIRST_TERM + terms * len(SOURCES)

    def place(self, source: Source, number: int) -> int:
        """Return where the production of a source's term stands, numbers from 0."""
        return _FIRST_TERM + SOURCES.index(source) * self.terms + number

    def menu(self, offered: Sequence[Term]) -> dict[int, Term]:
        """Return which term stands at which place."""
        numbers: Counter[Source] = Counter()
        menu = {}
        for term in offered:
            menu[self.place(term.source, numbers[term.source])] = term
            numbers[term.source] += 1
        return menu

    def mask(self, query: Query, menu: Mapping[int, Term]) -> np.ndarray:
        """Return which productions are legal: bool, shape (size,); never none.

        A term that a clause holds is not offered again, and no clause is begun that no term is
        left for.
        """
        mask = np.zeros(self.size, dtype=np.bool_)
        free = [place for place, term in menu.items() if term.text not in query.used]
        if query.symbol == "Q":
            mask[STOP] = True
            mask[list(_SIGNS)] = bool(free)
        elif query.symbol == "F":
            mask[list(_FIELDS)] = True
        else:
            mask[free] = True
        return mask

    def expand(self, query: Query, place: int, menu: Mapping[int, Term]) -> Query:
        """Return the query after a legal production that is not ``stop``."""
        if place in _SIGNS:
            sign = _SIGNS[place]
            return query._replace(sign=sign, field="any" if sign == "add" else None)
        if place in _FIELDS:
            return query._replace(field=_FIELDS[place])
        clause = Clause(cast(Any, query.sign), cast(Any, query.field), menu[place].text)
        return Query((*query.clauses, clause))

    def clauses(self, query: Query, menu: Mapping[int, Term]) -> dict[tuple[int, ...], Clause]:
        """Return each clause that can be begun and completed now, by its productions."""
        if query.symbol != "Q":
            return {}
        free = {place: term for place, term in menu.items() if term.text not in query.used}
        found: dict[tuple[int, ...], Clause] = {}
        for sign_place, sign in _SIGNS.items():
            fields = {} if sign == "add" else _FIELDS
            for place, term in free.items():
                if sign == "add":
                    found[(sign_place, place)] = Clause(sign, "any", term.text)
                for field_place, field in fields.items():
                    found[(sign_place, field_place, place)] = Clause(sign, field, term.text)
        return found

    def labels(self, menu: Mapping[int, Term]) -> tuple[str, ...]:
        """Return what each production says, "" where no term stands; for people."""
        words = (
            f"{menu[place].source}: {menu[place].word}" if place in menu else ""
            for place in range(_FIRST_TERM, self.size)
        )
        return (*_RULES, *words)


class Reading(NamedTuple):
    """What a document holds.

    Attributes:
        title: The tf-idf of each term of the title: ``(1 + ln tf) * idf``.
        contents: That of each term of the text.
        words: The first word in which each term stands.
    """

    title: Mapping[str, float]
    contents: Mapping[str, float]
    words: Mapping[str, str]


class TermReader:
    """Reads the terms of questions and documents, stop words left out.

    Args:
        corpus: Where the documents are.
        retriever: Whose terms they are.
    """

    def __init__(self, corpus: Corpus, retriever: FieldedRetriever) -> None:
        self._corpus = corpus
        self._retriever = retriever
        self._analyzer = Analyzer(retriever.language)
        self._readings: dict[str, Reading] = {}
        self._frequencies: dict[str, int] = {}
        self._titles: dict[str, int] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same reader: what it keeps changes nothing that it gives."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what to pickle: not the readings, which are made again."""
        return {"corpus": self._corpus, "retriever": self._retriever}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the corpus and the retriever."""
        TermReader.__init__(self, state["corpus"], state["retriever"])

    def words(self, text: str) -> dict[str, tuple[int, str]]:
        """Return each term of a text with how often it stands there and its first word."""
        found: dict[str, tuple[int, str]] = {}
        for match in _WORD.finditer(self._analyzer.segment(text)):
            terms = self._analyzer.content_terms(match[0])
            for term in terms:
                count, word = found.get(term, (0, match[0] if len(terms) == 1 else term))
                found[term] = (count + 1, word)
        return found

    def read(self, document_id: str) -> Reading:
        """Return what a document holds."""
        if document_id not in self._readings:
            if len(self._readings) >= _CACHED:
                self._readings.clear()
            document = self._corpus[document_id]
            title, contents = self.words(document.title), self.words(document.text)
            words = {term: word for term, (_, word) in (contents | title).items()}
            self._readings[document_id] = Reading(self._weigh(title), self._weigh(contents), words)
        return self._readings[document_id]

    def idf(self, term: str) -> float:
        """Return how rare a term is in the corpus; 0 if no document holds it."""
        if term not in self._frequencies:
            if len(self._frequencies) >= _CACHED_TERMS:
                self._frequencies.clear()
            self._frequencies[term] = self._retriever.frequency(term)
        count = self._frequencies[term]
        return math.log(1 + (len(self._corpus) - count + 0.5) / (count + 0.5)) if count else 0.0

    def weights(self, document_id: str) -> dict[str, float]:
        """Return the tf-idf of each term of a document, title and contents added."""
        reading = self.read(document_id)
        weights = dict(reading.contents)
        for term, weight in reading.title.items():
            weights[term] = weights.get(term, 0.0) + weight
        return weights

    @property
    def highest_idf(self) -> float:
        """The idf of a term that one document holds."""
        return math.log(1 + (len(self._corpus) - 0.5) / 1.5)

    def titled(self, term: str) -> float:
        """Return 1 / the number of titles that hold a term; 0 if none does."""
        if term not in self._titles:
            if len(self._titles) >= _CACHED_TERMS:
                self._titles.clear()
            self._titles[term] = self._retriever.frequency(term, "title")
        count = self._titles[term]
        return 1 / count if count else 0.0

    def offer(self, question: str, seen: Iterable[str], limit: int) -> tuple[Term, ...]:
        """Return the terms to choose from: of each source those of the largest tf-idf.

        A term is offered once: from the question, else from titles, else from contents. One that
        no document holds is left out. Ties are broken by the alphabet.

        Args:
            question: What is asked.
            seen: Ids of the documents seen so far.
            limit: How many terms of each source at most.
        """
        asked = self.words(question)
        weights: dict[Source, dict[str, float]] = {
            "question": self._weigh(asked),
            "titles": {},
            "contents": {},
        }
        words = {term: word for term, (_, word) in asked.items()}
        for document_id in seen:
            reading = self.read(document_id)
            _add(weights["titles"], reading.title)
            _add(weights["contents"], reading.contents)
            words = {**reading.words, **words}
        offered: list[Term] = []
        taken: set[str] = set()
        for source in SOURCES:
            ranked = ((-weight, term) for term, weight in weights[source].items() if weight)
            free = (pair for pair in ranked if pair[1] not in taken)
            offered += [
                Term(term, words[term], source, -weight, self.idf(term))
                for weight, term in heapq.nsmallest(limit, free)
            ]
            taken.update(weights[source])
        return tuple(offered)

    def _weigh(self, words: Mapping[str, tuple[int, str]]) -> dict[str, float]:
        """Return the tf-idf of each term: ``(1 + ln tf) * idf``."""
        return {term: (1 + math.log(count)) * self.idf(term) for term, (count, _) in words.items()}


def query_text(query: Query, words: Mapping[str, str]) -> str:
    """Return a query's clauses as they are read, with ``_`` for what is still missing.

    Example:
        >>> clauses = (Clause("require", "title", "demon"), Clause("add", "any", "lilu"))
        >>> query_text(Query(clauses, "forbid"), {"lilu": "Lilu"})
        '+title:demon Lilu -_'
    """
    marks = {"add": "", "require": "+", "forbid": "-"}
    parts = []
    for sign, field, term in query.clauses:
        place = "" if field == "any" else f"{field}:"
        parts.append(f"{marks[sign]}{place}{words.get(term, term)}")
    if query.sign is not None:
        place = f"{query.field}:" if query.field not in (None, "any") else ""
        parts.append(f"{marks[query.sign]}{place}_")
    return " ".join(parts)


def _add(into: dict[str, float], weights: Mapping[str, float]) -> None:
    for term, weight in weights.items():
        into[term] = into.get(term, 0.0) + weight
