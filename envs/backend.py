"""Ask a retriever for several turns at once, and keep its failures apart from its results."""

import logging
from collections.abc import Sequence

from ..corpora.errors import BackendError
from ..corpora.retrieval import FieldedQuery, Hit, Retriever

__all__ = ["BrokenRetriever", "Rankings", "retrieve"]

_logger = logging.getLogger("seekgym")

Rankings = list[list[Hit]]


class BrokenRetriever:
    """Fails whatever it is asked, as an index that is gone would."""

    name = "broken"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Raise a BackendError."""
        raise BackendError("this backend is broken on purpose")

    def rank(self, queries: Sequence[FieldedQuery], k: int) -> list[list[Hit]]:
        """Raise a BackendError."""
        raise BackendError("this backend is broken on purpose")


def retrieve(
    retriever: Retriever, groups: Sequence[Sequence[str]], k: int
) -> list[Rankings | BackendError]:
    """Return the rankings of each group of queries, asked in one batch.

    A retriever may be anybody's code over anybody's network, so whatever it raises, and any
    answer of the wrong length, is a BackendError in the place of that group. If the batch
    fails, each group is asked alone: one bad query does not fail the others.
    """
    queries = [query for group in groups for query in group]
    if not queries:
        return [[] for _ in groups]
    try:
        rankings = retriever.search(queries, k)
        if len(rankings) != len(queries):
            raise BackendError(f"{len(queries)} queries gave {len(rankings)} rankings")
        rankings = [_checked(ranking, k) for ranking in rankings]
    except Exception as error:
        if len(groups) > 1:
            return [retrieve(retriever, [group], k)[0] for group in groups]
        _logger.warning("%s failed: %s", retriever.name, error)
        return [error if isinstance(error, BackendError) else BackendError(repr(error))]
    answers: list[Rankings | BackendError] = []
    start = 0
    for group in groups:
        answers.append(rankings[start : start + len(group)])
        start += len(group)
    return answers


def _checked(ranking: Sequence[Hit], k: int) -> list[Hit]:
    """Return the first k hits of a ranking; whatever else stands there is the backend's fault."""
    hits = list(ranking[:k])
    for hit in hits:
        if not isinstance(hit, Hit) or not isinstance(hit.document_id, str):
            raise BackendError(f"a ranking must hold Hit(document_id, score), got {hit!r:.80}")
    return hits
