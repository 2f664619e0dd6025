"""Citations: which of an answer's sources count, and the reward terms that pay for them.

After the rubrics of CaRR (arXiv:2601.06021): a source counts only if the agent opened it and it
states a fact that the answer rests on.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from ..corpora.errors import PageError
from ..corpora.site import Site
from ..corpora.tasks import Task
from .outcome import Outcome
from .rewards import RewardTerm

__all__ = [
    "CitationPrecision",
    "CitationRecall",
    "OpenedEvidence",
    "is_stated",
    "supported_citations",
]

_LEAST_FACT_CHARS = 12  # a shorter line may stand anywhere


@dataclass(frozen=True)
class CitationPrecision(RewardTerm):
    """The share of the answer's citations that were opened and state a fact used."""

    def value(self, outcome: Outcome) -> float:
        """Return the share when the answer is given; 0 without a citation."""
        if outcome.answer is None or not outcome.citations:
            return 0.0
        return len(outcome.supported) / len(outcome.citations)


@dataclass(frozen=True)
class CitationRecall(RewardTerm):
    """The share of the evidence that the answer cites and that was opened."""

    def value(self, outcome: Outcome) -> float:
        """Return the share when the answer is given."""
        evidence = set(outcome.task.evidence)
        if outcome.answer is None or not evidence:
            return 0.0
        return len(evidence.intersection(outcome.supported)) / len(evidence)


@dataclass(frozen=True)
class OpenedEvidence(RewardTerm):
    """The share of the evidence that was opened before the answer was given."""

    def value(self, outcome: Outcome) -> float:
        """Return the share when the answer is given."""
        evidence = set(outcome.task.evidence)
        if outcome.answer is None or not evidence:
            return 0.0
        return len(evidence.intersection(outcome.seen)) / len(evidence)


def supported_citations(
    citations: Sequence[str], task: Task, seen: Container[str], site: Site
) -> tuple[str, ...]:
    """Return the citations that were opened and state a fact of the task.

    The pages of the evidence do: that is what a task's certificate says. Any other page does if
    a fact of the proof stands in it word for word.
    """
    lines = {
        line
        for step in task.proof
        for line in step.fact.split("\n")
        if len(line) >= _LEAST_FACT_CHARS
    }
    return tuple(
        url
        for url in citations
        if url in seen and (url in task.evidence or _states(site, url, sorted(lines)))
    )


def is_stated(fact: str, text: str) -> bool:
    """Tell whether a text holds a fact word for word, whatever its spaces."""
    return bool(fact) and " ".join(fact.split()) in " ".join(text.split())


def _states(site: Site, url: str, lines: Sequence[str]) -> bool:
    if not lines:
        return False
    try:
        page = site.open(url)
    except PageError:
        return False
    return any(is_stated(line, paragraph) for paragraph in page.paragraphs for line in lines)
