"""Control: how much is played, for whom, and when it is enough."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from ...corpora.errors import ConfigurationError
from ...envs.rules import check_at_least
from .budget import Budget, Cost, total_cost
from .filter import Correct, has_variance
from .generate import Workers, make_policy, play_lazily, rollout_plans
from .pipeline import Stage, groups_of
from .pool import make_environment
from .running import EpisodePlan
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = [
    "Allocation",
    "ByDifficulty",
    "Limit",
    "Take",
    "UntilRight",
    "UntilVariance",
    "generate_groups",
]


@dataclass(frozen=True)
class Limit(Stage):
    """Gives whole groups while what they cost together is within a budget, then stops.

    Attributes:
        budget: What they may cost together.
    """

    budget: Budget

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give groups until the next one would be too much."""
        total = Cost()
        for group in groups_of(trajectories):
            total = total.plus(total_cost(group))
            if not self.budget.allows(total):
                return
            yield from group


@dataclass(frozen=True)
class Take(Stage):
    """Gives the first groups, then stops: nothing more is played for them.

    After ``GroupVariance`` it fills a batch as DAPO does (arXiv:2503.14476): episodes are played
    until enough groups have something to teach.

    Attributes:
        groups: How many.
    """

    groups: int

    def __post_init__(self) -> None:
        """Check the number."""
        check_at_least("groups", self.groups, 1)

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give the groups."""
        for number, group in enumerate(groups_of(trajectories), start=1):
            yield from group
            if number == self.groups:
                return


class Allocation(ABC):
    """Decides how many members each group gets, round by round.

    Attributes:
        first: How many each begins with.
    """

    first: int

    @abstractmethod
    def more(self, groups: Sequence[Sequence[Trajectory]]) -> list[int]:
        """Return how many more each group gets; all zeros end the rollout."""


@dataclass(frozen=True)
class UntilVariance(Allocation):
    """Plays on for a group until its members are paid differently.

    Sampling for a question stops once it gives a signal, as in Reinforce-Ada
    (arXiv:2510.04996), whose balanced variant asks for equal shares of right and wrong instead.

    Attributes:
        first: How many each begins with.
        step: How many are added at a time.
        most: How many a group may have.
    """

    first: int = 2
    step: int = 2
    most: int = 8

    def more(self, groups: Sequence[Sequence[Trajectory]]) -> list[int]:
        """Return how many more each group gets."""
        return _until(has_variance, groups, step=self.step, most=self.most)


@dataclass(frozen=True)
class UntilRight(Allocation):
    """Plays on for a group until enough of its members are right: rejection sampling.

    Attributes:
        right: How many right ones are enough.
        first: How many each begins with.
        step: How many are added at a time.
        most: How many a group may have.
    """

    right: int = 1
    first: int = 2
    step: int = 2
    most: int = 8

    def more(self, groups: Sequence[Sequence[Trajectory]]) -> list[int]:
        """Return how many more each group gets."""

        def is_enough(group: Sequence[Trajectory]) -> bool:
            return sum(map(Correct().keeps, group)) >= self.right

        return _until(is_enough, groups, step=self.step, most=self.most)


@dataclass(frozen=True)
class ByDifficulty(Allocation):
    """Shares further members out by difficulty: most where about half are right, none if all are.

    With k of n members right, p = (k + 1) / (n + 2), and the members are shared about in
    proportion to the standard deviation of being right, sqrt(p (1 - p)): Neyman's allocation
    (1934), which makes the sum of the variances of the groups' means least. That solved
    questions give theirs to others is the point of Knapsack RL (arXiv:2509.25849).

    Attributes:
        extra: How many members are shared out.
        first: How many each group begins with.
        most: How many a group may have.
    """

    extra: int
    first: int = 4
    most: int = 16

    def more(self, groups: Sequence[Sequence[Trajectory]]) -> list[int]:
        """Return how many more each group gets, once."""
        if any(len(group) != self.first for group in groups):
            return [0] * len(groups)
        weights = [_deviation(sum(map(Correct().keeps, group)), len(group)) for group in groups]
        shares = [0] * len(groups)
        room = self.most - self.first
        for _ in range(self.extra):
            # the next member goes where it lowers the variance of the group's mean most
            gains = [
                weight / math.sqrt((self.first + share) * (self.first + share + 1))
                if share < room
                else 0.0
                for weight, share in zip(weights, shares, strict=True)
            ]
            if not any(gains):
                break
            shares[gains.index(max(gains))] += 1
        return shares


def generate_groups(
    policy: "Policy | Callable[[], Policy]",
    environment: str | gym.Env[Any, Any],
    *,
    groups: int,
    allocation: Allocation,
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    workers: Workers | None = None,
) -> list[Trajectory]:
    """Play groups whose sizes depend on how they go; return them one after the other.

    The groups begin as those of ``generate`` with the same seed do. A round of all groups is
    played before it is decided who goes on, so that results depend on the arguments alone.

    Args:
        policy: Who plays, or a function without arguments that makes it.
        environment: An environment's id, or one that was made.
        groups: How many groups.
        allocation: Decides their sizes.
        seed: Decides the tasks and the policy's draws.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.
        budget: What each episode may use until it is put aside.
        workers: Who plays if not this process.

    Raises:
        ConfigurationError: An argument is out of range, or there is no such search environment.
    """
    check_at_least("first", allocation.first, 1)
    if workers is None:  # then it is made once, not once a round
        environment, arguments = make_environment(environment, arguments), None
        policy = make_policy(policy)
    first = rollout_plans(groups, seed=seed, options=options, budget=budget)
    played: list[list[Trajectory]] = [[] for _ in first]
    wanted = [allocation.first] * groups
    while any(wanted):
        if min(wanted) < 0 or len(wanted) != groups:
            raise ConfigurationError(f"an allocation gave {wanted} for {groups} groups")
        plans = [
            _member(plan, len(group) + number, seed=seed)
            for plan, group, more in zip(first, played, wanted, strict=True)
            for number in range(more)
        ]
        for trajectory in play_lazily(
            policy, environment, plans, arguments=arguments, workers=workers
        ):
            played[int(trajectory.group)].append(trajectory)
        wanted = allocation.more(played)
    return [trajectory for group in played for trajectory in group]


def _member(plan: EpisodePlan, number: int, *, seed: int) -> EpisodePlan:
    return EpisodePlan(
        order=number,
        id=f"{plan.group}-{number}",
        group=plan.group,
        seed=plan.seed,
        entropy=(seed, 3, plan.order, number),
        options=plan.options,
        budget=plan.budget,
    )


def _until(
    is_enough: Callable[[Sequence[Trajectory]], bool],
    groups: Sequence[Sequence[Trajectory]],
    *,
    step: int,
    most: int,
) -> list[int]:
    return [0 if is_enough(group) else max(0, min(step, most - len(group))) for group in groups]


def _deviation(right: int, members: int) -> float:
    if right == members:
        return 0.0
    share = (right + 1) / (members + 2)
    return math.sqrt(share * (1 - share))
