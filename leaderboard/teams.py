"""Teams beside single agents, on the same tasks."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from ..agents import get_agent
from ..agents.rollouts import play
from ..agents.teams import TEAMS, play_team
from ..corpora.errors import raise_unknown
from ..envs.rules import check_at_least
from ..envs.team import Event, TeamParallelEnv
from .evaluate import plan_episodes

__all__ = ["TEAM_METRICS", "TeamComparison", "TeamRow", "compare_teams"]

TEAM_METRICS = ("exact_match", "f1", "evidence_recall", "ticks", "turns", "calls", "words")


class TeamRow(NamedTuple):
    """How a team, or an agent alone, did.

    Attributes:
        player: The name of the team or agent.
        sees_gold: Whether it reads gold answers, evidence or proof.
        metrics: The mean of each of ``TEAM_METRICS``. For an agent alone, a tick is a turn.
    """

    player: str
    sees_gold: bool
    metrics: Mapping[str, float | None]


class TeamComparison(NamedTuple):
    """The rows of a table, and the trace of every team's episode."""

    world: str
    tasks: int
    rows: tuple[TeamRow, ...]
    traces: Mapping[str, Sequence[Sequence[Event]]]


def compare_teams(
    env: TeamParallelEnv,
    *,
    teams: Sequence[str] = tuple(TEAMS),
    agents: Sequence[str] = (),
    episodes: int | None = None,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> TeamComparison:
    """Play teams, and single agents in the environment that the team searches, on equal tasks.

    Args:
        env: The team's environment.
        teams: Names of teams.
        agents: Names of agents, or ``module:Class``.
        episodes: How many for each; each task once if None.
        seed: Decides the tasks and the resets.
        on_progress: Called with the episodes done and the total.

    Raises:
        ConfigurationError: A team or an agent is unknown, or a number is out of range.
    """
    if episodes is not None:
        check_at_least("episodes", episodes, 1)
    for name in teams:
        if name not in TEAMS:
            raise_unknown("team", name, TEAMS)
    tasks = plan_episodes(env.source.tasks, episodes, seed)
    total, done = len(tasks) * (len(teams) + len(agents)), 0
    rows, traces = [], {}
    for name in teams:
        played = []
        for task, task_seed in tasks:
            played.append(play_team(env, TEAMS[name], seed=task_seed, options={"task": task}))
            on_progress(done := done + 1, total)
        traces[name] = [episode.trace for episode in played]
        outcomes = [{**episode.outcome, **episode.outcome["metrics"]} for episode in played]
        rows.append(_row(name, TEAMS[name].sees_gold, outcomes))
    for name in agents:
        agent = get_agent(name)(env.source)
        outcomes = []
        for task, task_seed in tasks:
            alone = play(env.source, agent, seed=task_seed, options={"task": task})
            turns = len(alone.turns)
            calls = turns - alone.outcome["calls"].get("answer", 0)
            counts = {"ticks": turns, "turns": turns, "calls": calls, "words": 0}
            outcomes.append({**alone.outcome, **counts})
            on_progress(done := done + 1, total)
        rows.append(_row(name, agent.sees_gold, outcomes))
    return TeamComparison(env.source.corpus.name, len(tasks), tuple(rows), traces)


def _row(name: str, sees_gold: bool, outcomes: Sequence[Mapping[str, Any]]) -> TeamRow:
    metrics: dict[str, float | None] = {}
    for metric in TEAM_METRICS:
        values = [outcome[metric] for outcome in outcomes if outcome[metric] is not None]
        metrics[metric] = mean(values) if values else None
    return TeamRow(name, sees_gold, metrics)
