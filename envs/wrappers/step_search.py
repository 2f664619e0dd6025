"""A wrapper that pays what a search brings that was not there before."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from ...corpora.documents import Corpus
from ...corpora.retrieval import Analyzer, default_retriever
from .shaping import Progress, ShapingWrapper

__all__ = ["StepSearchGain"]


class StepSearchGain(ShapingWrapper, RecordConstructorArgs):
    """Adds the step reward of StepSearch (arXiv:2505.15107): information gain minus redundancy.

    ``information_gain`` is, over the evidence documents, the mean of how far this turn's best
    TF-IDF cosine to it exceeds the best of the turns before; ``redundancy`` is minus the share
    of this turn's documents that were shown before. A turn that shows none, or is no search, gets
    0. TF-IDF is ``tf * (1 + ln((1 + N) / (1 + n)))`` with the frequencies of the corpus.

    Args:
        env: A search environment.
        scale: What both are multiplied by: 0.6 as the paper writes it; 1.6 as the published code
            does, which adds the scaled reward to itself.
        tools: Which tools search. Where a search shows snippets and no documents, as in
            KnowledgeGraph, that is what opens them: ``("access",)``.
    """

    def __init__(
        self, env: gym.Env[Any, Any], *, scale: float = 0.6, tools: Sequence[str] = ("search",)
    ) -> None:
        RecordConstructorArgs.__init__(self, scale=scale, tools=tools)
        ShapingWrapper.__init__(self, env)
        self.scale, self._tools = scale, frozenset(tools)
        self._retriever = default_retriever(self.env.unwrapped.corpus)  # type: ignore[attr-defined]
        self._analyzer = Analyzer(self._retriever.language)

    def _begin(self, progress: Progress) -> tuple[float, ...]:
        return (0.0,) * len(progress.task.evidence)

    def _value(
        self, progress: Progress, info: Mapping[str, Any], *, is_over: bool
    ) -> tuple[dict[str, float], tuple[float, ...]]:
        best: tuple[float, ...] = self._kept
        act = progress.acts[-1]
        shown = act.documents
        if not shown or act.tool not in self._tools:
            return {"information_gain": 0.0, "redundancy": 0.0}, best
        vectors = [self._vector(progress.corpus, document) for document in shown]
        golds = [self._vector(progress.corpus, gold) for gold in progress.task.evidence]
        near = [max(_cosine(vector, gold) for vector in vectors) for gold in golds]
        gains = [max(0.0, now - before) for now, before in zip(near, best, strict=True)]
        gain = sum(gains) / len(gains) if gains else 0.0
        seen = progress._replace(acts=progress.acts[:-1]).seen
        again = sum(document in seen for document in shown) / len(shown)
        terms = {"information_gain": self.scale * gain, "redundancy": 0.0 - self.scale * again}
        return terms, tuple(map(max, near, best))

    def _vector(self, corpus: Corpus, document_id: str) -> dict[str, float]:
        document = corpus[document_id]
        counts = Counter(self._analyzer.content_terms(f"{document.title}\n{document.text}"))
        total = len(corpus)
        return {
            term: count * (1 + math.log((1 + total) / (1 + self._retriever.frequency(term))))
            for term, count in counts.items()
        }


def _cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    product = sum(weight * b[term] for term, weight in a.items() if term in b)
    lengths = [math.sqrt(sum(weight * weight for weight in v.values())) for v in (a, b)]
    return product / (lengths[0] * lengths[1]) if product else 0.0
