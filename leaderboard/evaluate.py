"""Play agents in environments and sum up how well they did."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ..agents import get_agent
from ..agents.rollouts import Trajectory, play
from ..corpora.errors import ConfigurationError
from ..envs.base import SearchEnv
from ..envs.rules import check_at_least
from .statistics import Interval, bootstrap_mean

__all__ = ["METRICS", "EnvironmentChoice", "Evaluation", "Row", "evaluate", "metric_values"]

METRICS = (
    "exact_match",
    "f1",
    "cover_exact_match",
    "evidence_recall",
    "return",
    "searches",
    "turns",
)
_CHUNK = 20
_ATTEMPTS = 3


@dataclass(frozen=True)
class EnvironmentChoice:
    """An environment to play in.

    Attributes:
        id: What ``gym.make`` takes.
        arguments: What else it is given.
    """

    id: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The id, with the arguments if there are any."""
        if not self.arguments:
            return self.id
        return f"{self.id} ({', '.join(f'{k}={v}' for k, v in self.arguments.items())})"


class Row(NamedTuple):
    """How one agent did in one environment.

    Attributes:
        environment: The environment's label.
        agent: The agent's name.
        sees_gold: Whether the agent reads gold answers or evidence.
        episodes: How many episodes count.
        failed: How many were lost to a failing backend after three attempts; they do not count.
        metrics: A mean with its interval for each metric; None where it cannot be computed.
        kinds: Exact match and F1 by kind of question.
    """

    environment: str
    agent: str
    sees_gold: bool
    episodes: int
    failed: int
    metrics: Mapping[str, Interval | None]
    kinds: Mapping[str, Mapping[str, Interval | None]]


class Evaluation(NamedTuple):
    """The rows of a table, and every episode behind them."""

    rows: tuple[Row, ...]
    trajectories: tuple[Trajectory, ...]
    kinds: Mapping[str, str]
    seed: int


class _Chunk(NamedTuple):
    order: int
    choice: EnvironmentChoice
    agent: str
    episodes: tuple[tuple[str, int], ...]  # task id and seed


def evaluate(
    agents: Sequence[str],
    environments: Sequence[EnvironmentChoice],
    *,
    episodes: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Play every agent in every environment on the same tasks.

    The tasks are a permutation of the environment's, drawn from the seed, and start again when
    they run out. An episode lost to a failing backend is repeated, three attempts in all. The
    result does not depend on ``jobs``.

    Args:
        agents: Names, or ``module:Class``.
        environments: Where to play.
        episodes: How many for each agent and environment; each task once if None.
        seed: Decides the tasks, the resets and the intervals.
        jobs: How many processes play.
        on_progress: Called with the episodes done and the total.

    Raises:
        ConfigurationError: An agent or an argument is unknown or out of range.
        CorpusError: An environment's data is bad.
    """
    check_at_least("jobs", jobs, 1)
    check_at_least("seed", seed, 0)
    if episodes is not None:
        check_at_least("episodes", episodes, 1)
    for agent in agents:
        get_agent(agent)
    chunks = list(_chunks(agents, environments, episodes, seed))
    total = sum(len(chunk.episodes) for chunk in chunks)
    played: dict[int, list[Trajectory]] = {}
    done = 0
    on_progress(done, total)
    for order, trajectories in _play_all(chunks, jobs):
        played[order] = trajectories
        done += len(trajectories)
        on_progress(done, total)
    kinds = {
        task.id: task.kind for choice in environments for task in _environment(choice).all_tasks
    }
    groups: dict[tuple[str, str], list[Trajectory]] = {}
    for chunk in chunks:
        groups.setdefault((chunk.choice.label, chunk.agent), []).extend(played[chunk.order])
    rows = tuple(
        _row(label, agent, trajectories, kinds, seed)
        for (label, agent), trajectories in groups.items()
    )
    every = tuple(trajectory for group in groups.values() for trajectory in group)
    return Evaluation(rows, every, kinds, seed)


def metric_values(trajectories: Sequence[Trajectory], metric: str) -> list[float | None]:
    """Return a metric's value in each episode; None where it could not be computed."""
    if metric == "return":
        return [trajectory.total_reward for trajectory in trajectories]
    key = "turn" if metric == "turns" else metric
    return [trajectory.outcome[key] for trajectory in trajectories]


def _chunks(
    agents: Sequence[str],
    environments: Sequence[EnvironmentChoice],
    episodes: int | None,
    seed: int,
) -> Iterator[_Chunk]:
    order = 0
    for choice in environments:
        plan = _plan(_environment(choice), episodes, seed)
        for agent in agents:
            for start in range(0, len(plan), _CHUNK):
                yield _Chunk(order, choice, agent, tuple(plan[start : start + _CHUNK]))
                order += 1


def _plan(env: SearchEnv, episodes: int | None, seed: int) -> list[tuple[str, int]]:
    """Return the task and the seed of each episode."""
    count = len(env.tasks) if episodes is None else episodes
    order = np.random.default_rng(np.random.SeedSequence([seed])).permutation(len(env.tasks))
    seeds = np.random.SeedSequence([seed, 1]).generate_state(count)
    return [(env.tasks[int(order[i % len(order)])].id, int(seeds[i])) for i in range(count)]


def _play_all(chunks: Sequence[_Chunk], jobs: int) -> Iterator[tuple[int, list[Trajectory]]]:
    if jobs == 1 or len(chunks) == 1:
        for chunk in chunks:
            yield chunk.order, _play_chunk(chunk)
        return
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(chunks), 4 * (os.cpu_count() or 1))
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting: dict[Future[list[Trajectory]], int] = {
            pool.submit(_play_chunk, chunk): chunk.order for chunk in chunks
        }
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _play_chunk(chunk: _Chunk) -> list[Trajectory]:
    env = _made(chunk.choice.id, tuple(sorted(chunk.choice.arguments.items())))
    agent = get_agent(chunk.agent)(env)
    trajectories = []
    for task_id, seed in chunk.episodes:
        for _ in range(_ATTEMPTS):
            trajectory = play(env, agent, seed=seed, options={"task": task_id})
            if trajectory.outcome["valid"]:
                break
        trajectories.append(trajectory)
    return trajectories


def _environment(choice: EnvironmentChoice) -> SearchEnv:
    env = _made(choice.id, tuple(sorted(choice.arguments.items()))).unwrapped
    if not isinstance(env, SearchEnv):
        raise ConfigurationError(f"{choice.id} is no search environment")
    return env


@lru_cache(maxsize=8)
def _made(env_id: str, arguments: tuple[tuple[str, Any], ...]) -> gym.Env[Any, Any]:
    try:
        return gym.make(env_id, **dict(arguments))
    except gym.error.UnregisteredEnv as error:
        raise ConfigurationError(f"environment {env_id!r}: {error}") from None


def _row(
    label: str,
    agent: str,
    trajectories: Sequence[Trajectory],
    kinds: Mapping[str, str],
    seed: int,
) -> Row:
    valid = [trajectory for trajectory in trajectories if trajectory.outcome["valid"]]
    by_kind: dict[str, list[Trajectory]] = {}
    for trajectory in valid:
        by_kind.setdefault(kinds[trajectory.task_id], []).append(trajectory)
    return Row(
        environment=label,
        agent=get_agent(agent).name,
        sees_gold=get_agent(agent).sees_gold,
        episodes=len(valid),
        failed=len(trajectories) - len(valid),
        metrics={
            metric: bootstrap_mean(metric_values(valid, metric), seed=seed) for metric in METRICS
        },
        kinds={
            kind: {
                metric: bootstrap_mean(metric_values(group, metric), seed=seed)
                for metric in ("exact_match", "f1", "evidence_recall")
            }
            for kind, group in sorted(by_kind.items())
        },
    )
