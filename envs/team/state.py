"""The state of a team's episode: small, picklable, copied in one go."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

from ..episode import Episode
from .trace import Event, Kind

__all__ = ["Phase", "Seat", "Sent", "TeamSnapshot", "TeamState"]

Phase = Literal["lead", "search", "answer", "over"]


class Sent(NamedTuple):
    """A searcher's assignment that has ended.

    Attributes:
        agent: The searcher.
        round: The round.
        question: Its sub-question.
        text: Its report as others read it; empty if there is none.
        documents: What it was shown in this assignment.
        event: The event that ended it.
    """

    agent: str
    round: int
    question: str
    text: str
    documents: tuple[str, ...]
    event: int


@dataclass(slots=True)
class Seat:
    """One agent's side of the episode.

    Attributes:
        text: What it reads now.
        error: The code of what was wrong with its last turn.
        documents: What its last turn showed it.
        question: A searcher's sub-question; empty if it has no assignment.
        turns: Its turns in this assignment.
        shown: What a searcher was shown in this assignment, an ordered set.
        ever_shown: What it was shown in the whole episode.
        seen: The observations themselves.
        last: Its last event; None before it was spawned.
    """

    text: str = ""
    error: str | None = None
    documents: tuple[str, ...] = ()
    question: str = ""
    turns: int = 0
    shown: dict[str, None] = field(default_factory=dict)
    ever_shown: dict[str, None] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    last: int | None = None

    def copy(self) -> Self:
        """Return a seat that goes its own way."""
        return replace(
            self,
            shown=self.shown.copy(),
            ever_shown=self.ever_shown.copy(),
            seen=self.seen.copy(),
        )


@dataclass(slots=True)
class TeamState:
    """What changes from tick to tick."""

    episode: Episode  # of the whole team: what anybody was shown, searched and called
    seats: dict[str, Seat]
    muted: frozenset[str] = frozenset()
    phase: Phase = "lead"
    round: int = 0
    tick: int = 0
    lead_turns: int = 0
    calls_left: int | None = None
    sent: list[Sent] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    answer: str | None = None
    team_return: float = 0.0
    has_failed: bool = False

    def copy(self) -> Self:
        """Return a state that goes its own way."""
        return replace(
            self,
            episode=self.episode.copy(),
            seats={agent: seat.copy() for agent, seat in self.seats.items()},
            sent=self.sent.copy(),
            events=self.events.copy(),
        )

    def emit(self, kind: Kind, agent: str, *parents: int | None, **fields: Any) -> int:
        """Write an event, make it the agent's last, and return its number."""
        number = len(self.events)
        known = tuple(dict.fromkeys(parent for parent in parents if parent is not None))
        self.events.append(Event(number, kind, agent, self.round, self.tick, known, **fields))
        self.seats[agent].last = number
        return number


@dataclass(frozen=True, slots=True)
class TeamSnapshot:
    """A point in a team's episode to come back to."""

    env_hash: str
    state: TeamState = field(repr=False)  # it holds the gold answers
    generator_state: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, env_hash: str, state: TeamState, generator_state: Mapping[str, Any]) -> Self:
        """Return a snapshot that shares nothing with the running episode."""
        return cls(env_hash, state.copy(), deepcopy(dict(generator_state)))
