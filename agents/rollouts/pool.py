"""Equal environments, as many as play at once."""

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from ...corpora.errors import ConfigurationError
from ...envs.game import Game
from ...envs.wrappers import TextProtocol

__all__ = ["EnvironmentPool", "identity_of", "make_environment"]


def make_environment(
    environment: str | gym.Env[Any, Any], arguments: Mapping[str, Any] | None = None
) -> gym.Env[Any, Any]:
    """Return the environment, made now if an id was given.

    Raises:
        ConfigurationError: It is no search environment, or arguments were given for one that
            was made.
    """
    if not isinstance(environment, str):
        if arguments:
            raise ConfigurationError("arguments are for an environment's id, not for one made")
        env = environment
    else:
        try:
            env = gym.make(environment, **(arguments or {}))
        except (gym.error.Error, ModuleNotFoundError) as error:
            raise ConfigurationError(f"environment {environment!r}: {error}") from None
    if not isinstance(env.unwrapped, Game):
        raise ConfigurationError(f"{environment} is no search environment")
    return env


class EnvironmentPool:
    """Equal environments over one shared index, as many as are needed at once.

    Args:
        environment: An environment's id, or one that was made.
        arguments: What ``gym.make`` is given beside the id.
        protocol: The text protocol to put around each; None for tool calls.

    Raises:
        ConfigurationError: It is no search environment, or arguments were given for one that
            was made.
    """

    def __init__(
        self,
        environment: str | gym.Env[Any, Any],
        arguments: Mapping[str, Any] | None = None,
        *,
        protocol: str | None = None,
    ) -> None:
        env = make_environment(environment, arguments)
        self._first = env if protocol is None else TextProtocol(env, protocol)
        self._free = [copy.deepcopy(self._first)]

    def take(self) -> gym.Env[Any, Any]:
        """Return an environment that nobody else holds."""
        return self._free.pop() if self._free else copy.deepcopy(self._first)

    def give_back(self, env: gym.Env[Any, Any]) -> None:
        """Take an environment back, for the next episode."""
        self._free.append(env)


def identity_of(
    environment: str | gym.Env[Any, Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    protocol: str | None = None,
) -> dict[str, Any]:
    """Return what tells an environment from others: id, arguments, data, and what is around."""
    env = EnvironmentPool(environment, arguments, protocol=protocol).take()
    spec = env.spec
    inner = env.unwrapped
    return {
        "environment": spec.id if spec else type(inner).__name__,
        "env_hash": inner.env_hash if isinstance(inner, Game) else "",
        "max_episode_steps": spec.max_episode_steps if spec else None,
        "wrappers": [
            [wrapper.name, wrapper.entry_point, wrapper.kwargs]
            for wrapper in (spec.additional_wrappers if spec else ())
        ],
    }
