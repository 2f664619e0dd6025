"""Reward terms: an environment's reward is the sum of named, weighted terms.

A term of your own is a small class::

    @dataclass(frozen=True)
    class Brevity(RewardTerm):
        \"\"\"Cost of a long answer.\"\"\"

        def value(self, outcome: Outcome) -> float:
            return -float(len(outcome.answer or "") > 100)

        low, high, best = -1.0, 0.0, 0.0  # in a turn, in a turn, over an episode
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from ..corpora.errors import ConfigurationError, raise_unknown
from .outcome import Outcome

__all__ = [
    "F1",
    "PRESETS",
    "CoverExactMatch",
    "EvidenceRecall",
    "ExactMatch",
    "Format",
    "FormatF1",
    "RepeatedQuery",
    "RewardTerm",
    "SearchCost",
    "SearchR1Ladder",
    "TurnCost",
    "best_return",
    "resolve_rewards",
    "reward_range",
]

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class RewardTerm(ABC):
    """One named part of the reward.

    Attributes:
        weight: What ``value`` is multiplied by.
        low: The lowest value of one turn.
        high: The highest value of one turn.
        best: The highest sum of values over an episode; a bound that costs may keep from reach.
    """

    weight: float = 1.0

    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    best: ClassVar[float] = 1.0

    @property
    def identity(self) -> str:
        """The class with all its settings: what decides the term's value."""
        settings = ", ".join(f"{key}={value!r}" for key, value in sorted(vars(self).items()))
        return f"{type(self).__name__}({settings})"

    @property
    def name(self) -> str:
        """The key in ``info["reward_terms"]``: the class name in snake case."""
        return _WORD_START.sub("_", type(self).__name__).lower()

    @abstractmethod
    def value(self, outcome: Outcome) -> float:
        """Return the term's value for one turn, before the weight."""


@dataclass(frozen=True)
class ExactMatch(RewardTerm):
    """Exact match of the answer."""

    def value(self, outcome: Outcome) -> float:
        """Return 1 for a right answer."""
        return outcome.scores.exact_match if outcome.scores else 0.0


@dataclass(frozen=True)
class F1(RewardTerm):
    """Token F1 of the answer; set F1 where the answer is a set."""

    def value(self, outcome: Outcome) -> float:
        """Return the F1 of the answer."""
        return outcome.scores.f1 if outcome.scores else 0.0


@dataclass(frozen=True)
class CoverExactMatch(RewardTerm):
    """Whether the answer contains a gold answer."""

    def value(self, outcome: Outcome) -> float:
        """Return 1 for an answer that contains a gold answer."""
        return outcome.scores.cover_exact_match if outcome.scores else 0.0


@dataclass(frozen=True)
class Format(RewardTerm):
    """Whether an answered episode had no invalid or ill-formed call."""

    def value(self, outcome: Outcome) -> float:
        """Return 1 when the answer comes after nothing but well-formed calls."""
        return float(outcome.answer is not None and outcome.is_well_formed)


@dataclass(frozen=True)
class FormatF1(RewardTerm):
    """Format times F1, the reward of GrepSeek (arXiv:2605.29307)."""

    def value(self, outcome: Outcome) -> float:
        """Return the F1 of an answer that comes after nothing but well-formed calls."""
        return outcome.scores.f1 if outcome.scores and outcome.is_well_formed else 0.0


@dataclass(frozen=True)
class SearchCost(RewardTerm):
    """A cost for each valid search."""

    low, high, best = -1.0, 0.0, 0.0

    def value(self, outcome: Outcome) -> float:
        """Return -1 for a search."""
        return -float(outcome.tool == "search" and outcome.error is None)


@dataclass(frozen=True)
class TurnCost(RewardTerm):
    """A cost for each turn."""

    low, high, best = -1.0, -1.0, -1.0

    def value(self, outcome: Outcome) -> float:
        """Return -1."""
        return -1.0


@dataclass(frozen=True)
class RepeatedQuery(RewardTerm):
    """A cost for searching again for the same words."""

    low, high, best = -1.0, 0.0, 0.0

    def value(self, outcome: Outcome) -> float:
        """Return -1 for a query whose words were searched before in the episode."""
        return -float(outcome.is_repeated_query)


@dataclass(frozen=True)
class EvidenceRecall(RewardTerm):
    """The gain in evidence recall: over an episode these add up to the final recall."""

    def value(self, outcome: Outcome) -> float:
        """Return the share of the evidence that was shown in this turn for the first time."""
        evidence = set(outcome.task.evidence)
        return len(evidence & set(outcome.new_documents)) / len(evidence) if evidence else 0.0


@dataclass(frozen=True)
class SearchR1Ladder(RewardTerm):
    """The reward of Search-R1 v0.3 (arXiv:2505.15117): form and exact match on one ladder.

    Right and well formed 1, right but ill-formed 0.8, wrong but well formed 0.2, wrong and
    ill-formed 0.1, no answer 0.
    """

    def value(self, outcome: Outcome) -> float:
        """Return the rung that the answer stands on."""
        if outcome.scores is None:
            return 0.0
        if outcome.scores.exact_match:
            return 1.0 if outcome.is_well_formed else 0.8
        return 0.2 if outcome.is_well_formed else 0.1


PRESETS: dict[str, tuple[RewardTerm, ...]] = {
    "exact-match": (ExactMatch(),),
    "f1": (F1(),),
    "format-f1": (FormatF1(),),
    "search-r1-v0.3": (SearchR1Ladder(),),
}


def resolve_rewards(rewards: str | Sequence[RewardTerm]) -> tuple[RewardTerm, ...]:
    """Return the terms of a preset, or the given terms, checked.

    Raises:
        ConfigurationError: The preset is unknown, something is no term, or two terms share a
            name.
    """
    if isinstance(rewards, str):
        if rewards not in PRESETS:
            raise_unknown("reward preset", rewards, PRESETS)
        return PRESETS[rewards]
    terms = tuple(rewards) if isinstance(rewards, Iterable) else (rewards,)
    for term in terms:
        if not isinstance(term, RewardTerm):
            raise ConfigurationError(
                f"rewards must hold RewardTerm objects, got {term!r:.60}; "
                "for example rewards=[F1(), SearchCost(0.05)]"
            )
        if not isinstance(term.weight, Real) or not math.isfinite(term.weight):
            raise ConfigurationError(f"{term.name}: weight must be a number, got {term.weight!r}")
    names = [term.name for term in terms]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"two reward terms share a name: {', '.join(names)}")
    return terms


def reward_range(terms: Sequence[RewardTerm]) -> tuple[float, float]:
    """Return the lowest and the highest reward of one turn."""
    bounds = [sorted((term.weight * term.low, term.weight * term.high)) for term in terms]
    return sum(low for low, _ in bounds), sum(high for _, high in bounds)


def best_return(terms: Sequence[RewardTerm]) -> float:
    """Return what no episode's sum of rewards exceeds (for weights that are not negative)."""
    return sum(term.weight * term.best for term in terms)
