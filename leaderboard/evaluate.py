"""Play agents in environments and sum up how well they did."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from ..agents import Agent, get_agent
from ..agents.policy import Policy
from ..agents.rollouts import Trajectory, play
from ..corpora.errors import ConfigurationError
from ..corpora.tasks import TaskSet
from ..envs.game import Game
from ..envs.rules import check_at_least
from .policies import play_policy
from .statistics import Interval, bootstrap_mean

__all__ = [
    "METRICS",
    "EnvironmentChoice",
    "Episode",
    "Evaluation",
    "Row",
    "evaluate",
    "metric_values",
    "plan_episodes",
]

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
        """The id, with the arguments if there are any: what tells one choice from another."""
        if not self.arguments:
            return self.id
        return f"{self.id} ({', '.join(f'{k}={v}' for k, v in self.arguments.items())})"

    def make(self) -> gym.Env[Any, Any]:
        """Make it.

        Raises:
            ConfigurationError: There is no such search environment.
        """
        try:
            env = gym.make(self.id, **self.arguments)
        except (gym.error.Error, ModuleNotFoundError) as error:
            raise ConfigurationError(f"environment {self.id!r}: {error}") from None
        if not isinstance(env.unwrapped, Game):
            raise ConfigurationError(f"{self.id} is no search environment")
        return env


class Episode(NamedTuple):
    """One episode of an evaluation.

    Attributes:
        environment: The label of the environment.
        agent: The name that the agent was asked for by.
        kind: The type of question.
        trajectory: What was played.
    """

    environment: str
    agent: str
    kind: str
    trajectory: Trajectory


class Row(NamedTuple):
    """How one agent did in one environment.

    Attributes:
        environment: The label of the environment.
        env_hash: The hash of the environment, its arguments and its data.
        agent: The name that the agent was asked for by.
        sees_gold: Whether the agent says that it reads gold answers or evidence.
        episodes: How many episodes count.
        failed: How many were lost to a failing backend after three attempts; they do not count.
        metrics: A mean with its interval for each metric; None where it cannot be computed.
        kinds: Exact match and F1 by kind of question.
    """

    environment: str
    env_hash: str
    agent: str
    sees_gold: bool
    episodes: int
    failed: int
    metrics: Mapping[str, Interval | None]
    kinds: Mapping[str, Mapping[str, Interval | None]]


class Evaluation(NamedTuple):
    """The rows of a table, and every episode behind them."""

    rows: tuple[Row, ...]
    episodes: tuple[Episode, ...]
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
    policies: Sequence[Policy] = (),
    episodes: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_played: Callable[[Sequence[Episode]], None] = lambda played: None,
) -> Evaluation:
    """Play every agent in every environment on the same tasks.

    The tasks are a permutation of the environment's, drawn from the seed, and start again when
    they run out. An episode lost to a failing backend is repeated, three attempts in all. The
    result does not depend on ``jobs``.

    Args:
        agents: Names, or ``module:Class``; each once.
        environments: Where to play; each once.
        policies: Play too, after the agents, in this process and as many episodes at a time as
            they can; their names must differ from the agents'.
        episodes: How many for each agent and environment; each task once if None.
        seed: Decides the tasks, the resets and the intervals.
        jobs: How many processes play.
        on_progress: Called with the episodes done and the total.
        on_played: Called with some episodes as soon as they are played, in any order.

    Raises:
        ConfigurationError: An agent or an argument is unknown or out of range.
        CorpusError: An environment's data is bad.
    """
    check_at_least("jobs", jobs, 1)
    check_at_least("seed", seed, 0)
    if episodes is not None:
        check_at_least("episodes", episodes, 1)
    agents = list(dict.fromkeys(agents))
    sees_gold = {agent: get_agent(agent).sees_gold for agent in agents}
    for policy in policies:
        if policy.name in sees_gold:
            raise ConfigurationError(f"two agents are called {policy.name!r}; give one a name")
        sees_gold[policy.name] = False
    player = _Player()
    choices = {choice.label: choice for choice in environments}
    tasks = {label: player.tasks(choice) for label, choice in choices.items()}
    menus = {label for label, choice in choices.items() if player.is_menu(choice)}
    players = {
        label: [a for a in agents if get_agent(a).plays_menus or label not in menus]
        for label in choices
    }
    pairs = [
        (policy, label)
        for policy, label in product(policies, choices)
        if (policy.plays_menus if label in menus else policy.plays_texts)
    ]
    for label in choices:
        if not players[label] and label not in {played for _, played in pairs}:
            raise ConfigurationError(
                f"no agent that was named can play {label}: "
                f"it is {'a menu of choices' if label in menus else 'no menu of choices'}"
            )
    chunks = list(_chunks(players, choices, tasks, episodes, seed))
    plans = {label: plan_episodes(tasks[label], episodes, seed) for _, label in pairs}
    total = sum(len(chunk.episodes) for chunk in chunks)
    total += sum(len(plans[label]) for _, label in pairs)
    played: dict[int, list[Episode]] = {}
    done = 0
    on_progress(done, total)
    for chunk, trajectories in _play_all(player, chunks, jobs):
        label = chunk.choice.label
        played[chunk.order] = [
            Episode(label, chunk.agent, tasks[label][trajectory.task_id].kind, trajectory)
            for trajectory in trajectories
        ]
        on_played(played[chunk.order])
        done += len(trajectories)
        on_progress(done, total)
    groups: dict[tuple[str, str], list[Episode]] = {}
    for chunk in chunks:
        groups.setdefault((chunk.choice.label, chunk.agent), []).extend(played[chunk.order])
    for policy, label in pairs:
        plan = plans[label]
        places: dict[int, Episode] = {}
        env = player.env(choices[label])
        for order, trajectory in play_policy(policy, env, plan, attempts=_ATTEMPTS):
            kind = tasks[label][trajectory.task_id].kind
            places[order] = Episode(label, policy.name, kind, trajectory)
            on_played([places[order]])
            done += 1
            on_progress(done, total)
        groups[label, policy.name] = [places[order] for order in sorted(places)]
    return Evaluation(
        rows=tuple(_row(group, seed, sees_gold[group[0].agent]) for group in groups.values()),
        episodes=tuple(episode for group in groups.values() for episode in group),
        seed=seed,
    )


def metric_values(trajectories: Sequence[Trajectory], metric: str) -> list[float | None]:
    """Return a metric's value in each episode; None where it could not be computed."""
    if metric == "return":
        return [trajectory.total_reward for trajectory in trajectories]
    key = "turn" if metric == "turns" else metric
    return [trajectory.outcome[key] for trajectory in trajectories]


def _chunks(
    players: Mapping[str, Sequence[str]],
    choices: Mapping[str, EnvironmentChoice],
    tasks: Mapping[str, TaskSet],
    episodes: int | None,
    seed: int,
) -> Iterator[_Chunk]:
    order = 0
    for label, choice in choices.items():
        planned = plan_episodes(tasks[label], episodes, seed)
        for agent in players[label]:
            for start in range(0, len(planned), _CHUNK):
                yield _Chunk(order, choice, agent, tuple(planned[start : start + _CHUNK]))
                order += 1


def plan_episodes(tasks: TaskSet, episodes: int | None, seed: int) -> list[tuple[str, int]]:
    """Return the task and the seed of each episode."""
    count = len(tasks) if episodes is None else episodes
    order = np.random.default_rng(np.random.SeedSequence([seed])).permutation(len(tasks))
    seeds = np.random.SeedSequence([seed, 1]).generate_state(count)
    return [(tasks[int(order[i % len(order)])].id, int(seeds[i])) for i in range(count)]


class _Player:
    """Plays chunks; makes each environment and each agent once."""

    def __init__(self) -> None:
        self._envs: dict[str, gym.Env[Any, Any]] = {}
        self._agents: dict[tuple[str, str], Agent] = {}

    def env(self, choice: EnvironmentChoice) -> gym.Env[Any, Any]:
        if choice.label not in self._envs:
            self._envs[choice.label] = choice.make()
        return self._envs[choice.label]

    def tasks(self, choice: EnvironmentChoice) -> TaskSet:
        return cast(Game[Any, Any], self.env(choice).unwrapped).tasks

    def is_menu(self, choice: EnvironmentChoice) -> bool:
        return isinstance(self.env(choice).action_space, Discrete)

    def play(self, chunk: _Chunk) -> list[Trajectory]:
        env = self.env(chunk.choice)
        key = (chunk.choice.label, chunk.agent)
        if key not in self._agents:
            self._agents[key] = get_agent(chunk.agent)(env)
        trajectories = []
        for task_id, seed in chunk.episodes:
            for _ in range(_ATTEMPTS):
                trajectory = play(env, self._agents[key], seed=seed, options={"task": task_id})
                if trajectory.outcome["valid"] is not False:
                    break
            trajectories.append(trajectory)
        return trajectories


_process_player: _Player | None = None  # of a process that plays for another


def _play_in_process(chunk: _Chunk) -> list[Trajectory]:
    global _process_player
    _process_player = _process_player or _Player()
    return _process_player.play(chunk)


def _play_all(
    player: _Player, chunks: Sequence[_Chunk], jobs: int
) -> Iterator[tuple[_Chunk, list[Trajectory]]]:
    if jobs == 1 or len(chunks) <= 1:
        for chunk in chunks:
            yield chunk, player.play(chunk)
        return
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(chunks), 4 * (os.cpu_count() or 1))
    pool = ProcessPoolExecutor(workers, mp_context=context)
    try:
        waiting = {pool.submit(_play_in_process, chunk): chunk for chunk in chunks}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BaseException:  # an interrupt too: do not play on for a result that nobody takes
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    pool.shutdown()


def _row(group: Sequence[Episode], seed: int, sees_gold: bool) -> Row:
    first = group[0]
    valid = [e for e in group if e.trajectory.outcome["valid"] is not False]
    by_kind: dict[str, list[Trajectory]] = {}
    for episode in valid:
        by_kind.setdefault(episode.kind, []).append(episode.trajectory)
    every = [episode.trajectory for episode in valid]
    return Row(
        environment=first.environment,
        env_hash=first.trajectory.env_hash,
        agent=first.agent,
        sees_gold=sees_gold,
        episodes=len(valid),
        failed=len(group) - len(valid),
        metrics={m: bootstrap_mean(metric_values(every, m), seed=seed) for m in METRICS},
        kinds={
            kind: {
                metric: bootstrap_mean(metric_values(played, metric), seed=seed)
                for metric in ("exact_match", "f1", "evidence_recall")
            }
            for kind, played in sorted(by_kind.items())
        },
    )
