"""Where the episodes of a run come from: worlds to learn in, and others to be tested in."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...corpora.errors import ConfigurationError
from ..rollouts.pool import make_environment

__all__ = ["World", "Worlds"]

_TRAIN, _TEST = 0, 1
_SEEDS = 2**31


@dataclass(frozen=True)
class World:
    """What ``generate`` is given to play in one world.

    Attributes:
        environment: The environment's id.
        arguments: What ``gym.make`` is given beside the id.
        options: The options of each reset.
    """

    environment: str
    arguments: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


class Worlds:
    """The worlds of an environment: training ones without end, and held-out ones.

    An environment that takes ``world_seed`` and ``split`` has a new world for each seed, and
    those of ``split="test"`` share no name with those of ``"train"``. Any other has one world,
    whose tasks are split into the two parts, as its reset option ``"split"`` does.

    Args:
        environment: The environment's id.
        arguments: What ``gym.make`` is given beside the id in every world; a ``world_seed``
            among them fixes the one world.
        seed: Decides the worlds' seeds.

    Raises:
        ConfigurationError: There is no such search environment, or an argument is wrong.
    """

    def __init__(
        self, environment: str, arguments: Mapping[str, Any] | None = None, *, seed: int = 0
    ) -> None:
        self.environment = environment
        self.arguments = dict(arguments or {})
        self._seed = seed
        made = make_environment(environment, self.arguments)
        known = inspect.signature(type(made.unwrapped).__init__).parameters
        given = {"world_seed", "split"} & set(self.arguments)
        self.are_endless = {"world_seed", "split"} <= set(known)
        if self.are_endless and given:
            raise ConfigurationError(
                f"arguments of {environment}: leave out {sorted(given)}; training chooses worlds "
                "of split 'train', and tests in worlds of split 'test'"
            )

    def training(self, number: int) -> World:
        """Return the training world of a number, the same one each time."""
        return self._world("train", _TRAIN, number)

    def held_out(self, number: int = 0) -> World:
        """Return a world that no training world shares anything with."""
        return self._world("test", _TEST, number)

    def _world(self, split: str, part: int, number: int) -> World:
        if not self.are_endless:
            return World(self.environment, self.arguments, {"split": split})
        entropy = np.random.SeedSequence([self._seed, part, number])
        world_seed = int(entropy.generate_state(1)[0]) % _SEEDS
        arguments = {**self.arguments, "world_seed": world_seed, "split": split}
        return World(self.environment, arguments)
