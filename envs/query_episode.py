"""The state of one episode of query refinement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..corpora.retrieval import Hit
from ..corpora.tasks import Task
from .episode import Message
from .query_grammar import SOURCES, Query, Term, query_text

__all__ = ["QueryEpisode", "QuerySnapshot", "Request"]


class Request(NamedTuple):
    """What a request showed, put into words only when a transcript is asked for.

    Attributes:
        question: What is asked.
        query: The clauses of the request, as they are read.
        results: Id and title of each result, best first.
        terms: Those on offer afterwards.
    """

    question: str
    query: str
    results: tuple[tuple[str, str], ...]
    terms: tuple[Term, ...]

    def describe(self) -> str:
        """Return all of it as text."""
        lines = [f"Question: {self.question}", f"Query: {self.query or '(the question)'}"]
        lines += [
            f"{rank}. [{document_id}] {title}"
            for rank, (document_id, title) in enumerate(self.results, start=1)
        ] or ["No results."]
        for source in SOURCES:
            words = ", ".join(term.word for term in self.terms if term.source == source)
            lines.append(f"Terms of {source}: {words or '(none)'}")
        return "\n".join(lines)


@dataclass(slots=True)
class QueryEpisode:
    """What changes from production to production.

    Attributes:
        task: What is asked.
        query: The query as it stands.
        hits: The results of the latest request that had any.
        seen: Ids of the documents shown so far, in order.
        menu: Which term is on offer at which place.
        words: The first word in which each of them was read, and of those offered before.
        shown: The features that change only with a request.
        ndcg: That of the results.
        first_ndcg: That of the question's results.
        turn: How many productions were chosen.
        requests: How many requests were made, that of the question included.
        refused: How many of the productions chosen were not legal.
        is_over: Whether the episode has ended.
        messages: What was said so far.
    """

    task: Task
    query: Query = field(default_factory=Query)
    hits: tuple[Hit, ...] = ()
    seen: tuple[str, ...] = ()
    menu: Mapping[int, Term] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    shown: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    ndcg: float = 0.0
    first_ndcg: float = 0.0
    turn: int = 0
    requests: int = 0
    refused: int = 0
    is_over: bool = False
    messages: tuple[Message | Request, ...] = ()

    def copy(self) -> Self:
        """Return an episode that goes its own way from here: its fields are never changed."""
        return replace(self)

    @property
    def documents(self) -> tuple[str, ...]:
        """Ids of the results."""
        return tuple(hit.document_id for hit in self.hits)

    @property
    def query_text(self) -> str:
        """The clauses as they are read."""
        return query_text(self.query, self.words)

    @property
    def said(self) -> str:
        """The latest message, in words."""
        return _in_words(self.messages[-1]).text

    def transcript(self) -> tuple[Message, ...]:
        """Return every message so far, in words."""
        return tuple(map(_in_words, self.messages))


def _in_words(message: Message | Request) -> Message:
    return Message("environment", message.describe()) if isinstance(message, Request) else message


@dataclass(frozen=True, slots=True)
class QuerySnapshot:
    """A point in an episode to come back to: small, picklable, independent of the corpus."""

    env_hash: str
    episode: QueryEpisode = field(repr=False)  # it holds the gold answers
    generator_state: Mapping[str, Any] = field(repr=False)
