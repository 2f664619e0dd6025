"""Play a policy's episodes of an evaluation, many at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym

from ..agents.policy import Policy
from ..agents.rollouts import EpisodePlan, Trajectory
from ..agents.rollouts.generate import EnvironmentPool, play_plans

__all__ = ["play_policy"]


def play_policy(
    policy: Policy,
    env: gym.Env[Any, Any],
    episodes: Sequence[tuple[str, int]],
    *,
    attempts: int,
) -> Iterator[tuple[int, Trajectory]]:
    """Give each episode's place and trajectory, as soon as it is there.

    Args:
        policy: Who plays.
        env: Where.
        episodes: The task and the seed of each.
        attempts: How often an episode is played that a failing backend or policy lost.
    """
    pool = EnvironmentPool(env, protocol=policy.protocol)
    waiting = {
        str(order): EpisodePlan(
            order=order,
            id=str(order),
            group=str(order),
            seed=seed,
            entropy=(seed, order),
            options={"task": task},
        )
        for order, (task, seed) in enumerate(episodes)
    }
    for attempt in range(1, attempts + 1):
        lost = {}
        for trajectory in play_plans(policy, pool, list(waiting.values())):
            if trajectory.outcome["valid"] is False and attempt < attempts:
                lost[trajectory.id] = waiting[trajectory.id]
            else:
                yield waiting[trajectory.id].order, trajectory
        waiting = lost
