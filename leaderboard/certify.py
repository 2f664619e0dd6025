"""Certify an environment: its tasks can be proved through the tools, and not be guessed."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from ..agents import Agent, ClosedBookAgent, OracleAgent
from ..agents.rollouts import Trajectory, play
from ..corpora.certificates import certify as find_proved
from ..corpora.errors import ConfigurationError, raise_unknown
from ..envs.base import SearchEnv
from ..envs.findings import Finding

__all__ = ["certify"]

Progress = Callable[[int, int], None]


def certify(
    env_id: str,
    *,
    tasks: int = 1_000,
    arguments: Mapping[str, Any] | None = None,
    on_progress: Progress = lambda done, total: None,
) -> list[Finding]:
    """Return what was found about an environment's tasks.

    Every task is looked at: its proof is played by the retriever, the oracle plays it through
    the tools, and an agent that never searches answers it. The environment adds its own
    findings, such as leaks.

    Args:
        env_id: A registered environment.
        tasks: How many tasks to draw, where the environment draws them.
        arguments: What else ``gym.make`` is given.
        on_progress: Called with the episodes played and the total.

    Raises:
        ConfigurationError: The environment or an argument is unknown or out of range.
    """
    if env_id not in gym.registry:
        raise_unknown("environment", env_id, [i for i in gym.registry if i.startswith("seekgym/")])
    given = dict(arguments or {})
    entry_point = gym.spec(env_id).entry_point
    if isinstance(entry_point, str):
        env_class: Any = load_env_creator(entry_point)
        tasks_argument = getattr(env_class, "tasks_argument", None)
        if tasks_argument is not None:
            given[tasks_argument] = tasks
    search_env = gym.make(env_id, **given).unwrapped  # without a menu around it
    if not isinstance(search_env, SearchEnv):
        raise ConfigurationError(
            f"{env_id} asks for no answers that could be certified; certify the environment "
            "whose questions it takes"
        )
    total = 2 * len(search_env.all_tasks)
    done = 0
    on_progress(done, total)

    def play_all(agent: Agent) -> list[Trajectory]:
        nonlocal done
        played = []
        for task in search_env.all_tasks:
            played.append(play(search_env, agent, seed=0, options={"task": task.id}))
            done += 1
            on_progress(done, total)
        return played

    findings = _proofs(search_env)
    findings += _oracle(play_all(OracleAgent(search_env)))
    findings += _closed_book(search_env, play_all(ClosedBookAgent(search_env)))
    return findings + search_env.findings()


def _proofs(env: SearchEnv) -> list[Finding]:
    tasks = [task for task in env.all_tasks if task.proof]
    if not tasks:
        return [Finding("proofs", "the tasks come without proofs")]
    proved = sum(find_proved(tasks, env.retriever, env.k))
    longest = max(len(task.proof) for task in tasks)
    return [
        Finding(
            "proofs",
            f"{proved} of {len(tasks)} are found step by step in the top {env.k}",
            proved == len(tasks),
        ),
        Finding(
            "budget",
            f"the longest proof takes {longest} documents of {env.rules.max_turns - 1}",
            longest < env.rules.max_turns,
        ),
    ]


def _oracle(played: Sequence[Trajectory]) -> list[Finding]:
    right = sum(trajectory.outcome["exact_match"] for trajectory in played)
    recalls = [trajectory.outcome["evidence_recall"] for trajectory in played]
    seen = sum(recall in (1.0, None) for recall in recalls)
    return [
        Finding("oracle", f"{right:.0f} of {len(played)} answers are right", right == len(played)),
        Finding(
            "evidence",
            f"{seen} of {len(played)} episodes show all of it",
            seen == len(played),
        ),
    ]


def _closed_book(env: SearchEnv, played: Sequence[Trajectory]) -> list[Finding]:
    """Compare what is right without a search with chance, kind by kind."""
    by_kind: dict[str, list[tuple[float, float | None]]] = {}
    for trajectory in played:
        task = env.all_tasks[trajectory.task_id]
        score = float(trajectory.outcome["exact_match"])
        by_kind.setdefault(task.kind, []).append((score, env.chance(task)))
    return [_against_chance(kind, scores) for kind, scores in sorted(by_kind.items())]


def _against_chance(kind: str, scores: Iterable[tuple[float, float | None]]) -> Finding:
    pairs = list(scores)
    mean = sum(score for score, _ in pairs) / len(pairs)
    name, figure = f"closed book, {kind}", f"{mean:.3f} of {len(pairs)} are right"
    chances = [chance for _, chance in pairs if chance is not None]
    if len(chances) < len(pairs):
        return Finding(name, figure)
    chance = sum(chances) / len(chances)
    spread = math.sqrt(max(chance * (1 - chance), 0.01) / len(pairs))
    return Finding(name, f"{figure}, by chance {chance:.3f}", mean <= chance + 3 * spread)
