"""Play an episode, and play it again."""

import copy
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

from ...corpora.documents import with_tuples
from ...corpora.errors import ConfigurationError, SeekgymError
from ..base import Agent
from .trajectory import Trajectory, Turn

__all__ = ["OUTCOME", "outcome_of", "play", "replay"]

OUTCOME = (
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
    "entities",
    "hops",
)
_OF_RANKINGS = ("ndcg", "first_ndcg")  # of query refinement, which has no answer


def outcome_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a trajectory keeps of the last ``info``: the same keys for every text game."""
    kept = {key: info.get(key) for key in OUTCOME}
    return kept | {key: info[key] for key in _OF_RANKINGS if key in info}


def play(
    env: gym.Env[Any, Any],
    agent: Agent,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
) -> Trajectory:
    """Play one episode and return it; of an observation in numbers, the text is kept."""
    question, info = env.reset(seed=seed, options=options)
    first, observation = info, question
    agent.reset(observation, info)
    turns, is_over = [], False
    question = info.get("text", question)
    while not is_over:
        action = agent.act(observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        turns.append(
            Turn(
                action,
                info.get("text", observation),
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
        outcome=outcome_of(info),
        wrappers=tuple(asdict(wrapper) for wrapper in spec.additional_wrappers) if spec else (),
    )


def replay(trajectory: Trajectory, env: gym.Env[Any, Any] | None = None) -> list[str]:
    """Play the actions of a trajectory again and return what came out differently.

    Args:
        trajectory: What was played.
        env: An environment to play in; made from the trajectory if left out.

    Returns:
        One sentence for each difference; an empty list if there is none.

    Raises:
        ConfigurationError: The trajectory does not say how to make its environment.
    """
    if env is None:
        env = _made_again(trajectory)
    question, info = env.reset(seed=trajectory.seed, options={"task": trajectory.task_id})
    question = info.get("text", question)
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
        if info.get("text", observation) != turn.observation:
            differences.append(f"turn {number}: the observation differs")
        if reward != turn.reward or info["reward_terms"] != turn.reward_terms:
            differences.append(f"turn {number}: the reward is {reward}, was {turn.reward}")
    if not is_over:
        differences.append("the episode did not end")
    return differences


def _made_again(trajectory: Trajectory) -> gym.Env[Any, Any]:
    """Make the environment that a trajectory was played in, wrappers included."""
    if trajectory.environment not in gym.registry:
        raise ConfigurationError(
            f"environment {trajectory.environment!r} is not registered; pass env="
        )
    spec = copy.deepcopy(gym.spec(trajectory.environment))
    spec.kwargs.update(with_tuples(trajectory.arguments))
    spec.additional_wrappers = tuple(WrapperSpec(**with_tuples(w)) for w in trajectory.wrappers)
    try:
        return gym.make(spec)
    except (SeekgymError, TypeError) as error:
        raise ConfigurationError(
            f"{trajectory.environment} cannot be made from what the trajectory says of its "
            f"arguments ({error}); pass env="
        ) from error
