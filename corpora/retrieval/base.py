"""What every retriever is: a batch of queries in, a ranking for each out."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

__all__ = ["Hit", "Retriever"]


class Hit(NamedTuple):
    """One place in a ranking."""

    document_id: str
    score: float


@runtime_checkable
class Retriever(Protocol):
    """Ranks the documents of a corpus for queries.

    A query is data, never syntax: no character of it may raise or mean anything special.
    Ties are broken by the documents' order in the corpus, so a ranking is reproducible.
    """

    @property
    def name(self) -> str:
        """What this retriever is, with its settings; two that may differ have two names."""
        ...

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return for each query at most k hits, best first; none for a query without words.

        Raises:
            BackendError: The index or server cannot answer.
        """
        ...
