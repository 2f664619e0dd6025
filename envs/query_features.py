"""What a numeric learner sees of a query that is being refined: a fixed row of numbers in [0, 1].

None of them is made from gold: they come from the question, from what the requests showed and
from the frequencies of the corpus.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from ..corpora.retrieval import Clause, Hit
from .query_grammar import SOURCES, Grammar, Query, Reading, Term, TermReader

__all__ = [
    "KINDS",
    "QUERY_FEATURES",
    "RESULT_FEATURES",
    "TERM_FEATURES",
    "QueryFeatures",
]

KINDS = (
    ("add", "any"),
    ("require", "title"),
    ("require", "contents"),
    ("forbid", "title"),
    ("forbid", "contents"),
)
QUERY_FEATURES = (
    *(f"next_is_{symbol}" for symbol in "QFW"),  # the left-most symbol
    *(f"sign_is_{sign}" for sign in ("add", "require", "forbid")),  # of the clause at work
    *(f"field_is_{field}" for field in ("title", "contents")),
    *(f"{sign}_{field}" for sign, field in KINDS),  # complete clauses, as shares of the budget
    "requests",  # made, as a share of the budget
    "turns",  # taken, as a share of the budget
    "results",  # of the latest request, as a share of k
)
RESULT_FEATURES = (
    "score",  # divided by that of the first
    "overlap",  # the share of the question's idf that the document holds
    "title_overlap",  # the share of the title's idf that the question holds
    "is_new",  # not shown by an earlier request
)
TERM_FEATURES = (
    "is_free",  # offered, and not used in a clause yet
    "idf",  # divided by that of a term of one document
    "weight",  # its tf-idf divided by the largest of its source
    "contents_share",  # of the results, those whose text holds it
    "title_share",  # of the results, those whose title holds it
    "rank",  # 1 / the rank of the first result that holds it, 0 if none does
    "overlap",  # the largest overlap of a result that holds it
    "is_name",  # its word does not begin with a small letter
    "titled",  # 1 / the number of titles of the corpus that hold it, 0 if none does
)


class QueryFeatures:
    """Gives the features of a query, its results and the terms on offer.

    Args:
        reader: Reads questions and documents.
        grammar: Which place is whose.
        k: How many results a request brings at most.
    """

    def __init__(self, reader: TermReader, grammar: Grammar, k: int) -> None:
        self._reader = reader
        self._grammar = grammar
        self._k = k

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each number is."""
        results = (f"result_{rank}_{name}" for rank in range(self._k) for name in RESULT_FEATURES)
        terms = (
            f"{source}_{number}_{name}"
            for source in SOURCES
            for number in range(self._grammar.terms)
            for name in TERM_FEATURES
        )
        return (*QUERY_FEATURES, *results, *terms)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.names)

    def shown(
        self, question: str, hits: Sequence[Hit], new: Sequence[str], menu: Mapping[int, Term]
    ) -> np.ndarray:
        """Return what changes only with a request: results, then terms, all as if free.

        Returns:
            float32, shape (k * len(RESULT_FEATURES) + terms * len(TERM_FEATURES),).
        """
        asked = {term: self._reader.idf(term) for term in self._reader.words(question)}
        readings = [self._reader.read(hit.document_id) for hit in hits]
        overlaps = [_held(asked, {**reading.contents, **reading.title}) for reading in readings]
        results = np.zeros((self._k, len(RESULT_FEATURES)), dtype=np.float32)
        for rank, (hit, reading) in enumerate(zip(hits, readings, strict=True)):
            titled = {term: self._reader.idf(term) for term in reading.title}
            results[rank] = (
                hit.score / hits[0].score,
                overlaps[rank],
                _held(titled, asked),
                hit.document_id in new,
            )
        terms = np.zeros((self._grammar.terms * len(SOURCES), len(TERM_FEATURES)), np.float32)
        first = self._grammar.place(SOURCES[0], 0)
        for place, term in menu.items():
            heaviest = menu[self._grammar.place(term.source, 0)].weight
            terms[place - first] = self._of_term(term, heaviest, readings, overlaps)
        return np.concatenate((results.reshape(-1), terms.reshape(-1)))

    def observe(
        self,
        query: Query,
        shares: tuple[float, float, float],
        most_clauses: int,
        shown: np.ndarray,
        menu: Mapping[int, Term],
    ) -> np.ndarray:
        """Return all features.

        Args:
            query: As it stands.
            shares: Of the requests made, of the turns taken and of the results shown.
            most_clauses: How many clauses a query can have.
            shown: What ``shown`` gave after the latest request.
            menu: Which term stands at which place.

        Returns:
            float32, shape (size,), all in [0, 1].
        """
        numbers = [
            *(query.symbol == symbol for symbol in "QFW"),
            *(query.sign == sign for sign in ("add", "require", "forbid")),
            *(query.field == field for field in ("title", "contents")),
            *(_count(query.clauses, *kind) / most_clauses for kind in KINDS),
            *shares,
        ]
        seen = np.concatenate((np.array(numbers, dtype=np.float32), shown))
        first = len(numbers) + self._k * len(RESULT_FEATURES)
        used = query.used
        for place, term in menu.items():
            if term.text in used:
                place -= self._grammar.place(SOURCES[0], 0)
                seen[first + place * len(TERM_FEATURES)] = 0.0
        return seen

    def _of_term(
        self, term: Term, heaviest: float, readings: Sequence[Reading], overlaps: Sequence[float]
    ) -> tuple[float, ...]:
        in_title = [term.text in reading.title for reading in readings]
        in_text = [term.text in reading.contents for reading in readings]
        holders = [rank for rank in range(len(readings)) if in_title[rank] or in_text[rank]]
        count = max(len(readings), 1)
        return (
            1.0,
            term.idf / self._reader.highest_idf,
            term.weight / heaviest,
            sum(in_text) / count,
            sum(in_title) / count,
            1 / (1 + holders[0]) if holders else 0.0,
            max((overlaps[rank] for rank in holders), default=0.0),
            float(not term.word[:1].islower()),
            self._reader.titled(term.text),
        )


def _held(wanted: Mapping[str, float], held: Mapping[str, object]) -> float:
    """Return the share of the wanted weight that is held; 0 if nothing is wanted."""
    total = sum(wanted.values())
    found = sum(weight for term, weight in wanted.items() if term in held)
    return min(1.0, found / total) if total else 0.0


def _count(clauses: Sequence[Clause], sign: str, field: str) -> int:
    return sum(clause.sign == sign and clause.field == field for clause in clauses)
