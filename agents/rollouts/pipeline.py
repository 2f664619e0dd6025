"""Rollouts as pipelines: generate, filter, control, replay.

The four kinds of stages are those of Generate-Filter-Control-Replay, a survey of rollout
strategies (Surana et al. 2026). A stage is a function from trajectories to trajectories; stages
compose with ``|`` or as a list, and each takes from the one before it no more than it needs, so
that a stage that has enough ends the playing.

Example:
    >>> from seekgym.agents.rollouts import MinReward, Valid
    >>> print((Valid() | MinReward(1.0)).run([]).report.table)
    stage                   taken  given
    Valid                       0      0
    MinReward                   0      0
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from ...corpora.errors import ConfigurationError
from .budget import Budget
from .generate import Workers, play_lazily, resume, rollout_plans
from .pool import make_environment
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = [
    "Generate",
    "Pipeline",
    "Report",
    "Resume",
    "Run",
    "Source",
    "Stage",
    "StageCount",
    "group_key",
    "groups_of",
]

Function = Callable[[Iterable[Trajectory]], Iterable[Trajectory]]


class Stage(ABC):
    """A function from trajectories to trajectories, that others can follow with ``|``."""

    @property
    def name(self) -> str:
        """What a report calls it."""
        return type(self).__name__

    @abstractmethod
    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give trajectories, as soon as it can."""

    def __iter__(self) -> Iterator[Trajectory]:
        """Give what the stage gives if nothing comes in."""
        return self()

    def __or__(self, following: Function) -> "Pipeline":
        """Return both, one after the other."""
        return Pipeline([self, following])


class StageCount(NamedTuple):
    """How many trajectories a stage took and gave."""

    stage: str
    taken: int
    given: int


@dataclass(frozen=True, slots=True)
class Report:
    """How many trajectories each stage of a run took and gave, in order."""

    rows: tuple[StageCount, ...]

    @property
    def table(self) -> str:
        """The rows as a table in plain text."""
        rows = [f"{row.stage:22}{row.taken:7}{row.given:7}" for row in self.rows]
        return "\n".join([f"{'stage':22}{'taken':>7}{'given':>7}", *rows])


class Run(NamedTuple):
    """What a pipeline gave, and how much each of its stages dropped."""

    trajectories: list[Trajectory]
    report: Report


class Pipeline(Stage):
    """Stages, one after the other; a stage itself.

    Args:
        stages: Stages, or plain functions from trajectories to trajectories.
    """

    def __init__(self, stages: Iterable[Function]) -> None:
        self.stages: tuple[Function, ...] = tuple(
            part
            for stage in stages
            for part in (stage.stages if isinstance(stage, Pipeline) else (stage,))
        )

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give what comes out of the last stage."""
        return self._connect(trajectories, [0] * (len(self.stages) + 1))

    def run(self, trajectories: Iterable[Trajectory] = ()) -> Run:
        """Run to the end and say what each stage took and gave."""
        counts = [0] * (len(self.stages) + 1)
        given = list(self._connect(trajectories, counts))
        rows = zip(self.stages, counts, counts[1:], strict=False)
        return Run(given, Report(tuple(StageCount(_name(stage), *pair) for stage, *pair in rows)))

    def _connect(
        self, trajectories: Iterable[Trajectory], counts: list[int]
    ) -> Iterator[Trajectory]:
        flow = _counted(trajectories, counts, 0)
        for place, stage in enumerate(self.stages, start=1):
            flow = _counted(stage(flow), counts, place)
        return flow


def _counted(
    trajectories: Iterable[Trajectory], counts: list[int], place: int
) -> Iterator[Trajectory]:
    for trajectory in trajectories:
        counts[place] += 1
        yield trajectory


def _name(stage: Function) -> str:
    return stage.name if isinstance(stage, Stage) else getattr(stage, "__name__", repr(stage))


@dataclass(frozen=True)
class Generate(Stage):
    """Plays independent episodes, as ``generate`` does, and gives them in the same order.

    It plays on only while it is asked for more.

    Attributes:
        policy: Who plays, or a function without arguments that makes it.
        environment: An environment's id, or one that was made.
        episodes: How many at most.
        group_size: How many of them begin alike; divides ``episodes``.
        seed: Decides the tasks and the policy's draws.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.
        budget: What each episode may use until it is put aside.
        workers: Who plays if not this process.
    """

    policy: "Policy | Callable[[], Policy]"
    environment: str | gym.Env[Any, Any]
    episodes: int
    group_size: int = 1
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    workers: Workers | None = None

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give what comes in, then what is played."""
        yield from trajectories
        plans = rollout_plans(
            self.episodes,
            group_size=self.group_size,
            seed=self.seed,
            options=self.options,
            budget=self.budget,
        )
        yield from play_lazily(
            self.policy, self.environment, plans, arguments=self.arguments, workers=self.workers
        )


@dataclass(frozen=True)
class Resume(Stage):
    """Plays suspended trajectories on until each is over, and gives all in their order.

    It waits for its whole input, since what is suspended is played on together.

    Attributes:
        policy: Who plays.
        environment: The environment that they were played in.
        seed: Decides the policy's further draws.
        arguments: What ``gym.make`` is given beside the id.
        budget: What each may use in one sitting; None for one sitting to the end.
        sittings: How often each is taken up at most; what is not over then stays suspended.
    """

    policy: "Policy"
    environment: str | gym.Env[Any, Any]
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    sittings: int | None = None

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give finished trajectories as they are, and the others once they are over."""
        held = list(trajectories)
        env = make_environment(self.environment, self.arguments)
        sitting = 0
        while any(each.is_suspended for each in held) and sitting != self.sittings:
            held = resume(self.policy, held, env, seed=self.seed, budget=self.budget)
            sitting += 1
        yield from held


@dataclass(frozen=True)
class Source(Stage):
    """Gives what a function without arguments plays: trees and tails, for example.

    Attributes:
        play: Plays and returns trajectories.
    """

    play: Callable[[], Iterable[Trajectory]]

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give what comes in, then what is played."""
        yield from trajectories
        yield from self.play()


def group_key(trajectory: Trajectory) -> Hashable:
    """Return what the members of a group share, and others do not.

    Groups of rollouts with different seeds are told apart by their resets' seeds. A trajectory
    without a group is one of its own.
    """
    if not trajectory.group:
        return ("", id(trajectory))
    return (
        trajectory.environment,
        trajectory.env_hash,
        trajectory.task_id,
        trajectory.seed,
        trajectory.group,
    )


def groups_of(trajectories: Iterable[Trajectory]) -> Iterator[Sequence[Trajectory]]:
    """Give each group as soon as it is whole: when a trajectory of another one follows.

    Raises:
        ConfigurationError: A member of a group comes after others: the groups are torn.
    """
    group: list[Trajectory] = []
    ended: set[Hashable] = set()
    for trajectory in trajectories:
        key = group_key(trajectory)
        if group and key != group_key(group[0]):
            ended.add(group_key(group[0]))
            yield group
            group = []
        if key in ended:
            raise ConfigurationError(
                f"group {trajectory.group!r} of task {trajectory.task_id!r} goes on after another "
                "one; a stage that judges groups needs their members one after the other"
            )
        group.append(trajectory)
    if group:
        yield group
