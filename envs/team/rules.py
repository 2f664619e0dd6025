"""The rules of a team: how many, how long, and who is paid for what."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self, TypedDict

from ...corpora.errors import ConfigurationError, raise_unknown
from ..rewards import RewardTerm, resolve_rewards
from ..rules import check_at_least
from ..scoring import Convention, check_convention
from ..tools import MAX_QUERY_CHARS
from .rewards import LocalTerm, resolve_local
from .roles import WORD_CHARS

__all__ = ["TeamOptions", "TeamRules"]

_MOST_SEARCHERS = 64


class TeamOptions(TypedDict, total=False):
    """The keyword arguments that every team environment takes; ``TeamRules`` explains them."""

    searchers: int
    rounds: int
    search_turns: int
    reports: int
    answerer: bool
    team_calls: int | None
    max_cycles: int | None
    rewards: str | Sequence[RewardTerm]
    local: str | Sequence[str | LocalTerm]
    mix: float
    convention: Convention


@dataclass(frozen=True, slots=True)
class TeamRules:
    """How many agents there are, how long they work, and who is paid for what.

    Attributes:
        searchers: How many searchers, 1 to 64.
        rounds: How often the leader may assign; a wrong call of the leader costs a round.
        search_turns: The turns of a searcher in one assignment, at least 2. The last takes
            nothing but its report.
        reports: The longest report, in words.
        answerer: Whether an answerer answers, who sees the question and the reports only; if
            not, the leader does.
        team_calls: The most searches and reads of the whole team in an episode, or None.
        max_cycles: The most ticks of an episode; as many as rounds and turns allow if None.
        rewards: The team's outcome, paid to all: a preset or reward terms, as in ``Rules``.
        local: Local terms, by name or as objects; see ``LOCAL_TERMS``.
        mix: The share of the team's outcome in every reward, 0 to 1; the rest is local.
        convention: How answers are normalised.
        terms: The terms that ``rewards`` stands for.
        local_terms: The terms that ``local`` stands for.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    searchers: int = 3
    rounds: int = 3
    search_turns: int = 4
    reports: int = 200
    answerer: bool = True
    team_calls: int | None = None
    max_cycles: int | None = None
    rewards: str | Sequence[RewardTerm] = "exact-match"
    local: str | Sequence[str | LocalTerm] = ()
    mix: float = 1.0
    convention: Convention = "seekgym"
    terms: tuple[RewardTerm, ...] = field(init=False)
    local_terms: tuple[LocalTerm, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Check every value and resolve the terms."""
        check_at_least("searchers", self.searchers, 1)
        if self.searchers > _MOST_SEARCHERS:
            raise ConfigurationError(
                f"searchers must be at most {_MOST_SEARCHERS}, got {self.searchers}"
            )
        check_at_least("rounds", self.rounds, 1)
        check_at_least("search_turns", self.search_turns, 2)
        check_at_least("reports", self.reports, 1)
        if self.team_calls is not None:
            check_at_least("team_calls", self.team_calls, 1)
        if self.max_cycles is not None:
            check_at_least("max_cycles", self.max_cycles, 1)
        is_number = isinstance(self.mix, Real) and math.isfinite(self.mix)
        if not is_number or not 0 <= self.mix <= 1:
            raise ConfigurationError(f"mix must be a number from 0 to 1, got {self.mix!r}")
        check_convention(self.convention)
        object.__setattr__(self, "terms", resolve_rewards(self.rewards))
        object.__setattr__(self, "local_terms", resolve_local(self.local))

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the rules of some keyword arguments.

        Raises:
            ConfigurationError: A name is unknown, or a value is out of its range.
        """
        for name in options:
            if name not in TeamOptions.__annotations__:
                raise_unknown("argument", name, ["world", *TeamOptions.__annotations__])
        return cls(**options)

    @property
    def searcher_names(self) -> tuple[str, ...]:
        """The names of the searchers."""
        return tuple(f"searcher_{number}" for number in range(self.searchers))

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of all agents, in the order in which they act."""
        return ("leader_0", *self.searcher_names, *(("answerer_0",) if self.answerer else ()))

    @property
    def longest(self) -> int:
        """The most ticks that an episode can take."""
        full = self.rounds * (1 + self.search_turns) + 3
        return full if self.max_cycles is None else min(full, self.max_cycles)

    @property
    def most_report_chars(self) -> int:
        """The longest text of all reports of an episode, with their headings."""
        return self.rounds * self.searchers * (self.reports * WORD_CHARS + MAX_QUERY_CHARS + 100)

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides what an episode looks like."""
        return {
            "agents": list(self.agents),
            "budget": [self.rounds, self.search_turns, self.team_calls, self.longest],
            "reports": self.reports,
            "rewards": [term.identity for term in self.terms],
            "local": [term.identity for term in self.local_terms],
            "mix": float(self.mix),
            "convention": self.convention,
        }
