"""A learned policy as a player of the bench: it chooses from menus."""

from collections.abc import Iterator
from typing import Any, cast

from ...corpora.errors import ConfigurationError
from ...envs.wrappers.features import find_features
from ..policy import Policy
from ..rollouts.running import Reply, RunningEpisode
from ..rollouts.trajectory import Trajectory
from .sb3 import LearnedPolicy

__all__ = ["ChoosingPlayer"]


class ChoosingPlayer(Policy):
    """Plays menu environments by a learned policy.

    Args:
        policy: What was learned; see ``sb3.load_policy``.
        name: What lists and reports call it.
    """

    plays_menus = True
    plays_texts = False

    def __init__(self, policy: LearnedPolicy, name: str) -> None:
        self.name = name
        self._policy = policy

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play one episode after the other.

        Raises:
            ConfigurationError: The environment is no menu in numbers.
        """
        for episode in episodes:
            features = find_features(episode.env)
            if features is None:
                raise ConfigurationError(
                    f"{self.name!r} plays menus in numbers: Features(Menu(env)), not {episode.env}"
                )
            while episode.may_go_on:
                choice = self._policy.choose(features.features(), features.action_masks())
                episode.send(Reply(cast(Any, choice)))
            yield episode.finish()
