"""Checks that an environment can be won, and not by chance."""

import json

from ..agents import Agent, OracleAgent, RandomAgent
from ..agents.rollouts import Trajectory, play, replay
from ..corpora.documents import Record
from .probe import Case, CheckFailedError

__all__ = ["check_oracle", "check_random", "check_replay"]

_EPISODES = 30
_TOLERANCE = 1e-9


def check_oracle(case: Case) -> None:
    """The oracle reaches the stated best return in every episode, and nothing exceeds it.

    Where the environment says so, or a menu may lack what is needed, the best return is a bound
    that cannot always be reached.
    """
    env = case.game()
    best = env.best_return
    is_reachable = env.is_best_reachable and case.menu() is None
    for total in _returns(case, OracleAgent):
        if total > best + _TOLERANCE or (is_reachable and total < best - _TOLERANCE):
            raise CheckFailedError(f"the oracle got {total}, the stated best is {best}")


def check_random(case: Case) -> None:
    """Random calls earn less than half of what the oracle earns, or half a point less."""
    oracle, random = _returns(case, OracleAgent), _returns(case, RandomAgent)
    best, mean = sum(oracle) / len(oracle), sum(random) / len(random)
    if mean > best / 2 and mean > best - 0.5:
        raise CheckFailedError(f"random calls get {mean} on average, the oracle {best}")


def check_replay(case: Case) -> None:
    """A recorded episode, written down and played again in a fresh environment, is the same."""
    env = case.make()
    trajectory = play(env, RandomAgent(env), seed=12)
    written = Record("the trajectory", 1, json.loads(trajectory.to_json()))
    differences = replay(Trajectory.from_record(written), case.make())
    if differences:
        raise CheckFailedError("; ".join(differences))


def _returns(case: Case, agent_class: type[Agent]) -> list[float]:
    env = case.make()
    agent = agent_class(env)
    return [play(env, agent, seed=seed).total_reward for seed in range(_EPISODES)]
