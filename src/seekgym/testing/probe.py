"""Drive an environment by a fixed script of good and bad actions, and write down what it does."""

import copy
import hashlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ..envs.game import Game
from ..envs.wrappers.menu import Menu, find_menu

__all__ = [
    "HOSTILE",
    "Case",
    "CheckFailedError",
    "Record",
    "actions_for",
    "digest",
    "failing",
    "game_of",
    "plain",
    "play_script",
    "record",
]


class _Unspeakable:
    """An object that fails when it is looked at."""

    def __repr__(self) -> str:
        raise ValueError("not to be spoken of")


# Actions that no environment may choke on.
HOSTILE: tuple[Any, ...] = (
    None,
    "",
    "search",
    [],
    {},
    {"name": "search"},
    {"arguments": {}},
    {"name": None, "arguments": None},
    {"name": ["search"], "arguments": {}},
    {"name": "serch", "arguments": {"query": "x"}},
    {"name": "search", "arguments": {"query": None}},
    {"name": "search", "arguments": {"query": 7}},
    {"name": "search", "arguments": {"query": ""}},
    {"name": "search", "arguments": {"query": " \t\n"}},
    {"name": "search", "arguments": {"query": "?!"}},
    {"name": "search", "arguments": {"query": 'a" OR b:c (d AND *~^2) [x TO y] +- \\'}},
    {"name": "search", "arguments": {"query": "\ud83c lone \udcb0 surrogates"}},
    {"name": "search", "arguments": {"query": "nul \0 and \u202e and \ufeff"}},
    {"name": "search", "arguments": {"query": "word " * 5_000}},
    {"name": "search", "arguments": {"query": "Ōsaka – Kyōto 北京 🚆"}},
    {"name": "search", "arguments": {"query": "x", "k": 3}},
    {"name": "read", "arguments": {"document_id": "../../etc/passwd"}},
    {"name": "read", "arguments": {"document_id": "no such document"}},
    {"name": "answer", "arguments": {"text": {"nested": 1}}},
    {"name": "read", "arguments": {"document_id": "x", "page": 10**5_000}},
    {"name": "search", "arguments": {"query": "x"}, "well_formed": np.array([1, 2])},
    {"name": "search", "arguments": {("a", 1): "x"}},
    _Unspeakable(),
    3.5,
    -1,
    10**30,
    np.array([0.5, 1.0]),
)


class CheckFailedError(AssertionError):
    """An environment broke the contract: the message says which part, and how."""


class Record(NamedTuple):
    """What one call gave back."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """An environment under test, made anew each time it is needed.

    Attributes:
        make: Makes it; must be picklable, so that other processes can make it too.
        make_vector: Makes a vector of it, given ``num_envs`` and ``autoreset_mode``; None if
            the environment has no vector of its own.
    """

    make: Callable[[], gym.Env[Any, Any]]
    make_vector: Callable[..., gym.vector.VectorEnv[Any, Any, Any]] | None = None

    @classmethod
    def of_id(cls, env_id: str, **arguments: Any) -> "Case":
        """Return the case of a registered id; ``module:id`` imports the module first."""
        module, _, name = env_id.rpartition(":")
        if module:
            importlib.import_module(module)
        vector = None
        if gym.spec(name).vector_entry_point is not None:
            vector = partial(_make_vector, env_id, arguments)
        return cls(partial(_make, env_id, arguments), vector)

    def game(self) -> Game[Any, Any]:
        """Make it and return the environment inside the wrappers."""
        return game_of(self.make())

    def view(self) -> gym.Env[Any, Any]:
        """Make it and return what its players see, without what ``gym.make`` puts around."""
        env = self.make()
        return env if find_menu(env) is not None else env.unwrapped

    def menu(self) -> Menu | None:
        """Make it and return its menu; None if it has none."""
        return find_menu(self.make())


def game_of(env: gym.Env[Any, Any]) -> Game[Any, Any]:
    """Return the environment inside the wrappers.

    Raises:
        CheckFailedError: It is no ``Game``.
    """
    inner = env.unwrapped
    if not isinstance(inner, Game):
        raise CheckFailedError(f"{type(inner).__name__} is no seekgym.envs.Game")
    return inner


def _make(env_id: str, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    return gym.make(env_id, **arguments)


def _make_vector(
    env_id: str, arguments: dict[str, Any], num_envs: int, autoreset_mode: Any
) -> gym.vector.VectorEnv[Any, Any, Any]:
    return gym.make_vec(
        env_id,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=autoreset_mode,
        **arguments,
    )


def actions_for(env: gym.Env[Any, Any], count: int, *, seed: int) -> list[Any]:
    """Return a script: three in four actions are samples, the others hostile."""
    generator = np.random.default_rng(seed)
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    return [
        space.sample()
        if generator.random() < 0.75
        else HOSTILE[int(generator.integers(len(HOSTILE)))]
        for _ in range(count)
    ]


def record(env: gym.Env[Any, Any], actions: list[Any], *, seed: int) -> list[Record]:
    """Play the script, resetting without a seed after each end, and return all that came back."""
    return list(play_script(env, actions, seed))


def play_script(env: gym.Env[Any, Any], actions: list[Any], seed: int) -> Iterator[Record]:
    """Give what each call of ``record`` gives, one at a time."""
    observation, info = env.reset(seed=seed)
    yield Record(observation, 0.0, False, False, info)
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        yield Record(observation, float(reward), terminated, truncated, info)
        if terminated or truncated:
            observation, info = env.reset()
            yield Record(observation, 0.0, False, False, info)


def digest(make: Callable[[], gym.Env[Any, Any]], count: int, seed: int) -> str:
    """Return a hash of a played script: equal means the same bytes came back."""
    env = make()
    played = record(env, actions_for(env, count, seed=seed), seed=seed)
    env.close()
    text = repr([plain(step) for step in played])
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def plain(value: Any) -> Any:
    """Return what came back in plain Python values, which compare and print as a whole."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in sorted(value.items())}
    if isinstance(value, np.ndarray):
        return [value.dtype.kind, [plain(item) for item in value.tolist()]]
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


@contextmanager
def failing(name: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a CheckFailedError that names the check."""
    try:
        yield
    except CheckFailedError as error:
        raise CheckFailedError(f"{name}: {error}") from error
    except Exception as error:
        raise CheckFailedError(f"{name}: {type(error).__name__}: {error}") from error
