"""Play a team's episode whatever its policies do, and say what reports are worth."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...corpora.errors import ConfigurationError
from ...corpora.text import replace_surrogates
from ...envs.actions import ProtocolError
from ...envs.team import Event, RolePolicy, TeamParallelEnv
from ...envs.team.roles import role_of

__all__ = ["Team", "TeamEpisode", "difference_rewards", "play_team"]

_REASON_CHARS = 200


@dataclass(frozen=True)
class Team:
    """A team: one class for each role.

    Attributes:
        name: What lists and reports call it.
        leader: Plays the leader.
        searcher: Plays every searcher, each with an object of its own.
        answerer: Plays the answerer; None for teams without one.

    Raises:
        ConfigurationError: A class plays another role.
    """

    name: str
    leader: type[RolePolicy]
    searcher: type[RolePolicy]
    answerer: type[RolePolicy] | None = None

    def __post_init__(self) -> None:
        """Check that each class plays its role."""
        for role in ("leader", "searcher", "answerer"):
            policy = getattr(self, role)
            if policy is None and role == "answerer":
                continue
            if not (isinstance(policy, type) and issubclass(policy, RolePolicy)):
                raise ConfigurationError(f"team {self.name!r}: {role} must be a RolePolicy class")
            if policy.role != role:
                raise ConfigurationError(
                    f"team {self.name!r}: {policy.__name__} plays {policy.role}, not {role}"
                )

    @property
    def sees_gold(self) -> bool:
        """Whether any of its policies says that it reads gold answers, evidence or proof."""
        policies = (self.leader, self.searcher, self.answerer)
        return any(policy.sees_gold for policy in policies if policy is not None)

    def policy(self, agent: str) -> type[RolePolicy]:
        """Return the class that plays an agent.

        Raises:
            ConfigurationError: The environment has an answerer and the team has none.
        """
        policy = {
            "leader": self.leader,
            "searcher": self.searcher,
            "answerer": self.answerer,
        }[role_of(agent)]
        if policy is None:
            raise ConfigurationError(
                f"team {self.name!r} has no answerer, this environment has; make it with "
                "answerer=False"
            )
        return policy


@dataclass(frozen=True, slots=True)
class TeamEpisode:
    """A whole episode of a team.

    Attributes:
        team: Who played.
        task_id: The task.
        returns: The sum of each agent's rewards.
        outcome: What ``info`` said at the end, the metrics of the trace among it.
        trace: Every event.
        actions: What each agent did, tick by tick.
    """

    team: str
    task_id: str
    returns: Mapping[str, float]
    outcome: Mapping[str, Any]
    trace: tuple[Event, ...]
    actions: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


def play_team(
    env: TeamParallelEnv,
    team: Team,
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> TeamEpisode:
    """Play one episode and return it.

    A policy that raises has crashed, and one that raises TimeoutError has timed out: the turn is
    lost, the policy is not asked again in this assignment, the others play on, and the trace
    says what happened.

    Args:
        env: The team's environment.
        team: Who plays.
        seed: Seeds the environment and every policy.
        options: Options of the reset, for example ``{"task": id}``.
    """
    observations, infos = env.reset(seed=seed, options=dict(options or {}))
    players = {agent: _Player(team, env, agent, seed) for agent in env.possible_agents}
    returns = dict.fromkeys(env.possible_agents, 0.0)
    played = []
    while env.agents:
        actions = {
            agent: players[agent].act(observations[agent], infos[agent]) for agent in env.asked()
        }
        played.append(actions)
        observations, rewards, _, _, infos = env.step(actions)
        for agent, reward in rewards.items():
            returns[agent] += reward
    last = infos["leader_0"]
    keys = (
        "answer",
        "exact_match",
        "f1",
        "cover_exact_match",
        "evidence_recall",
        "calls",
        "failure",
        "valid",
        "gold_answers",
        "metrics",
        "team_return",
    )
    outcome = {key: last[key] for key in keys}
    return TeamEpisode(team.name, last["task_id"], returns, outcome, env.trace, tuple(played))


def difference_rewards(
    env: TeamParallelEnv,
    team: Team,
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return what each searcher's reports are worth to the team, exactly.

    The worth is the team's return minus the team's return of the same episode with this
    searcher's reports read by nobody (difference rewards, Wolpert and Tumer,
    arXiv:cs/9908014). Episodes are deterministic, so it is computed by playing again.

    Raises:
        ConfigurationError: The policies did something else when the episode was played again.
    """
    chosen = dict(options or {})
    first = play_team(env, team, seed=seed, options=chosen)
    chosen = {"task": first.task_id}
    again = play_team(env, team, seed=seed, options=chosen)
    if again.trace != first.trace:
        raise ConfigurationError(
            f"team {team.name!r} played another episode from the same seed; difference rewards "
            "need policies that draw from the seed of reset() alone"
        )
    worth = {}
    for agent in env.rules.searcher_names:
        without = play_team(env, team, seed=seed, options={**chosen, "muted": (agent,)})
        worth[agent] = first.outcome["team_return"] - without.outcome["team_return"]
    return worth


class _Player:
    """A policy that cannot stop the episode."""

    def __init__(self, team: Team, env: TeamParallelEnv, agent: str, seed: int) -> None:
        policy = team.policy(agent)
        try:
            self._policy: RolePolicy | None = policy(env, agent)
            digest = hashlib.sha256(agent.encode()).digest()
            entropy = [seed, int.from_bytes(digest[:4], "big")]
            self._policy.reset(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        except Exception as error:
            self._policy, self._fault = None, error

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        if self._policy is None:
            return _fault(self._fault)
        try:
            read = observation.get("text", observation)
            return self._policy.act(read, info)
        except Exception as error:
            return _fault(error)


def _fault(error: Exception) -> ProtocolError:
    code = "timed_out" if isinstance(error, TimeoutError) else "crashed"
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # even the error's own text may fail
        text = type(error).__name__
    return ProtocolError(code, replace_surrogates(text)[:_REASON_CHARS])
