"""Game: what each registered environment offers beside Gymnasium's reset and step."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import gymnasium as gym

from ..corpora.tasks import Task, TaskSet

__all__ = ["Game"]

Observation = TypeVar("Observation")
Action = TypeVar("Action")


class Game(gym.Env[Observation, Action], ABC):
    """An environment whose episodes have a task, can be gone back to, and are scored at the end.

    The conformance kit and the bench ask no more than this, so that they take ``SearchEnv``,
    which is played by tool calls, and ``QueryRefinementEnv``, which is played by numbers, alike.

    Attributes:
        score_keys: What the last ``info`` says of how good the episode was; each is None where
            the backend failed.
        tasks: What may be asked.
        reward_range: The lowest and the highest reward of a step.
        best_return: What no episode exceeds.
        is_best_reachable: Whether an episode of each task reaches it.
    """

    score_keys: ClassVar[tuple[str, ...]]
    tasks: TaskSet
    reward_range: tuple[float, float]
    best_return: float
    is_best_reachable: bool

    @property
    @abstractmethod
    def env_hash(self) -> str:
        """A short hash of all that decides what an episode looks like."""

    @property
    @abstractmethod
    def max_turns(self) -> int:
        """How many steps an episode has at most."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """The task of the running or last episode, gold answers included: privileged."""

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the state of the episode and of the generator, to come back to."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go back to a snapshot, of this environment or of an equal one."""

    @abstractmethod
    def opening_action(self) -> Any:
        """Return an action that may begin an episode and does not end it: for the kit."""

    @abstractmethod
    def break_backend(self) -> Any:
        """Put a backend in place that fails, and return an action that asks it: for the kit."""
