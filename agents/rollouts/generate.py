"""Rollouts: many episodes of one environment, played by one policy."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from ...corpora.errors import ConfigurationError
from ...envs.base import SearchEnv
from ...envs.rules import check_at_least
from ...envs.wrappers import TextProtocol
from .running import EpisodePlan, RunningEpisode, Start
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = ["EnvironmentPool", "generate", "play_plans", "resume", "rollout_plans"]


def generate(
    policy: "Policy",
    environment: str | gym.Env[Any, Any],
    *,
    episodes: int,
    group_size: int = 1,
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    on_finished: Callable[[Trajectory], None] = lambda trajectory: None,
) -> list[Trajectory]:
    """Play episodes and return their trajectories, in the order of their plans.

    The episodes of a group begin alike, with the same task and the same first state, and differ
    in the policy's draws. What is returned depends on the arguments alone: not on how many
    episodes play at once, nor on which one ends first.

    Args:
        policy: Who plays.
        environment: An environment's id, or one that was made.
        episodes: How many, in all.
        group_size: How many of them begin alike; divides ``episodes``.
        seed: Decides the tasks and the policy's draws.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.
        on_finished: Called with each trajectory as soon as it is there, in any order.

    Raises:
        ConfigurationError: An argument is out of range, or there is no such search environment.
    """
    plans = rollout_plans(episodes, group_size=group_size, seed=seed, options=options)
    pool = EnvironmentPool(environment, arguments, protocol=policy.protocol)
    return _sorted(_told(play_plans(policy, pool, plans), on_finished), plans)


def resume(
    policy: "Policy",
    trajectories: Sequence[Trajectory],
    environment: str | gym.Env[Any, Any],
    *,
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
) -> list[Trajectory]:
    """Play suspended trajectories on; return them all, finished ones as they are.

    The turns that were played are played again in the environment, without the policy.

    Args:
        policy: Who plays.
        trajectories: Some of them suspended.
        environment: The environment that they were played in.
        seed: Decides the policy's further draws.
        arguments: What ``gym.make`` is given beside the id.
    """
    plans = [
        EpisodePlan(
            order=order,
            id=trajectory.id,
            group=trajectory.group,
            seed=trajectory.seed,
            entropy=(seed, 2, order),
            options={"task": trajectory.task_id},
            start=Start(trajectory, len(trajectory.turns)),
        )
        for order, trajectory in enumerate(trajectories)
        if trajectory.is_suspended
    ]
    pool = EnvironmentPool(environment, arguments, protocol=policy.protocol)
    played = _sorted(play_plans(policy, pool, plans), plans)
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
        )
        for order in range(episodes)
    ]


def play_plans(
    policy: "Policy",
    pool: "EnvironmentPool",
    plans: Iterable[EpisodePlan],
    *,
    keeps_snapshots: bool = False,
) -> Iterator[Trajectory]:
    """Let a policy play plans; give each trajectory as soon as it is there."""
    running: dict[str, RunningEpisode] = {}

    def begin() -> Iterator[RunningEpisode]:
        for plan in plans:
            env = pool.take()
            running[plan.id] = episode = RunningEpisode(
                env, plan, agent=policy.name, keeps_snapshots=keeps_snapshots
            )
            yield episode

    for trajectory in policy.play(begin()):
        pool.give_back(running.pop(trajectory.id).env)
        yield trajectory


class EnvironmentPool:
    """Equal environments over one shared index, as many as are needed at once.

    Args:
        environment: An environment's id, or one that was made.
        arguments: What ``gym.make`` is given beside the id.
        protocol: The text protocol to put around each; None for tool calls.

    Raises:
        ConfigurationError: It is no search environment, or arguments were given for one that
            was made.
    """

    def __init__(
        self,
        environment: str | gym.Env[Any, Any],
        arguments: Mapping[str, Any] | None = None,
        *,
        protocol: str | None = None,
    ) -> None:
        if isinstance(environment, str):
            try:
                env = gym.make(environment, **(arguments or {}))
            except (gym.error.Error, ModuleNotFoundError) as error:
                raise ConfigurationError(f"environment {environment!r}: {error}") from None
        elif arguments:
            raise ConfigurationError("arguments are for an environment's id, not for one made")
        else:
            env = environment
        if not isinstance(env.unwrapped, SearchEnv):
            raise ConfigurationError(f"{environment} is no search environment")
        self._first = env if protocol is None else TextProtocol(env, protocol)
        self._free = [copy.deepcopy(self._first)]

    def take(self) -> gym.Env[Any, Any]:
        """Return an environment that nobody else holds."""
        return self._free.pop() if self._free else copy.deepcopy(self._first)

    def give_back(self, env: gym.Env[Any, Any]) -> None:
        """Take an environment back, for the next episode."""
        self._free.append(env)


def _told(
    trajectories: Iterator[Trajectory], on_finished: Callable[[Trajectory], None]
) -> Iterator[Trajectory]:
    for trajectory in trajectories:
        on_finished(trajectory)
        yield trajectory


def _sorted(trajectories: Iterable[Trajectory], plans: Sequence[EpisodePlan]) -> list[Trajectory]:
    by_id = {trajectory.id: trajectory for trajectory in trajectories}
    return [by_id[plan.id] for plan in plans]
