"""A vector of search environments that asks its retriever once a step."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

import numpy as np
from gymnasium import Space
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..corpora.errors import ConfigurationError, raise_unknown
from .actions import Action
from .backend import retrieve
from .base import SearchEnv, Step
from .rules import check_at_least

__all__ = ["SearchVectorEnv", "pack_infos"]

Observations = tuple[str, ...]
_MISSING: Any = object()
_MODES = {mode.value: mode for mode in AutoresetMode}


class SearchVectorEnv(VectorEnv[Observations, Sequence[Action], np.ndarray]):
    """Many copies of one environment over one shared, read-only index.

    Each step begins every episode's turn, asks the retriever for all of them in one batch, and
    finishes every turn. Trajectories are those of the same environments in a SyncVectorEnv.

    Observations are a tuple of ``num_envs`` texts, actions a sequence of as many calls.

    Args:
        env: The environment to copy.
        num_envs: How many.
        autoreset_mode: ``NextStep``, ``SameStep`` or ``Disabled``, or an ``AutoresetMode``.

    Raises:
        ConfigurationError: ``num_envs`` is below 1, or the mode is unknown.
    """

    def __init__(
        self,
        env: SearchEnv,
        num_envs: int = 1,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        check_at_least("num_envs", num_envs, 1)
        if type(env).step is not SearchEnv.step:
            raise ConfigurationError(
                f"{type(env).__name__} has a step() of its own, which a vector would not call; "
                "override finish(), or use gymnasium's SyncVectorEnv"
            )
        if not isinstance(autoreset_mode, AutoresetMode):
            if autoreset_mode not in _MODES:
                raise_unknown("autoreset_mode", autoreset_mode, _MODES)
            autoreset_mode = _MODES[autoreset_mode]
        self.num_envs = num_envs
        self.envs = [env, *(deepcopy(env) for _ in range(num_envs - 1))]
        self.autoreset_mode = autoreset_mode
        self.metadata = {**env.metadata, "autoreset_mode": autoreset_mode}
        self.render_mode = env.render_mode
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = cast(
            Space[Observations], batch_space(env.observation_space, num_envs)
        )
        self.action_space = cast(Space[Sequence[Action]], batch_space(env.action_space, num_envs))
        self._observations = [""] * num_envs
        self._is_begun = np.zeros(num_envs, dtype=np.bool_)
        self._is_done = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Reset every environment, or those of ``options["reset_mask"]``.

        An integer seed gives environment i the seed plus i, as Gymnasium's vectors do.

        Raises:
            ConfigurationError: The seeds or the mask are not one for each environment.
        """
        self._name_copies()
        seeds = self._seeds(seed)
        options = dict(options or {})
        mask = options.pop("reset_mask", np.ones(self.num_envs, dtype=np.bool_))
        if np.shape(mask) != (self.num_envs,):
            raise ConfigurationError(
                f"options['reset_mask'] must have one entry for each of the {self.num_envs} "
                f"environments, got shape {np.shape(mask)}"
            )
        infos: list[dict[str, Any] | None] = [None] * self.num_envs
        for index in map(int, np.flatnonzero(mask)):
            self._observations[index], infos[index] = self.envs[index].reset(
                seed=seeds[index], options=options
            )
            self._is_begun[index] = True
            self._is_done[index] = False
        return tuple(self._observations), pack_infos(infos)

    def step(
        self, actions: Sequence[Action]
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every environment; one that has ended is reset as the autoreset mode says.

        Raises:
            ConfigurationError: There is not one action for each environment.
            ResetNeeded: An environment was never reset, or has ended and the mode is ``Disabled``.
        """
        self._check_step(actions)
        resets = self._is_done & (self.autoreset_mode == AutoresetMode.NEXT_STEP)
        moves = zip(self.envs, actions, strict=True)
        going = [move for move, is_reset in zip(moves, resets, strict=True) if not is_reset]
        steps = iter(self._steps(going))
        rewards = np.zeros(self.num_envs)
        terminations = np.zeros(self.num_envs, dtype=np.bool_)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        infos: list[dict[str, Any] | None] = []
        for index, env in enumerate(self.envs):
            if resets[index]:
                observation, info = env.reset()
            else:
                observation, rewards[index], terminated, truncated, info = next(steps)
                terminations[index], truncations[index] = terminated, truncated
                if (terminated or truncated) and self.autoreset_mode == AutoresetMode.SAME_STEP:
                    final = {"final_obs": observation, "final_info": info}
                    observation, info = env.reset()
                    info = final | info
            self._observations[index] = observation
            infos.append(info)
        self._is_done = terminations | truncations
        return tuple(self._observations), rewards, terminations, truncations, pack_infos(infos)

    def _check_step(self, actions: Sequence[Action]) -> None:
        """Refuse a step as a whole, before any environment has begun its turn."""
        if isinstance(actions, (str, bytes)) or not isinstance(actions, (Sequence, np.ndarray)):
            raise ConfigurationError(
                f"actions must be a sequence of {self.num_envs}, got {type(actions).__name__}"
            )
        if len(actions) != self.num_envs:
            raise ConfigurationError(f"{self.num_envs} actions are needed, got {len(actions)}")
        is_ended = self._is_done & (self.autoreset_mode == AutoresetMode.DISABLED)
        waiting = np.flatnonzero(~self._is_begun | is_ended)
        if waiting.size:
            raise ResetNeeded(f"environments {waiting.tolist()} need a reset() before step()")

    def render(self) -> tuple[str, ...] | None:
        """Return what each environment renders; None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(env.render() or "" for env in self.envs)

    def _steps(self, moves: Sequence[tuple[SearchEnv, Action]]) -> list[Step]:
        """Begin every turn, ask the retriever once, and finish every turn."""
        pending = [env.begin(action) for env, action in moves]
        first = self.envs[0]
        rankings = retrieve(first.retriever, [turn.queries for turn in pending], first.k)
        return [
            env.finish(turn, ranking)
            for (env, _), turn, ranking in zip(moves, pending, rankings, strict=True)
        ]

    def _name_copies(self) -> None:
        """Give every copy the id of the whole, so that its hash is that of a single one."""
        if self.spec is not None and self.envs[0].spec is None:
            for env in self.envs:
                env.spec = self.spec

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + index for index in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ConfigurationError(f"{self.num_envs} seeds are needed, got {len(seed)}")
        return seed

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()


def pack_infos(infos: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the infos of all environments as Gymnasium's vectors hold them.

    For each key one array, and under ``_key`` a mask of the environments that have it. Numbers
    and booleans give arrays of their type, dictionaries are packed in turn, and anything else
    gives an array of objects.
    """
    columns: dict[str, list[Any]] = {}
    for index, info in enumerate(infos):
        for key, value in () if info is None else info.items():
            if key not in columns:
                columns[key] = [_MISSING] * len(infos)
            columns[key][index] = value
    packed: dict[str, Any] = {}
    for key, column in columns.items():
        has_key = [value is not _MISSING for value in column]
        packed[key] = _pack(column, has_key, is_text=key == "final_obs")
        packed[f"_{key}"] = np.array(has_key, dtype=np.bool_)
    return packed


def _pack(column: list[Any], has_key: list[bool], *, is_text: bool) -> Any:
    kind = type(column[has_key.index(True)])
    if kind is dict and not is_text:
        return pack_infos([None if value is _MISSING else value for value in column])
    is_number = kind in (int, float, bool)
    filler = 0 if is_number else None
    values = [filler if value is _MISSING else value for value in column]
    if is_number:
        return np.array(values, dtype=kind)  # numpy makes a None among numbers NaN
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
