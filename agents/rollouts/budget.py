"""What episodes cost, and how much they may."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...envs.rules import check_at_least
from .trajectory import Trajectory, Turn

__all__ = ["Budget", "Cost", "cost_of", "total_cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What was really played: turns taken over from another trajectory cost nothing.

    Attributes:
        turns: Calls of the environment.
        calls: Turns in which a tool ran, wrong calls not counted.
        tokens: Tokens that the policy wrote.
    """

    turns: int = 0
    calls: int = 0
    tokens: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum."""
        return Cost(self.turns + other.turns, self.calls + other.calls, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be used; None is no limit.

    Given to an episode, it is checked after each turn: once something is used up, the episode is
    put aside, and ``resume`` plays it on with a new budget. The turn that uses it up is kept, so
    a budget of tokens is overrun by one reply at most.

    Attributes:
        turns: Calls of the environment.
        calls: Turns in which a tool ran.
        tokens: Tokens that the policy wrote.

    Raises:
        ConfigurationError: A number is below 1.
    """

    turns: int | None = None
    calls: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Check every number."""
        for name, value in (("turns", self.turns), ("calls", self.calls), ("tokens", self.tokens)):
            if value is not None:
                check_at_least(name, value, 1)

    def is_spent(self, cost: Cost) -> bool:
        """Tell whether nothing may follow such a cost."""
        return any(used >= limit for used, limit in self._pairs(cost))

    def allows(self, cost: Cost) -> bool:
        """Tell whether such a cost is within the budget."""
        return all(used <= limit for used, limit in self._pairs(cost))

    def _pairs(self, cost: Cost) -> Iterator[tuple[int, int]]:
        limits = (self.turns, self.calls, self.tokens)
        for used, limit in zip((cost.turns, cost.calls, cost.tokens), limits, strict=True):
            if limit is not None:
                yield used, limit


def cost_of(turn: Turn, *, tokens: int = 0) -> Cost:
    """Return what a turn cost; ``tokens`` counts where the turn has no span of tokens."""
    written = turn.span[2] - turn.span[1] if turn.span is not None else tokens
    return Cost(turns=1, calls=int(turn.error is None), tokens=written)


def total_cost(trajectories: Iterable[Trajectory]) -> Cost:
    """Return what trajectories cost together, each shared turn counted once, in its parent.

    Tokens are those of the turns' spans; of a policy that has none, ``usage["completion_tokens"]``.
    """
    total = Cost()
    for trajectory in trajectories:
        for turn in trajectory.turns[trajectory.shared_turns :]:
            total = total.plus(cost_of(turn))
        if all(turn.span is None for turn in trajectory.turns):
            total = total.plus(Cost(tokens=int(trajectory.usage.get("completion_tokens", 0))))
    return total
