"""Play an episode, and play it again."""

from typing import Any

import gymnasium as gym

from ..base import Agent
from .trajectory import Trajectory, Turn

__all__ = ["play", "replay"]

_OUTCOME = (
    "answer",
    "exact_match",
    "f1",
    "cover_exact_match",
    "evidence_recall",
    "calls",
    "searches",
    "valid_calls",
    "invalid_calls",
    "turn",
    "failure",
    "valid",
    "gold_answers",
)


def play(
    env: gym.Env[Any, Any],
    agent: Agent,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
) -> Trajectory:
    """Play one episode and return it."""
    question, info = env.reset(seed=seed, options=options)
    first, observation = info, question
    agent.reset(observation, info)
    turns, is_over = [], False
    while not is_over:
        action = agent.act(observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        turns.append(
            Turn(
                action,
                observation,
                float(reward),
                info["reward_terms"],
                info["error"],
                info["documents"],
            )
        )
        is_over = terminated or truncated
    spec = env.spec
    return Trajectory(
        environment=spec.id if spec else type(env.unwrapped).__name__,
        arguments=dict(spec.kwargs) if spec else {},
        env_hash=first["env_hash"],
        seed=seed,
        task_id=first["task_id"],
        agent=agent.name,
        question=question,
        turns=tuple(turns),
        outcome={key: info[key] for key in _OUTCOME},
    )


def replay(trajectory: Trajectory, env: gym.Env[Any, Any] | None = None) -> list[str]:
    """Play the actions of a trajectory again and return what came out differently.

    Args:
        trajectory: What was played.
        env: An environment to play in; made from the trajectory if left out.

    Returns:
        One sentence for each difference; an empty list if there is none.
    """
    if env is None:
        env = gym.make(trajectory.environment, **trajectory.arguments)
    question, info = env.reset(seed=trajectory.seed, options={"task": trajectory.task_id})
    differences = []
    if info["env_hash"] != trajectory.env_hash:
        differences.append(f"env_hash is {info['env_hash']}, was {trajectory.env_hash}")
    if question != trajectory.question:
        differences.append("the question differs")
    is_over = False
    for number, turn in enumerate(trajectory.turns, start=1):
        if is_over:
            return [*differences, f"the episode ended before turn {number}"]
        observation, reward, terminated, truncated, info = env.step(turn.action)
        is_over = terminated or truncated
        if observation != turn.observation:
            differences.append(f"turn {number}: the observation differs")
        if reward != turn.reward or info["reward_terms"] != turn.reward_terms:
            differences.append(f"turn {number}: the reward is {reward}, was {turn.reward}")
    if not is_over:
        differences.append("the episode did not end")
    return differences
