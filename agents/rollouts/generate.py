"""Rollouts: many episodes of one environment, played by one policy."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium as gym
import numpy as np

from ...corpora.errors import BackendError, ConfigurationError
from ...envs.rules import check_at_least
from .budget import Budget
from .pool import EnvironmentPool, identity_of
from .running import EpisodePlan, RunningEpisode, Start
from .store import RunFile
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = [
    "Workers",
    "generate",
    "in_order",
    "make_policy",
    "play_episodes",
    "play_lazily",
    "play_plans",
    "resume",
    "rollout_plans",
]


class Workers(Protocol):
    """Plays plans elsewhere, for example on a cluster: see ``cluster.RayWorkers``."""

    def play(
        self,
        policy: "Policy | Callable[[], Policy]",
        environment: str | gym.Env[Any, Any],
        arguments: Mapping[str, Any] | None,
        plans: Sequence[EpisodePlan],
    ) -> Iterator[Trajectory]:
        """Give each plan's trajectory, in any order."""


def generate(
    policy: "Policy | Callable[[], Policy]",
    environment: str | gym.Env[Any, Any],
    *,
    episodes: int,
    group_size: int = 1,
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    workers: Workers | None = None,
    path: str | os.PathLike[str] | None = None,
    on_finished: Callable[[Trajectory], None] = lambda trajectory: None,
) -> list[Trajectory]:
    """Play episodes and return their trajectories, in the order of their plans.

    The episodes of a group begin alike, with the same task and the same first state, and differ
    in the policy's draws. What is returned depends on the arguments alone: not on how many
    episodes play at once, nor on which one ends first.

    With a ``path`` each episode is on disk as soon as it has ended. The same call goes on where a
    killed one stopped: what is in the file is not played again, apart from episodes that were
    lost to a failure. ``episodes`` may have grown.

    Args:
        policy: Who plays, or a function without arguments that makes it.
        environment: An environment's id, or one that was made.
        episodes: How many, in all.
        group_size: How many of them begin alike; divides ``episodes``.
        seed: Decides the tasks and the policy's draws.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.
        budget: What each episode may use until it is put aside, to be resumed.
        workers: Who plays if not this process, for example ``RayWorkers(2)``.
        path: A file of trajectories, one a line; beside it ``<path>.run`` says which run it is.
        on_finished: Called with each trajectory as soon as it is there, in any order; those that
            the file already held come first.

    Raises:
        ConfigurationError: An argument is out of range, there is no such search environment, or
            the file is of another run.
    """
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigurationError(
            f"budget must be a Budget, such as Budget(turns=4), got {budget!r}"
        )
    if workers is not None and not callable(getattr(workers, "play", None)):
        raise ConfigurationError(f"workers must be such as RayWorkers(2), got {workers!r}")
    plans = rollout_plans(
        episodes, group_size=group_size, seed=seed, options=options, budget=budget
    )
    if path is None:
        played = _play(policy, environment, plans, arguments, workers)
        return list(in_order(_told(played, on_finished), plans))
    player = make_policy(policy)
    run = {
        **identity_of(environment, arguments, protocol=player.protocol),
        "policy": player.identity,
        "seed": seed,
        "group_size": group_size,
        "options": dict(options or {}),
        "budget": repr(budget),
    }
    with RunFile.open(path, run) as file:
        wanted = {plan.id for plan in plans}
        for trajectory in file.read():
            if trajectory.id in wanted:
                on_finished(trajectory)
        missing = [plan for plan in plans if plan.id not in file.finished]
        for trajectory in _play(policy, environment, missing, arguments, workers):
            file.write(trajectory)
            on_finished(trajectory)
        return list(in_order(file.read(), plans))


def resume(
    policy: "Policy",
    trajectories: Sequence[Trajectory],
    environment: str | gym.Env[Any, Any],
    *,
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
) -> list[Trajectory]:
    """Play suspended trajectories on; return them all, finished ones as they are.

    The turns that were played are played again in the environment, without the policy.

    Args:
        policy: Who plays.
        trajectories: Some of them suspended.
        environment: The environment that they were played in.
        seed: Decides the policy's further draws.
        arguments: What ``gym.make`` is given beside the id.
        budget: What each may use until it is put aside again.

    Raises:
        ConfigurationError: Two of the suspended ones have the same id.
    """
    plans = [
        EpisodePlan(
            order=order,
            id=trajectory.id,
            group=trajectory.group,
            seed=trajectory.seed,
            entropy=(seed, 2, order, len(trajectory.turns)),
            options={"task": trajectory.task_id},
            start=Start(trajectory, len(trajectory.turns)),
            budget=budget,
        )
        for order, trajectory in enumerate(trajectories)
        if trajectory.is_suspended
    ]
    if len({plan.id for plan in plans}) < len(plans):
        raise ConfigurationError(
            "two suspended trajectories have the same id; resume those of one rollout at a time"
        )
    played = play_lazily(policy, environment, plans, arguments=arguments)
    results = list(trajectories)
    for plan, trajectory in zip(plans, played, strict=True):
        results[plan.order] = trajectory
    return results


def rollout_plans(
    episodes: int,
    *,
    group_size: int = 1,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
) -> list[EpisodePlan]:
    """Return what a rollout plays: groups of episodes that begin alike.

    Raises:
        ConfigurationError: A number is out of range, or the groups do not come out even.
    """
    check_at_least("episodes", episodes, 1)
    check_at_least("group_size", group_size, 1)
    check_at_least("seed", seed, 0)
    if episodes % group_size:
        raise ConfigurationError(
            f"episodes={episodes} must be a multiple of group_size={group_size}; "
            f"{episodes - episodes % group_size or group_size} would do"
        )
    seeds = np.random.SeedSequence([seed, 0]).generate_state(episodes // group_size)
    return [
        EpisodePlan(
            order=order,
            id=f"{order // group_size}-{order % group_size}",
            group=str(order // group_size),
            seed=int(seeds[order // group_size]),
            entropy=(seed, 1, order),
            options=dict(options or {}),
            budget=budget,
        )
        for order in range(episodes)
    ]


def play_lazily(
    policy: "Policy | Callable[[], Policy]",
    environment: str | gym.Env[Any, Any],
    plans: Sequence[EpisodePlan],
    *,
    arguments: Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    on_finished: Callable[[Trajectory], None] = lambda trajectory: None,
) -> Iterator[Trajectory]:
    """Play plans and give their trajectories in order, each as soon as it is its turn."""
    played = _play(policy, environment, plans, arguments, workers)
    return in_order(_told(played, on_finished), plans)


def play_plans(
    policy: "Policy", pool: "EnvironmentPool", plans: Iterable[EpisodePlan]
) -> Iterator[Trajectory]:
    """Let a policy play plans; give each trajectory as soon as it is there."""
    for _, trajectory in play_episodes(policy, pool, plans):
        yield trajectory


def play_episodes(
    policy: "Policy",
    pool: "EnvironmentPool",
    plans: Iterable[EpisodePlan],
    *,
    keeps_snapshots: bool = False,
) -> Iterator[tuple[RunningEpisode, Trajectory]]:
    """Let a policy play plans; give each episode with its trajectory, snapshots and all."""
    running: dict[str, RunningEpisode] = {}

    def begin() -> Iterator[RunningEpisode]:
        for plan in plans:
            env = pool.take()
            running[plan.id] = episode = RunningEpisode(
                env, plan, agent=policy.name, keeps_snapshots=keeps_snapshots
            )
            yield episode

    for trajectory in policy.play(begin()):
        episode = running.pop(trajectory.id)
        pool.give_back(episode.env)
        yield episode, trajectory


def in_order(
    trajectories: Iterable[Trajectory], plans: Iterable[EpisodePlan]
) -> Iterator[Trajectory]:
    """Give trajectories in the order of their plans, each as soon as it is its turn."""
    waiting: dict[str, Trajectory] = {}
    arriving = iter(trajectories)
    for plan in plans:
        while plan.id not in waiting:
            trajectory = next(arriving, None)
            if trajectory is None:
                raise BackendError(f"the policy gave no trajectory for episode {plan.id!r}")
            waiting[trajectory.id] = trajectory
        yield waiting.pop(plan.id)
    for _ in arriving:  # lets whoever plays come to its end
        pass


def make_policy(policy: "Policy | Callable[[], Policy]") -> "Policy":
    """Return the policy, made now if a function was given that makes it."""
    from ..policy import Policy

    return policy if isinstance(policy, Policy) else policy()


def _play(
    policy: "Policy | Callable[[], Policy]",
    environment: str | gym.Env[Any, Any],
    plans: Sequence[EpisodePlan],
    arguments: Mapping[str, Any] | None,
    workers: Workers | None,
) -> Iterator[Trajectory]:
    if workers is not None:
        return workers.play(policy, environment, arguments, plans)
    player = make_policy(policy)
    pool = EnvironmentPool(environment, arguments, protocol=player.protocol)
    return play_plans(player, pool, plans)


def _told(
    trajectories: Iterator[Trajectory], on_finished: Callable[[Trajectory], None]
) -> Iterator[Trajectory]:
    for trajectory in trajectories:
        on_finished(trajectory)
        yield trajectory
