"""What a policy is: anything that plays episodes, many at a time if it can."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ..corpora.errors import ConfigurationError
from .base import Agent
from .rollouts.running import Reply, RunningEpisode
from .rollouts.trajectory import Trajectory

__all__ = ["AgentPolicy", "Policy"]


class Policy(ABC):
    """Plays episodes of any environment.

    An episode knows all that a policy needs; a policy keeps nothing from one episode to the next
    that could change what it does, so that results do not depend on how many play at once.

    Attributes:
        name: What lists and reports call it.
        protocol: The text protocol that it speaks; None if it calls tools.
        plays_menus: Whether it can choose from menus, by number.
        plays_texts: Whether it can play environments of text.
    """

    name: str
    protocol: str | None = None
    plays_menus: bool = False
    plays_texts: bool = True

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from a policy that may reply otherwise, as far as JSON can hold it.

        A run that was interrupted goes on only with a policy of the same identity.
        """
        return {"name": self.name, "protocol": self.protocol}

    @abstractmethod
    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play each episode and give back its trajectory, in any order.

        Take the next episode when there is room for it: taking one is what begins it.
        """


class AgentPolicy(Policy):
    """Lets an agent of ``seekgym.agents`` play as a policy.

    Args:
        agent: The class of the agent.
    """

    def __init__(self, agent: type[Agent]) -> None:
        self.name = agent.name
        self.plays_menus = agent.plays_menus
        self._agent = agent

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play one episode after the other.

        Raises:
            ConfigurationError: An episode goes on from turns that the agent has not seen.
        """
        for episode in episodes:
            if episode.plan.start is not None:
                raise ConfigurationError(
                    f"agent {self.name!r} plays from the first turn on only; "
                    "branches and suspended episodes need a policy that reads its turns"
                )
            agent = self._agent(episode.env)
            observation: str | None = episode.question
            agent.reset(observation, episode.info)
            while observation is not None:
                observation = episode.send(Reply(agent.act(observation, episode.info)))
            yield episode.finish()
