"""A team that makes random, well-made calls: what chance is worth."""

import copy
from typing import Any

from ...envs.team import RolePolicy, TeamParallelEnv

__all__ = ["RandomAnswerer", "RandomLeader", "RandomSearcher"]


class _RandomPolicy(RolePolicy):
    def __init__(self, env: TeamParallelEnv, agent: str) -> None:
        super().__init__(env, agent)
        self._actions = copy.deepcopy(env.action_space(agent))

    def reset(self, seed: int) -> None:
        """Seed the draw."""
        self._actions.seed(seed)

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return a random call, or a random choice of a menu."""
        mask = observation.get("action_mask") if isinstance(observation, dict) else None
        return self._actions.sample(mask)


class RandomLeader(_RandomPolicy):
    """Assigns, hands over or answers at random."""

    role = "leader"


class RandomSearcher(_RandomPolicy):
    """Searches, reads or reports at random."""

    role = "searcher"


class RandomAnswerer(_RandomPolicy):
    """Answers at random."""

    role = "answerer"
