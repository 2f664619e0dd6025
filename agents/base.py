"""What an agent is, and how an episode is played."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast

import gymnasium as gym

__all__ = ["Agent"]


class Agent(ABC):
    """Plays episodes of one environment.

    An evaluation makes one in each process; what it carries over from one episode to the next
    would make results depend on the number of processes.

    Attributes:
        name: What lists and reports call it.
        sees_gold: Whether it reads the gold answers or the evidence; reports say so.
        plays_menus: Whether it can also choose from menus, by number.

    Args:
        env: The environment that it will play.
    """

    name: ClassVar[str]
    sees_gold: ClassVar[bool] = False
    plays_menus: ClassVar[bool] = False

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env

    def _search(self, query: str) -> Any:
        """Return the call that searches in a search environment."""
        return cast(Any, self.env.unwrapped).search_call(query)

    @abstractmethod
    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Take the first observation of an episode."""

    @abstractmethod
    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the next action."""
